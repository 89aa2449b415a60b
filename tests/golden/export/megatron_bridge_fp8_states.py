# Written by ndtune 0.1.0 for Megatron-Bridge 0.6.
# Mesh: dp_shard=8,tp=2, 16 ranks on 2 nodes of box (8 each).
# Batch: 32 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 8 x accumulation 4.
#   The 2 ranks of one (dp_replicate, dp_shard) place (cp 1 x tp 2) work on the same sequences.
# Predicted (80 % interval; no measured run of megatron bridge-0.6; 91 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for megatron@bridge-0.6 on the model llama-3-8b: bf16, recompute none, attention cudnn, kernels fused.
# Launch on every node, MASTER_ADDR naming the first and NODE_RANK counting them: torchrun --nnodes 2 --nproc-per-node 8 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500 ndtune_bridge.py
# Made by: ndtune export --as 'it'

import torch
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.comm_overlap import CommOverlapConfig
from megatron.bridge.training.pretrain import pretrain
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.mixed_precision import bf16_mixed
from megatron.core.transformer.enums import AttnBackend

MODEL = "meta-llama/Meta-Llama-3-8B"


def config():
    cfg = _pretrain_common()  # yours: data, learning rate, checkpoints
    cfg.model = AutoBridge.from_hf_pretrained(MODEL).to_megatron_provider(load_weights=False)
    cfg.tokenizer.tokenizer_model = MODEL
    cfg.model.seq_length = cfg.dataset.seq_length = 4096
    cfg.model.tensor_model_parallel_size = 2
    cfg.model.sequence_parallel = True
    cfg.model.context_parallel_size = 1
    cfg.model.pipeline_model_parallel_size = 1
    cfg.model.attention_backend = AttnBackend.fused
    cfg.model.cross_entropy_fusion_impl = "native"
    cfg.model.apply_rope_fusion = True
    cfg.model.bias_activation_fusion = True
    cfg.train.micro_batch_size = 1
    cfg.train.global_batch_size = 32
    cfg.mixed_precision = bf16_mixed()
    cfg.ddp.use_distributed_optimizer = cfg.optimizer.use_distributed_optimizer = True
    cfg.ddp.overlap_grad_reduce = True
    cfg.ddp.overlap_param_gather = True
    cfg.optimizer.use_precision_aware_optimizer = True
    cfg.optimizer.exp_avg_dtype = torch.uint8
    cfg.optimizer.exp_avg_sq_dtype = torch.bfloat16
    cfg.ddp.average_in_collective = True
    cfg.rerun_state_machine.check_for_nan_in_loss = cfg.ddp.check_for_nan_in_grad = False  # as predicted
    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=False)
    return cfg


if __name__ == "__main__":
    pretrain(config(), forward_step)
