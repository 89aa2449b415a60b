// Allocations and frees of the step in issue order, replayed on the caching allocator. Streams are those of FSDP: what
// a gather fills is made on the gather's stream, what a reduction leaves on the reduction's (PyTorch 2.11
// _fsdp_collectives.py), all else on the default one. Weights, gradients and optimizer state are tensors of their own
// per parameter; among segments that do not grow the moments are made after a first step, in the holes that it left.
// A CUDA graph of forward and backward is captured once, in a private pool for each stream, that nothing else ever
// uses: what lives in between, as gradients, was made before. Capture empties the cache (torch/cuda/graphs.py), so
// nothing is left of the steps that ran before it.
// Not modelled: temporaries inside an operation, cuBLAS workspaces.

#include "sim/memory/cached_bytes.h"

#include "sim/memory/caching_allocator.h"

enum { STREAM_DEFAULT, STREAM_GATHER, STREAM_REDUCE, STREAM_COUNT, STREAM_CAPTURED = STREAM_COUNT };
enum { MAX_MICRO_STEPS = 2 };

// What lives for a time: a block per tensor.
typedef struct ReplayRow {
    int32_t next_begin, next_end;  // the next row that begins, ends at the same instance; -1 = none
    int32_t block, tensor, tensors;
} ReplayRow;

typedef struct Replay {
    const StepProgram *program;
    const LiveTrace *trace;
    ReplayRow *rows;                   // of each lifetime
    int32_t *first_begin, *first_end;  // of each instance
    int32_t *blocks;
    int32_t *first_tensor;  // of each buffer among the bytes of tensors, and one past the last
    int64_t *tensor_bytes;
    int32_t *streams;  // of each task
    CachingAllocator *allocator;
    bool captured;  // forward and backward, by a CUDA graph
} Replay;

// Of a unit's buffer: is it of what is trained alone?
static bool is_of_trained(const Unit *unit, int32_t buffer) {
    return buffer == unit->moment1 || buffer == unit->moment2 || buffer == unit->gradient_full ||
           buffer == unit->gradient_half ||
           (buffer == unit->master && unit->working >= 0 && unit->working != unit->master);
}

static int tensor_count(const StepProgram *program, const Unit *unit, int32_t buffer) {
    const int pieces = program->buffers[buffer].pieces;
    return !unit ? (pieces > 1 ? pieces : 1) : is_of_trained(unit, buffer) ? unit->trained_slices : unit->slice_count;
}

static int64_t bytes_of_tensor(const StepProgram *program, const Unit *unit, int32_t buffer, int index) {
    const int64_t slot_bytes = program->buffers[buffer].slot_bytes;
    if (program->buffers[buffer].host) {
        return 0;
    }
    if (!unit) {
        return slot_bytes / tensor_count(program, unit, buffer);
    }
    const ParamSlice *slice = &program->slices[unit->first_slice + index];
    return (int64_t)((double)slot_bytes * (double)(slice->local_rows * slice->local_cols) /
                     (double)(is_of_trained(unit, buffer) ? unit->trained_padded : unit->padded_elements));
}

// Of each buffer the unit that it has a tensor per parameter of, or NULL.
static const Unit **units_of(const StepProgram *program, Arena *arena) {
    const Unit **unit_of = ARENA_ARRAY(arena, const Unit *, program->buffer_count);
    for (int32_t u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        const int32_t per_parameter[] = {unit->master,   unit->moment1,       unit->moment2,      unit->working,
                                         unit->gathered, unit->gradient_half, unit->gradient_full};
        for (size_t i = 0; i < sizeof per_parameter / sizeof per_parameter[0]; i++) {
            // A gradient buffer of its own is one tensor.
            if (per_parameter[i] >= 0 &&
                !(per_parameter[i] == unit->gradient_full && program->buffers[per_parameter[i]].persistent)) {
                unit_of[per_parameter[i]] = unit;
            }
        }
    }
    return unit_of;
}

static void find_tensors(Replay *replay, Arena *arena) {
    const StepProgram *program = replay->program;
    const Unit **unit_of = units_of(program, arena);
    replay->first_tensor = ARENA_ARRAY(arena, int32_t, program->buffer_count + 1);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        replay->first_tensor[i + 1] = replay->first_tensor[i] + tensor_count(program, unit_of[i], i);
    }
    replay->tensor_bytes = ARENA_UNCLEARED(arena, int64_t, replay->first_tensor[program->buffer_count] + 1);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        for (int32_t k = replay->first_tensor[i]; k < replay->first_tensor[i + 1]; k++) {
            replay->tensor_bytes[k] = bytes_of_tensor(program, unit_of[i], i, k - replay->first_tensor[i]);
        }
    }
}

