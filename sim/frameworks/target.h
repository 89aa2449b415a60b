// The capability table: what each framework (and version) runs. One row drives legality, lowering, cost and export.
// Sources: sim/SOURCES.md, its number in each row of the folders.

#pragma once

#include <stdbool.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/frameworks/flavours.h"
#include "sim/frameworks/group_rule.h"
#include "sim/frameworks/target_runtime.h"
#include "sim/model/model.h"
#include "sim/plan/plan.h"

typedef struct Target {
    const char *name;      // of its framework
    const char *version;   // "1.14"
    const char *until;     // "YYYY-MM": runs from before that month are of this version; NULL = of any date
    const char *evidence;  // "unvalidated" until measured runs support it
    // what it runs
    TpFlavour tp_flavour;
    RecomputeFlavour recompute_flavour;
    bool recompute_other_unit;  // can also checkpoint other than its own flavour: by another key, or call
    RecomputeCounts recompute_counts;
    SelectiveFlavour selective_flavour;
    unsigned recompute_modules;    // RecomputeModules that recompute=selective can be told to recompute
    bool recompute_whole;          // a checkpointed layer runs again to its end, also what its backward does not need
    bool experts_recompute_whole;  // one of experts does, and before any of its backward
    bool zigzag;                   // cp sequence split: zigzag (balanced) or contiguous
    bool cp_ring, cp_allgather;    // values of cp_rotate that are available
    bool cp_half_gradients;        // with ring: dKV travels in the compute dtype, not in fp32
    bool cp_scatters;              // with all-gather: one reduce-scatter returns dKV, else it travels the ring
    bool cp_keeps_gathered;        // with all-gather: gathered keys and values are kept, backward gathers none
    bool cp_gathers_first;         // with all-gather: no block starts before all keys and values are there
    bool cp_compiled_waits;        // compiled, no kernel runs beside a transfer of cp
    bool repeats_keys;             // keys and values have a copy for every query head before attention, and before cp
    bool shares_keys;              // so do ranks of tp beyond the key-value heads, of what products made of all
    int cp_block;                  // with cp the sequence is a multiple of this many tokens a rank; 0 = any
    Dtype reduce_dtype_bf16;       // gradient reduction dtype when precision is bf16; if bf16, fp16 reduces in fp16
    bool reduces_fp32_only;        // reduce_dtype=bf16 is refused
    bool reduces_often_bf16;       // published runs use bf16 as often as its default and seldom state it
    bool fused_projections, fused_qkv;  // one GEMM for q,k,v and one for gate,up; for q,k,v regardless of those
    bool deferred_reduce, late_reduce;  // gradients are reduced on the last micro-step only; stage 1: behind backward
    bool gradient_buffer;               // whole gradients have their own memory from the start, accumulated or not
    bool adds_gradients;      // products add none to its sum: one more launch does (no gradient accumulation fusion)
    bool dummy_gradients;     // where products do, a tensor of each weight's shape that autograd is handed is kept
    unsigned serial_stages;   // bit 1 << stage: where kernels wait for reductions unless a plan says otherwise
    unsigned overlap_stages;  // the same: where it has a switch for that
    bool replicas_each_step;  // reduced on every micro-step over dp_replicate too; at stage 0 none are left for the end
    bool half_gradients, half_sums;  // whole gradients in the compute dtype: added to fp32 ones; reduced in any dtype
    bool fp16_sums;                  // those of fp16 are summed and reduced in it, whatever bf16's are
    bool shared_shard_lane;          // all-gather and reduce-scatter use one communicator and serialise
    bool shard_copies;               // copy-in and copy-out around gather and reduce, on the compute lane
    bool backward_prefetch, shards_wait;  // issues all-gather(l-1) before backward(l); kernels wait for each gather
    bool root_unit;                       // embedding, final norm and head are one unit, gathered for the whole forward
    bool adapters_cast, adapters_drop, halves_drop;  // to fp32; lora_dropout, hidden_dropout
    DropoutUse attention_dropout;
    bool fills_masked;         // eager attention masks its scores by masked_fill
    bool scores_buffer;        // and multiplies into a buffer that is there for good
    bool frozen_held;          // stage 3: what goes into a recomputed layer without trained weights of its own, and its
                               // gradient, live until backward ends
    bool root_kept;            // and kept until its gradient is copied out, not gathered again for backward
    bool tp_reduce_overlaps;   // the tp reduction of an input gradient overlaps the weight gradient's GEMM
    bool sp_switch, tp_apart;  // TP_SP: a switch changes it to TP_AR; to TP_HF, whose whole logits it has with it too
    bool tp_copies;            // TP_SP: a copy reorders what was gathered or will be scattered along the sequence
    bool tp_splits_head, tp_splits_embedding;  // TP_HF: over the vocabulary; logits are gathered for the loss
    bool tp_shards_itself;  // with tp, or ep, its own library shards the model: reduced in fp32, freed after forward;
                            // replicas wait for the last micro-step, shards do not; no cp
    bool tp_regathers, stages_regather;  // TP_SP: inputs are gathered again, not kept; the same, in a pipeline only
    bool gather_buffers;                 // TP_SP: gathered again, inputs share one buffer for good, gradients another
    bool replays_stages;                 // of 1F1B: what the allocator holds there is replayed, not slack
    bool gathers_flat;                   // stages 1 and 2: updated weights go through flat copies of all units' size
    bool packed_kept;  // as many heads of keys: their copies, and the packed result that queries are a view of
    bool gate_kept, activation_apart;  // act(gate) is kept, whichever GEMM made gate; two operations if fused
    bool fused_softmax;            // eager attention's scale, mask and softmax are one kernel, where it takes the shape
    bool fused_norms, aten_norms;  // RMSNorm is one kernel in eager mode too: Triton's, as slow to issue, or PyTorch's
    bool norms_keep;               // written out, it keeps an fp32 copy of its input and its result before the weight
    bool fuses_passes;  // with fused mode `fused`: a sum and the norm after it, and the whole loss, are one pass each
    bool own_kernels;   // ours: loss on logits as they are, AdamW writes the working copy, gradients begin whole
    bool master_fp32;   // fp32 master when precision is lower
    bool bf16_weights;  // with precision bf16, weights, gradients and optimizer state are bf16 whatever is asked for
    Fp8Flavour fp8_flavour;
    unsigned fp8_recipes;  // bit by Fp8Recipe
    AllocatorFlavour allocator;
    double replayed_slack;  // the runtime's slack as it ships, which a replay of the allocator stands in for
    ExpertFlavour expert_flavour;
    bool weighs_in_fp32;    // eager, autograd has fp32 copies of experts' results
    bool biases_by_expert;  // beside EXPERTS_PERMUTE_KERNELS: both biases of experts are operations for each of them
    bool experts_at_once;   // EXPERTS_PERMUTE_KERNELS: one launch has a product of all experts, not one for each
    bool routes_eagerly, sums_by_product;  // experts' way is not compiled; WEIGHTED_FP32: an fp32 product sums results
    bool reference_attention, fp8_attention, fp8_head;  // FlexAttention uncompiled: fp32; cuDNN's and the head's in fp8
    bool experts_apart;  // with ep, wrapped by themselves: backward gathers a layer's as it comes to it, not before
    // legality
    ReplicateRule replicate_rule;
    RankOrderRule rank_order_rule;
    unsigned offloads;               // bit 1 << Offload: what it can offload to host memory
    const char *rank_order_note;     // what setting another order requires; NULL = no more than any other choice
    bool cp_full_attention;          // cp is refused with sliding-window attention
    AxisMask axes, axes_unmodelled;  // that it supports, the others must have size 1; that it has and no plan does
    bool shard_needs_fsdp;           // S*C > 1 is fully sharded: stages 1 and 2 do not exist
    int max_zero, stages_max_zero;   // the latter with pipeline stages; 0 = no less
    unsigned zero_stages;  // bit 1 << stage: that its configuration chooses from; 0 = its own alone is searched
    GroupRule group_rule;
    unsigned pp_schedules;              // schedules that its pipelines have: PP_BIT(value)
    bool messages_in_turn, p2p_switch;  // a stage of one chunk waits for what it sends; of several by a switch
    bool buffers_each_message;  // what a stage receives of each micro-step of a round has a buffer of its own, for good
    bool slices_messages;    // what tp ranks hold whole each sends a slice of to another stage, whose ranks gather them
    bool pp_keeps_gathered;  // with stages: gathers parameters once, whatever reshard says, and reduces gradients last
    LayerRule layer_rule;    // its default split of layers over stages
    unsigned splits;         // further values of pp_split it offers: PP_BIT(value)
    bool edges_weigh_one;    // embedding and head count as one layer or none, and all must divide
    bool pp_rounds, offloads_saved;  // a step may run its schedule several times; offload=activations: of kept layers
    bool ties_stages, stages_recompute_whole;  // two stages may share a table, and sum its gradient; recompute_whole
    const char *stages_note, *group_switch;    // why no plan has pipelines; what its files call pp_group; NULL
    int grad_syncs;                            // available by a switch, besides its own: GRAD_SYNC_BIT(value)
    const char *grad_sync_note, *loss_note;    // what its own is, and why there is no other; NULL
    int losses;                                // forms available by a switch, besides its own: LOSS_BIT(value)
    int losses_by_call;                        // that the user has to ask for: never tried by the search
    bool logits_held, loss_collects_half;      // of two micro-steps; CHUNKED: not in fp32 is its input's gradient
    LossForm own_loss;                         // TARGET: whole
    bool loss_remakes_logits;  // backward runs the head a second time, and collects its input's gradient in fp32
    bool loss_regathers;       // CHUNKED: the head's unit is resharded after its norm and after the parts
    int loss_chunks;           // of CHUNKED: parts that a rank's tokens of a micro-step are cut into
    bool own_graphs, graph_switch, graph_parts;  // CUDA graphs of all that has no stages; a switch, and one for parts
    bool adapter_units;  // adapters are a unit next to their layer's, and next to each attention projection
    bool adapters_of_core, adapters_exchange;  // they are layers of Megatron-core, scaled by a pass; a2a_experimental
    unsigned finetunes;  // bit by Finetune: adapters that it trains (peft, or its own) with frozen layers
    bool upcasts_frozen, upcasts_norms;   // frozen parameters have fp32 masters; beside packed ones norms are fp32
    bool graphs_hold_gradients;           // with them, reduced gradients keep their memory from step to step
    const char *graphs_note;              // why there are none of stages; NULL
    bool always_reshards, reshards_near;  // stage 3: cannot keep gathered parameters until backward; has reshard_ranks
    int vocab_multiple;                   // pads the vocabulary to a multiple of this times tp; 0 = no padding
    bool vocab_uneven;                    // splits a vocabulary that tp does not divide: the last rank has fewer rows
    bool seq_by_tp;                       // the sequence is a multiple of 2 x cp x tp, whatever the mesh
    AttentionKernel default_attention;
    CudnnFirst cudnn_first;
    bool cudnn_here;  // so it is on this chip, of this training: target_with_kernels
    Fused default_fused;
    bool compiles, engine_attention;    // can compile layers; attention is Transformer Engine's, on ROCm CK's
    int loss_fp32_copies[FUSED_COUNT];  // fp32 tensors of the logits that live together in the loss, by fused mode
    bool logits_kept;                   // beside these copies, until the loss has its gradient
    int split_loss_fp32_copies;         // more of them where a loss written out runs on a vocabulary split over tp
    Dispatch own_dispatch;              // TARGET: all-to-all
    unsigned dispatchers;       // of tokens to experts available by a switch, besides its own: DISPATCH_BIT(value)
    double ep_overlap_exposed;  // share of exchanges left exposed by ep_overlap; 0 = the target has none
    bool ep_overlap_keeps;      // with it a chunk of layers keeps gradients of its activations until the next forward
    double tp_overlap_exposed;  // share of tp collectives left exposed by tp_overlap; 0 = the target has none
    double tp_overlap_bytes, tp_overlap_fp8_bytes, tp_overlap_part_bytes;  // of target_overlap_bytes
    double bf16_optimizer_bytes_per_parameter;  // traffic with bf16 masters; 0 = the target has none
    double optimizer_temporary_bytes_per_parameter;
    int update_copies;  // stage 3: gradients are copied to the masters' dtype, this many at a time; 0 = not copied
    PackFlavour pack_flavour;
    Optimizer own_optimizer;         // TARGET: AdamW in one kernel
    unsigned optimizers;             // available by a switch, besides its own: OPTIMIZER_BIT(value)
    bool deals_matrices;             // at stage 1 a rank updates its share of whole matrices where they must be whole
    bool masters_beside_remainders;  // what optimizers with remainders keep of a master
    bool casts_half_states;          // an update has those of adamw-bf16 in fp32, too, all at once
    bool tiles_mlp, updates_in_backward, cuts_experts;  // has mlp_tiles; update_in_backward; etp and expert_capacity
    bool predicts_further, fp8_activation, op_fuser, qkv_rope;  // has mtp; the choices of those names
    unsigned fp8_parameters;                                    // bit by Fp8Recipe: with which it has fp8_parameters
    unsigned unsharded_optimizers;  // of them those that do not take sharded parameters (stage 3)
    TargetRuntime runtime;
} Target;

