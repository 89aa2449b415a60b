// What the choices of a plan can be: the values of its fields and their words.

#pragma once

#include "sim/plan/optimizers.h"
#include "sim/plan/pp_order.h"

typedef enum { RESHARD_ALWAYS, RESHARD_NEVER, RESHARD_COUNT } Reshard;
typedef enum { RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, RECOMPUTE_COUNT } Recompute;
typedef enum { CP_ROTATE_RING, CP_ROTATE_ALLGATHER, CP_ROTATE_COUNT } CpRotate;

// Generation of the attention kernel. Eager keeps the matrix of probabilities; triton is FlashAttention 1 class.
typedef enum {
    ATTENTION_FLASH,
    ATTENTION_FLASH3,
    ATTENTION_CUDNN,
    ATTENTION_TRITON,
    ATTENTION_EAGER,
    ATTENTION_COUNT
} AttentionKernel;

// How norms, rotary positions, activation and loss run: hand-fused kernels, one kernel per operation, or a compiler.
typedef enum { FUSED_FUSED, FUSED_EAGER, FUSED_COMPILED, FUSED_COUNT } Fused;

// Scales of fp8 operands: one per tensor from its present values (torchao's tensorwise, Transformer Engine's current
// scaling), one per row, one per tensor from the largest values of earlier steps, one per 32 elements (MX), one per 128
// elements, of weights per 128 x 128 (BLOCK), or 4 bits with one per 16 (NVFP4). ROWWISE_BF16: one per row, and
// gradients of weights in bf16 (torchao's rowwise_with_gw_hp).
typedef enum {
    FP8_TENSORWISE,
    FP8_ROWWISE,
    FP8_DELAYED,
    FP8_MX,
    FP8_BLOCK,
    FP8_NVFP4,
    FP8_ROWWISE_BF16,
    FP8_RECIPE_COUNT
} Fp8Recipe;
#define FP8_BIT(recipe) (1u << (recipe))

// Dtype of the gradient reduction over dp_shard x cp and dp_replicate: the target's own, or set here. It may
// be narrower than what they are computed in (PyTorch's MixedPrecisionPolicy(reduce_dtype)).
typedef enum { REDUCE_DTYPE_TARGET, REDUCE_DTYPE_FP32, REDUCE_DTYPE_BF16, REDUCE_DTYPE_COUNT } ReduceDtype;

// When gradients are reduced while micro-steps accumulate. EACH: over all data ranks on every micro-step. SHARDS: over
// dp_shard x cp on every micro-step, over dp_replicate once. LAST: whole gradients are kept and reduced with the last
// micro-step. TARGET: as the target does it by itself (target_grad_sync).
typedef enum { GRAD_SYNC_TARGET, GRAD_SYNC_EACH, GRAD_SYNC_SHARDS, GRAD_SYNC_LAST, GRAD_SYNC_COUNT } GradSync;

// What recompute=full checkpoints: the target's own unit, whole layers (one input kept of each), or the children of a
// layer (norm, attention, norm, MLP: an input of each).
typedef enum {
    RECOMPUTE_UNIT_TARGET,
    RECOMPUTE_UNIT_LAYER,
    RECOMPUTE_UNIT_CHILDREN,
    RECOMPUTE_UNIT_COUNT
} RecomputeUnit;

// What recompute=selective recomputes, as a set: the attention kernel's own values; the outputs of the norms before
// attention and MLP; the inside of dense layers' MLP, its input kept; the experts' activation; the outputs of latent
// attention's low-rank projections; the whole MLP of layers with experts, its input kept. The modules of Megatron-core
// (transformer_config.py, recompute_modules). Empty: as the target does it by itself.
typedef enum {
    RECOMPUTE_CORE_ATTENTION = 1 << 0,
    RECOMPUTE_NORMS = 1 << 1,
    RECOMPUTE_MLP = 1 << 2,
    RECOMPUTE_EXPERT_ACTIVATION = 1 << 3,
    RECOMPUTE_LATENT_UP = 1 << 4,
    RECOMPUTE_EXPERTS = 1 << 5,
    RECOMPUTE_MODULE_SETS = 1 << 6
} RecomputeModules;

// What is offloaded to host memory: optimizer state and masters, updated there; or all that is sharded, gathered from
// there (FSDP2's CPUOffloadPolicy: parameters, reduced gradients, optimizer); or recomputed layers' inputs, or what
// layers save (Megatron-core's cpu_offloading).
typedef enum { OFFLOAD_NONE, OFFLOAD_OPTIMIZER, OFFLOAD_PARAMETERS, OFFLOAD_ACTIVATIONS, OFFLOAD_COUNT } Offload;

// Whether gradient reduction overlaps backward, or kernels wait for them: at stage 2 for each reduction, at stages 0
// and 1 for all of them when backward has ended. TARGET: as the target does it by itself.
typedef enum { REDUCE_OVERLAP_TARGET, REDUCE_OVERLAP_OFF, REDUCE_OVERLAP_ON, REDUCE_OVERLAP_COUNT } ReduceOverlap;
// How head and loss are computed. WHOLE: the logits of all tokens, then the loss. CHUNKED: a part of the tokens at a
// time, head, loss and both gradients, so that no other part's logits live. FUSED: the same in one kernel without an
// fp32 copy (Hsu et al. 2024, Liger). IN_PLACE: of all tokens, by a kernel that writes the gradient over the logits as
// the head made them (Transformer Engine). ONE_COPY: of all tokens, in a single fp32 copy in which softmax and gradient
// are made (Megatron-core without its fused kernel). TARGET: as the target does it by itself (target_loss).
typedef enum {
    LOSS_TARGET,
    LOSS_WHOLE,
    LOSS_CHUNKED,
    LOSS_FUSED,
    LOSS_IN_PLACE,
    LOSS_ONE_COPY,
    LOSS_FORM_COUNT
} LossForm;

