// StepProgram: one training step as data. Buffers, and tasks in issue order on named lanes, with the events that order
// them. It says what happens, not how long it takes. All ranks of a stage run one template; what differs by rank (a
// slice of a gathered buffer, a ring step's owner, positions, vocabulary ranges) is resolved from the rank's
// coordinates by the step_* functions below.
//
// Semantics, the same for every consumer:
//   - A lane runs its tasks one after another, in issue order. Lanes run concurrently.
//   - A task starts when its lane is free and every event it waits for has happened. Waiting on an event means: on the
//     latest record of that event slot issued before this task; a slot never recorded does not block (as in CUDA).
//   - A task's records happen when the task ends.
//   - Lanes with the same communicator also run their collectives one after another, in issue order.
//   - Ranks of a group start a collective together; all ranks issue the same collectives in the same order.
//   - A send goes to the rank of the peer stage with the same coordinates on all other axes, and does not wait for it:
//     when it ends, its source may be overwritten and the message has arrived. The matching receive ends no earlier
//     than that. The n-th send of a phase (forward: activations, backward: their gradients, reduce: gradients of what
//     two stages hold) from a stage to a peer matches the n-th receive of that phase there.
// So issue order is a valid serial execution, and happens-before = lane order + events + collectives.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/axes/mesh.h"
#include "sim/base/arena.h"
#include "sim/base/dtype.h"
#include "sim/base/error.h"
#include "sim/base/integer.h"
#include "sim/frameworks/target.h"
#include "sim/model/model.h"
#include "sim/plan/plan.h"
#include "sim/step/held.h"
#include "sim/step/lane.h"
#include "sim/step/task_kind.h"
#include "sim/step/units.h"

// ---------------------------------------------------------------------------------------------- buffers

// What a buffer is for: the categories of the memory breakdown.
typedef enum {
    ROLE_PARAMETER,  // master and working copies, sharded or whole
    ROLE_GRADIENT,
    ROLE_OPTIMIZER,  // moments
    ROLE_ACTIVATION,
    ROLE_LOGITS,
    ROLE_GATHERED,       // unsharded parameters of a stage-3 unit
    ROLE_COMMUNICATION,  // staging of collectives and ring buffers
    ROLE_RUNTIME,        // tokens, scalars, workspaces
    ROLE_COUNT
} BufferRole;

// slots copies of slot_bytes each; an access with layer index i uses slot i mod slots (ring buffers rotate, saved
// activations have a slot per layer). Where several micro-steps are in flight and each has its own slots, these are
// consecutive: slots / micro_steps for each. slot_bytes is a multiple of STEP_ALIGN_BYTES.
typedef struct Buffer {
    const char *name;
    BufferRole role;
    Dtype dtype;
    int32_t slots;
    int32_t micro_steps;        // number that have their own slots; 0 = all share the slots
    int64_t bytes, slot_bytes;  // needed per slot; aligned
    bool persistent;            // keeps its content across steps: never shares bytes
    bool host;                  // in host memory (offload): takes no accelerator memory
    int32_t pieces;             // blocks of one size that a framework allocates a slot in; 0 = one
    bool held;                  // until its micro-step's backward has ended, whatever reads it
} Buffer;

enum { STEP_ALIGN_BYTES = 256 };

static inline int64_t step_slot_bytes(int64_t bytes) {
    return int_round_up(bytes, STEP_ALIGN_BYTES);
}

// Which slot of a buffer: layer index = layer_scale * layer + layer_offset. With micro_scale 1 it is a slot of
// micro-step micro_step + micro_offset, and both indices wrap around the available slots; with 0 the layer index runs
// over all slots of the buffer (sim/step/slots.h).
typedef struct SlotIndex {
    int16_t layer_scale;  // 0 or 1
    int16_t layer_offset;
    int16_t micro_scale;  // 0 or 1; 1 only where the buffer has micro_steps
    int16_t micro_offset;
} SlotIndex;

// A range in a buffer. Inside the slot the access begins at offset_bytes + r * rank_stride_bytes, r = (index of this
// rank in groups[rank_group] - rank_shift) mod group size, or 0 when rank_group < 0.
typedef struct BufferRef {
    int32_t buffer;  // -1 = operand absent
    SlotIndex index;
    int16_t rank_group;
    int16_t rank_shift;
    int64_t rank_stride_bytes;
    int64_t offset_bytes;
    int64_t bytes;  // extent touched, first to last byte
} BufferRef;

// A write redefines every byte of its extent, whatever was there; a task that fills columns of rows which an earlier
// task started is an update. sim/memory derives lifetimes from this.
typedef enum { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_UPDATE = 3 } Access;

typedef struct Operand {
    BufferRef ref;
    Access access;
} Operand;

// ---------------------------------------------------------------------------------------------- tasks