// "name", "name@version". USAGE with a suggestion otherwise.
Status target_find(const char *name_and_version, const Target **target, Error *error);
const Target *target_table(int *count);

// Fills *reason (arena text, one sentence) when the shape is not legal; NULL when it is. Never checks memory.
void target_check(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena,
                  const char **reason);

// In a function that says why not: where the condition holds, one sentence says so (a format and its values).
#define REFUSE_IF(arena, condition, ...)                                                                               \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            return arena_format(arena, __VA_ARGS__);                                                                   \
        }                                                                                                              \
    } while (0)

// Can its groups be mapped to ranks in the mesh's order?
bool target_takes_order(const Target *target, const Mesh *mesh);

// The stage that zero=auto means for this mesh: 3 where the target shards, 0 where there are no ranks to shard over.
int target_default_zero(const Target *target, const Mesh *mesh);
CpRotate target_default_rotate(const Target *target);
Fp8Recipe target_default_fp8(const Target *target);
// RecomputeModules that recompute=selective recomputes. 0 = none, or the target goes by operations.
static inline unsigned target_recompute_modules(const Target *target, const TrainPlan *plan) {
    const unsigned own = target->selective_flavour == SELECTIVE_CORE ? RECOMPUTE_CORE_ATTENTION : 0;
    return plan->recompute != RECOMPUTE_SELECTIVE ? 0
           : plan->recompute_modules != 0         ? (unsigned)plan->recompute_modules
                                                  : own;
}

