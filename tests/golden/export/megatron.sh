#!/bin/bash
# Written by ndtune 0.1.0 for Megatron-LM (its main branch of 2026-08).
# Mesh: dp_replicate=2,dp_shard=4,cp=2,tp=8, 128 ranks on 16 nodes of box (8 each).
# Batch: 128 sequences of 4096 tokens per optimizer step = micro-batch 1 x dp_replicate 2 x dp_shard 4 x accumulation 16.
#   The 16 ranks of one (dp_replicate, dp_shard) place (cp 2 x tp 8) work on the same sequences.
# Predicted (80 % interval; no measured run of megatron core; 91 of other versions, none on X80): step 2.00 s (1.60 s .. 2.90 s), 125 k tokens/s, memory 62.0 GiB of 80.0 GiB per accelerator.
#   Predicted for megatron@core on the model llama-3-70b: bf16, recompute selective, attention cudnn, kernels fused.
# Launch on every node, MASTER_ADDR naming the first and NODE_RANK counting them: bash megatron.sh  # in Megatron-LM, with DATA_PATH and TOKENIZER_MODEL set
# Made by: ndtune export --as 'it'
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1  # the order of tp's collectives and GEMMs

MODEL=(
    --use-mcore-models --transformer-impl transformer_engine
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672
    --num-attention-heads 64 --group-query-attention --num-query-groups 8 --kv-channels 128
    --max-position-embeddings 8192 --seq-length 4096
    --normalization RMSNorm --norm-epsilon 1e-05
    --position-embedding-type rope --rotary-base 500000
    --attention-dropout 0 --hidden-dropout 0 --cross-entropy-loss-fusion
    --swiglu
    --disable-bias-linear
    --untie-embeddings-and-output-weights
)
PARALLELISM=(
    --tensor-model-parallel-size 8 --context-parallel-size 2 --pipeline-model-parallel-size 1
    --sequence-parallel
    --cp-comm-type p2p
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
    --num-distributed-optimizer-instances 2
    --ddp-average-in-collective
)
TRAINING=(
    --micro-batch-size 1 --global-batch-size 128 --train-iters 100  # and your learning rate
    --attention-backend fused --no-create-attention-mask-in-dataloader
    --no-check-for-nan-in-loss-and-grad  # as predicted: with a look the host waits for each loss
    --bf16
    --recompute-granularity selective --recompute-modules core_attn
)
DATA=(--data-path "$DATA_PATH" --tokenizer-type HuggingFaceTokenizer --tokenizer-model "$TOKENIZER_MODEL")

torchrun --nnodes 16 --nproc-per-node 8 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500 pretrain_gpt.py \
    "${MODEL[@]}" "${PARALLELISM[@]}" "${TRAINING[@]}" "${DATA[@]}"
