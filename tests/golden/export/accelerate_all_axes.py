# Written by ndtune 0.1.0 for accelerate >= 1.12 (checked with 1.15); torch >= 2.6.
# Mesh: dp_replicate=2,dp_shard=2,cp=2,tp=2, 16 ranks on 2 nodes of box (8 each).
# Batch: 32 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 2 x dp_shard 2 x accumulation 8.
#   The 4 ranks of one (dp_replicate, dp_shard) place (cp 2 x tp 2) work on the same sequences.
# Predicted (80 % interval; no measured run of accelerate 1.15; 54 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for accelerate@1.15 on the model llama-3-8b: bf16, recompute full, attention flash, kernels compiled.
# Your script: DataLoader batch size 1, Accelerator(gradient_accumulation_steps=8), model loaded with attn_implementation="sdpa".
#   Its model: from_pretrained(..., tp_plan="auto", device_mesh=accelerator.torch_device_mesh), by transformers 4.56 to 5.0: newer ones lack the ReplicateParallel that accelerate imports for tp beside FSDP.
#   Its step: inside accelerator.maybe_context_parallel(...), with labels that are shifted already.
# Launch on every node, MASTER_ADDR naming the first and NODE_RANK counting them: torchrun --nnodes 2 --nproc-per-node 8 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500 train.py  # which imports parallel_accelerate.py
# Made by: ndtune export --as 'it'

from accelerate import Accelerator
from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import FullyShardedDataParallelPlugin, TorchContextParallelConfig, TorchDynamoPlugin

MODEL = "meta-llama/Meta-Llama-3-8B"
SEQUENCE_LENGTH = 4096
MICRO_BATCH = 1  # sequences of one DataLoader batch
ACCUMULATION = 8
GLOBAL_BATCH = 32

parallelism_config = ParallelismConfig(
    dp_replicate_size=2,
    dp_shard_size=2,
    cp_size=2,
    tp_size=2,
    cp_handler=TorchContextParallelConfig(cp_comm_strategy="allgather"),
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
        gradient_accumulation_steps=ACCUMULATION,
        parallelism_config=parallelism_config,
        fsdp_plugin=fsdp_plugin,
        dynamo_plugin=TorchDynamoPlugin(backend="inductor"),
    )


def model_arguments(accelerator):  # of from_pretrained
    arguments = {"attn_implementation": "sdpa", "dtype": "float32"}  # master weights
    arguments.update(tp_plan="auto", device_mesh=accelerator.torch_device_mesh)
    return arguments
