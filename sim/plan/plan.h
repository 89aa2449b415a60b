// TrainPlan: the mesh and every other choice of a run. Plain values, copied freely. Plans are put in one canonical form
// before they are hashed or compared, so the same plan never appears twice.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/axes/mesh.h"
#include "sim/base/dtype.h"
#include "sim/base/error.h"
#include "sim/base/hash.h"
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
// there (FSDP2's CPUOffloadPolicy: parameters, reduced gradients, optimizer); or recomputed layers' inputs.
typedef enum { OFFLOAD_NONE, OFFLOAD_OPTIMIZER, OFFLOAD_PARAMETERS, OFFLOAD_ACTIVATIONS, OFFLOAD_COUNT } Offload;

// Whether gradient reduction overlaps backward, or kernels wait for them: at stage 2 for each reduction, at stages 0
// and 1 for all of them when backward has ended. TARGET: as the target does it by itself.
typedef enum { REDUCE_OVERLAP_TARGET, REDUCE_OVERLAP_OFF, REDUCE_OVERLAP_ON, REDUCE_OVERLAP_COUNT } ReduceOverlap;
// How head and loss are computed. WHOLE: the logits of all tokens, then the loss. CHUNKED: a part of the tokens at a
// time, head, loss and both gradients, so that no other part's logits live. FUSED: the same in one kernel without an
// fp32 copy (Hsu et al. 2024, Liger). TARGET: as the target does it by itself (target_loss).
typedef enum { LOSS_TARGET, LOSS_WHOLE, LOSS_CHUNKED, LOSS_FUSED, LOSS_FORM_COUNT } LossForm;

// Whether forward and backward are captured once and replayed, so that the host launches none of their operations.
// TARGET: as the target does it by itself (target_cuda_graphs).
typedef enum { CUDA_GRAPHS_TARGET, CUDA_GRAPHS_OFF, CUDA_GRAPHS_ON, CUDA_GRAPHS_COUNT } GraphUse;

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

// Their words, by value; they stand in the table of the fields (plan_fields.c).
extern const char *const reduce_dtype_names[REDUCE_DTYPE_COUNT];  // "auto" "fp32" "bf16"
extern const char *const reshard_names[RESHARD_COUNT];            // "always" "never"
extern const char *const recompute_names[RECOMPUTE_COUNT];        // "none" "full" "selective"
extern const char *const cp_rotate_names[CP_ROTATE_COUNT];        // "ring" "allgather"
extern const char *const attention_names[ATTENTION_COUNT];        // "flash" "flash3" "cudnn" "triton" "eager"
extern const char *const fused_names[FUSED_COUNT];                // "fused" "eager" "compiled"
extern const char *const fp8_recipe_names[FP8_RECIPE_COUNT];      // "tensorwise" "rowwise" "delayed" ...
extern const char *const offload_names[OFFLOAD_COUNT];  // "none" "optimizer" "parameters,optimizer" "activations"
extern const char *const recompute_unit_names[RECOMPUTE_UNIT_COUNT];        // "auto" "layer" "children"
extern const char *const recompute_module_names[RECOMPUTE_MODULE_SETS];     // "target" "core-attn" "layernorm" ...
extern const char *const pp_schedule_names[PP_SCHEDULE_COUNT];              // "1f1b" "gpipe" "interleaved" ...
extern const char *const pp_split_names[SPLIT_COUNT];                       // "target" "even" "weighted" ...
extern const char *const grad_sync_names[GRAD_SYNC_COUNT];                  // "target" "each" "shards" "last"
extern const char *const reduce_overlap_names[REDUCE_OVERLAP_COUNT];        // "target" "off" "on"
extern const char *const loss_form_names[LOSS_FORM_COUNT];                  // "target" "whole" "chunked" "fused"
extern const char *const cuda_graphs_names[CUDA_GRAPHS_COUNT];              // "target" "off" "on"
extern const char *const sequence_parallel_names[SEQUENCE_PARALLEL_COUNT];  // the same
extern const char *const dispatch_names[DISPATCH_COUNT];                    // "target" "alltoall" "allgather" ...
extern const char *const finetune_names[FINETUNE_COUNT];                    // "full" "lora" "qlora" "lora-int8"
extern const char *const lora_targets_names[LORA_TARGETS_COUNT];            // "all" "attention" "query-value"
extern const char *const optimizer_names[OPTIMIZER_COUNT];                  // "adamw" "adamw-fused" ...