// Is this layer of a stage, and of a chunk of it, recomputed whole under recompute=full, and how many of a stage's are?
bool target_recomputes(const Target *target, const TrainPlan *plan, int of_stage, int of_chunk);
int target_recomputed_layers(const Target *target, const TrainPlan *plan, int layers);

#define GRAD_SYNC_BIT(value) (1 << (value))
#define PP_BIT(value) (1u << (value))
#define DISPATCH_BIT(value) (1u << (value))

// Is the model sharded by its own library on this mesh, and not by the target's base framework?
static inline bool target_shards_itself(const Target *target, const TrainPlan *plan) {
    return target->tp_shards_itself && (plan->mesh.size[AXIS_TP] > 1 || plan->mesh.size[AXIS_EP] > 1);
}

// When the target reduces gradients by itself, and when it does in this plan: never GRAD_SYNC_TARGET.
GradSync target_own_sync(const Target *target, const TrainPlan *plan);
GradSync target_grad_sync(const Target *target, const TrainPlan *plan);

#define LOSS_BIT(value) (1 << (value))

// The form of the loss in this plan: never LOSS_TARGET; and in how many parts tokens go through the head.
LossForm target_own_loss(const Target *target);
LossForm target_loss(const Target *target, const TrainPlan *plan);
int target_loss_chunks(const Target *target, const ModelSpec *model, const TrainPlan *plan);

