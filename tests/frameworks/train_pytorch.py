"""A plain PyTorch training step on CPU ranks, for `ndtune validate --with`: FSDP2 over dp_shard (hybrid with
dp_replicate), tensor parallelism over tp, gloo. The shape comes from the environment that ndtune sets; the model is a
Llama of the sizes in it, with random weights and tokens. Prints one step_time= line per step on rank 0.

    ndtune validate --world 2 --model tiny --with accelerate -- torchrun --nproc-per-node={world} train_pytorch.py
"""

import os
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformers import LlamaConfig, LlamaForCausalLM


def setting(name):
    return int(os.environ["NDTUNE_" + name.upper()])


def build(mesh):
    config = LlamaConfig(
        hidden_size=setting("hidden"),
        num_hidden_layers=setting("layers"),
        num_attention_heads=setting("heads"),
        num_key_value_heads=setting("kv_heads"),
        intermediate_size=setting("ffn"),
        vocab_size=setting("vocab"),
        attn_implementation="sdpa",
    )
    model = LlamaForCausalLM(config)
    for layer in model.model.layers:
        if setting("tp") > 1:
            parallelize_module(
                layer,
                mesh["tp"],
                {
                    "self_attn.q_proj": ColwiseParallel(),
                    "self_attn.k_proj": ColwiseParallel(),
                    "self_attn.v_proj": ColwiseParallel(),
                    "self_attn.o_proj": RowwiseParallel(),
                    "mlp.gate_proj": ColwiseParallel(),
                    "mlp.up_proj": ColwiseParallel(),
                    "mlp.down_proj": RowwiseParallel(),
                },
            )
        fully_shard(layer, mesh=mesh["dp_replicate", "dp_shard"])
    fully_shard(model, mesh=mesh["dp_replicate", "dp_shard"])
    return model


def clip(model, most):
    """Parameters that tensor parallelism splits live on another mesh than the rest: a norm for each mesh."""
    groups = {}
    for parameter in model.parameters():
        if parameter.grad is not None:
            groups.setdefault(parameter.grad.device_mesh, []).append(parameter)
    norms = [torch.nn.utils.get_total_norm([p.grad for p in group]).full_tensor() for group in groups.values()]
    total = torch.stack(norms).norm()
    for group in groups.values():
        torch.nn.utils.clip_grads_with_norm_(group, most, total)


def main():
    if setting("cp") > 1:
        raise RuntimeError("this script has no context parallelism")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    shape = (setting("dp_replicate"), setting("dp_shard"), setting("tp"))
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp_replicate", "dp_shard", "tp"))
    torch.manual_seed(1)
    model = build(mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, foreach=False)
    for step in range(setting("steps")):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(setting("grad_accum")):
            tokens = torch.randint(setting("vocab"), (setting("micro_batch"), setting("seq")))
            model(input_ids=tokens, labels=tokens).loss.backward()
        clip(model, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        if dist.get_rank() == 0:
            print(f"step={step} step_time={time.perf_counter() - start:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