typedef struct TrainPlan {
    Mesh mesh;
    int seq;          // full sequence length in tokens
    int micro_batch;  // sequences per coordinate of the batch axes (dp_replicate, dp_shard) and micro-step
    int grad_accum;   // micro-steps per optimizer step
    int zero;         // sharding stage 0..3 over dp_shard x cp
    Reshard reshard;  // stage 3 only: free gathered parameters after forward?
    Recompute recompute;
    CpRotate cp_rotate;        // cp > 1 only
    Dtype precision;           // compute and gathered-parameter dtype; fp8: of the layers' GEMMs, bf16 otherwise
    bool bf16_master;          // parameters, gradients and optimizer state are bf16 too: no fp32 master
    Fp8Recipe fp8_recipe;      // precision fp8 only
    ReduceDtype reduce_dtype;  // stages 1 to 3 only
    AttentionKernel attention;
    Fused fused;
    bool tp_overlap;               // tp > 1: tp collectives overlap the GEMMs they feed (user buffers, async tp)
    RecomputeUnit recompute_unit;  // of recompute=full
    int recompute_layers;          // of recompute=full: this many first layers, the others are kept; 0 = all
    Offload offload;               // stages 1 to 3; parameters: stage 3
    int recompute_every;           // of recompute=full: every n-th layer, the others are kept; 0 = each
    GradSync grad_sync;            // accumulation over several data ranks only
    PpSchedule pp_schedule;        // pp > 1 only
    const PpOrder *pp_order;       // of pp_schedule FILE
    int virtual_stages;            // chunks of layers on each stage, where the schedule leaves them open
    ReduceOverlap reduce_overlap;  // several data ranks only
    LossForm loss;
    GraphUse cuda_graphs;
    SequenceParallel sequence_parallel;  // tp > 1 only
    Finetune finetune;
    int lora_rank;  // of lora: rank of an adapter; 0 = plan_lora_rank's
    LoraTargets lora_targets;
    Optimizer optimizer;
    int pack;       // mean length of documents that share a sequence and see themselves only; 0 = it is one document
    int imbalance;  // of the experts of the busiest rank of ep: tokens over the mean, in per cent
    int capacity;   // of a rank of ep that runs for real: tokens there is room for, in per cent of the mean; 0 = 200
    int recompute_modules;  // of recompute=selective: RecomputeModules; 0 = the target's own
    Dispatch dispatch;      // ep > 1 only
    bool ep_overlap;        // ep > 1: token exchange overlaps another micro-step's layers
    PpSplit pp_split;       // pp > 1 only
    int pp_first, pp_last;  // of pp_split weighted, ends, chunks: layers
    int mlp_tiles;  // parts of a rank's tokens that an MLP runs on one by one, recomputed in backward; 0 = all, kept
    bool update_in_backward;  // a layer is updated as soon as its gradient is there, which is then freed
    bool fp8_parameters;      // precision fp8, stage 1: the products' weights are kept and gathered in fp8 alone
    int reshard_ranks;  // reshard=always: neighbours that hold all parameters once more until the step ends; 0 = none
    int reduce_bucket;  // elements that gradients are reduced by; 0 = the target's own, 1 = the hidden size squared
    int etp, expert_capacity;  // ranks that cut each expert, 0 = plan_expert_tp's; most rows that it takes of a rank's
    bool pad_experts;          // tokens, in per cent of the mean, 0 = all that come; always so many
    int mtp, pp_group;  // layers that predict further tokens; interleaved: micro-steps by chunk, 0 = the target's own
    int pp_rounds;      // pp > 1: schedules that share the micro-steps, one after another
    bool p2p_waits;     // interleaved: a stage waits for each message between stages, as it does with one chunk
} TrainPlan;

// The fields but the mesh, in the order in which a plan's text names them and its hash takes them: new ones come at
// the end. Each is described by its row in plan_fields.c.
typedef enum {
    PLAN_SEQ,
    PLAN_MICRO_BATCH,
    PLAN_GRAD_ACCUM,
    PLAN_ZERO,
    PLAN_RESHARD,
    PLAN_RECOMPUTE,
    PLAN_CP_ROTATE,
    PLAN_PRECISION,
    PLAN_ATTENTION,
    PLAN_FUSED,
    PLAN_TP_OVERLAP,
    PLAN_MASTER_WEIGHTS,
    PLAN_FP8_RECIPE,
    PLAN_REDUCE_DTYPE,
    PLAN_RECOMPUTE_UNIT,
    PLAN_RECOMPUTE_LAYERS,
    PLAN_RECOMPUTE_EVERY,
    PLAN_GRAD_SYNC,
    PLAN_OFFLOAD,
    PLAN_PP_SCHEDULE,
    PLAN_VIRTUAL_STAGES,
    PLAN_REDUCE_OVERLAP,
    PLAN_LOSS,
    PLAN_CUDA_GRAPHS,
    PLAN_SEQUENCE_PARALLEL,
    PLAN_FINETUNE,
    PLAN_LORA_RANK,
    PLAN_LORA_TARGETS,
    PLAN_OPTIMIZER,
    PLAN_PACK,
    PLAN_IMBALANCE,
    PLAN_CAPACITY,
    PLAN_RECOMPUTE_MODULES,
    PLAN_DISPATCH,
    PLAN_EP_OVERLAP,
    PLAN_PP_SPLIT,
    PLAN_PP_FIRST,
    PLAN_PP_LAST,
    PLAN_MLP_TILES,
    PLAN_UPDATE_IN_BACKWARD,
    PLAN_FP8_PARAMETERS,
    PLAN_RESHARD_RANKS,
    PLAN_REDUCE_BUCKET,
    PLAN_ETP,
    PLAN_EXPERT_CAPACITY,
    PLAN_PAD_EXPERTS,
    PLAN_MTP,
    PLAN_PP_GROUP,
    PLAN_PP_ROUNDS,
    PLAN_P2P_OVERLAP,
    PLAN_FIELD_COUNT
} PlanFieldId;

