// The lowering's own picture of a step, private to sim/step: operations on tensors, in one list per section of the
// step. Passes edit the lists one after another; the last one turns tensors into buffers, sections into segments and
// data flow into events.
//
//   layers          lower_layers.c     one rank's arithmetic, in local sizes, with marks where parallelism has a say
//                                      (lower_tiles.c: the MLP on a part of the tokens at a time)
//   tensor parallel lower_tensor.c     sizes under tp; marks -> collectives of the tp lane; the loss
//   (of two kinds   lower_mixed.c      dense layers and layers of experts on one stage)
//   heads           lower_heads.c      attention of a part of the heads over whole sequences (Ulysses)
//   context         lower_context.c    attention -> ring or gathered blocks
//   frozen          lower_frozen.c     no gradients of what is not trained
//   adapters        lower_adapters.c   what low-rank adapters add to a layer's linear layers (LoRA)
//   sharding        lower_sharding.c   unit marks -> gathers, reductions, gradient accumulation (and lower_update.c)
//   recompute       lower_recompute.c  backward re-runs the forward operations whose results were not kept
//   fusion          lower_fuse.c       neighbours that share a pass over memory become one operation
//   split           lower_split.c      gradients of weights apart from those of inputs, where the schedule has it so
//   messages        lower_messages.c   what the chunks of a stage get from other stages and send to them
//   lanes           lower_lanes.c      buffers, events, segments, hash

#pragma once

#include "sim/step/schedules/micro_loops.h"
#include "sim/step/step.h"

typedef enum {
    SECTION_BEGIN,           // micro-step: tokens, embedding
    SECTION_LAYER_FORWARD,   // x layers
    SECTION_TAIL,            // final norm, head, loss and their backward
    SECTION_LAYER_BACKWARD,  // x layers, descending
    SECTION_KEPT_BACKWARD,   //   of layers that are not recomputed where others are; empty where all are alike
    SECTION_END,             // embedding backward
    SECTION_TAIL_WEIGHTS,    // of a split backward: weight gradients of head, layers, kept layers, embedding
    SECTION_LAYER_WEIGHTS,
    SECTION_KEPT_WEIGHTS,
    SECTION_END_WEIGHTS,
    SECTION_NORM,          // once per step: gradient norm set to zero
    SECTION_NORM_LAYER,    //   square sums, x layers
    SECTION_UPDATE,        //   square sums of the edge units, all-reduce, clip scale, AdamW of the edge units
    SECTION_UPDATE_LAYER,  //   AdamW, x layers
    SECTION_COUNT
} Section;

// Marks are operations that a later pass replaces. None is left at the end.
typedef enum {
    MARK_NONE,
    MARK_TP_ENTER,           // x -> x seen by every tp rank (Megatron's g-bar or f)
    MARK_TP_LEAVE,           // partial sums -> their sum, back in the split between blocks
    MARK_TP_PART_BACKWARD,   // one projection's input gradient, partial over tp
    MARK_TP_ENTER_BACKWARD,  // input gradient of all projections, partial -> summed
    MARK_TP_LEAVE_BACKWARD,  // gradient of the summed output -> whole on every tp rank
    MARK_LOSS,               // logits -> loss and gradient
    MARK_UNIT_NEED,          // this unit's weights are read from here on
    MARK_UNIT_BACKWARD,      // backward of the section begins: where a backward prefetch is issued
    MARK_UNIT_GRADIENT,      // this unit's gradient of the micro-step is complete
} Mark;

enum { OP_MAX_OPERANDS = 13 };

// Operands of marks.
enum { AT_MARK_FROM, AT_MARK_TO, AT_MARK_SCALE };
enum { AT_MARK_LOGITS, AT_MARK_TARGETS };  // of the rows that the mark's task says

typedef struct OpRef {
    int32_t tensor;  // -1 = absent
    int16_t index;   // layer offset inside layered sections, absolute slot index elsewhere
    int16_t rank_group, rank_shift;
    int64_t rank_stride_bytes;
    int64_t offset_bytes, bytes;
    Access access;
} OpRef;

