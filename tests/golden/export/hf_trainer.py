# Written by ndtune 0.1.0 for transformers >= 4.56 (checked with 4.57), accelerate >= 1.12; torch >= 2.6.
# Mesh: dp_shard=8,tp=2, 16 ranks on 2 nodes of box (8 each).
# Batch: 64 sequences of 4096 tokens per optimizer step = micro-batch 2 x dp_replicate 1 x dp_shard 8 x accumulation 4.
#   The 2 ranks of one (dp_replicate, dp_shard) place (cp 1 x tp 2) work on the same sequences.
# Predicted (80 % interval; no measured run of accelerate 1.15; 54 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for accelerate@1.15 on the model mistral-7b: bf16, recompute full, attention flash, kernels eager.
# Launch on every node, MASTER_ADDR naming the first and NODE_RANK counting them: torchrun --nnodes 2 --nproc-per-node 8 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500 train.py  # which imports trainer_arguments.py
# Made by: ndtune export --as 'it'

import os

os.environ.update(
    ACCELERATE_USE_FSDP="true",
    FSDP_VERSION="2",
    FSDP_AUTO_WRAP_POLICY="TRANSFORMER_BASED_WRAP",
    FSDP_TRANSFORMER_CLS_TO_WRAP="MistralDecoderLayer",
    FSDP_RESHARD_AFTER_FORWARD="true",
    FSDP_ACTIVATION_CHECKPOINTING="true",
    FSDP_STATE_DICT_TYPE="SHARDED_STATE_DICT",
)

from accelerate.parallelism_config import ParallelismConfig  # noqa: E402
from accelerate.utils import TorchContextParallelConfig  # noqa: E402
from transformers import TrainingArguments  # noqa: E402

MODEL = "mistralai/Mistral-7B-v0.1"
SEQUENCE_LENGTH = 4096
GLOBAL_BATCH = 64

parallelism_config = ParallelismConfig(
    dp_replicate_size=1,
    dp_shard_size=8,
    cp_size=1,
    tp_size=2,
)


def model_arguments():  # of from_pretrained
    arguments = {"attn_implementation": "sdpa", "dtype": "float32"}  # master weights
    arguments.update(tp_plan="auto", device_mesh=parallelism_config.get_device_mesh("cuda"))
    return arguments


def training_arguments(**more):  # output_dir, learning_rate and so on
    return TrainingArguments(
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
        bf16=True,
        parallelism_config=parallelism_config,
        **more,
    )