typedef struct Task {
    const char *name;  // "qkv", "attention", "gather layer": shown to users; interned in the program's arena
    TaskKind kind;
    Phase phase;
    int16_t lane;
    int16_t group;        // collectives: index into groups; -1 otherwise
    int16_t layer_guard;  // skipped unless 0 <= layer + layer_guard < layers (inside a layer loop)
    int16_t ring_step;    // attention blocks and ring transfers: hop 0 .. C-1
    int16_t peer;         // send and receive: the other stage; else 0
    int16_t unit;         // square sum, AdamW, shard copies and collectives: index into units; -1 otherwise
    bool accumulate;      // adds to the output instead of overwriting
    bool trans_a, trans_b;
    bool backward, reduce_max;  // rotary direction; all-reduce: max instead of sum
    bool vocab_split;  // embedding (range = inner) and loss (range = cols): this rank holds [tp index * range, + range)
    bool awaited, once;  // all-to-all: the host waits for received counts; tokens go once to each rank, and each node
    bool scaled, unhidden;  // embedding; tp: no product hides it, with tp_overlap either
    bool alibi, within;     // attention: scores lose slope * distance (Press et al. 2022); norm: MLA's, a half's second
    Activation activation;
    Dtype dtype;      // of the arithmetic's inputs, or of the payload
    int64_t m, n, k;  // GEMM
    int64_t rows, cols,
        inner;  // the others; see the kinds; attention: rows = local tokens, cols = keys per sequence of this block
    int64_t stride, kv_stride;  // elements per token row of q (and o: heads*head_dim) and of k, v
    int32_t sequences;          // attention, rotary, loading: b; rows = b * local sequence
    int32_t heads, kv_heads, head_dim;
    int32_t groups, epilogue_bytes;  // grouped GEMM: experts; what it moves beside its result, by element of that
    int32_t window;         // attention: tokens it looks back in some layers (sliding window); 0 = all in every layer
    double window_share;    //   fraction of layers that use it
    int64_t replicated;     // square sum: leading elements of the unit that every tp rank holds; bias: all of it
    double factor, share;   // GEMM: scales the product, 0 = 1; fraction of layers that run it, 0 = all (lower_mixed.c)
    double flops;           // arithmetic of the representative rank, if it runs
    int64_t traffic_bytes;  // minimum memory traffic: each operand once
    int64_t cast_bytes, apart_elements, apart_bytes, atomic_elements, sorted_elements;  // more, slow (lower_apart.c)
    int64_t payload_bytes;  // collectives: the full tensor (all-gather output, reduce-scatter input, all parts of an
                            // all-to-all), or the message
    int32_t first_operand, operand_count;
    int32_t first_wait, wait_count;
    int32_t first_record, record_count;
    uint64_t key;  // equal keys = same work (kind, sizes, group, flags): cost is computed once per key
    int32_t part;  // of a layer: one of GraphedParts, of a shared expert with SHARED_PART (experts.h); 0 = none of them
} Task;

// For a copy or an unpack.
static inline int64_t task_blocks(const Task *task) {
    return (task->kind == TASK_UNPACK || task->kind == TASK_COPY) && task->inner > 1 ? task->inner : 1;
}

// ---------------------------------------------------------------------------------------------- groups, events, loops

typedef struct Group {
    const char *name;  // "dp_shard x cp"
    AxisMask axes;
    int32_t size;
} Group;

// One per (buffer, lane, read or write) that another lane must wait for; has as many slots as its buffer.
typedef struct Event {
    int32_t buffer;
    int16_t lane;
    bool write;
} Event;

typedef struct EventRef {
    int32_t event;
    SlotIndex index;  // into the slots of its buffer
} EventRef;

typedef enum { SEGMENT_TASKS, SEGMENT_LAYERS, SEGMENT_MICRO_STEPS } SegmentKind;

// The loop tree in preorder. A loop node's body is the nodes up to `end`. Micro-step loops hold layer loops, never
// the reverse.
typedef struct Segment {
    SegmentKind kind;
    const char *name;                // "forward", "middle micro-steps"
    int32_t first_task, task_count;  // SEGMENT_TASKS
    int32_t count, first, step;  // loops: iterations, at least 1; of the i-th: first + i*step (layers: step may be -1)
    int32_t micro_offset;        // SEGMENT_TASKS: its micro-step is the loop's plus this offset
    bool steady;                 // SEGMENT_MICRO_STEPS: an iteration does all there is to do for `step` micro-steps
    int32_t end;                 // index after the last node of this subtree
} Segment;

// ---------------------------------------------------------------------------------------------- the program

typedef struct StepProgram {
    ModelSpec model;
    TrainPlan plan;
    const Target *target;
    Buffer *buffers;
    int32_t buffer_count;
    Task *tasks;
    int32_t task_count;
    Operand *operands;
    int32_t operand_count;
    Event *events;
    int32_t event_count;
    EventRef *event_refs;  // waits and records of all tasks
    int32_t event_ref_count;
    Segment *segments;
    int32_t segment_count;
    Lane *lanes;
    int32_t lane_count;
    Group *groups;
    int32_t group_count;
    int16_t tp_group, cp_group;  // indices into groups; the group of one rank is a group too
    Unit *units;
    int32_t unit_count;
    ParamSlice *slices;
    int32_t slice_count;
    int32_t loss_buffer;  // f32[1]: sum of token losses over all ranks of the data groups, at the end of a step
    int32_t norm_buffer;  // f32[2]: clip scale and gradient norm
    int32_t layers;       // loop bound that layer_guard refers to; the stage's layers, as in model
    int32_t stage;        // pipeline stage (sim/step/stages.h), below mesh_stages
    StageLayers held;     // by the stage
} StepProgram;

