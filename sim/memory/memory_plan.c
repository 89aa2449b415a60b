// The planner: persistent buffers first, one behind the other; the rest share bytes wherever happens-before orders all
// uses of one buffer before all uses of the other. Found on the program with its loops cut (first, typical and last
// iterations; what holds between two of them holds for the rest by transitivity); hazard_check proves the outcome on
// the whole program. A buffer is one block with all its slots. Not modelled: order across steps; the executor drains
// its lanes between steps.

#include <string.h>

#include "sim/memory/buffer_spans.h"
#include "sim/memory/layout.h"
#include "sim/memory/memory.h"
#include "sim/memory/program_cut.h"

static int64_t align_up(int64_t bytes) {
    return (bytes + STEP_ALIGN_BYTES - 1) / STEP_ALIGN_BYTES * STEP_ALIGN_BYTES;
}

static int64_t buffer_bytes(const Buffer *buffer) {
    return align_up(buffer->slot_bytes * buffer->slots);
}

// The host reads these after the step.
static bool buffer_keeps_bytes(const StepProgram *program, int32_t buffer) {
    return program->buffers[buffer].persistent || buffer == program->loss_buffer || buffer == program->norm_buffer;
}

static void place_persistent(const StepProgram *program, MemoryPlan *plan) {
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (buffer_keeps_bytes(program, i)) {
            plan->offset_bytes[i] = plan->persistent_bytes;
            plan->persistent_bytes += buffer_bytes(&program->buffers[i]);
        }
    }
}

static int32_t spans_length(const BufferSpans *spans, int32_t buffer) {
    int32_t length = 0;
    for (int32_t i = spans->begin[buffer]; i < spans->begin[buffer + 1]; i++) {
        length += spans->spans[i].last - spans->spans[i].first + 1;
    }
    return length;
}

static void find_conflicts(const BufferSpans *spans, const int32_t *buffers, int32_t count, bool *conflicts) {
    for (int32_t i = 0; i < count; i++) {
        for (int32_t j = 0; j < i; j++) {
            const bool conflict = !buffer_spans_disjoint(spans, buffers[i], buffers[j]);
            conflicts[(size_t)i * (size_t)count + (size_t)j] = conflict;
            conflicts[(size_t)j * (size_t)count + (size_t)i] = conflict;
        }
    }
}

static void place_sharing(const StepProgram *program, const BufferSpans *spans, Arena *arena, MemoryPlan *plan) {
    int32_t *buffers = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    int64_t *bytes = ARENA_ARRAY(arena, int64_t, program->buffer_count);
    int32_t *lifetime = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    int64_t *offset = ARENA_ARRAY(arena, int64_t, program->buffer_count);
    int32_t count = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (!buffer_keeps_bytes(program, i)) {
            buffers[count] = i;
            bytes[count] = buffer_bytes(&program->buffers[i]);
            lifetime[count++] = spans_length(spans, i);
        }
    }
    bool *conflicts = ARENA_ARRAY(arena, bool, (size_t)count *(size_t)count);
    find_conflicts(spans, buffers, count, conflicts);
    const LayoutProblem problem = {.count = count, .bytes = bytes, .conflicts = conflicts, .lifetime = lifetime};
    plan->arena_bytes = plan->persistent_bytes + layout_solve(&problem, offset, arena);
    for (int32_t i = 0; i < count; i++) {
        plan->offset_bytes[buffers[i]] = plan->persistent_bytes + offset[i];
    }
}

Status memory_plan(const StepProgram *program, Arena *arena, MemoryPlan *plan, Error *error) {
    *plan = (MemoryPlan){.offset_bytes = ARENA_ARRAY(arena, int64_t, program->buffer_count)};
    Arena scratch = {0};
    const CutOptions options = {.reach_factor = 1, .base_layers = 3, .max_micro_batches = 2};
    ProgramCut cut;
    HappensBefore order;
    Lifetimes lifetimes;
    BufferSpans spans;
    program_cut(program, &options, &scratch, &cut);
    happens_before_build(&cut.program, &scratch, &order);
    const Status status = lifetimes_find(&cut.program, order.instances, order.count, &scratch, &lifetimes, error);
    if (status != STATUS_OK) {
        goto done;
    }
    buffer_spans_build(&order, &lifetimes, &scratch, &spans);
    place_persistent(program, plan);
    place_sharing(program, &spans, &scratch, plan);
done:
    arena_free(&scratch);
    return status == STATUS_OK ? STATUS_OK : error_wrap(error, "memory plan");
}