typedef struct Op {
    Mark mark;
    Task task;                 // operands and events are still in `operands`
    const struct Op *copy_of;  // NULL: of none
    int32_t place;             // behind its task in the program; 0 = it has none
    int operand_count;
    bool absolute;                    // a layered section's op whose indices are absolute
    int8_t only;                      // of layers of a kind: 1 + LayerKind; 0 = of all layers
    OpRef operands[OP_MAX_OPERANDS];  // last: those behind operand_count are undefined
} Op;

// Operations are made once and passed on by pointer from list to list.
typedef struct OpList {
    Op **ops;
    size_t count, capacity;
} OpList;

typedef struct Tensor {
    const char *name;
    BufferRole role;
    Dtype dtype;
    int64_t bytes;        // of one slot
    int32_t slots;        // 0 = the lanes pass decides: a slot per layer if backward reads what forward wrote, else 1
    int32_t micro_steps;  // that have so many slots each (the lanes pass decides, but of what is received); 0 = all
                          // share them
    bool persistent;
    bool host;             // in the host's memory
    bool held;             // until backward has ended
    int32_t scale;         // of an fp8 tensor: tensor id; -1 = none
    bool cheap;            // backward makes it again rather than keep it (a packed copy)
    int32_t next;          // of the same bucket; -1 = none
    double share;          // of the layers that have it; 0 = all
    int64_t whole_bytes;   // of a slot in a layer that has it, where `bytes` are the mean
    int64_t widest_bytes;  // that a slot needs in layers of one of two kinds, where more than the mean
} Tensor;

enum { MAX_SLICES = 48, TENSOR_BUCKETS = 64 };

// Local sizes of one rank.
typedef struct Dims {
    int64_t tokens;                // n: micro_batch * seq / (cp sp)
    int64_t tokens_between;        // of the activations between blocks: n / tp under TP_SP, else n
    int64_t sequences, local_seq;  // seq / cp: of attention's blocks
    int64_t hidden, ffn;
    int64_t vocab;                                 // columns of the logits that the loss works on
    int64_t head_vocab;                            // that this rank's head makes: fewer where they are gathered
    int heads, kv_heads, head_dim, core_kv_heads;  // core: of keys and values as attention's kernel reads them
    int64_t q_width, k_width, v_width, core_k_width,
        core_v_width;                           // latent attention: head_dim is the mean of keys and values
    int64_t o_width;                            // of attention's results
    bool vocab_split;                           // the loss works on a tp slice
    bool embed_split;                           // so does the embedding
    int64_t embed_vocab;                        // its rows here
    Dtype dtype, gradient_dtype, reduce_dtype;  // of gradients: as computed and summed, and on the way
    int element;                                // bytes of dtype
} Dims;

// What step_lower chooses itself.
typedef struct LoweringChoice {
    int stage;                 // below mesh_stages
    const Schedule *schedule;  // any order of the micro-steps
    uint32_t frozen;           // bit per unit that is not trained
    bool alone;                // without messages, whatever the order: step_lower_alone
    bool mean;                 // layers of two kinds are the mean of them, whoever runs them
} LoweringChoice;

