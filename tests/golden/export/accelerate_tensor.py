# Written by ndtune 0.1.0 for accelerate >= 1.12 (checked with 1.15); torch >= 2.6.
# Mesh: tp=8, 8 ranks on 1 node of box (8 each).
# Batch: 8 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 1 x accumulation 8.
#   The 8 ranks of one (dp_replicate, dp_shard) place (cp 1 x tp 8) work on the same sequences.
# Predicted (80 % interval; no measured run of accelerate 1.15; 54 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for accelerate@1.15 on the model llama-3-8b: bf16, recompute full, attention flash, kernels eager.
# Your script: DataLoader batch size 1, Accelerator(gradient_accumulation_steps=8), model loaded with attn_implementation="sdpa", dtype="float32".
#   Its model: from_pretrained(..., tp_plan="auto", device_mesh=accelerator.torch_device_mesh).
#   Its model: model.gradient_checkpointing_enable(), as there is no FSDP to do it.
# Launch: torchrun --nnodes 1 --nproc-per-node 8 train.py  # which imports parallel_accelerate.py
# Made by: ndtune export --as 'it'

from accelerate import Accelerator
from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import FullyShardedDataParallelPlugin, TorchContextParallelConfig

MODEL = "meta-llama/Meta-Llama-3-8B"
SEQUENCE_LENGTH = 4096
MICRO_BATCH = 1  # sequences of one DataLoader batch
ACCUMULATION = 8
GLOBAL_BATCH = 8

parallelism_config = ParallelismConfig(
    dp_replicate_size=1,
    dp_shard_size=1,
    cp_size=1,
    tp_size=8,
)

fsdp_plugin = None  # nothing to shard over


def make_accelerator():
    return Accelerator(
        mixed_precision="bf16",
        gradient_accumulation_steps=ACCUMULATION,
        parallelism_config=parallelism_config,
        fsdp_plugin=fsdp_plugin,
    )


def model_arguments(accelerator):  # of from_pretrained
    arguments = {"attn_implementation": "sdpa", "dtype": "float32"}  # master weights
    arguments.update(tp_plan="auto", device_mesh=accelerator.torch_device_mesh)
    return arguments

# No FSDP to recompute activations: call model.gradient_checkpointing_enable() before prepare().
