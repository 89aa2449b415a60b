# Written by ndtune 0.1.0 for trl 1.16, transformers 5.23, accelerate 1.15; torch >= 2.8.
# Mesh: dp_shard=4, 4 ranks on 1 node of box (4 each).
# Batch: 64 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 4 x accumulation 16.
# Predicted (80 % interval; no measured run of trl 1.16): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for trl@1.16 on the model llama-3-70b: bf16, recompute full, attention flash, kernels eager.
# Launch: torchrun --nnodes 1 --nproc-per-node 4 train.py  # which imports sft_config.py
# Made by: ndtune export --as 'it'

from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import TorchContextParallelConfig
from trl import SFTConfig

MODEL = "meta-llama/Meta-Llama-3-70B"
SEQUENCE_LENGTH = 4096
GLOBAL_BATCH = 64

parallelism_config = ParallelismConfig(
    dp_replicate_size=1,
    dp_shard_size=4,
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
    return SFTConfig(
        per_device_train_batch_size=1,
        gradient_accumulation_steps=16,
        bf16=True,
        max_length=4096,
        gradient_checkpointing=False,  # on unless said
        fsdp=True,
        fsdp_config={
            "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"],
            "reshard_after_forward": True,
            "activation_checkpointing": True,
            "cpu_offload": False,
        },
        parallelism_config=parallelism_config,
        **more,
    )
