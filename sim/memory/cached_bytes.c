// Allocations and frees of the step in issue order, replayed on the caching allocator. Streams are those of FSDP: what
// a gather fills is made on the gather's stream, what a reduction leaves on the reduction's (PyTorch 2.11
// _fsdp_collectives.py), all else on the default one. Weights, gradients and optimizer state are tensors of their own
// per parameter, and the moments are made by the first optimizer step, in the holes that the first backward left.
// A CUDA graph of forward and backward is captured once, in a private pool for each stream, that nothing else ever
// uses: what lives in between, as gradients, was made before. Capture empties the cache (torch/cuda/graphs.py), so
// nothing is left of the steps that ran before it.
// Not modelled: temporaries inside an operation, cuBLAS workspaces.

#include "sim/memory/cached_bytes.h"

#include "sim/memory/caching_allocator.h"

enum { STREAM_DEFAULT, STREAM_GATHER, STREAM_REDUCE, STREAM_COUNT, STREAM_CAPTURED = STREAM_COUNT };
enum { MAX_MICRO_STEPS = 2 };

typedef struct Replay {
    const StepProgram *program;
    const LiveTrace *trace;
    const Lifetimes *lifetimes;
    int32_t *next_begin, *next_end;    // of each row: the next one that begins, ends at the same instance; -1 = none
    int32_t *first_begin, *first_end;  // of each instance
    int32_t *first_block;              // of each row: a block per tensor
    int32_t *blocks;
    const Unit **unit_of;  // of each buffer: the unit that it has a tensor per parameter of, or NULL
    CachingAllocator *allocator;
    bool captured;  // forward and backward, by a CUDA graph
} Replay;

// Of a unit's buffer: is it of what is trained alone?
static bool is_of_trained(const Unit *unit, int32_t buffer) {
    return buffer == unit->moment1 || buffer == unit->moment2 || buffer == unit->gradient_full ||
           (buffer == unit->master && unit->working >= 0 && unit->working != unit->master);
}

static int tensors_of(const Replay *replay, int32_t buffer) {
    const Unit *unit = replay->unit_of[buffer];
    return !unit ? 1 : is_of_trained(unit, buffer) ? unit->trained_slices : unit->slice_count;
}

static int64_t tensor_bytes(const Replay *replay, int32_t buffer, int index) {
    const Unit *unit = replay->unit_of[buffer];
    const int64_t slot_bytes = replay->program->buffers[buffer].slot_bytes;
    if (replay->program->buffers[buffer].host) {
        return 0;
    }
    if (!unit) {
        return slot_bytes;
    }
    const ParamSlice *slice = &replay->program->slices[unit->first_slice + index];
    return (int64_t)((double)slot_bytes * (double)(slice->local_rows * slice->local_cols) /
                     (double)(is_of_trained(unit, buffer) ? unit->trained_padded : unit->padded_elements));
}

static void find_units(Replay *replay, Arena *arena) {
    const StepProgram *program = replay->program;
    replay->unit_of = ARENA_ARRAY(arena, const Unit *, program->buffer_count);
    for (int32_t u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        const int32_t per_parameter[] = {unit->master,  unit->moment1,  unit->moment2,
                                         unit->working, unit->gathered, unit->gradient_full};
        for (size_t i = 0; i < sizeof per_parameter / sizeof per_parameter[0]; i++) {
            // A gradient buffer of its own is one tensor.
            if (per_parameter[i] >= 0 && !(i == 5 && program->buffers[per_parameter[i]].persistent)) {
                replay->unit_of[per_parameter[i]] = unit;
            }
        }
    }
}

static void index_rows(Replay *replay, Arena *arena) {
    const Lifetimes *lifetimes = replay->lifetimes;
    replay->next_begin = ARENA_ARRAY(arena, int32_t, lifetimes->count);
    replay->next_end = ARENA_ARRAY(arena, int32_t, lifetimes->count);
    replay->first_block = ARENA_ARRAY(arena, int32_t, lifetimes->count);
    replay->first_begin = ARENA_ARRAY(arena, int32_t, replay->trace->count);
    replay->first_end = ARENA_ARRAY(arena, int32_t, replay->trace->count);
    for (int32_t i = 0; i < replay->trace->count; i++) {
        replay->first_begin[i] = replay->first_end[i] = -1;
    }
    int32_t tensors = 0;
    for (int32_t i = 0; i < lifetimes->count; i++) {
        const SlotLifetime *row = &lifetimes->rows[i];
        replay->next_begin[i] = replay->first_begin[row->first];
        replay->first_begin[row->first] = i;
        replay->next_end[i] = replay->first_end[row->last];
        replay->first_end[row->last] = i;
        replay->first_block[i] = tensors;
        tensors += tensors_of(replay, row->buffer);
    }
    replay->blocks = ARENA_ARRAY(arena, int32_t, tensors);
}

static int stream_of(const Replay *replay, int32_t instance) {
    const Task *task = &replay->program->tasks[replay->trace->instances[instance].task];
    const int pools = replay->captured && task->phase != PHASE_OPTIMIZER ? STREAM_CAPTURED : 0;
    if (!replay->program->target->shard_copies) {
        return pools + STREAM_DEFAULT;
    }
    return pools + (task->lane == LANE_AG                             ? STREAM_GATHER
                    : task->lane == LANE_RS || task->lane == LANE_REP ? STREAM_REDUCE
                                                                      : STREAM_DEFAULT);
}

static void take_persistent(const Replay *replay, bool state) {
    for (int32_t i = 0; i < replay->program->buffer_count; i++) {
        const Buffer *buffer = &replay->program->buffers[i];
        const bool is_state = buffer->role == ROLE_OPTIMIZER;
        for (int32_t slot = 0; slot < buffer->slots && buffer->persistent && is_state == state; slot++) {
            for (int k = 0; k < tensors_of(replay, i); k++) {
                caching_allocator_take(replay->allocator, tensor_bytes(replay, i, k), STREAM_DEFAULT);
            }
        }
    }
}

static void run_step(Replay *replay) {
    for (int32_t i = 0; i < replay->trace->count; i++) {
        const int stream = stream_of(replay, i);
        for (int32_t row = replay->first_begin[i]; row >= 0; row = replay->next_begin[row]) {
            const int32_t buffer = replay->lifetimes->rows[row].buffer;
            for (int k = 0; k < tensors_of(replay, buffer); k++) {
                replay->blocks[replay->first_block[row] + k] =
                    caching_allocator_take(replay->allocator, tensor_bytes(replay, buffer, k), stream);
            }
        }
        for (int32_t row = replay->first_end[i]; row >= 0; row = replay->next_end[row]) {
            for (int k = 0; k < tensors_of(replay, replay->lifetimes->rows[row].buffer); k++) {
                caching_allocator_give_back(replay->allocator, replay->blocks[replay->first_block[row] + k]);
            }
        }
    }
}

static void replay_program(Replay *replay, Arena *arena) {
    find_units(replay, arena);
    index_rows(replay, arena);
    take_persistent(replay, false);
    if (replay->captured) {
        take_persistent(replay, true);
        run_step(replay);
    } else {
        run_step(replay);
        take_persistent(replay, true);
        run_step(replay);
    }
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
    replay.lifetimes = &replay.trace->lifetimes;
    replay.allocator = caching_allocator_new(&options, &scratch);
    replay_program(&replay, &scratch);
    *cached_bytes = (double)caching_allocator_reserved_bytes(replay.allocator);
    arena_free(&scratch);
    return STATUS_OK;
}
