// The planner: persistent buffers first, one after the other; the rest share bytes wherever happens-before orders all
// uses of one before all uses of the other, slot by slot where buffers have a slot per layer. Found on the program with
// its loops cut (first, typical and last iterations; what holds between two of them holds for the rest by
// transitivity); tests/support/hazard_check.c proves the outcome on the whole program. Slots of a buffer stay together.
// Not modelled: order across steps; the executor drains its lanes between steps.

#include "sim/memory/conflicts.h"
#include "sim/memory/memory.h"
#include "sim/memory/slot_places.h"
#include "sim/step/slots.h"

static int64_t buffer_bytes(const Buffer *buffer) {
    return step_slot_bytes(buffer->slot_bytes * buffer->slots);
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

// Everything that the placement reads, found on the cut program.
typedef struct Findings {
    ProgramCut cut;
    HappensBefore order;
    Lifetimes lifetimes;
    SlotPlaces places;
    PartSpans whole, split;
} Findings;

static Status findings_make(const StepProgram *program, Arena *kept, Arena *arena, Findings *found, Error *error) {
    program_cut(program, &conflict_cut, arena, &found->cut);
    const StepProgram *cut = &found->cut.program;
    happens_before_build(cut, arena, &found->order);
    TRY(lifetimes_find(cut, found->order.instances, found->order.count, arena, &found->lifetimes, error));
    part_spans_build(&found->order, &found->lifetimes, parts_of_buffers(cut, 1, arena), arena, &found->whole);
    found->places = slot_places_find(&found->cut, &found->order, &found->lifetimes, kept, arena);
    const StepProgram placed = slot_places_placed(cut, &found->places, arena);
    Parts parts = parts_of_buffers(&placed, MAX_SPLIT_SLOTS, arena);
    parts.place = found->places.of;
    part_spans_build(&found->order, &found->lifetimes, parts, arena, &found->split);
    return STATUS_OK;
}

static void span_shape(const PartSpans *spans, int32_t part, int32_t *lifetime, int32_t *birth) {
    *lifetime = *birth = 0;
    for (int32_t i = spans->begin[part]; i < spans->begin[part + 1]; i++) {
        *lifetime += spans->spans[i].last - spans->spans[i].first + 1;
        *birth = i == spans->begin[part] ? spans->spans[i].first : *birth;
    }
}

static void place_sharing(const StepProgram *original, const Findings *found, Arena *arena, MemoryPlan *plan) {
    const StepProgram placed = slot_places_placed(original, &found->places, arena), *program = &placed;
    int32_t *buffers = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    int64_t *bytes = ARENA_ARRAY(arena, int64_t, program->buffer_count);
    int32_t *lifetime = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    int32_t *birth = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    int64_t *offset = ARENA_ARRAY(arena, int64_t, program->buffer_count);
    int32_t count = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (!buffer_keeps_bytes(program, i)) {
            buffers[count] = i;
            bytes[count] = buffer_bytes(&program->buffers[i]);
            span_shape(&found->whole, found->whole.parts.first[i], &lifetime[count], &birth[count]);
            count++;
        }
    }
    Conflicts conflicts;
    conflicts_find(&(ConflictInput){.program = program,
                                    .cut = &found->cut,
                                    .whole = &found->whole,
                                    .split = &found->split,
                                    .buffers = buffers,
                                    .count = count},
                   arena, &conflicts);
    const LayoutProblem problem = {.count = count,
                                   .bytes = bytes,
                                   .lifetime = lifetime,
                                   .birth = birth,
                                   .pairs = conflicts.pairs,
                                   .forbidden = conflicts.forbidden};
    plan->arena_bytes = plan->persistent_bytes + layout_solve(&problem, offset, arena);
    for (int32_t i = 0; i < count; i++) {
        plan->offset_bytes[buffers[i]] = plan->persistent_bytes + offset[i];
    }
}

Status memory_plan(const StepProgram *program, Arena *arena, MemoryPlan *plan, Error *error) {
    *plan = (MemoryPlan){.offset_bytes = ARENA_ARRAY(arena, int64_t, program->buffer_count)};
    Arena scratch = {0};
    Findings found;
    const Status status = findings_make(program, arena, &scratch, &found, error);
    if (status == STATUS_OK) {
        plan->place = found.places.of;
        place_persistent(program, plan);
        place_sharing(program, &found, &scratch, plan);
    }
    arena_free(&scratch);
    return status == STATUS_OK ? STATUS_OK : error_wrap(error, "memory plan");
}

int64_t memory_ref_offset(const MemoryPlan *plan, const StepProgram *program, const BufferRef *ref,
                          const StepInstance *instance, const MeshCoordinates *at) {
    const Buffer *buffer = &program->buffers[ref->buffer];
    const int32_t *const place = plan->place ? plan->place[ref->buffer] : NULL;
    const int32_t slot = place ? step_slot(buffer, ref->index, instance) : 0;
    const int64_t moved = place ? (place[slot] - slot) * buffer->slot_bytes : 0;
    return plan->offset_bytes[ref->buffer] + step_ref_offset(program, ref, instance, at) + moved;
}
