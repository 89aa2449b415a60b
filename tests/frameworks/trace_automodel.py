"""Runs two optimizer steps of a small Llama as NeMo Automodel trains it under FSDP2 and records every collective of the second.

Mesh, sharding, tensor parallelism, checkpointing, synchronisation and clipping are Automodel's own functions, called in the order
of its recipe (recipes/llm/train_ft.py), whose data, checkpoints and logging stay out.
"""

import torch
import torch.distributed as dist

from recorder import AXES, Recorder, case, gradient_bytes_of, run, storage_of, tokens_of, watch
from trace_accelerate import save_model

FRAMEWORK = "automodel"
PACKAGES = ("nemo-automodel", "torch", "transformers")
ALONE = True

CASES = [
    case("shard4", dict(dp_shard=4)),
    case("shard4_recompute", dict(dp_shard=4), recompute="full"),
    case("shard4_accumulate", dict(dp_shard=4), grad_accum=2),
    case("shard4_accumulate_sync", dict(dp_shard=4), grad_accum=2, sync_each_batch=True),
    case("shard4_keep", dict(dp_shard=4), reshard=False),
    case("replicate2_shard2", dict(dp_replicate=2, dp_shard=2)),
    case("replicate2_shard2_accumulate", dict(dp_replicate=2, dp_shard=2), grad_accum=2),
    case("shard2_tp2", dict(dp_shard=2, tp=2)),
    case("shard2_tp2_recompute", dict(dp_shard=2, tp=2), recompute="full"),
    case("replicate2_shard2_tp2", dict(dp_replicate=2, dp_shard=2, tp=2)),
]
for one in CASES:
    one["load"] = "fp32"    # model.torch_dtype of its recipes with fp32 masters


def prepared(one, folder):
    from nemo_automodel.components.distributed.config import FSDP2Config
    from nemo_automodel.components.distributed.fsdp2 import FSDP2Manager
    from nemo_automodel.components.distributed.mesh import MeshContext, ParallelismSizes
    from transformers import AutoModelForCausalLM

    sizes = {axis: one["mesh"].get(axis, 1) for axis in AXES}
    config = FSDP2Config(activation_checkpointing=one["recompute"] == "full",
                         defer_fsdp_grad_sync=not one["sync_each_batch"], reshard_after_forward=one["reshard"])
    mesh = MeshContext.build(config, parallelism_sizes=ParallelismSizes(
        dp_size=sizes["dp_replicate"] * sizes["dp_shard"], dp_replicate_size=sizes["dp_replicate"], tp_size=sizes["tp"],
        cp_size=sizes["cp"]), world_size=dist.get_world_size())
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa", use_cache=False)
    model.train()
    model = FSDP2Manager(config, mesh.device_mesh).parallelize(model)
    return config, mesh, model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def _dp_allreduce(tensor, mesh):
    """As recipes/base_recipe.py."""
    from nemo_automodel.components.distributed.mesh_utils import get_flat_mesh

    group = get_flat_mesh(mesh.device_mesh, "dp")
    if group.size() > 1:
        dist.all_reduce(tensor, group=group.get_group())
    return tensor


def average_loss(loss, mesh):
    return _dp_allreduce(loss.clone(), mesh)


def micro_step(one, config, model, ids, last, count, ranks, recorder):
    from nemo_automodel.components.distributed.utils import get_sync_ctx
    from nemo_automodel.components.loss.masked_ce import MaskedCrossEntropy

    with get_sync_ctx(model, last, config.defer_fsdp_grad_sync):
        logits = model(input_ids=ids[:, :-1].contiguous()).logits
        loss = MaskedCrossEntropy()(logits, ids[:, 1:].contiguous(), num_label_tokens=count)
        del logits
        recorder.phase, recorder.place = "backward", "head"
        (loss * ranks).backward()
    recorder.phase = "optimizer"
    return loss.detach()


def train_step(one, config, mesh, model, optimizer, recorder):
    """As _run_train_optim_step with _forward_backward_step."""
    from nemo_automodel.components.distributed.tp_replicas import synchronize_tp_replica_gradients
    from nemo_automodel.components.training.utils import scale_grads_and_clip_grad_norm

    batches = tokens_of(one)
    ranks = dist.get_world_size() // one["mesh"].get("tp", 1)
    recorder.micro, recorder.phase, recorder.place = 0, "optimizer", ""
    count = int(_dp_allreduce(torch.tensor(batches[:, :, 1:].numel()), mesh))
    _dp_allreduce(torch.tensor(batches[:, :, 1:].numel()), mesh)    # its count without padding
    total, kept = 0.0, []
    for micro, ids in enumerate(batches):
        recorder.micro, recorder.phase, recorder.place = micro, "forward", ""
        total += micro_step(one, config, model, ids, micro == len(batches) - 1, count, ranks, recorder)
        kept.append(gradient_bytes_of(model))
    synchronize_tp_replica_gradients([model], mesh.device_mesh)
    norm = scale_grads_and_clip_grad_norm(1.0, [model], device_mesh=mesh.device_mesh, num_label_tokens=count,
                                          dp_group_size=ranks)
    gradients = sorted({str(p.grad.dtype) for p in model.parameters() if p.grad is not None})
    optimizer.step()
    optimizer.zero_grad()
    return float(average_loss(total, mesh)), float(norm), gradients, kept


def traced(one, folder, current):
    if dist.get_rank() == 0:
        save_model(folder, one["model"])
    dist.barrier()
    torch.manual_seed(1)
    config, mesh, model, optimizer = prepared(one, folder)
    recorder = Recorder(one["mesh"], {id(module): name for name, module in model.named_modules()})
    current["recorder"] = recorder
    watch(recorder, model)
    with recorder:
        first = train_step(one, config, mesh, model, optimizer, recorder)
        first_events, recorder.events = recorder.events, []
        second = train_step(one, config, mesh, model, optimizer, recorder)
    return dict(events=recorder.events, first_events=first_events, losses=[first[0], second[0]],
                norms=[first[1], second[1]], gradient_dtypes=second[2], most_unsharded=recorder.most_unsharded,
                storage=storage_of(model, optimizer), kept_per_layer=recorder.kept_per_layer(), gradient_bytes=second[3])


if __name__ == "__main__":
    run("trace_automodel", __doc__)
