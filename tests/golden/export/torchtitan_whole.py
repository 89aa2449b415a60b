# Written by ndtune 0.1.0 for torchtitan 0.3 (@head: its main branch of 2026-08).
# Mesh: dp_shard=8, 8 ranks on 1 node of box (8 each).
# Batch: 16 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 8 x accumulation 2.
# Predicted (80 % interval; no measured run of torchtitan 0.3; 118 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for torchtitan@0.3 on the model llama-3-8b: bf16, recompute none, attention flash, kernels compiled.
# Launch: torchrun --nnodes 1 --nproc-per-node 8 -m torchtitan.train --module ndtune_recipe --config train  # ndtune_recipe.py lies in this folder under that name
# Made by: ndtune export --as 'it'

from dataclasses import replace

from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.config import CompileConfig, ParallelismConfig
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC  # noqa: F401
from torchtitan.models.common.config_utils import decoder_vocab_size
from torchtitan.models.llama3 import model_registry
from torchtitan.models.llama3.config_registry import llama3_debugmodel
from torchtitan.trainer import Trainer


def train() -> Trainer.Config:
    config = llama3_debugmodel()  # yours: data, optimizer, tokenizer
    config.model_spec = model_registry("8B")
    config.loss = CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(config.model_spec))
    config.training = replace(
        config.training,
        local_batch_size=1,
        global_batch_size=16,
        seq_len=4096,
        dtype="float32",
        mixed_precision_param="bfloat16",
        mixed_precision_reduce="float32",
    )
    config.parallelism = ParallelismConfig(
        data_parallel_replicate_degree=1,
        data_parallel_shard_degree=8,
        context_parallel_degree=1,
        tensor_parallel_degree=1,
        fsdp_reshard_after_forward="always",
    )
    config.activation_checkpoint = None
    config.compile = CompileConfig(enable=True, enable_async_tensor_parallel=False)
    return config
