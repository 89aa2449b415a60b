"""Sizes of what is run, their FLOPs, and rows of runs.csv (columns as in tests/accuracy/runs/README.md)."""

import csv
import dataclasses
import datetime
import itertools
import os

PEAK_BF16 = 989e12  # dense, H100 and H200 SXM data sheets


@dataclasses.dataclass(frozen=True)
class Shape:
    """Layers of Llama 3 8B."""

    seq: int
    micro_batch: int = 1
    layers: int = 8
    hidden: int = 4096
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    ffn: int = 14336
    vocab: int = 128256

    def layer_parameters(self):
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.ffn + 2 * self.hidden

    def parameters(self):
        return self.layers * self.layer_parameters() + 2 * self.vocab * self.hidden + self.hidden

    def flops_per_token(self):
        """6 for each parameter that multiplies, and causal attention counted once."""
        products = self.layers * self.layer_parameters() + self.vocab * self.hidden
        return 6 * products + 6 * self.layers * self.heads * self.head_dim * self.seq

    def arguments(self):
        return [word for field in dataclasses.fields(self) for word in
                ("--" + field.name.replace("_", "-"), str(getattr(self, field.name)))]


ONE_LAYER = Shape(seq=4096, layers=1)

# Two lengths with as many tokens to an optimizer update, which takes the same time whatever the batch.
MEASURED = [Shape(seq=4096, micro_batch=2), Shape(seq=8192, micro_batch=1)]

# Model, layers, sequence, recompute: dense products, long attention, a wide and a narrow vocabulary, both ways to recompute.
PREDICTED = [
    ("llama-3-8b", 4, 2048, "none"),
    ("llama-3-8b", 4, 8192, "none"),
    ("llama-3-8b", 8, 4096, "full"),
    ("mistral-7b", 4, 4096, "full"),
    ("1.3b", 12, 2048, "none"),
    ("qwen3-8b", 4, 4096, "none"),
]


def factorizations(world):
    """Meshes in words, with the number of data ranks."""
    for r, s, c, t in itertools.product(range(1, world + 1), repeat=4):
        if r * s * c * t == world:
            sizes = (("dp_replicate", r), ("dp_shard", s), ("cp", c), ("tp", t))
            yield ",".join(f"{name}={size}" for name, size in sizes if size > 1) or "dp_shard=1", r * s


COLUMNS = (
    "id source source_locator date model params_b layers hidden heads kv_heads ffn vocab head_dim mlp cluster overrides "
    "gpu_mem_gb target dp_replicate dp_shard cp tp pp world seq_len micro_batch grad_accum global_batch_seqs zero "
    "recompute attention fused dtype precision fp8_recipe cp_algo sp tp_overlap step_time_s tokens_per_s_per_gpu "
    "peak_mem_gb mem_kind usable"
).split()


def runs_row(shape, mode, target, step_time_s, result, machine):
    tokens = shape.seq * shape.micro_batch
    h100 = "H100" in machine.gpu()
    sizes = {name: 1 for name in ("dp_replicate", "dp_shard", "cp", "tp", "pp", "world", "grad_accum", "usable")}
    return sizes | {
        "id": f"ndtune-gpu-{mode}-{shape.micro_batch}x{shape.seq}",
        "source": "ndtune tests/gpu/measure",
        "source_locator": f"commit {machine.commit()}, {machine.gpu()}, torch {machine.package('torch')}, "
                          f"transformers {machine.package('transformers')}, accelerate {machine.package('accelerate')}",
        "date": datetime.date.today().isoformat(),
        "model": "llama-3-8b",
        "params_b": round(shape.parameters() / 1e9, 4),
        "layers": shape.layers,
        "hidden": shape.hidden,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "ffn": shape.ffn,
        "vocab": shape.vocab,
        "head_dim": shape.head_dim,
        "mlp": "swiglu",
        "cluster": "dgx-h100" if h100 else "dgx-h200",
        "overrides": "node.gpus=1",
        "gpu_mem_gb": 80 if h100 else 141,
        "target": target,
        "seq_len": shape.seq,
        "micro_batch": shape.micro_batch,
        "global_batch_seqs": shape.micro_batch,
        "zero": 3 if mode == "accelerate" else 0,
        "recompute": "none",
        "attention": "flash",
        "fused": "eager",
        "dtype": "bf16",
        "precision": "bf16",
        "step_time_s": round(step_time_s, 6),
        "tokens_per_s_per_gpu": round(tokens / step_time_s, 1),
        "peak_mem_gb": round(result["allocated_bytes"] / 2**30, 3),
        "mem_kind": "allocated",
    }


def runs_write(path, rows):
    """Rows of this call take the place of older ones of the same name."""
    kept = []
    if os.path.exists(path):
        with open(path, newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["id"] not in [new["id"] for new in rows]]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept + rows)