// What is captured once and replayed, so that the host launches none of its operations. ON: forward and backward.
// LAYERS: each layer by itself; from there on these parts of each layer (Megatron-core's cuda_graph_modules): attention
// with its norm, a dense layer's MLP, a layer of experts up to its router and its shared expert. TARGET: as the
// target does it by itself (target_cuda_graphs).
typedef enum { GRAPHED_ATTENTION = 1, GRAPHED_MLP = 2, GRAPHED_ROUTER = 4, GRAPHED_SETS = 8 } GraphedParts;
typedef enum {
    CUDA_GRAPHS_TARGET,
    CUDA_GRAPHS_OFF,
    CUDA_GRAPHS_ON,
    CUDA_GRAPHS_LAYERS,
    CUDA_GRAPHS_COUNT = CUDA_GRAPHS_LAYERS + GRAPHED_SETS
} GraphUse;

// Whether tp ranks share the tokens between the blocks of a layer (Korthikanti et al. 2022), or each holds all of them.
// TARGET: as the target does it by itself (target_tp_flavour).
typedef enum {
    SEQUENCE_PARALLEL_TARGET,
    SEQUENCE_PARALLEL_OFF,
    SEQUENCE_PARALLEL_ON,
    SEQUENCE_PARALLEL_COUNT
} SequenceParallel;
// How tokens get to experts on other ranks of ep. ALLTOALL: one row per expert that a token is routed to. ALLGATHER:
// all tokens to every rank. DEEPEP, HYBRIDEP: once to each node and rank that a token is routed to, by kernels of
// DeepSeek and of NVIDIA. TARGET: as the target does it by itself (target_dispatch).
typedef enum {
    DISPATCH_TARGET,
    DISPATCH_ALLTOALL,
    DISPATCH_ALLGATHER,
    DISPATCH_DEEPEP,
    DISPATCH_HYBRIDEP,
    DISPATCH_COUNT
} Dispatch;

// Which parameters are trained: all, or low-rank adapters on frozen linear layers (Hu et al. 2021, LoRA), whose weights
// are in the plan's precision, in 4 bits (nf4; Dettmers et al. 2023, QLoRA) or in int8. And which of a layer's linear
// layers have an adapter.
typedef enum { FINETUNE_FULL, FINETUNE_LORA, FINETUNE_QLORA, FINETUNE_LORA_INT8, FINETUNE_COUNT } Finetune;
typedef enum { LORA_ALL, LORA_ATTENTION, LORA_QUERY_VALUE, LORA_TARGETS_COUNT } LoraTargets;

// Their words, by value; plan_words.c.
extern const char *const reduce_dtype_names[REDUCE_DTYPE_COUNT];  // "auto" "fp32" "bf16"
extern const char *const reshard_names[RESHARD_COUNT];            // "always" "never"
extern const char *const recompute_names[RECOMPUTE_COUNT];        // "none" "full" "selective"
extern const char *const cp_rotate_names[CP_ROTATE_COUNT];        // "ring" "allgather"
extern const char *const attention_names[ATTENTION_COUNT];        // "flash" "flash3" "cudnn" "triton" "eager"
extern const char *const fused_names[FUSED_COUNT];                // "fused" "eager" "compiled"
extern const char *const fp8_recipe_names[FP8_RECIPE_COUNT];      // "tensorwise" "rowwise" "delayed" ...
extern const char *const offload_names[OFFLOAD_COUNT];  // "none" "optimizer" "parameters,optimizer" "activations"
extern const char *const recompute_unit_names[RECOMPUTE_UNIT_COUNT];     // "auto" "layer" "children"
extern const char *const recompute_module_names[RECOMPUTE_MODULE_SETS];  // "target" "core-attn" "layernorm" ...
extern const char *const pp_schedule_names[PP_SCHEDULE_COUNT];           // "1f1b" "gpipe" "interleaved" ...
extern const char *const pp_split_names[SPLIT_COUNT];                    // "target" "even" "weighted" ...
extern const char *const grad_sync_names[GRAD_SYNC_COUNT];               // "target" "each" "shards" "last"
extern const char *const reduce_overlap_names[REDUCE_OVERLAP_COUNT];     // "target" "off" "on"
extern const char *const loss_form_names[LOSS_FORM_COUNT];               // "target" "whole" "chunked" ...
extern const char *const cuda_graphs_names[CUDA_GRAPHS_COUNT];  // "target" "off" "on" "layers" "attn" "mlp" ...
extern const char *const sequence_parallel_names[SEQUENCE_PARALLEL_COUNT];  // "target" "off" "on"
extern const char *const dispatch_names[DISPATCH_COUNT];                    // "target" "alltoall" "allgather" ...
extern const char *const finetune_names[FINETUNE_COUNT];                    // "full" "lora" "qlora" "lora-int8"
extern const char *const lora_targets_names[LORA_TARGETS_COUNT];            // "all" "attention" "query-value"
extern const char *const optimizer_names[OPTIMIZER_COUNT];                  // "adamw" "adamw-fused" ...
