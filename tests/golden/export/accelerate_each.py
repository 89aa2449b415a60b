# Written by ndtune 0.1.0 for accelerate >= 1.12 (checked with 1.15); torch >= 2.6.
# Mesh: dp_shard=64, 64 ranks on 8 nodes of box (8 each).
# Batch: 512 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 64 x accumulation 8.
# Predicted (80 % interval; no measured run of accelerate 1.15; 54 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for accelerate@1.15 on the model llama-3-70b: bf16, recompute full, attention flash, kernels eager.
# Your script: DataLoader batch size 1, model loaded with attn_implementation="sdpa".
#   Its Accelerator: gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=8, sync_each_batch=True):
#   gradients are reduced on every micro-step, and none is kept whole.
# Launch on every node, MASTER_ADDR naming the first and NODE_RANK counting them: torchrun --nnodes 8 --nproc-per-node 8 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500 train.py  # which imports parallel_accelerate.py
# Made by: ndtune export --as 'it'

from accelerate import Accelerator
from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import FullyShardedDataParallelPlugin, GradientAccumulationPlugin, TorchContextParallelConfig

MODEL = "meta-llama/Meta-Llama-3-70B"
SEQUENCE_LENGTH = 4096
MICRO_BATCH = 1  # sequences of one DataLoader batch
ACCUMULATION = 8
GLOBAL_BATCH = 512

parallelism_config = ParallelismConfig(
    dp_replicate_size=1,
    dp_shard_size=64,
    cp_size=1,
    tp_size=1,
)

fsdp_plugin = FullyShardedDataParallelPlugin(
    fsdp_version=2,
    auto_wrap_policy="transformer_based_wrap",
    transformer_cls_names_to_wrap=["LlamaDecoderLayer"],
    reshard_after_forward=True,
    activation_checkpointing=True,
    state_dict_type="SHARDED_STATE_DICT",
)


def make_accelerator():
    return Accelerator(
        mixed_precision="bf16",
        gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=ACCUMULATION, sync_each_batch=True),
        parallelism_config=parallelism_config,
        fsdp_plugin=fsdp_plugin,
    )


def model_arguments(accelerator):  # of from_pretrained
    arguments = {"attn_implementation": "sdpa", "dtype": "float32"}  # master weights
    return arguments
