// The lowering's internal representation of a step, private to sim/step: operations on tensors, in one list per section
// of the step. Passes edit the lists in sequence; the last one maps tensors to buffers, sections to segments and data
// flow to events.
//
//   layers          lower_layers.c     one rank's arithmetic, in local sizes, with marks where parallelism matters
//                                      (lower_tiles.c: the MLP on one tile of the tokens at a time)
//   tensor parallel lower_tensor.c     sizes under tp; marks -> collectives of the tp lane; the loss
//   (two kinds      lower_mixed.c      dense layers and MoE layers on one stage)
//   heads           lower_heads.c      attention on a subset of the heads over whole sequences (Ulysses)
//   context         lower_context.c    attention -> ring or gathered blocks
//   frozen          lower_frozen.c     drops gradients of what is not trained
//   adapters        lower_adapters.c   what low-rank adapters add to a layer's linear layers (LoRA; lower_upcast.c)
//   sharding        lower_sharding.c   unit marks -> gathers, reductions (lower_reduce.c), gradient accumulation (and
//                                      lower_update.c)
//   recompute       lower_recompute.c  backward re-runs the forward operations whose results were not kept
//   fusion          lower_fuse.c       adjacent operations that share a pass over memory become one operation
//   offload         lower_offload.c    copies what the first layers save to the host and back, beside the layers
//   split           lower_split.c      separates weight gradients from input gradients, where the schedule does so
//   messages        lower_messages.c   what the chunks of a stage receive from and send to other stages (lower_tied.c)
//   lanes           lower_lanes.c      buffers (carried.c: over how many micro-steps), events, segments, hash

#pragma once

#include "sim/step/lowered.h"
#include "sim/step/op_list.h"
#include "sim/step/schedules/micro_loops.h"
#include "sim/step/step.h"

typedef struct Tensor {
    const char *name;
    BufferRole role;
    Dtype dtype;
    int64_t bytes;          // per slot
    int32_t slots;          // 0 = the lanes pass decides: a slot per layer if backward reads what forward wrote, else 1
    int32_t micro_steps;    // each with that many slots (lanes pass; received tensors: before); 0 = all share them
    bool persistent, host;  // the latter: in host memory
    bool held;              // until backward has ended
    bool untouched;         // allocated, though no task uses it
    int32_t lender, pieces;  // tensor whose bytes it uses after recompute, -1 = none; blocks of a size, 0 = one
    int32_t scale;           // for an fp8 tensor: id of its scale tensor; -1 = none
    bool cheap;              // backward recomputes it rather than keep it (a packed copy)
    int32_t next;            // next tensor in the same bucket; -1 = none
    double share;            // fraction of the layers that have it; 0 = all
    int64_t whole_bytes;     // per slot in a layer that has it, where `bytes` is the mean
    int64_t widest_bytes;    // per slot in the larger of two layer kinds, where that exceeds the mean
} Tensor;

enum { MAX_SLICES = 48, TENSOR_BUCKETS = 64 };

// Local sizes of one rank.
typedef struct Dims {
    int64_t tokens;                // n: micro_batch * seq / (cp sp)
    int64_t tokens_between;        // of the activations between blocks: n / tp under TP_SP, else n
    int64_t sequences, local_seq;  // seq / cp: within attention blocks
    int64_t hidden, ffn;
    int64_t vocab;                                 // columns of the logits that the loss works on
    int64_t head_vocab;                            // columns from this rank's head: fewer if they are gathered
    int heads, kv_heads, head_dim, core_kv_heads;  // core: of keys and values as the attention kernel reads them
    int64_t q_width, k_width, v_width, core_k_width,
        core_v_width;                           // latent attention: head_dim is the mean of keys and values
    int64_t qkv_width;                          // of one product: less where ranks share a key-value head
    int64_t o_width;                            // of attention's output
    bool vocab_split;                           // the loss works on a tp slice
    bool embed_split;                           // the embedding too
    int64_t embed_vocab;                        // its local rows
    Dtype dtype, gradient_dtype, reduce_dtype;  // gradients: as computed and summed, and as communicated
    int element;                                // bytes of dtype
} Dims;

// What step_lower itself chooses.
typedef struct LoweringChoice {
    int stage;                 // below mesh_stages
    const Schedule *schedule;  // any order of the micro-steps
    uint32_t frozen;           // bit per unit that is not trained
    bool alone;                // without messages, in any order: step_lower_alone
    bool mean;                 // model two kinds of layers by their mean, whichever the target runs
    int32_t buffered_steps;    // micro-steps of a round whose messages have buffers; 0 = the plan's (lower_short.c)
} LoweringChoice;

