#!/bin/bash
# Written by ndtune 0.1.0 for Megatron-LM (its main branch of 2026-08).
# Mesh: pp=16,dp_shard=64,ep=64, 1024 ranks on 128 nodes of box (8 each).
# Batch: 2048 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 1 x dp_shard 64 x accumulation 32.
# Predicted (80 % interval; no measured run of megatron core; 91 of other versions, none on X80; 50 more with experts, off by 4 % in the middle): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for megatron@core on the model deepseek-v3: bf16, recompute full, attention cudnn, kernels fused.
# Launch on every node, MASTER_ADDR naming the first and NODE_RANK counting them: bash megatron.sh  # in Megatron-LM, with DATA_PATH and TOKENIZER_MODEL set
# Made by: ndtune export --as 'it'
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1  # the order of tp's collectives and GEMMs

MODEL=(
    --use-mcore-models --transformer-impl transformer_engine
    --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432
    --num-attention-heads 128 --kv-channels 128 --multi-latent-attention --qk-layernorm
    --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128
    --rotary-scaling-factor 40 --mscale 1 --mscale-all-dim 1
    --max-position-embeddings 163840 --seq-length 4096
    --normalization RMSNorm --norm-epsilon 1e-06
    --position-embedding-type rope --rotary-base 10000
    --attention-dropout 0 --hidden-dropout 0 --cross-entropy-loss-fusion
    --swiglu
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048
    --moe-grouped-gemm --moe-permute-fusion --moe-router-fusion --moe-token-dispatcher-type alltoall
    --moe-layer-freq "([0]*3+[1]*58)"
    --moe-shared-expert-intermediate-size 2048
    --moe-router-score-function sigmoid --moe-router-enable-expert-bias --moe-router-bias-update-rate 1e-3
    --moe-router-num-groups 8 --moe-router-group-topk 4 --moe-router-topk-scaling-factor 2.5
    --moe-router-load-balancing-type seq_aux_loss --moe-aux-loss-coeff 1e-4 --moe-router-dtype fp32
)
PARALLELISM=(
    --tensor-model-parallel-size 1 --context-parallel-size 1 --pipeline-model-parallel-size 16
    --expert-model-parallel-size 64 --expert-tensor-parallel-size 1
    --pipeline-model-parallel-layout "Et*4|(t*4|)*12(t*3|)*2t*3L"
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
    --ddp-average-in-collective
)
TRAINING=(
    --micro-batch-size 1 --global-batch-size 2048 --train-iters 100  # and your learning rate
    --attention-backend fused --no-create-attention-mask-in-dataloader
    --no-check-for-nan-in-loss-and-grad  # as predicted: with a look the host waits for each loss
    --bf16
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
)
DATA=(--data-path "$DATA_PATH" --tokenizer-type HuggingFaceTokenizer --tokenizer-model "$TOKENIZER_MODEL")

torchrun --nnodes 128 --nproc-per-node 8 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500 pretrain_gpt.py \
    "${MODEL[@]}" "${PARALLELISM[@]}" "${TRAINING[@]}" "${DATA[@]}"
