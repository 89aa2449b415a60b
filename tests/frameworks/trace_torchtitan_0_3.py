"""Runs one optimizer step of a small Llama through torchtitan 0.3 and records every collective that it issues.

As trace_torchtitan.py, of the releases whose configuration is Python: the model, its parallelisation (spmd_types, the
default), the chunked loss and the step are torchtitan's. CUDA graphs, which replay what is recorded here, are off.
"""

from types import SimpleNamespace

import torch
import torch.distributed as dist

import recorder as shared
from recorder import EXPERTS, MODEL, MICRO_BATCH, Recorder, case, run, storage_of, tokens_of, watch

FRAMEWORK = "torchtitan"
PACKAGES = ("torchtitan", "torch", "spmd_types")
ALONE = True

CASES = [
    case("shard4", dict(dp_shard=4)),
    case("shard4_whole_loss", dict(dp_shard=4), loss="whole"),
    case("shard4_recompute", dict(dp_shard=4), recompute="full"),
    case("shard4_selective", dict(dp_shard=4), recompute="selective"),
    case("shard4_accumulate", dict(dp_shard=4), grad_accum=2),
    case("shard4_keep", dict(dp_shard=4), reshard=False),
    case("replicate2_shard2", dict(dp_replicate=2, dp_shard=2)),
    case("replicate2_shard2_accumulate", dict(dp_replicate=2, dp_shard=2), grad_accum=2),
    case("replicate4", dict(dp_replicate=4)),
    case("shard2_tp2", dict(dp_shard=2, tp=2)),
    case("shard2_tp2_recompute", dict(dp_shard=2, tp=2), recompute="full"),
    case("shard2_tp2_accumulate", dict(dp_shard=2, tp=2), grad_accum=2),
    case("replicate2_tp2", dict(dp_replicate=2, tp=2)),
    case("replicate2_shard2_tp2", dict(dp_replicate=2, dp_shard=2, tp=2)),
    case("shard2_cp2", dict(dp_shard=2, cp=2)),
    case("shard2_cp2_recompute", dict(dp_shard=2, cp=2), recompute="full"),
    case("cp4", dict(cp=4)),
    case("shard4_lora", dict(dp_shard=4), finetune="lora"),
    case("shard4_lora_recompute", dict(dp_shard=4), finetune="lora", recompute="full"),
    case("replicate2_shard2_lora_accumulate", dict(dp_replicate=2, dp_shard=2), finetune="lora", grad_accum=2),
    case("shard2_tp2_lora", dict(dp_shard=2, tp=2), finetune="lora"),
    case("shard4_ep4", dict(dp_shard=4), model=EXPERTS, ep=4),
    case("shard4_ep2", dict(dp_shard=4), model=EXPERTS, ep=2),
    case("shard4_ep2_recompute", dict(dp_shard=4), model=EXPERTS, ep=2, recompute="full"),
    case("shard4_ep2_accumulate", dict(dp_shard=4), model=EXPERTS, ep=2, grad_accum=2),
]
for one in CASES:
    one["load"] = "fp32"    # training.dtype
    one.setdefault("loss", "chunked")
    # _spmd_distribute_state of protocols/module.py makes every parameter anew, trained, what LoRAConverter froze too;
    # its main branch has mended that
    one["backend"] = "partial_dtensor" if one.get("finetune") else "spmd_types"


class MaskedAttention(torch.autograd.Function):
    """FlexAttention under a mask: keeps what the kernel keeps."""

    @staticmethod
    def forward(ctx, query, key, value, hidden, scale):
        groups = query.shape[1] // key.shape[1]
        scores = torch.matmul(query.float(), key.repeat_interleave(groups, 1).float().transpose(-1, -2)) * scale
        scores = scores.masked_fill(hidden, float("-inf"))
        lse = torch.logsumexp(scores, -1)
        out = torch.matmul(torch.exp(scores - lse.unsqueeze(-1)), value.repeat_interleave(groups, 1).float())
        out = out.to(query.dtype)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.hidden, ctx.scale = hidden, scale
        return out

    @staticmethod
    def backward(ctx, grad_out):
        query, key, value, out, lse = ctx.saved_tensors
        groups = query.shape[1] // key.shape[1]
        keys, values = key.repeat_interleave(groups, 1).float(), value.repeat_interleave(groups, 1).float()
        scores = torch.matmul(query.float(), keys.transpose(-1, -2)) * ctx.scale
        p = torch.exp(scores.masked_fill(ctx.hidden, float("-inf")) - lse.unsqueeze(-1))
        dout = grad_out.float()
        dv = torch.matmul(p.transpose(-1, -2), dout)
        ds = p * (torch.matmul(dout, values.transpose(-1, -2)) - (dout * out.float()).sum(-1, keepdim=True)) * ctx.scale
        dq, dk = torch.matmul(ds, keys), torch.matmul(ds.transpose(-1, -2), query.float())
        grouped = [g.unflatten(1, (key.shape[1], groups)).sum(2).to(key.dtype) for g in (dk, dv)]
        return dq.to(query.dtype), *grouped, None, None


