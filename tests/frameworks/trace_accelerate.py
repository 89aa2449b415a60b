"""Runs one optimizer step of a small Llama through accelerate and records every collective that the framework issues.

Every rank is a process with gloo on the CPU. The code that decides what is communicated is the frameworks' own; what
a machine without GPU lacks is filled in at the edges. README.md beside this file says how to run it.
"""

import functools
import importlib
import os

import torch
import torch.distributed as dist

from recorder import AXES, MODEL, SEQUENCE, Recorder, case, gradient_bytes_of, run, storage_of, tokens_of, watch

FRAMEWORK = "accelerate"
PACKAGES = ("accelerate", "torch", "transformers")

CASES = [
    case("shard4", dict(dp_shard=4)),
    case("shard4_fp32", dict(dp_shard=4), precision="fp32", load="fp32"),
    case("shard4_recompute", dict(dp_shard=4), recompute="full"),
    case("shard4_recompute_by_model", dict(dp_shard=4), recompute="full", recompute_by="model"),
    case("shard4_accumulate", dict(dp_shard=4), grad_accum=2),
    case("shard4_accumulate_sync", dict(dp_shard=4), grad_accum=2, sync_each_batch=True),
    case("shard4_keep", dict(dp_shard=4), reshard=False),
    case("shard4_tied", dict(dp_shard=4), model=dict(tie_word_embeddings=True)),
    case("shard4_tied_ram_efficient", dict(dp_shard=4), model=dict(tie_word_embeddings=True), ram_efficient=True),
    case("replicate2_shard2", dict(dp_replicate=2, dp_shard=2)),
    case("replicate2_shard2_accumulate", dict(dp_replicate=2, dp_shard=2), grad_accum=2),
    case("replicate2_shard2_accumulate_sync", dict(dp_replicate=2, dp_shard=2), grad_accum=2, sync_each_batch=True),
    case("tp2", dict(tp=2)),
    case("tp2_fp32", dict(tp=2), precision="fp32", load="fp32"),
    case("tp2_autocast", dict(tp=2), load="fp32"),
    case("shard2_tp2", dict(dp_shard=2, tp=2)),
    case("shard2_tp2_load_fp32", dict(dp_shard=2, tp=2), load="fp32"),
    case("shard2_tp2_recompute", dict(dp_shard=2, tp=2), recompute="full"),
    case("shard2_tp2_accumulate", dict(dp_shard=2, tp=2), grad_accum=2),
    case("shard2_cp2", dict(dp_shard=2, cp=2)),
    case("shard2_cp2_ring", dict(dp_shard=2, cp=2), rotate="alltoall"),
    case("shard2_cp2_recompute", dict(dp_shard=2, cp=2), recompute="full"),
    case("cp4", dict(cp=4)),
    case("cp4_ring_recompute", dict(cp=4), rotate="alltoall", recompute="full"),
    case("shard2_cp2_tp2", dict(dp_shard=2, cp=2, tp=2)),
    case("shard2_cp2_tp2_ring_recompute", dict(dp_shard=2, cp=2, tp=2), rotate="alltoall", recompute="full"),
    case("replicate2_shard2_tp2", dict(dp_replicate=2, dp_shard=2, tp=2)),
    case("replicate2_shard2_cp2", dict(dp_replicate=2, dp_shard=2, cp=2)),
    case("replicate4", dict(dp_replicate=4), load="fp32"),
    case("replicate4_accumulate", dict(dp_replicate=4), load="fp32", grad_accum=2),
]


# ---------------------------------------------------------------------------------------------- the step

def read_to_cpu(safe_open, file, framework, device="cpu", **more):
    return safe_open(file, framework=framework, device="cpu", **more)


