#!/bin/bash
# Written by ndtune 0.1.0 for Megatron-LM (its main branch of 2026-08).
# Mesh: dp_shard=8,ep=8, 8 ranks on 1 node of box (8 each).
# Batch: 32 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 8 x accumulation 4.
# Predicted (80 % interval; no measured run of megatron core; 91 of other versions, none on X80; 50 more with experts, off by 4 % in the middle): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for megatron@core on the model gpt-oss-20b: bf16, recompute none, attention cudnn, kernels fused.
# Launch: bash megatron.sh  # in Megatron-LM, with DATA_PATH and TOKENIZER_MODEL set
# Made by: ndtune export --as 'it'
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1  # the order of tp's collectives and GEMMs

MODEL=(
    --use-mcore-models --transformer-impl transformer_engine
    --num-layers 24 --hidden-size 2880 --ffn-hidden-size 2880
    --window-size 127,0 --window-attn-skip-freq 2
    --softmax-type learnable
    --num-attention-heads 64 --group-query-attention --num-query-groups 8 --kv-channels 64
    --max-position-embeddings 131072 --seq-length 4096
    --normalization RMSNorm --norm-epsilon 1e-05
    # Megatron-LM turns them by separate operations, which no predicted time has
    --position-embedding-type yarn --rotary-base 150000
    --rotary-scaling-factor 32 --yarn-original-max-position-embeddings 4096
    --yarn-beta-fast 32 --yarn-beta-slow 1 --mscale 1 --mscale-all-dim 0
    --no-yarn-correction-range-round-to-int
    --attention-dropout 0 --hidden-dropout 0 --cross-entropy-loss-fusion
    --quick-geglu --glu-linear-offset 1.0 --activation-func-clamp-value 7.0 --no-bias-gelu-fusion
    --no-bias-dropout-fusion
    --untie-embeddings-and-output-weights
    --num-experts 32 --moe-router-topk 4 --moe-ffn-hidden-size 2880
    --moe-grouped-gemm --moe-permute-fusion --moe-router-fusion --moe-token-dispatcher-type alltoall
    --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 1e-2
)
PARALLELISM=(
    --tensor-model-parallel-size 1 --context-parallel-size 1 --pipeline-model-parallel-size 1
    --expert-model-parallel-size 8 --expert-tensor-parallel-size 1
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
    --ddp-average-in-collective
)
TRAINING=(
    --micro-batch-size 1 --global-batch-size 32 --train-iters 100  # and your learning rate
    --attention-backend fused --no-create-attention-mask-in-dataloader
    --no-check-for-nan-in-loss-and-grad  # as predicted: with a look the host waits for each loss
    --bf16
)
DATA=(--data-path "$DATA_PATH" --tokenizer-type HuggingFaceTokenizer --tokenizer-model "$TOKENIZER_MODEL")

torchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py \
    "${MODEL[@]}" "${PARALLELISM[@]}" "${TRAINING[@]}" "${DATA[@]}"