def attention_on_cpu():
    """FlexAttention compiles its kernel, whose backward a CPU lacks: the recorder's flash operator, which selective
    checkpointing knows, or under context parallelism a function with the mask that torchtitan made."""
    from torch.distributed.tensor.experimental._context_parallel import _attention as parallel
    from torch.nn.attention.flex_attention import create_block_mask, create_mask
    from torchtitan.models.common import attention

    def flex(query, key, value, *, block_mask, scale=None, **_):
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        if query.shape[2] == key.shape[2]:
            kernel = torch.ops.aten._scaled_dot_product_flash_attention
            out = kernel(query, key, value, 0.0, True, False, scale=scale)[0]
        else:
            seen = create_mask(block_mask.mask_mod, query.shape[0], 1, query.shape[2], key.shape[2], device="cpu")
            out = MaskedAttention.apply(query, key, value, ~seen, scale)
        return out, SimpleNamespace(lse=None)

    attention.FlexAttention._compiled_flex_attn = staticmethod(flex)
    attention._compiled_create_block_mask = parallel._compiled_create_block_mask = create_block_mask


def model_of():
    from torchtitan.models import llama3
    from torchtitan.models.common import ComplexRoPE, Embedding, Linear, RMSNorm

    dim, heads = MODEL["hidden_size"], MODEL["num_attention_heads"]
    layers = llama3._build_llama3_layers(
        n_layers=MODEL["num_hidden_layers"], dim=dim, n_heads=heads, n_kv_heads=MODEL["num_key_value_heads"],
        hidden_dim=MODEL["intermediate_size"], attn_backend="flex",
        rope=ComplexRoPE.Config(dim=dim // heads, max_seq_len=shared.SEQUENCE, theta=MODEL["rope_theta"]))
    return llama3.Llama3Model.Config(
        dim=dim, vocab_size=MODEL["vocab_size"],
        tok_embeddings=Embedding.Config(num_embeddings=MODEL["vocab_size"], embedding_dim=dim,
                                        param_init=llama3._EMBEDDING_INIT),
        norm=RMSNorm.Config(normalized_shape=dim, param_init=llama3._NORM_INIT),
        lm_head=Linear.Config(in_features=dim, out_features=MODEL["vocab_size"],
                              param_init=llama3._output_linear_init(dim)),
        layers=layers)


def experts_of():
    """Of Qwen3, without its norms of queries and keys; every expert is visited as often (torchtitan's own switch), so that
    all ranks move the same bytes, and nothing is biased towards balance."""
    from torchtitan.models import qwen3
    from torchtitan.models.common import ComplexRoPE, Embedding, Linear
    from torchtitan.models.common.config_utils import (get_attention_config, make_gqa_config, make_moe_config,
                                                       make_routed_experts_config, make_router_config)

    dim, heads, count, top = MODEL["hidden_size"], MODEL["num_attention_heads"], EXPERTS["num_local_experts"], 2
    rope = ComplexRoPE.Config(dim=dim // heads, max_seq_len=shared.SEQUENCE, theta=MODEL["rope_theta"])
    layers = []
    for _ in range(MODEL["num_hidden_layers"]):
        router = make_router_config(dim=dim, num_experts=count, gate_param_init=qwen3._LINEAR_INIT, top_k=top,
                                    score_func="softmax", route_norm=True)
        layers.append(qwen3.Qwen3TransformerBlock.Config(
            attention_norm=qwen3._qwen3_norm(dim), ffn_norm=qwen3._qwen3_norm(dim),
            attention=make_gqa_config(
                dim=dim, n_heads=heads, n_kv_heads=MODEL["num_key_value_heads"], head_dim=dim // heads,
                wqkv_param_init=qwen3._LINEAR_INIT, wo_param_init=qwen3._LINEAR_INIT,
                inner_attention=get_attention_config("flex"), fuse_qkv=True, rope=rope, qk_norm=None),
            moe=make_moe_config(
                num_experts=count, router=router, load_balance_coeff=None,
                routed_experts=make_routed_experts_config(
                    dim=dim, hidden_dim=EXPERTS["intermediate_size"], num_experts=count, top_k=top,
                    param_init=qwen3._EXPERTS_INIT, comm_backend="standard"))))
    return qwen3.Qwen3Model.Config(
        dim=dim, vocab_size=MODEL["vocab_size"],
        tok_embeddings=Embedding.Config(num_embeddings=MODEL["vocab_size"], embedding_dim=dim,
                                        param_init=qwen3._EMBEDDING_INIT),
        norm=qwen3._qwen3_norm(dim),
        lm_head=Linear.Config(in_features=dim, out_features=MODEL["vocab_size"], param_init=qwen3._LINEAR_INIT),
        layers=layers)


def configured(case):
    """The options of a job; torchtitan takes its device from the accelerator that it finds: the CPU here."""
    torch._utils._get_available_device_type = lambda: "cpu"
    from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
    from torchtitan.components.optimizer import default_adamw
    from torchtitan.config import DebugConfig, ParallelismConfig, TrainingConfig
    from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
    from torchtitan.protocols.model_spec import ModelSpec
    from torchtitan.trainer import Trainer
    from torchtitan.models.llama3 import parallelize_llama
    from torchtitan.models.qwen3 import parallelize_qwen3

    spread = case["ep"] > 1
    model = experts_of() if spread else model_of()
    if case.get("finetune") == "lora":
        from torchtitan.components.lora import LoRAConverter

        model = LoRAConverter(LoRAConverter.Config(
            rank=16, alpha=32, target_modules=["wqkv", "wo", "w1", "w2", "w3"])).convert(model)
    cross_entropy = CrossEntropyLoss.Config(global_vocab_size=MODEL["vocab_size"])
    mesh = case["mesh"]
    return Trainer.Config(
        model_spec=ModelSpec(name="qwen3" if spread else "llama3", flavor="tiny", model=model,
                             parallelize_fn=parallelize_qwen3 if spread else parallelize_llama,
                             pipelining_fn=None, post_optimizer_build_fn=None, state_dict_adapter=None),
        loss=ChunkedLossWrapper.Config(loss_fn=cross_entropy) if case["loss"] == "chunked" else cross_entropy,
        optimizer=default_adamw(lr=1e-4),
        debug=DebugConfig(moe_force_load_balance=spread),
        training=TrainingConfig(
            local_batch_size=MICRO_BATCH, seq_len=shared.SEQUENCE, disable_cuda_graphs=True,
            mixed_precision_param="bfloat16" if case["precision"] == "bf16" else "float32"),
        parallelism=ParallelismConfig(
            data_parallel_replicate_degree=mesh.get("dp_replicate", 1),
            data_parallel_shard_degree=mesh.get("dp_shard", 1), context_parallel_degree=mesh.get("cp", 1),
            tensor_parallel_degree=mesh.get("tp", 1), expert_parallel_degree=case["ep"], spmd_backend=case["backend"],
            fsdp_reshard_after_forward="default" if case["reshard"] else "never"),
        activation_checkpoint={"none": None, "full": FullAC.Config(), "selective": SelectiveAC.Config()}[
            case["recompute"]])


def prepared(case):
    job = configured(case)
    from torchtitan.components.loss import ChunkedLossWrapper
    from torchtitan.distributed import ParallelDims, utils as dist_utils
    from torchtitan.trainer import Trainer

    attention_on_cpu()
    dims = ParallelDims.from_config(job.parallelism, dist.get_world_size())
    dims.build_mesh()
    dist_utils.set_spmd_backend(job.parallelism.spmd_backend)
    job.model_spec.model.update_from_config(config=job)
    with torch.device("meta"):
        model = job.model_spec.model.build()
    model = job.model_spec.parallelize_fn(
        model, parallel_dims=dims, training=job.training, parallelism=job.parallelism, compile_config=job.compile,
        ac_config=job.activation_checkpoint, dump_folder=job.dump_folder)
    model.to_empty(device="cpu")
    with torch.no_grad():
        model.init_weights(buffer_device=None)
    model.train()

    trainer = Trainer.__new__(Trainer)
    trainer.config, trainer.parallel_dims, trainer.model_config = job, dims, job.model_spec.model
    trainer.device, trainer.step, trainer.ntokens_seen = torch.device("cpu"), 1, 0
    trainer.gradient_accumulation_steps, trainer.num_pipeline_parallel_microbatches = case["grad_accum"], 1
    trainer.model_parts, trainer.optimizers = [model], torch.optim.AdamW(model.parameters(), lr=1e-4)
    trainer.loss_fn = job.loss.build(compile_config=job.compile)
    if isinstance(trainer.loss_fn, ChunkedLossWrapper):    # as Trainer.__init__ does
        trainer.loss_fn.set_lm_head(model.lm_head)
        model._skip_lm_head = True
    trainer.train_context = dist_utils.get_spmd_context(parallel_dims=dims, spmd_typechecking=False)
    trainer.fwd_bwd_fn = trainer._forward_backward_body
    trainer.lr_schedulers = SimpleNamespace(get_metrics=dict, step=lambda: None)
    trainer.checkpointer = SimpleNamespace(maybe_wait_for_staging=lambda: None)
    trainer.metrics_processor = SimpleNamespace(should_log=lambda step: False)
    return trainer, model, trainer.optimizers


def follow(recorder, trainer, losses):
    """Tells the recorder where the step is; each part of the loss has a backward of its own inside the forward's."""
    loss_function, body = trainer.loss_fn, trainer.fwd_bwd_fn
    backward = torch.Tensor.backward

    def micro_step(*args, **kwargs):
        recorder.micro += 1
        recorder.phase, recorder.place = "forward", ""
        torch.Tensor.backward = marked
        try:
            return body(*args, **kwargs)
        finally:
            torch.Tensor.backward = backward

    def marked(tensor, *args, **kwargs):
        before, recorder.phase = recorder.phase, "backward"
        backward(tensor, *args, **kwargs)
        recorder.phase = before

    def with_place(*args, **kwargs):
        recorder.place = "head"
        loss, metrics = loss_function(*args, **kwargs)
        losses.append(loss.detach())
        return loss, metrics

    trainer.fwd_bwd_fn, trainer.loss_fn = micro_step, with_place


def train_step(case, trainer, recorder, losses):
    positions = torch.arange(shared.SEQUENCE).repeat(MICRO_BATCH, 1)
    batches = [(dict(input=ids[:, :-1].contiguous(), positions=positions.clone()), ids[:, 1:].contiguous())
               for ids in tokens_of(case)]
    recorder.micro, recorder.phase = -1, "forward"
    losses.clear()
    trainer.train_step(iter(batches))
    values = torch.stack(losses).sum()    # of this rank, over the tokens of all
    replicas = case["mesh"].get("dp_replicate", 1) * case["mesh"].get("dp_shard", 1)
    return float(values) * replicas * case["mesh"].get("cp", 1)


def traced(case, _folder, current):
    """What this rank issued in the second of two steps, and what it holds; the loss is this rank's."""
    torch.manual_seed(1)
    if case["mesh"].get("cp", 1) > 1:    # a rank's tokens are whole blocks of FlexAttention's mask
        shared.SEQUENCE = 128 * case["mesh"]["cp"]
    trainer, model, optimizer = prepared(case)
    losses = []
    recorder = Recorder(case["mesh"], {id(module): name for name, module in model.named_modules()}, case["ep"])
    current["recorder"] = recorder
    watch(recorder, model)
    follow(recorder, trainer, losses)
    with recorder:
        first = train_step(case, trainer, recorder, losses)
        first_events, recorder.events = recorder.events, []
    with recorder:
        second = train_step(case, trainer, recorder, losses)
    gradients = sorted({str(p.grad.dtype) for p in model.parameters() if p.grad is not None})
    return dict(events=recorder.events, first_events=first_events, losses=[first, second], norms=None,
                gradient_dtypes=gradients, most_unsharded=recorder.most_unsharded, storage=storage_of(model, optimizer),
                kept_per_layer=recorder.kept_per_layer())


if __name__ == "__main__":
    run("trace_torchtitan_0_3", __doc__)
