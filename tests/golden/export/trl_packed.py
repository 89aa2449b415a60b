# Written by ndtune 0.1.0 for trl 1.16, transformers 5.23, accelerate 1.15; torch >= 2.8.
# Mesh: dp_shard=8, 8 ranks on 1 node of box (8 each).
# Batch: 32 sequences of 4096 tokens per optimizer step = micro-batch 2 x dp_replicate 1 x dp_shard 8 x accumulation 2.
# Predicted (80 % interval; no measured run of trl 1.16): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for trl@1.16 on the model llama-3-8b: bf16, recompute full, attention flash, kernels eager.
# Launch: torchrun --nnodes 1 --nproc-per-node 8 train.py  # which imports sft_config.py
# Made by: ndtune export --as 'it'

from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import TorchContextParallelConfig
from trl import SFTConfig

MODEL = "meta-llama/Meta-Llama-3-8B"
SEQUENCE_LENGTH = 4096
GLOBAL_BATCH = 32

parallelism_config = ParallelismConfig(
    dp_replicate_size=1,
    dp_shard_size=8,
    cp_size=1,
    tp_size=1,
)


def model_arguments():  # of from_pretrained
    arguments = {"attn_implementation": "flash_attention_2", "dtype": "float32"}  # master weights
    return arguments


def training_arguments(**more):  # output_dir, learning_rate and so on
    return SFTConfig(
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        bf16=True,
        max_length=4096,
        gradient_checkpointing=False,  # on unless said
        packing=True,  # documents of 600 tokens in the mean
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