// Lowers a stage of (model, plan, target) to a program in the arena. The plan must be canonical and legal
// (target_check); passes, each in its own file: layers -> tensor parallel -> heads -> context parallel -> sharding ->
// recompute -> fusion -> messages -> lanes. The program's model has only the layers that the stage holds.
Status step_lower_stage(const ModelSpec *model, const TrainPlan *plan, const Target *target, int stage, Arena *arena,
                        StepProgram *program, Error *error);

// A stage as if it were the only one: its layers as one chunk, micro-steps one after another, no messages. What a
// micro-step saves for its backward is in buffers with micro_steps 1. The plan must be legal for some number of
// micro-steps. Without a pipeline this is step_lower.
Status step_lower_alone(const ModelSpec *model, const TrainPlan *plan, const Target *target, int stage, Arena *arena,
                        StepProgram *program, Error *error);

// The program of stage 0, which contains rank 0: the only one of a step without a pipeline.
Status step_lower(const ModelSpec *model, const TrainPlan *plan, const Target *target, Arena *arena,
                  StepProgram *program, Error *error);

// Hashes a whole program except sizes of the model and the plan that it came from; the same on every rank.
uint64_t step_template_hash(const StepProgram *program);

// ---------------------------------------------------------------------------------------------- walking

typedef struct StepInstance {
    int32_t task;
    int32_t layer;       // of the enclosing layer loop, else 0
    int32_t micro_step;  // the enclosing micro-step loop's index, or 0, plus the segment's offset
} StepInstance;

enum { STEP_MAX_DEPTH = 4 };

// Visits task instances in issue order, guards applied. Start with step_cursor_begin; can be copied; no allocation.
typedef struct StepCursor {
    const StepProgram *program;
    int32_t segment, task, depth;
    int32_t loop_segment[STEP_MAX_DEPTH], iteration[STEP_MAX_DEPTH];
    int32_t layer, micro_step;
} StepCursor;

StepCursor step_cursor_begin(const StepProgram *program);
bool step_cursor_next(StepCursor *cursor, StepInstance *instance);         // false: there are no more
int64_t step_instance_count(const StepProgram *program);                   // of a step
void step_instances(const StepProgram *program, StepInstance *instances);  // all of them, in that order

static inline bool step_guard_open(const StepProgram *program, const Task *task, int layer) {
    const int guarded = layer + task->layer_guard;
    return task->layer_guard == 0 || (guarded >= 0 && guarded < program->layers);
}

static inline const Operand *task_operand(const StepProgram *program, const Task *task, int index) {
    return &program->operands[task->first_operand + index];
}

// For a norm with a fused add: index of the added operand, followed by the sum; 0 = no add.
static inline int task_added_operand(const Task *task) {
    const int more = task->kind == TASK_RMSNORM ? AT_RMSNORM_MORE : AT_LAYERNORM_MORE;
    return task->operand_count > more ? more : 0;
}

static inline bool task_is_message(const Task *task) {
    return task->kind == TASK_SEND || task->kind == TASK_RECEIVE;
}

static inline bool task_is_collective(const Task *task) {
    return (task->kind >= TASK_ALL_GATHER && task->kind <= TASK_SEND_RECV) || task->kind == TASK_ALL_TO_ALL;
}

// Moves bytes between ranks without computing.
static inline bool task_is_transfer(const Task *task) {
    return task_is_collective(task) || task_is_message(task);
}

// ---------------------------------------------------------------------------------------------- per rank

// Byte offset of the access inside its buffer (slot included) for this instance and rank.
int64_t step_ref_offset(const StepProgram *program, const BufferRef *ref, const StepInstance *instance,
                        const MeshCoordinates *at);

// What this rank's shard holds of one unit instance: elements [first, first + count) of the flat unit, without padding.
void step_shard_range(const StepProgram *program, const Unit *unit, const MeshCoordinates *at, int64_t *first,
                      int64_t *count);

// Sequence chunks held by a rank of the cp group: local rows [i*length, (i+1)*length) of each sequence are global
// positions start[i] ... Zigzag: two chunks, owner and 2C-1-owner; contiguous: one.
typedef struct SequenceChunks {
    int count;
    int length;
    int start[2];
} SequenceChunks;

SequenceChunks step_chunks(const StepProgram *program, int cp_index);

// The part of these that the rank has outside attention, where sp splits them further.
SequenceChunks step_token_chunks(const StepProgram *program, const MeshCoordinates *at);

// cp index of the rank whose keys and values this ring step uses.
static inline int step_ring_owner(const StepProgram *program, int ring_step, const MeshCoordinates *at) {
    const int ranks = program->plan.mesh.size[AXIS_CP];
    return ((at->at[AXIS_CP] - ring_step) % ranks + ranks) % ranks;
}