typedef struct Lowering {
    Arena *arena;
    const ModelSpec *model;
    const TrainPlan *plan;
    const Target *target;
    const LoweringChoice *choice;
    const StageLayers *held;  // the model's layers are those
    Dims dims;
    OpList lists[SECTION_COUNT];
    OpList arithmetic[SECTION_COUNT];  // of a micro-step before sharding
    Tensor *tensors;
    size_t tensor_count, tensor_capacity;
    int32_t bucket[TENSOR_BUCKETS];  // of names: the latest tensor + 1; 0 = none
    int32_t weights[UNIT_COUNT];     // tensor that forward and backward read
    int32_t gradients[UNIT_COUNT];   // tensor that weight gradients are written to: the whole gradient or before it
    Unit units[UNIT_COUNT];          // their buffer fields hold tensor ids until the lanes pass
    int32_t unit_count;
    int head_unit;  // that the final norm and an untied head are in
    int part;       // of the model that slices are being added for
    ParamSlice slices[MAX_SLICES];
    int32_t slice_count;
    Group groups[13];
    int32_t group_count;
    int16_t shard_group, tp_group, cp_group, sp_group, replicate_group, data_group, loss_group, norm_group;
    int16_t near_group;                                                   // of reshard_ranks
    int16_t ep_group, expert_shard_group, etp_group, expert_ranks_group;  // other experts, shards, parts; all ranks
    int16_t sequence_group;  // those with other parts of its sequences; only where a loss needs them
    int32_t loss_tensor, norm_square_tensor, norm_tensor;
    bool first, last;  // of the micro-steps of a step: the variant being lowered
    int tp, cp, sp, ep;
    bool fused_qkv, fused_gate_up;  // one GEMM for several parameter slices
    Fp8Flavour fp8;                 // FP8_NONE unless the plan's precision is fp8
    int32_t fp8_weights;            // copies of a layer's matrices that its GEMMs read; -1 = they read the weights
    int32_t fp8_experts;            // and of its experts, where they are a unit of their own
    int32_t weight_scales;          // of weights that are gathered in fp8; -1 = none
    Dtype master_dtype;             // of masters, moments and shard gradients
    bool reduce_each;               // gradients are reduced on every micro-step into the shard, else once at the end
    bool replicas_each;             // over dp_replicate too
    double dense_share;             // of layers of two kinds the dense ones; 0 = all are of one kind
    double share;                   // of the layers that run what is being lowered; 0 = all
    bool in_dense;                  // and these are the dense ones
    bool in_turn;                   // layers of two kinds run as what they are, one behind the other
    int8_t only, dense_slices;      // then the kind of those that run it, as of an operation; slices so far
    int64_t widest[UNIT_COUNT][LAYER_KIND_COUNT];  // elements of a layer of a kind
    int loss_chunks;  // parts of the tokens that come to the head and the loss, one after another
} Lowering;

// ---- building (lower.c)

// The tensor of that name, made on first use (the variants of a micro-step share tensors).
int32_t lowering_tensor(Lowering *lowering, const char *name, BufferRole role, Dtype dtype, int64_t elements);
Op *op_add(Lowering *lowering, Section section, TaskKind kind, Phase phase, const char *name);
Op *op_mark(Lowering *lowering, Section section, Mark mark, const char *name);
OpRef op_whole(const Lowering *lowering, int32_t tensor);
OpRef op_absent(void);
// This rank's shard inside a tensor of the whole unit.
OpRef own_slice(const Lowering *lowering, const Unit *unit, int32_t tensor);
OpRef shard_gradient(const Lowering *lowering, const Unit *unit);
void op_operand(Op *op, OpRef ref, Access access);
Op *op_list_append(Arena *arena, OpList *list, const Op *op);  // a copy
void op_list_pass(Arena *arena, OpList *list, Op *op);         // the same operation
Op op_collective(const Lowering *lowering, TaskKind kind, LaneId lane, int16_t group, const char *name, Phase phase);
int lowering_group_size(const Lowering *lowering, int16_t group);
bool lowering_fuses(const Lowering *lowering);           // neighbours that share a pass over memory are one task
bool lowering_has_stages(const Lowering *lowering);      // the stage is one of several
bool lowering_adapters_apart(const Lowering *lowering);  // in a unit of their own
int lowering_local_experts(const Lowering *lowering);    // of a layer, on a rank
int lowering_expert_unit(const Lowering *lowering);      // that they are in
int lowering_expert_tp(const Lowering *lowering);        // ranks that cut each of them
bool lowering_corrects(const Lowering *lowering);        // scores of the router (lower_router.c)
bool lowering_routes_apart(const Lowering *lowering);    // each rank of tp its own tokens (lower_experts.c)
bool head_gathers(const Lowering *lowering);             // a split head's logits (lower_head.c)
OpRef unit_slice(const Lowering *lowering, int32_t tensor, const char *slice, const char *last_slice);

// ---- frozen weights in fewer bits (lower_adapters.c): a layer's matrices, its vectors and adapters not

bool weights_are_packed(const Lowering *lowering);
int64_t packed_bytes(const Lowering *lowering, int64_t elements);  // of a layer's first so many

int64_t unit_slice_offset(const Lowering *lowering, const char *slice);  // elements

bool holds_inputs(const Lowering *lowering);  // of layers until backward has ended (lower_frozen.c)

// ---- fp8 (lower_fp8.c)

