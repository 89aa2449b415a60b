"""Runs one optimizer step of a small Llama as axolotl trains it under FSDP2: accelerate's step with axolotl's own preparation of
the model in place of accelerate's, on weights loaded in bf16, layers checkpointed by gradient_checkpointing.

Its command line, data and trainer stay out: they ask for packages and GPUs, and decide nothing about what is communicated.
"""

import accelerate.accelerator
import axolotl.monkeypatch.accelerate.fsdp2 as axolotl_fsdp2

import trace_accelerate
from recorder import case, run

FRAMEWORK = "axolotl"
PACKAGES = ("axolotl", "accelerate", "torch", "transformers")

CASES = [
    case("shard4", dict(dp_shard=4)),
    case("shard4_recompute", dict(dp_shard=4), recompute="full", recompute_by="model"),
    case("shard4_accumulate", dict(dp_shard=4), grad_accum=2),
    case("replicate2_shard2", dict(dp_replicate=2, dp_shard=2)),
    case("replicate2_shard2_accumulate", dict(dp_replicate=2, dp_shard=2), grad_accum=2),
    case("replicate2_shard2_recompute", dict(dp_replicate=2, dp_shard=2), recompute="full", recompute_by="model"),
]


def traced(one, folder, current):
    accelerate.accelerator.fsdp2_prepare_model = axolotl_fsdp2.fsdp2_prepare_model    # as its patch_accelerate_fsdp2
    return trace_accelerate.traced(one, folder, current)


if __name__ == "__main__":
    run("trace_axolotl", __doc__)
