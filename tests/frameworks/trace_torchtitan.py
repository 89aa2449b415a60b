"""Runs one optimizer step of a small Llama through torchtitan and records every collective that the framework issues.

The model, its parallelisation and the step are torchtitan's: parallelize_llama, Trainer.train_step, its loss, clipping.
The trainer is made without its data loader, checkpoints, metrics and GPU; a step that does not log is recorded.
"""

from types import SimpleNamespace

import torch
import torch.distributed as dist

from recorder import MODEL, SEQUENCE, MICRO_BATCH, Recorder, case, run, storage_of, tokens_of, watch

FRAMEWORK = "torchtitan"
PACKAGES = ("torchtitan", "torch")

CASES = [
    case("shard4", dict(dp_shard=4)),
    case("shard4_recompute", dict(dp_shard=4), recompute="full"),
    case("shard4_accumulate", dict(dp_shard=4), grad_accum=2),
    case("shard4_keep", dict(dp_shard=4), reshard=False),
    case("replicate2_shard2", dict(dp_replicate=2, dp_shard=2)),
    case("replicate2_shard2_accumulate", dict(dp_replicate=2, dp_shard=2), grad_accum=2),
    case("shard2_tp2", dict(dp_shard=2, tp=2)),
    case("shard2_tp2_recompute", dict(dp_shard=2, tp=2), recompute="full"),
    case("shard2_tp2_selective", dict(dp_shard=2, tp=2), recompute="selective"),
    case("shard2_tp2_accumulate", dict(dp_shard=2, tp=2), grad_accum=2),
    case("shard2_cp2", dict(dp_shard=2, cp=2)),
    case("shard2_cp2_recompute", dict(dp_shard=2, cp=2), recompute="full"),
    case("shard2_cp2_selective", dict(dp_shard=2, cp=2), recompute="selective"),
    case("cp4", dict(cp=4)),
    case("shard2_cp2_tp2", dict(dp_shard=2, cp=2, tp=2)),
    case("replicate2_shard2_tp2", dict(dp_replicate=2, dp_shard=2, tp=2)),
    case("replicate4", dict(dp_replicate=4)),
    case("replicate4_accumulate", dict(dp_replicate=4), grad_accum=2),
]
for one in CASES:
    one["load"] = "fp32"    # training.dtype


def configured(case):
    """torchtitan takes its device from the accelerator that it finds: the CPU here."""
    torch._utils._get_available_device_type = lambda: "cpu"
    from torchtitan.config import JobConfig
    from torchtitan.distributed import ParallelDims

    job = JobConfig()
    job.training.seq_len = SEQUENCE
    job.training.local_batch_size = MICRO_BATCH
    job.training.mixed_precision_param = "bfloat16" if case["precision"] == "bf16" else "float32"
    job.parallelism.fsdp_reshard_after_forward = "default" if case["reshard"] else "never"
    job.activation_checkpoint.mode = case["recompute"]
    job.activation_checkpoint.selective_ac_option = "op"
    job.compile.enable = False
    sizes = {axis: case["mesh"].get(axis, 1) for axis in ("dp_replicate", "dp_shard", "cp", "tp")}
    return job, ParallelDims(**sizes, pp=1, ep=1, etp=1, world_size=dist.get_world_size())


def prepared(case):
    job, dims = configured(case)
    from torchtitan.components.loss import build_cross_entropy_loss
    from torchtitan.distributed import utils as dist_utils
    from torchtitan.models.llama3 import Transformer, TransformerModelArgs, parallelize_llama
    from torchtitan.train import Trainer

    dims.build_mesh()
    arguments = TransformerModelArgs(
        dim=MODEL["hidden_size"], n_layers=MODEL["num_hidden_layers"], n_heads=MODEL["num_attention_heads"],
        n_kv_heads=MODEL["num_key_value_heads"], vocab_size=MODEL["vocab_size"], multiple_of=256, max_seq_len=SEQUENCE)
    with torch.device("meta"):
        model = Transformer(arguments)
    model = parallelize_llama(model, dims, job)
    model.to_empty(device="cpu")
    with torch.no_grad():
        model.init_weights(buffer_device=None)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    trainer = Trainer.__new__(Trainer)
    trainer.job_config, trainer.parallel_dims, trainer.model_args = job, dims, arguments
    trainer.device, trainer.tokenizer, trainer.step = torch.device("cpu"), None, 1
    trainer.gradient_accumulation_steps = case["grad_accum"]
    trainer.model_parts, trainer.optimizers = [model], optimizer
    trainer.loss_fn = build_cross_entropy_loss(job)
    trainer.train_context = dist_utils.get_train_context(dims.tp_enabled)
    trainer.maybe_enable_amp = dist_utils.maybe_enable_amp(dims, job.training.mixed_precision_param, "cpu")
    trainer.lr_schedulers = SimpleNamespace(schedulers=[SimpleNamespace(get_last_lr=lambda: [1e-4])], step=lambda: None)
    trainer.checkpointer = SimpleNamespace(maybe_wait_for_staging=lambda: None)
    trainer.metrics_processor = SimpleNamespace(should_log=lambda step: False)
    return trainer, model, optimizer


def follow(recorder, trainer, losses):
    """Tells the recorder where the step is."""
    loss_function = trainer.loss_fn

    def before_forward(_model, _args, _kwargs):
        recorder.micro += 1
        recorder.phase, recorder.place = "forward", ""

    def after_loss(prediction, labels):
        recorder.place = "head"
        loss = loss_function(prediction, labels)
        recorder.phase = "backward"
        losses.append(loss.detach())
        return loss

    trainer.model_parts[0].register_forward_pre_hook(before_forward, with_kwargs=True, prepend=True)
    trainer.loss_fn = after_loss


def train_step(case, trainer, recorder, losses):
    batches = [(dict(input=ids[:, :-1].contiguous()), ids[:, 1:].contiguous()) for ids in tokens_of(case)]
    recorder.micro, recorder.phase = -1, "forward"
    losses.clear()
    trainer.train_step(iter(batches))
    values = [loss.full_tensor() if hasattr(loss, "full_tensor") else loss for loss in losses]
    tokens = MICRO_BATCH * SEQUENCE / case["mesh"].get("cp", 1)
    return float(sum(values)) / len(values) / tokens


def traced(case, _folder, current):
    """What this rank issued in the second of two steps, and what it holds; the loss is this rank's."""
    torch.manual_seed(1)
    trainer, model, optimizer = prepared(case)
    losses = []
    recorder = Recorder(case["mesh"], {id(module): name for name, module in model.named_modules()})
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
                gradient_dtypes=gradients, most_unsharded=recorder.most_unsharded, storage=storage_of(model, optimizer))


if __name__ == "__main__":
    run("trace_torchtitan", __doc__)
