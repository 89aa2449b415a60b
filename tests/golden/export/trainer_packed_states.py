# Written by ndtune 0.1.0 for transformers 5.23, accelerate 1.15; torch >= 2.8.
# Mesh: dp_replicate=8, 8 ranks on 1 node of box (8 each).
# Batch: 32 sequences of 4096 tokens per optimizer step = micro-batch 2 x dp_replicate 8 x dp_shard 1 x accumulation 2.
# Predicted (80 % interval; no measured run of trainer 5.23): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for trainer@5.23 on the model llama-3-8b: bf16, recompute full, attention flash, kernels eager.
# Launch: torchrun --nnodes 1 --nproc-per-node 8 train.py  # which imports training_arguments.py
# Made by: ndtune export --as 'it'

from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import TorchContextParallelConfig
from transformers import TrainingArguments

MODEL = "meta-llama/Meta-Llama-3-8B"
SEQUENCE_LENGTH = 4096
GLOBAL_BATCH = 32

parallelism_config = ParallelismConfig(
    dp_replicate_size=8,
    dp_shard_size=1,
    cp_size=1,
    tp_size=1,
)


def model_arguments():  # of from_pretrained
    arguments = {"attn_implementation": "sdpa", "dtype": "float32"}  # master weights
    return arguments


def training_arguments(**more):  # output_dir, learning_rate and so on
    return TrainingArguments(
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        bf16=True,
        activation_checkpointing=True,
        optim="adamw_bnb_8bit",
        parallelism_config=parallelism_config,
        **more,
    )
