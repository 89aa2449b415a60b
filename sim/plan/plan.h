// TrainPlan: the mesh and every other choice of a run. Plain values, copied freely. Plans are put in one canonical form
// before they are hashed or compared, so the same plan never appears twice.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/axes/mesh.h"
#include "sim/base/dtype.h"
#include "sim/base/error.h"
#include "sim/base/hash.h"
#include "sim/plan/plan_choices.h"

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
    int recompute_layers;          // of recompute=full: this many first layers of a chunk, the others are kept; 0 = all
    Offload offload;               // stages 1 to 3; parameters: stage 3; activations of layers: any
    int offload_layers;            // of offload=activations, where a target offloads what layers save: 0 = all but one
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
    bool fp8_parameters;      // precision fp8, stages 1, 3: the products' weights are kept and gathered in fp8 alone
    int reshard_ranks;  // reshard=always: neighbours that hold all parameters once more until the step ends; 0 = none
    int reduce_bucket;  // elements that gradients are reduced by; 0 = the target's own, 1 = the hidden size squared
    int etp, expert_capacity;  // ranks that cut each expert, 0 = plan_expert_tp's; most rows that it takes of a rank's
    bool pad_experts;          // tokens, in per cent of the mean, 0 = all that come; always padded to that number
    int mtp, pp_group;    // layers that predict further tokens; interleaved: micro-steps by chunk, 0 = the target's own
    int pp_rounds;        // pp > 1: schedules that share the micro-steps, one after another
    bool p2p_waits;       // interleaved: a stage waits for each message between stages, as it does with one chunk
    bool fp8_activation;  // a gated activation keeps its input for backward in fp8
    bool op_fuser;        // MLPs, experts and adapters are Transformer Engine's fused operations
    bool qkv_rope;        // one kernel takes q, k and v out of their product and turns the first two
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
    PLAN_OFFLOAD_LAYERS,
    PLAN_FP8_ACTIVATION,
    PLAN_OP_FUSER,
    PLAN_QKV_ROPE,
    PLAN_FIELD_COUNT
} PlanFieldId;

enum { PLAN_TEXT_BYTES = 560, PLAN_USUAL_CAPACITY = 200, REDUCE_BUCKET_HIDDEN = 1 };
#define PLAN_BUFFER ((char[PLAN_TEXT_BYTES]){0})  // room for one text: lives as long as the block around it

// Dtype of activations, gathered parameters and gradients before reduction.
static inline Dtype plan_activation_dtype(const TrainPlan *plan) {
    return plan->precision == DTYPE_FP8 ? DTYPE_BF16 : plan->precision;
}

// What the products of the layers read, where precision says fp8.
Dtype plan_product_dtype(const TrainPlan *plan);

// Can operations cast what they write? With scales that are known beforehand, or of blocks that they hold.
static inline bool plan_fuses_casts(const TrainPlan *plan) {
    return plan->precision == DTYPE_FP8 && (plan->fp8_recipe == FP8_DELAYED || plan->fp8_recipe == FP8_MX);
}

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

// Low-rank adapters are what is trained.
static inline bool plan_has_adapters(const TrainPlan *plan) {
    return plan->finetune != FINETUNE_FULL;
}

// Have the model's own weights no gradients and no states? They have none beside adapters.
static inline bool plan_freezes_base(const TrainPlan *plan) {
    return plan_has_adapters(plan);
}

// Are frozen weights in fewer bits than the plan's precision: of 4 bits, or int8?
static inline bool plan_packs_base(const TrainPlan *plan) {
    return plan->finetune == FINETUNE_QLORA || plan->finetune == FINETUNE_LORA_INT8;
}

// Does recompute=full keep some layers' activations?
bool plan_keeps_layers(const TrainPlan *plan);

// Makes recompute apply to all layers alike.
static inline void plan_all_layers_alike(TrainPlan *plan) {
    plan->recompute_layers = plan->recompute_every = 0;
}

// Bytes per master weight.
static inline int plan_master_bytes(const TrainPlan *plan) {
    return plan->bf16_master ? dtype_bytes(DTYPE_BF16) : dtype_bytes(DTYPE_FP32);
}

static inline bool plan_has_stages(const TrainPlan *plan) {  // of a pipeline
    return mesh_has_stages(&plan->mesh);
}

// Bits of GraphedParts of each layer that are replayed as CUDA graphs, one a layer; 0 = none, or a micro-step as one.
static inline unsigned plan_graphed_parts(const TrainPlan *plan) {
    return plan->cuda_graphs < CUDA_GRAPHS_LAYERS    ? 0
           : plan->cuda_graphs == CUDA_GRAPHS_LAYERS ? GRAPHED_SETS - 1
                                                     : (unsigned)(plan->cuda_graphs - CUDA_GRAPHS_LAYERS);
}

// Are the optimizer's states on the host?
static inline bool plan_offloads_states(const TrainPlan *plan) {
    return plan->offload == OFFLOAD_OPTIMIZER || plan->offload == OFFLOAD_PARAMETERS;
}

static inline bool plan_offloads_activations(const TrainPlan *plan) {
    return plan->offload == OFFLOAD_ACTIVATIONS;
}

// States leave where something is sharded, activations anywhere; those of recomputed layers: target_canonical.
static inline bool plan_may_offload(const TrainPlan *plan) {
    return plan->zero != 0 || plan_offloads_activations(plan);
}

// Of offload=activations where it is of what layers save: how many of the first ones.
static inline int plan_offload_layers(const TrainPlan *plan, int layers) {
    return plan->offload_layers > 0 ? plan->offload_layers : layers - 1;
}

// "full", "selective"; where some layers are kept "24 layers", "1 in 3 layers".
enum { PLAN_RECOMPUTE_BYTES = 32 };
#define RECOMPUTE_BUFFER ((char[PLAN_RECOMPUTE_BYTES]){0})  // room for one text: lives as long as the block around it
const char *plan_recompute_text(const TrainPlan *plan, char out[PLAN_RECOMPUTE_BYTES]);

// One line, stable, canonical: "dp_replicate=1,dp_shard=8,cp=1,tp=4 seq=4096 mb=1 ga=16 zero=3 ...", with
// " order=tp,dp_shard" where the axes are not in their default order.
char *plan_text(const TrainPlan *plan, char out[PLAN_TEXT_BYTES]);
Status plan_parse(const char *text, TrainPlan *plan, Error *error);  // such a line
void plan_hash(const TrainPlan *plan, Hash *hash);
void plan_hash_canonical(const TrainPlan *plan, Hash *hash);  // the same for a plan already canonical
