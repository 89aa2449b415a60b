# Written by ndtune 0.1.0 for transformers >= 4.56 (checked with 4.57), accelerate >= 1.12; torch >= 2.6.
# Mesh: dp_shard=8, 8 ranks on 1 node of box (8 each).
# Batch: 64 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 8 x accumulation 8.
# Predicted (80 % interval; no measured run of accelerate 1.15; 54 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for accelerate@1.15 on the model llama-3-70b: bf16, recompute full, attention flash, kernels eager.
# Launch: torchrun --nnodes 1 --nproc-per-node 8 train.py  # which imports trainer_arguments.py
# Made by: ndtune export --as 'it'

import os

os.environ.update(
    ACCELERATE_USE_FSDP="true",
    FSDP_VERSION="2",
    FSDP_AUTO_WRAP_POLICY="TRANSFORMER_BASED_WRAP",
    FSDP_TRANSFORMER_CLS_TO_WRAP="LlamaDecoderLayer",
    FSDP_RESHARD_AFTER_FORWARD="true",
    FSDP_ACTIVATION_CHECKPOINTING="true",
    FSDP_STATE_DICT_TYPE="SHARDED_STATE_DICT",
)

from accelerate.parallelism_config import ParallelismConfig  # noqa: E402
from accelerate.utils import TorchContextParallelConfig  # noqa: E402
from transformers import TrainingArguments  # noqa: E402

MODEL = "meta-llama/Meta-Llama-3-70B"
SEQUENCE_LENGTH = 4096
GLOBAL_BATCH = 64

parallelism_config = ParallelismConfig(
    dp_replicate_size=1,
    dp_shard_size=8,
    cp_size=1,
    tp_size=1,
)


def model_arguments():  # of from_pretrained
    arguments = {"attn_implementation": "sdpa", "dtype": "bfloat16"}  # frozen
    from transformers import BitsAndBytesConfig

    arguments["quantization_config"] = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype="bfloat16",
        bnb_4bit_quant_storage="bfloat16",
    )
    return arguments


def peft_config():  # of get_peft_model, or SFTTrainer's peft_config
    from peft import LoraConfig

    return LoraConfig(task_type="CAUSAL_LM", r=16, lora_alpha=32, target_modules="all-linear")


def training_arguments(**more):  # output_dir, learning_rate and so on
    return TrainingArguments(
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        bf16=True,
        parallelism_config=parallelism_config,
        **more,
    )