// Are forward and backward replayed as CUDA graphs in this plan?
static inline bool target_cuda_graphs(const Target *target, const TrainPlan *plan) {
    return plan->cuda_graphs == CUDA_GRAPHS_TARGET ? target->own_graphs && !plan_has_stages(plan)
                                                   : plan->cuda_graphs == CUDA_GRAPHS_ON;
}

// Its simplest equivalent in this plan: without replicas SHARDS is EACH, without shards it is LAST.
GradSync target_plain_sync(const TrainPlan *plan, GradSync sync);

// Whether gradient reduction overlaps backward in this plan: never REDUCE_OVERLAP_TARGET.
static inline ReduceOverlap target_reduce_overlap(const Target *target, const TrainPlan *plan) {
    const bool waits = target->serial_stages >> plan->zero & 1;
    return plan->reduce_overlap != REDUCE_OVERLAP_TARGET ? plan->reduce_overlap
           : waits                                       ? REDUCE_OVERLAP_OFF
                                                         : REDUCE_OVERLAP_ON;
}

// Which tensor parallelism the plan's layers have.
static inline TpFlavour target_tp_flavour(const Target *target, const TrainPlan *plan) {
    const bool off = target->sp_switch && plan->sequence_parallel == SEQUENCE_PARALLEL_OFF;
    return !off ? target->tp_flavour : target->tp_apart ? TP_HF : TP_AR;
}
bool target_has_whole_logits(const Target *target);  // on each rank of tp, in any plan