typedef struct Lowering {
    Arena *arena;
    const ModelSpec *model;
    const TrainPlan *plan;
    const Target *target;
    const LoweringChoice *choice;
    const StageLayers *held;  // these are the model's layers
    Dims dims;
    OpList lists[SECTION_COUNT];
    OpList arithmetic[SECTION_COUNT];  // of a micro-step before sharding
    Tensor *tensors;
    size_t tensor_count, tensor_capacity;
    int32_t bucket[TENSOR_BUCKETS];  // hash of names: the latest tensor + 1; 0 = none
    int32_t weights[UNIT_COUNT];     // tensor that forward and backward read
    int32_t gradients[UNIT_COUNT];   // tensor that weight gradients are written to: the whole gradient or its precursor
    Unit units[UNIT_COUNT];          // their buffer fields hold tensor ids until the lanes pass
    int32_t unit_count;
    int head_unit;  // unit_of_head
    int part;       // part of the model that slices are being added to
    ParamSlice slices[MAX_SLICES];
    int32_t slice_count;
    Group groups[16];
    int32_t group_count;
    int16_t shard_group, tp_group, cp_group, sp_group, replicate_group, data_group, loss_group, norm_group;
    int16_t near_group, sequence_group;  // of reshard_ranks; peers with other parts of its sequences, for a loss
    int16_t ep_group, expert_shard_group, etp_group, expert_ranks_group;  // other experts, shards, parts; all ranks
    int16_t expert_data_group, expert_norm_group;  // replicas of whole experts, ranks with others; 0 = sharded ones
    int32_t loss_tensor, norm_square_tensor, expert_square_tensor, norm_tensor;
    bool first, last, adds;  // micro-step of a round: the variant being lowered; of a later round
    int tp, cp, sp, ep;
    bool fused_qkv, fused_gate_up;  // one GEMM for several parameter slices
    Fp8Flavour fp8;                 // FP8_NONE unless the plan's precision is fp8
    int32_t fp8_weights;            // copies of a layer's matrices that its GEMMs read; -1 = they read the weights
    int32_t fp8_experts;            // likewise for its experts, where they are a separate unit
    int32_t weight_scales;          // of weights that are gathered in fp8; -1 = none
    Dtype master_dtype;             // of masters, moments and shard gradients
    bool reduce_each;               // gradients are reduced into the shard on every micro-step, else once at the end
    bool replicas_each;             // also over dp_replicate
    double dense_share;             // dense fraction where there are two kinds of layers; 0 = all are of one kind
    double share;                   // fraction of the layers that run what is being lowered; 0 = all
    bool in_dense;                  // and these are the dense ones
    bool in_turn;                   // two kinds of layers run as such, one after another
    int8_t only, dense_slices, layer_part;  // then the layer kind that runs it, as in an operation; slices; Task.part
    int64_t widest[UNIT_COUNT][LAYER_KIND_COUNT];  // elements of a layer, by kind
    int loss_chunks;  // chunks of the tokens that go through the head and the loss, one after another
} Lowering;

// ---- building (lower.c)

// The tensor of that name, created on first use (the variants of a micro-step share tensors).
int32_t lowering_tensor(Lowering *lowering, const char *name, BufferRole role, Dtype dtype, int64_t elements);
Op *op_add(Lowering *lowering, Section section, TaskKind kind, Phase phase, const char *name);
Op *op_mark(Lowering *lowering, Section section, Mark mark, const char *name);
OpRef op_whole(const Lowering *lowering, int32_t tensor);
OpRef op_absent(void);
OpRef own_slice(const Lowering *lowering, const Unit *unit, int32_t tensor);  // this rank's of a whole unit's tensor
OpRef shard_gradient(const Lowering *lowering, const Unit *unit);
void op_operand(Op *op, OpRef ref, Access access);
Op *op_list_append(Arena *arena, OpList *list, const Op *op);  // a copy
void op_list_pass(Arena *arena, OpList *list, Op *op);         // the same operation
Op op_collective(const Lowering *lowering, TaskKind kind, LaneId lane, int16_t group, const char *name, Phase phase);
int lowering_group_size(const Lowering *lowering, int16_t group);
bool lowering_fuses(const Lowering *lowering);           // neighbours that share a pass over memory are one task
bool lowering_has_stages(const Lowering *lowering);      // the stage is one of several
bool lowering_splits_tokens(const Lowering *lowering);   // between a layer's blocks a tp rank has its own tokens only
bool lowering_adapts(const Lowering *lowering);          // adapters are trained, the rest is frozen
bool lowering_adapters_apart(const Lowering *lowering);  // in a separate unit
int lowering_local_experts(const Lowering *lowering);    // of a layer, on a rank
int lowering_expert_unit(const Lowering *lowering);      // the unit that holds them
int lowering_expert_tp(const Lowering *lowering);        // ranks that split each expert
bool lowering_corrects(const Lowering *lowering);        // router score correction (lower_router.c)
bool lowering_routes_apart(const Lowering *lowering);    // each tp rank routes its own tokens (lower_experts.c)
bool head_gathers(const Lowering *lowering);             // a split head's logits (lower_head.c)
OpRef unit_slice(const Lowering *lowering, int32_t tensor, const char *slice, const char *last_slice);

