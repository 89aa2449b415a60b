"""Runs one optimizer step of a small Llama under PyTorch's FSDP version 1 and records every collective that it issues.

The model is transformers' Llama, wrapped layer by layer as Composer, fms-fsdp and transformers' Trainer do: one flat
parameter per decoder layer, the rest in the root, bf16 parameters and reduction. Composer reduces on every micro-step;
the Trainer enters no_sync on all but the last (cases named no_sync).
"""

import contextlib
import functools

import torch
import torch.distributed as dist

from recorder import MODEL, Recorder, case, run, storage_of, tokens_of

FRAMEWORK = "fsdp1"
PACKAGES = ("torch", "transformers")

CASES = [
    case("shard4", dict(dp_shard=4)),
    case("shard4_accumulate", dict(dp_shard=4), grad_accum=3),
    case("shard4_accumulate_no_sync", dict(dp_shard=4), grad_accum=3, no_sync=True),
    case("shard4_keep", dict(dp_shard=4), reshard=False),
    case("shard4_recompute", dict(dp_shard=4), recompute="full"),
    case("replicate2_shard2", dict(dp_replicate=2, dp_shard=2)),
    case("replicate2_shard2_accumulate", dict(dp_replicate=2, dp_shard=2), grad_accum=2),
    case("replicate2_shard2_accumulate_no_sync", dict(dp_replicate=2, dp_shard=2), grad_accum=2, no_sync=True),
    case("replicate2_shard2_recompute", dict(dp_replicate=2, dp_shard=2), recompute="full"),
    case("replicate4", dict(dp_replicate=4)),
    case("replicate4_accumulate", dict(dp_replicate=4), grad_accum=2),
]
for one in CASES:
    one["load"] = "fp32"


def strategy_of(case):
    from torch.distributed.fsdp import ShardingStrategy

    replicate, shard = case["mesh"].get("dp_replicate", 1), case["mesh"].get("dp_shard", 1)
    if shard == 1:
        return ShardingStrategy.NO_SHARD, None
    if replicate == 1:
        return (ShardingStrategy.FULL_SHARD if case["reshard"] else ShardingStrategy.SHARD_GRAD_OP), None
    mesh = dist.device_mesh.init_device_mesh("cpu", (replicate, shard), mesh_dim_names=("replicate", "shard"))
    return ShardingStrategy.HYBRID_SHARD, mesh


def prepared(case):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer

    strategy, mesh = strategy_of(case)
    model = LlamaForCausalLM(LlamaConfig(**{**MODEL, **case["model"], "use_cache": False}))
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={LlamaDecoderLayer})
    half = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
    model = FullyShardedDataParallel(model, auto_wrap_policy=policy, sharding_strategy=strategy, device_mesh=mesh,
                                     mixed_precision=half, device_id=torch.device("cpu"), use_orig_params=True)
    if case["recompute"] == "full":
        apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, LlamaDecoderLayer))
    model.train()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def train_step(case, model, optimizer, recorder):
    total = 0.0
    for micro, ids in enumerate(tokens_of(case)):
        recorder.micro, recorder.phase, recorder.place = micro, "forward", ""
        last = micro + 1 == case["grad_accum"]
        with model.no_sync() if case["no_sync"] and not last else contextlib.nullcontext():
            loss = model(input_ids=ids[:, :-1].contiguous(), labels=ids[:, :-1].contiguous()).loss
            recorder.phase, recorder.place = "backward", "head"
            loss.backward()
        total += float(loss)
    recorder.phase, recorder.place = "optimizer", ""
    norm = model.clip_grad_norm_(1.0)
    gradients = sorted({str(p.grad.dtype) for p in model.parameters() if p.grad is not None})
    optimizer.step()
    optimizer.zero_grad()
    return total / case["grad_accum"], float(norm), gradients


def traced(case, _folder, current):
    """What this rank issued in the second of two steps, and what it holds; the loss is this rank's."""
    torch.manual_seed(1)
    model, optimizer = prepared(case)
    recorder = Recorder(case["mesh"], {id(module): name for name, module in model.named_modules()})
    current["recorder"] = recorder
    with recorder:
        first = train_step(case, model, optimizer, recorder)
        first_events, recorder.events = recorder.events, []
        second = train_step(case, model, optimizer, recorder)
    return dict(events=recorder.events, first_events=first_events, losses=[first[0], second[0]], norms=None,
                gradient_dtypes=second[2], most_unsharded=None, storage=storage_of(model, optimizer))


if __name__ == "__main__":
    run("trace_fsdp1", __doc__)
