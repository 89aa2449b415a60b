#!/bin/bash
# Written by ndtune 0.1.0 for Megatron-LM (its main branch of 2026-08).
# Mesh: dp_shard=8, 8 ranks on 1 node of box (8 each).
# Batch: 16 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 8 x accumulation 2.
# Predicted (80 % interval; no measured run of megatron 0.19; 91 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for megatron@0.19 on the model llama-3-8b: fp8, recompute none, attention cudnn, kernels fused.
# Launch: bash megatron.sh  # in Megatron-LM, with DATA_PATH and TOKENIZER_MODEL set
# Made by: ndtune export --as 'it'
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1  # the order of tp's collectives and GEMMs

MODEL=(
    --use-mcore-models --transformer-impl transformer_engine
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128
    --max-position-embeddings 8192 --seq-length 4096
    --normalization RMSNorm --norm-epsilon 1e-05
    --position-embedding-type rope --rotary-base 500000
    --attention-dropout 0 --hidden-dropout 0 --cross-entropy-loss-fusion
    --swiglu
    --use-transformer-engine-op-fuser
    --disable-bias-linear
    --untie-embeddings-and-output-weights
)
PARALLELISM=(
    --tensor-model-parallel-size 1 --context-parallel-size 1 --pipeline-model-parallel-size 1
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
    --ddp-average-in-collective
)
TRAINING=(
    --micro-batch-size 1 --global-batch-size 16 --train-iters 100  # and your learning rate
    --attention-backend fused --no-create-attention-mask-in-dataloader
    --no-check-for-nan-in-loss-and-grad  # as predicted: with a look the host waits for each loss
    --bf16
    --fp8-format hybrid --fp8-recipe mxfp8 --fp8-param-gather --reuse-grad-buf-for-mxfp8-param-ag
)
DATA=(--data-path "$DATA_PATH" --tokenizer-type HuggingFaceTokenizer --tokenizer-model "$TOKENIZER_MODEL")

torchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py \
    "${MODEL[@]}" "${PARALLELISM[@]}" "${TRAINING[@]}" "${DATA[@]}"
