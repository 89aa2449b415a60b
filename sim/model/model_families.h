// The choices of each Hugging Face model_type, as initialisers: the presets and model_set_family share them. Read in
// transformers' modeling_*.py of each type. Private to sim/model.

#pragma once

#define FAMILY_LLAMA .type = "llama"
#define FAMILY_MISTRAL .type = "mistral"
#define FAMILY_QWEN2 .type = "qwen2", .qkv_bias = true
#define FAMILY_QWEN3 .type = "qwen3", .qk_norm = QK_NORM_HEAD
#define FAMILY_GEMMA .type = "gemma", .activation = ACTIVATION_GELU_TANH, .scaled_embeddings = true
// Its caps and windows are sizes.
#define FAMILY_GEMMA2                                                                                                  \
    .type = "gemma2", .activation = ACTIVATION_GELU_TANH, .scaled_embeddings = true, .residual = RESIDUAL_BOTH_NORMS
// Gemma 3 (transformers' Gemma3TextModel): its norms of queries and keys are of each head.
#define FAMILY_GEMMA3                                                                                                  \
    .type = "gemma3_text", .activation = ACTIVATION_GELU_TANH, .scaled_embeddings = true, .qk_norm = QK_NORM_HEAD,     \
    .residual = RESIDUAL_BOTH_NORMS
#define FAMILY_PHI3 .type = "phi3", .fused_qkv = true, .fused_gate_up = true
#define FAMILY_OLMO2 .type = "olmo2", .qk_norm = QK_NORM_WHOLE, .residual = RESIDUAL_POST_NORM
#define FAMILY_GPT2                                                                                                    \
    .type = "gpt2", .norm = NORM_LAYER, .norm_bias = true, .mlp = MLP_PLAIN, .activation = ACTIVATION_GELU_NEW,        \
    .position = POSITION_LEARNED, .qkv_bias = true, .out_bias = true, .mlp_bias = true, .fused_qkv = true
// Its activation differs from file to file.
#define FAMILY_GPT_NEOX                                                                                                \
    .type = "gpt_neox", .norm = NORM_LAYER, .norm_bias = true, .mlp = MLP_PLAIN, .residual = RESIDUAL_PARALLEL,        \
    .qkv_bias = true, .out_bias = true, .mlp_bias = true, .fused_qkv = true
#define FAMILY_MPT                                                                                                     \
    .type = "mpt", .norm = NORM_LAYER, .mlp = MLP_PLAIN, .activation = ACTIVATION_GELU, .position = POSITION_ALIBI,    \
    .fused_qkv = true
#define FAMILY_MIXTRAL .type = "mixtral"
#define FAMILY_QWEN2_MOE .type = "qwen2_moe", .qkv_bias = true
#define FAMILY_QWEN3_MOE .type = "qwen3_moe", .qk_norm = QK_NORM_HEAD
#define FAMILY_OLMOE .type = "olmoe", .qk_norm = QK_NORM_WHOLE
#define FAMILY_PHIMOE                                                                                                  \
    .type = "phimoe", .norm = NORM_LAYER, .norm_bias = true, .qkv_bias = true, .out_bias = true, .head_bias = true
#define FAMILY_GPT_OSS .type = "gpt_oss", .qkv_bias = true, .out_bias = true, .sinks = true
#define FAMILY_LLAMA4 .type = "llama4_text"
#define FAMILY_DEEPSEEK_V2 .type = "deepseek_v2"
#define FAMILY_DEEPSEEK_V3 .type = "deepseek_v3"
#define FAMILY_KIMI_K2 .type = "kimi_k2"
