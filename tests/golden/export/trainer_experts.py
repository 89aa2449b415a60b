# Written by ndtune 0.1.0 for transformers 5.23, accelerate 1.15; torch >= 2.8.
# Mesh: dp_shard=16,ep=8, 16 ranks on 2 nodes of box (8 each).
# Batch: 64 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 16 x accumulation 4.
# Predicted (80 % interval; no measured run of trainer 5.23; none with experts: their part is a guess): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for trainer@5.23 on the model qwen3-30b-a3b: bf16, recompute full, attention flash, kernels eager.
# Launch on every node, MASTER_ADDR naming the first and NODE_RANK counting them: torchrun --nnodes 2 --nproc-per-node 8 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500 train.py  # which imports training_arguments.py
# Made by: ndtune export --as 'it'

from transformers.distributed import DistributedConfig
from transformers import TrainingArguments

MODEL = "Qwen/Qwen3-30B-A3B"
SEQUENCE_LENGTH = 4096
GLOBAL_BATCH = 64


def model_arguments():  # of from_pretrained
    arguments = {"attn_implementation": "sdpa", "dtype": "float32"}  # master weights
    arguments.update(distributed_config=DistributedConfig(
        tp_size=1,
        fsdp_size=16,
        dp_replicate_size=1,
        fsdp_mixed_precision=True,
        fsdp_cpu_offload=False,
        ep_size=8,
        ep_implementation="all_to_all",
    ))
    return arguments


def training_arguments(**more):  # output_dir, learning_rate and so on
    return TrainingArguments(
        per_device_train_batch_size=1,
        gradient_accumulation_steps=4,
        bf16=True,
        activation_checkpointing=True,
        **more,
    )