def prepared(case, folder):
    """Two edges of a CPU: accelerate turns FSDP2 on for MULTI_GPU and its kin only, so its state is told that it is
    MULTI_GPU, and then kept from giving DDP a GPU's number; from_pretrained reads tensor-parallel weights to the GPU of
    the local rank, so it is told to read to the CPU.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.parallelism_config import ParallelismConfig
    from accelerate.utils import (DistributedType, FullyShardedDataParallelPlugin, GradientAccumulationPlugin,
                                  TorchContextParallelConfig)
    from transformers import AutoModelForCausalLM

    AcceleratorState._reset_state(reset_partial_state=True)
    os.environ.pop("ACCELERATE_USE_FSDP", None)    # left behind by the case before
    os.environ["ACCELERATE_BYPASS_DEVICE_MAP"] = "true"
    modeling = importlib.import_module("transformers.modeling_utils")
    modeling.safe_open = functools.partial(read_to_cpu, importlib.import_module("safetensors").safe_open)
    PartialState(cpu=True)
    PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU

    mesh = case["mesh"]
    sizes = {f"{axis}_size": mesh.get(axis, 1) for axis in AXES}
    config = ParallelismConfig(**sizes)
    if mesh.get("cp", 1) > 1:
        config = ParallelismConfig(**sizes, cp_handler=TorchContextParallelConfig(cp_comm_strategy=case["rotate"]))
    plugin = None
    if mesh.get("dp_shard", 1) * mesh.get("cp", 1) > 1:
        plugin = FullyShardedDataParallelPlugin(
            fsdp_version=2, auto_wrap_policy="transformer_based_wrap", reshard_after_forward=case["reshard"],
            transformer_cls_names_to_wrap=["LlamaDecoderLayer"], 
            activation_checkpointing=case["recompute"] == "full" and case["recompute_by"] == "plugin",
            cpu_ram_efficient_loading=case["ram_efficient"])
    mixed = case["precision"] == "bf16" and (plugin or case["load"] == "fp32")
    accumulation = GradientAccumulationPlugin(num_steps=case["grad_accum"], sync_each_batch=case["sync_each_batch"])
    accelerator = Accelerator(cpu=True, mixed_precision="bf16" if mixed else "no", parallelism_config=config,
                              fsdp_plugin=plugin, gradient_accumulation_plugin=accumulation)
    dtype = torch.bfloat16 if case["load"] == "bf16" else torch.float32
    options = dict(dtype=dtype, use_cache=False, attn_implementation="sdpa")
    if mesh.get("tp", 1) > 1:
        options.update(tp_plan="auto", device_mesh=accelerator.torch_device_mesh)
    model = AutoModelForCausalLM.from_pretrained(folder, **options)
    model.train()
    prepare_model(case, model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return accelerator, *accelerator.prepare(model, optimizer)


def prepare_model(case, model):
    """Layers checkpointed by the model itself, not by FSDP's plugin; for frameworks that go on from here."""
    if case["recompute"] == "full" and case["recompute_by"] == "model":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))


def batches_of(case):
    positions = torch.arange(SEQUENCE).unsqueeze(0)
    return [dict(input_ids=ids[:, :-1].contiguous(), labels=ids[:, :-1].contiguous(),
                 shift_labels=ids[:, 1:].contiguous(), position_ids=positions.expand(len(ids), -1).contiguous())
            for ids in tokens_of(case)]


def average_loss(accelerator, loss):
    """As examples/torch_native_parallelism/nd_parallel.py does after every step."""
    names = accelerator.torch_device_mesh.mesh_dim_names
    if any(name != "tp" for name in names):
        dist.all_reduce(loss, op=dist.ReduceOp.AVG, group=accelerator.torch_device_mesh["dp_cp"].get_group())
    return loss


def train_step(case, accelerator, model, optimizer, recorder):
    """One optimizer step as in nd_parallel.py, with clipping at norm 1."""
    kept = []
    for micro, batch in enumerate(batches_of(case)):
        recorder.micro, recorder.phase, recorder.place = micro, "forward", ""
        buffers = list(batch.values())
        with accelerator.accumulate(model), accelerator.maybe_context_parallel(
                buffers=buffers, buffer_seq_dims=[1] * len(buffers), no_restore_buffers=set(buffers)):
            loss = model(**batch).loss
            recorder.phase, recorder.place = "backward", "head"
            accelerator.backward(loss)
            recorder.phase = "optimizer"
            norm = None
            # Tensor parallelism alone leaves norms and embedding plain tensors beside DTensors: torch refuses to clip.
            if accelerator.sync_gradients and set(case["mesh"]) != {"tp"}:
                norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            gradients = sorted({str(p.grad.dtype) for p in model.parameters() if p.grad is not None})
            kept.append(gradient_bytes_of(model))
            optimizer.zero_grad()
    mean = average_loss(accelerator, loss.detach().float().clone())
    return mean.item(), None if norm is None else float(norm), gradients, kept


def traced(case, folder, current):
    """What this rank issued in the second of two steps, and what it holds."""
    if dist.get_rank() == 0:
        save_model(folder, case["model"])
    dist.barrier()
    torch.manual_seed(1)
    accelerator, model, optimizer = prepared(case, folder)
    recorder = Recorder(case["mesh"], {id(module): name for name, module in model.named_modules()})
    current["recorder"] = recorder
    watch(recorder, model)
    with recorder:
        first = train_step(case, accelerator, model, optimizer, recorder)
        first_events, recorder.events = recorder.events, []
        second = train_step(case, accelerator, model, optimizer, recorder)
    return dict(events=recorder.events, first_events=first_events, losses=[first[0], second[0]],
                norms=[first[1], second[1]], gradient_dtypes=second[2], most_unsharded=recorder.most_unsharded,
                storage=storage_of(model, optimizer), kept_per_layer=recorder.kept_per_layer(), gradient_bytes=second[3])


def save_model(folder, overrides):
    from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

    torch.manual_seed(1)
    config = {**MODEL, **overrides}
    if "num_local_experts" in config:
        MixtralForCausalLM(MixtralConfig(**config)).save_pretrained(folder)
    else:
        LlamaForCausalLM(LlamaConfig(**config)).save_pretrained(folder)


if __name__ == "__main__":
    run("trace_accelerate", __doc__)