static void index_rows(Replay *replay, Arena *arena) {
    const Lifetimes *lifetimes = &replay->trace->lifetimes;
    replay->rows = ARENA_UNCLEARED(arena, ReplayRow, lifetimes->count + 1);
    replay->first_begin = ARENA_UNCLEARED(arena, int32_t, replay->trace->count + 1);
    replay->first_end = ARENA_UNCLEARED(arena, int32_t, replay->trace->count + 1);
    for (int32_t i = 0; i < replay->trace->count; i++) {
        replay->first_begin[i] = replay->first_end[i] = -1;
    }
    int32_t blocks = 0;
    for (int32_t i = 0; i < lifetimes->count; i++) {
        const SlotLifetime *lived = &lifetimes->rows[i];
        const int32_t tensor = replay->first_tensor[lived->buffer];
        const int32_t tensors = replay->first_tensor[lived->buffer + 1] - tensor;
        replay->rows[i] = (ReplayRow){.next_begin = replay->first_begin[lived->first],
                                      .next_end = replay->first_end[lived->last],
                                      .block = blocks,
                                      .tensor = tensor,
                                      .tensors = tensors};
        replay->first_begin[lived->first] = replay->first_end[lived->last] = i;
        blocks += tensors;
    }
    replay->blocks = ARENA_UNCLEARED(arena, int32_t, blocks + 1);
}

static int32_t stream_of(const Replay *replay, const Task *task) {
    const int32_t pools = replay->captured && task->phase != PHASE_OPTIMIZER ? STREAM_CAPTURED : 0;
    if (!replay->program->target->shard_copies) {
        return pools + STREAM_DEFAULT;
    }
    return pools + (task->lane == LANE_AG                             ? STREAM_GATHER
                    : task->lane == LANE_RS || task->lane == LANE_REP ? STREAM_REDUCE
                                                                      : STREAM_DEFAULT);
}

static void find_streams(Replay *replay, Arena *arena) {
    const StepProgram *program = replay->program;
    replay->streams = ARENA_UNCLEARED(arena, int32_t, program->task_count + 1);
    for (int32_t i = 0; i < program->task_count; i++) {
        replay->streams[i] = stream_of(replay, &program->tasks[i]);
    }
}

static void take_persistent(const Replay *replay, bool state) {
    for (int32_t i = 0; i < replay->program->buffer_count; i++) {
        const Buffer *buffer = &replay->program->buffers[i];
        const bool is_state = buffer->role == ROLE_OPTIMIZER;
        for (int32_t slot = 0; slot < buffer->slots && buffer->persistent && is_state == state; slot++) {
            for (int32_t k = replay->first_tensor[i]; k < replay->first_tensor[i + 1]; k++) {
                caching_allocator_take(replay->allocator, replay->tensor_bytes[k], STREAM_DEFAULT);
            }
        }
    }
}

static void take_rows(const Replay *replay, int32_t first, int32_t stream) {
    for (const ReplayRow *row; first >= 0; first = row->next_begin) {
        row = &replay->rows[first];
        for (int32_t k = 0; k < row->tensors; k++) {
            replay->blocks[row->block + k] =
                caching_allocator_take(replay->allocator, replay->tensor_bytes[row->tensor + k], stream);
        }
    }
}

static void give_back_rows(const Replay *replay, int32_t first) {
    for (const ReplayRow *row; first >= 0; first = row->next_end) {
        row = &replay->rows[first];
        for (int32_t k = 0; k < row->tensors; k++) {
            caching_allocator_give_back(replay->allocator, replay->blocks[row->block + k]);
        }
    }
}

static void run_step(const Replay *replay) {
    for (int32_t i = 0; i < replay->trace->count; i++) {
        take_rows(replay, replay->first_begin[i], replay->streams[replay->trace->instances[i].task]);
        give_back_rows(replay, replay->first_end[i]);
    }
}

// What a first step, which has no moments yet, leaves of a segment that grows is one free block at its end. The moments
// and the second step fill and pass it: that step alone says how far, within a percent mostly.
static void replay_program(Replay *replay, bool expandable, Arena *arena) {
    find_tensors(replay, arena);
    find_streams(replay, arena);
    index_rows(replay, arena);
    take_persistent(replay, false);
    if (!replay->captured && !expandable) {
        run_step(replay);
    }
    take_persistent(replay, true);
    run_step(replay);
}

Status memory_cached_bytes(const StepProgram *program, double limit_bytes, LiveTraces *traces, double *cached_bytes,
                           Error *error) {
    ASSERT(program->target->allocator != ALLOCATOR_NONE);
    const CutOptions whole_layers = {.base_layers = program->layers, .max_micro_steps = MAX_MICRO_STEPS};
    const CachingAllocatorOptions options = {.expandable = program->target->allocator == ALLOCATOR_EXPANDABLE,
                                             .streams = 2 * STREAM_COUNT,
                                             .private_streams = STREAM_COUNT,
                                             .limit_bytes = (int64_t)limit_bytes};
    Arena scratch = {0};
    Replay replay = {.program = program, .captured = target_cuda_graphs(program->target, &program->plan)};
    TRY(live_traces_find(traces, program, &whole_layers, &replay.trace, error));
    replay.allocator = caching_allocator_new(&options, &scratch);
    replay_program(&replay, options.expandable, &scratch);
    *cached_bytes = (double)caching_allocator_reserved_bytes(replay.allocator);
    arena_free(&scratch);
    return STATUS_OK;
}