static inline bool target_slices_messages(const Target *target, const TrainPlan *plan) {
    return target->slices_messages && plan->mesh.size[AXIS_TP] > 1 && target_tp_flavour(target, plan) == TP_AR;
}

// From a stage to another: what leaves a layer (lower_messages.c).
int64_t target_message_bytes(const Target *target, const ModelSpec *model, const TrainPlan *plan);

// Its own: all-to-all where the row sets none, as in most recipes.
static inline Dispatch target_dispatch(const Target *target, const TrainPlan *plan) {
    const Dispatch own = target->own_dispatch == DISPATCH_TARGET ? DISPATCH_ALLTOALL : target->own_dispatch;
    return plan->dispatch == DISPATCH_TARGET ? own : plan->dispatch;
}

double target_moving_slack(const Target *target, const TrainPlan *plan);  // holes in what comes and goes, on stages
double target_cached_bytes(const Target *target, const TrainPlan *plan, double peak_bytes, double resident_bytes);
static inline bool target_regathers(const Target *target, const TrainPlan *plan) {
    return target->tp_regathers || (target->stages_regather && plan_has_stages(plan));
}
// Why the layers cannot be split over the stages as the plan says: one sentence, arena text; NULL (split_rules.c).
const char *target_refuse_split(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);

// The rule that splits the layers in this plan.
LayerRule target_layer_rule(const Target *target, const TrainPlan *plan);

// Does the host issue nothing until a message between stages has ended? With several chunks, messages overlap compute.
static inline bool target_stops_host(const Target *target, const TrainPlan *plan) {
    return target->runtime.messages_stop_host && (plan_chunks(plan) == 1 || plan->p2p_waits);
}

// Does scaled_dot_product_attention take cuDNN's kernel for the training, where the chip has it (sdpa_rules.c)? Of the
// plan: precision, sequence and documents.
bool target_takes_cudnn(const Target *target, const ModelSpec *model, const TrainPlan *plan);

bool target_reduces_late(const Target *target, const TrainPlan *plan);  // after the last backward?
double target_reduce_bucket(const Target *target, const ModelSpec *model, const TrainPlan *plan);   // elements; 0
double target_reduce_buffers(const Target *target, const ModelSpec *model, const TrainPlan *plan);  // of all of them
double target_overlap_bytes(const Target *target, const ModelSpec *model, const TrainPlan *plan);   // of tp_overlap
// That a chunk of so many layers keeps beside the next one's forward, with ep_overlap.
double target_kept_bytes(const Target *target, const ModelSpec *model, const TrainPlan *plan, int layers);
// Vocabulary entries as it trains them: padded so that tp divides them; of uneven splits tp times the fullest rank's.
int target_vocab(const Target *target, const ModelSpec *model, int tp);
const char *target_vocab_note(const Target *target, const ModelSpec *model, int tp, Arena *arena);  // where it pads

#define TARGET_EXECUTOR "ndtune"                // our own
bool target_is_executor(const Target *target);  // its row, or a program with its runtime

// The program of one target with the runtime costs of another: a framework's program that the executor runs.
Target target_run_by(const Target *program, const Target *runner);

// As the executor runs it: its kernels read keys and values of fewer heads than queries without repeating them.
const Target *target_executed(const Target *target, Arena *arena);

void target_hash(const Target *target, Hash *hash);
void target_hash_all(const Target *target, Hash *hash);  // what it refuses too, for memos: never stored