// ---- quantized frozen weights (lower_adapters.c): a layer's matrices, but not its vectors and adapters

bool weights_are_packed(const Lowering *lowering);
int64_t packed_bytes(const Lowering *lowering, int64_t elements);        // of a layer's leading elements
int64_t unit_slice_offset(const Lowering *lowering, const char *slice);  // elements

bool holds_inputs(const Lowering *lowering);  // of layers until backward has ended (lower_frozen.c)

// ---- fp8 (lower_fp8.c)

bool fp8_gathers_weights(const Lowering *lowering);
bool fp8_keeps_parameters(const Lowering *lowering);  // a layer's weights are stored in fp8, in stage 1 whole
bool fp8_gathers_half(const Lowering *lowering);      // gathers these in bf16, in the gradient buffer
bool fp8_mixes_weights(const Lowering *lowering);     // a layer's matrices are in fp8, after its vectors in bf16
int64_t fp8_weight_bytes(const Lowering *lowering, int64_t elements);
int64_t gathered_elements(const Lowering *lowering, int unit);  // of a unit; bytes where it is in fp8 or packed
void fp8_choose_weights(Lowering *lowering);

Status step_lower_chosen(const ModelSpec *model, const TrainPlan *plan, const Target *target,
                         const LoweringChoice *choice, Arena *arena, StepProgram *program, Error *error);

// The same with the plan's schedule, if it has stages.
Status step_lower_scheduled(const ModelSpec *model, const TrainPlan *plan, const Target *target, LoweringChoice choice,
                            Arena *arena, StepProgram *program, Error *error);

// ---- parameters (lower_units.c)

// Initial value of a parameter; ones and zeros take no weight decay, NOTHING is zeros that do.
typedef enum { FILL_NORMAL, FILL_ONE, FILL_ZERO, FILL_NOTHING } Fill;

typedef struct SliceSpec {
    const char *name;
    ParamSplit split;
    int64_t rows, cols;  // unsplit
    Fill fill;
    bool partial;  // a tp rank's gradient is a partial sum
} SliceSpec;

// Names of a unit's tensors.
typedef struct UnitNames {
    const char *weights, *gradients, *half_gradients, *master, *working, *moment1, *moment2, *shard_gradient, *part,
        *raw, *reduce_in, *reduce_out, *copies, *near;
} UnitNames;

void add_slice(Lowering *lowering, Unit *unit, const SliceSpec *spec);  // after the unit's other slices

// ---- passes

Dims tensor_parallel_dims(const ModelSpec *model, const TrainPlan *plan, const Target *target);
void lower_units(Lowering *lowering);
const UnitNames *unit_names(const Lowering *lowering, int unit);  // lower_names.c
extern const char *const section_names[];
int32_t near_shard(Lowering *lowering, int unit);          // lower_near.c: its tensor; -1
void lower_offload(Lowering *lowering, const Unit *unit);  // of a unit with its tensors
void add_adapter_slices(Lowering *lowering, Unit *unit);   // of a layer (lower_adapters.c)
void lower_layers(Lowering *lowering);
void lower_tensor_parallel(Lowering *lowering);
void lower_summed_loss(Lowering *lowering);  // in micro-steps after the first one
void lower_heads(Lowering *lowering);
void lower_context_parallel(Lowering *lowering);
void lower_frozen(Lowering *lowering);
void lower_unit_tensors(Lowering *lowering);
void lower_sharding(Lowering *lowering);
void lower_late_reduce(Lowering *lowering, Section section, int unit);  // where the target reduces after backward
void lower_recompute(Lowering *lowering);
bool recompute_keeps(const Lowering *lowering, const char *tensor);  // kept by name among recomputed operations
bool recompute_offloads(const Lowering *lowering);                   // layer inputs are offloaded to the host
void lower_fuse(Lowering *lowering);
bool lowering_splits(const Lowering *lowering);  // weight gradients are separate work items
void lower_split(Lowering *lowering);
void lower_gather_buffers(Lowering *lowering);  // after recompute: what a target has in a buffer for good
void lower_update(Lowering *lowering);
void lower_unit_update(Lowering *lowering, OpList *out, int unit, LaneId lane);          // during backward
void lower_states(Lowering *lowering, int unit, const char *first, const char *second);  // tensors with these names

ChunkMessages *lower_messages(Lowering *lowering, const MicroLoops *loops);
void lower_lanes(Lowering *lowering, LoweredStep *step, StepProgram *program);

// Traffic and key of a task whose operands are in the program (lower_finish.c). same: a finished task like it, or NULL.
void task_finish(const StepProgram *program, const Task *same, Task *task);
