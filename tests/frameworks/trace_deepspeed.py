"""Runs two optimizer steps of a small Llama through DeepSpeed's engine and records every collective of the second.

Its CPU accelerator runs ZeRO over gloo as it is; the optimizer is PyTorch's AdamW, as the fused one is a kernel for GPUs.
Thresholds by which stage 3 keeps parameters whole, or fetches them ahead, are those of a model with large layers. Recorded
is the third step: stage 3 learns the order of parameters in the first two.
"""

import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("LOCAL_SIZE", "4")

import deepspeed
import deepspeed.runtime.zero.stage3    # before the ranks are forked
import deepspeed.runtime.zero.stage_1_and_2
import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM

from recorder import Recorder, case, run, tokens_of, watch
from trace_accelerate import save_model

FRAMEWORK = "deepspeed"
STEP = "third of three"
PACKAGES = ("deepspeed", "transformers", "torch")

LAYER = 786944    # parameters of a layer of the preset

CASES = [
    case("stage0", dict(dp_replicate=4), zero=0, load="fp32"),
    case("stage1", dict(dp_shard=4), zero=1, load="fp32"),
    case("stage1_accumulate", dict(dp_shard=4), zero=1, load="fp32", grad_accum=2),
    case("stage1_overlap", dict(dp_shard=4), zero=1, load="fp32", overlap_comm=True),
    case("stage2", dict(dp_shard=4), zero=2, load="fp32"),
    case("stage2_accumulate", dict(dp_shard=4), zero=2, load="fp32", grad_accum=2),
    case("stage2_overlap", dict(dp_shard=4), zero=2, load="fp32", overlap_comm=True),
    case("stage2_buckets", dict(dp_shard=4), zero=2, load="fp32", bucket=LAYER),
    case("stage3", dict(dp_shard=4), zero=3, load="fp32"),
    case("stage3_accumulate", dict(dp_shard=4), zero=3, load="fp32", grad_accum=2),
    case("stage3_no_overlap", dict(dp_shard=4), zero=3, load="fp32", overlap_comm=False),
    case("stage3_recompute", dict(dp_shard=4), zero=3, load="fp32", recompute="full", recompute_by="model"),
]


def configured(one):
    zero = dict(stage=one["zero"])
    if "overlap_comm" in one:
        zero["overlap_comm"] = one["overlap_comm"]
    if "bucket" in one:
        zero["reduce_bucket_size"] = one["bucket"]
    if one["zero"] == 3:
        zero |= dict(stage3_param_persistence_threshold=0, stage3_model_persistence_threshold=0,
                     stage3_max_reuse_distance=LAYER, stage3_max_live_parameters=LAYER, stage3_prefetch_bucket_size=LAYER)
    return dict(train_micro_batch_size_per_gpu=2, gradient_accumulation_steps=one["grad_accum"], gradient_clipping=1.0,
                bf16=dict(enabled=one["precision"] == "bf16"), zero_optimization=zero,
                zero_allow_untested_optimizer=True)


def prepared(one, folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa")
    model.train()
    if one["recompute"] == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=configured(one))
    return engine


def train_step(one, engine, recorder):
    for micro, ids in enumerate(tokens_of(one)):
        recorder.micro, recorder.phase, recorder.place = micro, "forward", ""
        loss = engine(input_ids=ids[:, :-1].contiguous(), labels=ids[:, 1:].contiguous(), use_cache=False).loss
        recorder.phase, recorder.place = "backward", "head"
        engine.backward(loss)
        recorder.phase, recorder.place = "optimizer", ""
        engine.step()
    return loss.item(), float(engine.get_global_grad_norm())


def states_of(engine):
    """Masters and moments of this rank; the engine's optimizer holds them by stage."""
    inner = getattr(engine.optimizer, "optimizer", engine.optimizer)
    masters = getattr(engine.optimizer, "fp32_partitioned_groups_flat", None)    # stage 3
    masters = masters or [p for group in inner.param_groups for p in group["params"]]
    moments = [t for state in inner.state.values() for t in state.values() if torch.is_tensor(t) and t.numel() > 1]
    return dict(parameter_bytes=sum(p.numel() * p.element_size() for p in masters),
                parameter_dtypes=sorted({str(p.dtype) for p in masters}),
                moment_bytes=sum(t.numel() * t.element_size() for t in moments),
                moment_dtypes=sorted({str(t.dtype) for t in moments}))


def traced(one, folder, current):
    if dist.get_rank() == 0:
        save_model(folder, one["model"])
    dist.barrier()
    torch.manual_seed(1)
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    engine = prepared(one, folder)
    recorder = Recorder(one["mesh"], {id(module): name for name, module in engine.module.named_modules()})
    current["recorder"] = recorder
    watch(recorder, engine.module)
    with recorder:
        train_step(one, engine, recorder)
        recorder.events = []
        first = train_step(one, engine, recorder)
        first_events, recorder.events = recorder.events, []
        second = train_step(one, engine, recorder)
    return dict(events=recorder.events, first_events=first_events, losses=[first[0], second[0]],
                norms=[first[1], second[1]], gradient_dtypes=[], most_unsharded=None, storage=states_of(engine),
                kept_per_layer=recorder.kept_per_layer(), gradient_bytes=None)


if __name__ == "__main__":
    run("trace_deepspeed", __doc__)
