# Written by ndtune 0.1.0 for Megatron-Bridge 0.6.
# Mesh: dp_shard=4,tp=2, 8 ranks on 1 node of box (8 each).
# Batch: 64 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 4 x accumulation 16.
#   The 2 ranks of one (dp_replicate, dp_shard) place (cp 1 x tp 2) work on the same sequences.
# Predicted (80 % interval; no measured run of megatron bridge-0.6; 91 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for megatron@bridge-0.6 on the model llama-3.1-70b: bf16, recompute full, attention cudnn, kernels fused.
# Base: set cfg.checkpoint.pretrained_checkpoint to the converted weights that are not trained.
# Launch: torchrun --nnodes 1 --nproc-per-node 8 ndtune_bridge.py
# Made by: ndtune export --as 'it'

import torch
from megatron.bridge import AutoBridge
from megatron.bridge.peft.lora import LoRA
from megatron.bridge.recipes.common import _peft_common
from megatron.bridge.training.comm_overlap import CommOverlapConfig
from megatron.bridge.training.finetune import finetune
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.mixed_precision import bf16_mixed
from megatron.core.transformer.enums import AttnBackend

MODEL = "meta-llama/Llama-3.1-70B"


def config():
    cfg = _peft_common()  # yours: data, learning rate, checkpoints
    cfg.model = AutoBridge.from_hf_pretrained(MODEL).to_megatron_provider(load_weights=False)
    cfg.tokenizer.tokenizer_model = MODEL
    cfg.model.seq_length = cfg.dataset.seq_length = 4096
    cfg.peft = LoRA(dim=16, alpha=32, target_modules=["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"])
    cfg.dataset.offline_packing_specs = None
    cfg.model.tensor_model_parallel_size = 2
    cfg.model.sequence_parallel = True
    cfg.model.context_parallel_size = 1
    cfg.model.pipeline_model_parallel_size = 1
    cfg.model.attention_backend = AttnBackend.fused
    cfg.model.cross_entropy_fusion_impl = "native"
    cfg.model.apply_rope_fusion = True
    cfg.model.bias_activation_fusion = True
    cfg.model.recompute_granularity = "full"
    cfg.model.recompute_method = "uniform"
    cfg.model.recompute_num_layers = 1
    cfg.train.micro_batch_size = 1
    cfg.train.global_batch_size = 64
    cfg.mixed_precision = bf16_mixed()
    cfg.ddp.use_distributed_optimizer = cfg.optimizer.use_distributed_optimizer = True
    cfg.ddp.overlap_grad_reduce = True
    cfg.ddp.overlap_param_gather = True
    cfg.ddp.average_in_collective = True
    cfg.rerun_state_machine.check_for_nan_in_loss = cfg.ddp.check_for_nan_in_grad = False  # as predicted
    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=False)
    return cfg


if __name__ == "__main__":
    finetune(config(), forward_step)
