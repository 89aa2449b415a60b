"""One rank of a PyTorch training run on processors, as its users write one: FSDP2, DTensor tensor parallelism, context
parallelism and pipelining over gloo, in fp32 or by autocast in bf16, AdamW, gradients clipped to a global norm of 1.
Started by compare.py through torchrun; rank 0 prints one line of JSON: wall seconds of each step, CPU seconds of all
ranks in them.
"""

import contextlib
import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

CASE = json.loads(os.environ["CASE"])
HIDDEN, FFN, LAYERS, HEADS, VOCAB = (CASE[name] for name in ("hidden", "ffn", "layers", "heads", "vocab"))
SEQ, STEPS, WARM_UP = CASE["seq"], CASE["steps"], CASE["warm_up"]
HEAD = HIDDEN // HEADS


def rotary(length):
    """Cosines and sines of a whole sequence: [1, 1, length, HEAD], as Hugging Face's Llama applies them."""
    angle = torch.outer(torch.arange(length), 1e4 ** (-torch.arange(0, HEAD, 2) / HEAD))
    angle = torch.cat((angle, angle), -1)[None, None]
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def gathered(mesh):
    """Context parallelism by hand: queries of this rank's part of the sequence, keys and values of the whole of it."""
    from torch.distributed._functional_collectives import all_gather_tensor_autograd

    part, parts = mesh.get_local_rank(), mesh.size()
    here = torch.arange(SEQ // parts) + SEQ // parts * part
    seen = here[:, None] >= torch.arange(SEQ)

    def attention(q, k, v, is_causal):
        k, v = (all_gather_tensor_autograd(x.contiguous(), 2, mesh.get_group()) for x in (k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    return attention, slice(SEQ // parts * part, SEQ // parts * (part + 1))


class Layer(nn.Module):
    attention = None  # PyTorch's own, looked up at the call: context_parallel puts its ring there

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(HIDDEN, 1e-5), nn.RMSNorm(HIDDEN, 1e-5)
        self.q, self.k, self.v, self.o = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(HIDDEN, FFN, bias=False) for _ in range(2))
        self.down = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x, cos, sin):
        y = self.norm1(x)
        q, k, v = (project(y).unflatten(-1, (-1, HEAD)).transpose(1, 2) for project in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = (self.attention or F.scaled_dot_product_attention)(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    """Layers first <= i < last; the embedding before the first of all, norm and head behind the last."""

    def __init__(self, first=0, last=LAYERS):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN) if first == 0 else None
        self.layers = nn.ModuleList(Layer() for _ in range(first, last))
        self.norm = nn.RMSNorm(HIDDEN, 1e-5) if last == LAYERS else None
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False) if last == LAYERS else None
        for name, value in zip(("cos", "sin"), rotary(SEQ)):
            self.register_buffer(name, value, persistent=False)

    def forward(self, x):
        x = self.embed(x) if self.embed is not None else x
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.head(self.norm(x)) if self.head is not None else x


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def split_tensors(model, mesh):
    plan = {name: ColwiseParallel() for name in ("q", "k", "v", "gate", "up")}
    plan |= {name: RowwiseParallel() for name in ("o", "down")}
    for layer in model.layers:
        parallelize_module(layer, mesh, plan)


def clip(model, most=1.0):
    """Parameters on different meshes (tensor parallelism splits some) have a norm each."""
    groups = {}
    for parameter in model.parameters():
        groups.setdefault(getattr(parameter.grad, "device_mesh", None), []).append(parameter)
    norms = [torch.nn.utils.get_total_norm([p.grad for p in group]) for group in groups.values()]
    total = torch.stack([norm.full_tensor() if hasattr(norm, "full_tensor") else norm for norm in norms]).norm()
    if CASE["pp"] > 1:
        square = total**2
        dist.all_reduce(square)
        total = square.sqrt()
    for group in groups.values():
        torch.nn.utils.clip_grads_with_norm_(group, most, total)


def make_step(mesh):
    """A model and a function that runs forward and backward of one batch of this rank."""
    micro = CASE["grad_accum"]
    if CASE["pp"] > 1:
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B

        rank, stages = mesh["pp"].get_local_rank(), CASE["pp"]
        model = Model(LAYERS * rank // stages, LAYERS * (rank + 1) // stages)
        stage = PipelineStage(model, rank, stages, torch.device("cpu"), group=mesh["pp"].get_group())
        schedule = Schedule1F1B(stage, micro, loss_fn=loss_of)

        def run(tokens, labels):
            schedule.step(*([tokens] if rank == 0 else []), **({"target": labels} if rank == stages - 1 else {}))

        return model, run
    model = Model()
    if CASE["tp"] > 1:
        split_tensors(model, mesh["tp"])
    if CASE["cp"] > 1:  # as torchtitan: parameters sharded over dp_shard x cp
        mesh["dp_shard", "cp"]._flatten("shard")
    if CASE["dp_shard"] * CASE["cp"] > 1:
        over = mesh["shard"] if CASE["cp"] > 1 else mesh["dp_shard"]
        for layer in model.layers:
            fully_shard(layer, mesh=over)
        fully_shard(model, mesh=over)

    def plain(tokens, labels):
        for batch, wanted in zip(tokens.chunk(micro), labels.chunk(micro)):
            (loss_of(model(batch), wanted) / micro).backward()

    if CASE["cp"] == 1:
        return model, plain
    if CASE["by_hand"]:
        attention, part = gathered(mesh["cp"])
        Layer.attention = staticmethod(attention)
        model.cos, model.sin = model.cos[:, :, part], model.sin[:, :, part]
        return model, lambda tokens, labels: plain(tokens[:, part], labels[:, part])
    from torch.distributed.tensor.experimental import context_parallel

    def sequence_split(tokens, labels):
        buffers = [tokens, labels, model.cos, model.sin]
        with context_parallel(mesh["cp"], buffers=buffers, buffer_seq_dims=[1, 1, 2, 2],
                              no_restore_buffers={tokens, labels}):
            plain(tokens, labels)

    return model, sequence_split


def main():
    torch.set_num_threads(CASE["threads"])
    dist.init_process_group("gloo")
    names = ("pp", "dp_shard", "cp", "tp")
    mesh = init_device_mesh("cpu", tuple(CASE[name] for name in names), mesh_dim_names=names)
    torch.manual_seed(1)
    model, run = make_step(mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.95), weight_decay=0.0)
    walls, cpus = [], []
    for _ in range(STEPS):
        tokens = torch.randint(VOCAB, (CASE["micro_batch"] * CASE["grad_accum"], SEQ + 1))
        dist.barrier()
        wall, cpu = time.perf_counter(), time.process_time()
        with torch.autocast("cpu", torch.bfloat16) if CASE["bf16"] else contextlib.nullcontext():
            run(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        clip(model)
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    total = torch.tensor(cpus[WARM_UP:], dtype=torch.float64)
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(json.dumps({"wall_s": walls[WARM_UP:], "cpu_s": total.tolist()}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