bool fp8_gathers_weights(const Lowering *lowering);
bool fp8_keeps_parameters(const Lowering *lowering);  // a layer's weights are in fp8, whole, on each rank
bool fp8_gathers_half(const Lowering *lowering);      // of these, in bf16, in the buffer of gradients
bool fp8_mixes_weights(const Lowering *lowering);     // a layer's matrices are in fp8, behind its vectors in bf16
int64_t fp8_weight_bytes(const Lowering *lowering, int64_t elements);
void fp8_choose_weights(Lowering *lowering);

Status step_lower_chosen(const ModelSpec *model, const TrainPlan *plan, const Target *target,
                         const LoweringChoice *choice, Arena *arena, StepProgram *program, Error *error);

// ---- parameters (lower_units.c)

// What a parameter begins as; ones and zeros take no weight decay, NOTHING is zeros that do.
typedef enum { FILL_NORMAL, FILL_ONE, FILL_ZERO, FILL_NOTHING } Fill;

typedef struct SliceSpec {
    const char *name;
    ParamSplit split;
    int64_t rows, cols;  // whole
    Fill fill;
    bool partial;  // a tp rank's gradient is a part of the sum
} SliceSpec;

// Of a unit's tensors.
typedef struct UnitNames {
    const char *weights, *gradients, *half_gradients, *master, *working, *moment1, *moment2, *shard_gradient, *part,
        *raw, *reduce_in, *reduce_out, *copies, *near;
} UnitNames;

void add_slice(Lowering *lowering, Unit *unit, const SliceSpec *spec);  // behind the unit's other slices

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
void lower_summed_loss(Lowering *lowering);  // of the micro-steps behind the first one
void lower_heads(Lowering *lowering);
void lower_context_parallel(Lowering *lowering);
void lower_frozen(Lowering *lowering);
void lower_unit_tensors(Lowering *lowering);
void lower_sharding(Lowering *lowering);
void lower_late_reduce(Lowering *lowering, Section section, int unit);  // where the target reduces after backward
void lower_recompute(Lowering *lowering);
bool recompute_keeps(const Lowering *lowering, const char *tensor);  // kept by name among operations that run again
bool recompute_offloads(const Lowering *lowering);                   // inputs of layers wait on the host
void lower_fuse(Lowering *lowering);
bool lowering_splits(const Lowering *lowering);  // weight gradients are works of their own
void lower_split(Lowering *lowering);
void lower_update(Lowering *lowering);
void lower_unit_update(Lowering *lowering, OpList *out, int unit, LaneId lane);          // in backward
void lower_states(Lowering *lowering, int unit, const char *first, const char *second);  // tensors of these names

// One finished stretch of the step: a list that runs over the layers (or once).
typedef struct Stretch {
    Section section;
    OpList list;
    int32_t first_task[LAYER_KIND_COUNT];  // in the program, as layers of a kind have it; -1 = not there yet
} Stretch;

// The stretches of a micro-step of one kind, or of the optimizer; none where the step has no such micro-step.
typedef struct Variant {
    Stretch stretches[SECTION_NORM];
    int stretch_count;
} Variant;

enum { VARIANT_OPTIMIZER = MICRO_KINDS, VARIANT_COUNT };

// What a chunk of layers gets from the stage before it and sends to the one behind it, and the gradients of both.
typedef enum { MESSAGE_IN, MESSAGE_OUT, MESSAGE_GRADIENT_IN, MESSAGE_GRADIENT_OUT, MESSAGE_COUNT } Message;

// Of each chunk, by Message; empty where it has no such neighbour.
typedef struct ChunkMessages {
    Stretch of[MESSAGE_COUNT];
} ChunkMessages;

ChunkMessages *lower_messages(Lowering *lowering, const MicroLoops *loops);

// Where embedding and head are one table on two stages: both get the sum of its gradients (optimizer).
void lower_tied_gradient(Lowering *lowering, int unit);

// The finished step, in lists.
typedef struct LoweredStep {
    Variant variants[VARIANT_COUNT];
    ChunkMessages *messages;
    MicroLoops loops;
} LoweredStep;

void lower_lanes(Lowering *lowering, LoweredStep *step, StepProgram *program);

// Traffic and key of a task whose operands are in the program (lower_finish.c). same: a finished task like it, or NULL.
void task_finish(const StepProgram *program, const Task *same, Task *task);