enum { PLAN_TEXT_BYTES = 560, PLAN_USUAL_CAPACITY = 200, REDUCE_BUCKET_HIDDEN = 1 };

// Dtype of activations, gathered parameters and gradients before reduction.
static inline Dtype plan_activation_dtype(const TrainPlan *plan) {
    return plan->precision == DTYPE_FP8 ? DTYPE_BF16 : plan->precision;
}

// What the products of the layers read, where precision says fp8.
Dtype plan_product_dtype(const TrainPlan *plan);

// Axes of size 1 in their default places; fields without effect given the others at their usual value.
void plan_canonical(TrainPlan *plan);

int64_t plan_global_batch(const TrainPlan *plan);     // sequences: micro_batch * batch axes * grad_accum
int64_t plan_tokens_per_step(const TrainPlan *plan);  // global_batch * seq
int plan_local_tokens(const TrainPlan *plan);  // tokens of one rank and micro-step: micro_batch * seq / sequence axes
int plan_shard_count(const TrainPlan *plan);   // F = dp_shard * cp: the shard group
int plan_chunks(const TrainPlan *plan);        // of layers, that each stage of the pipeline holds: 1 without one
int plan_all_chunks(const TrainPlan *plan);    // of all stages
bool plan_is_folded(const TrainPlan *plan);    // the last chunk of layers is on the first stage
int plan_rounds(const TrainPlan *plan);        // schedules of a step: 1 without a pipeline
int plan_round_steps(const TrainPlan *plan);   // micro-steps of each
bool plan_splits_backward(const TrainPlan *plan);  // input and weight gradients are separate passes
int plan_expert_tp(const TrainPlan *plan);  // ranks that cut each expert: of tp where none are said, with ep none

// Packed documents end anywhere, with mean length `pack` (exponentially distributed), and at the ends of a sequence.
// The mean number of tokens in a token's document: the sum of the squares of the lengths over that of the lengths, 2 p
// (1 - p / s (1 - exp(-s / p))) of a sequence of s. Where none is packed: s.
double plan_document_tokens(const TrainPlan *plan);
// For a sequence of one such document, truncated where longer, and padding: the share that is not padding.
double plan_unpacked_share(const TrainPlan *plan);

// 16: between peft's 8 and what guides recommend, 32 (sim/SOURCES.md F3).
enum { LORA_SCALING = 2 };  // alpha over rank, in what we run and export

static inline int plan_lora_rank(const TrainPlan *plan) {
    return plan->lora_rank > 0 ? plan->lora_rank : 16;
}

// Does recompute=full keep some layers' activations?
bool plan_keeps_layers(const TrainPlan *plan);

// Makes recompute apply to all layers alike.
void plan_all_layers_alike(TrainPlan *plan);

// Bytes per master weight.
static inline int plan_master_bytes(const TrainPlan *plan) {
    return plan->bf16_master ? dtype_bytes(DTYPE_BF16) : dtype_bytes(DTYPE_FP32);
}

static inline bool plan_has_stages(const TrainPlan *plan) {  // of a pipeline
    return mesh_has_stages(&plan->mesh);
}

// Are the optimizer's states on the host?
bool plan_offloads_states(const TrainPlan *plan);

// "full", "selective"; where some layers are kept "24 layers", "1 in 3 layers".
enum { PLAN_RECOMPUTE_BYTES = 32 };
const char *plan_recompute_text(const TrainPlan *plan, char out[PLAN_RECOMPUTE_BYTES]);

// One line, stable, canonical: "dp_replicate=1,dp_shard=8,cp=1,tp=4 seq=4096 mb=1 ga=16 zero=3 ...", with
// " order=tp,dp_shard" where the axes are not in their default order.
char *plan_text(const TrainPlan *plan, char out[PLAN_TEXT_BYTES]);
Status plan_parse(const char *text, TrainPlan *plan, Error *error);  // such a line
void plan_hash(const TrainPlan *plan, Hash *hash);
void plan_hash_canonical(const TrainPlan *plan, Hash *hash);  // the same for a plan already canonical
