// The planner: persistent buffers first, one after the other; the rest share bytes wherever happens-before orders all
// uses of one before all uses of the other, slot by slot where buffers have a slot per layer. Found on the program with
// its loops cut (first, typical and last iterations; what holds between two of them holds for the rest by
// transitivity); tests/support/hazard_check.c proves the outcome on the whole program. Slots of a buffer stay together.
// Not modelled: order across steps; the executor drains its lanes between steps.

#include "sim/memory/layout.h"
#include "sim/memory/memory.h"
#include "sim/memory/plan_shape.h"
#include "sim/step/slots.h"

static int64_t buffer_bytes(const Buffer *buffer) {
    return step_slot_bytes(buffer->slot_bytes * buffer->slots);
}

// What shares no bytes: persistent buffers and those that the host reads after the step.
static void place_persistent(const StepProgram *program, const PlanShape *shape, MemoryPlan *plan) {
    int32_t sharing = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (sharing < shape->count && shape->buffers[sharing] == i) {
            sharing++;
            continue;
        }
        plan->offset_bytes[i] = plan->persistent_bytes;
        plan->persistent_bytes += buffer_bytes(&program->buffers[i]);
    }
}

static void place_sharing(const StepProgram *original, const PlanShape *shape, Arena *arena, MemoryPlan *plan) {
    const StepProgram placed = slot_places_placed(original, &shape->places, arena);
    int64_t *bytes = ARENA_ARRAY(arena, int64_t, shape->count);
    int64_t *offset = ARENA_ARRAY(arena, int64_t, shape->count);
    for (int32_t i = 0; i < shape->count; i++) {
        bytes[i] = buffer_bytes(&placed.buffers[shape->buffers[i]]);
    }
    Conflicts conflicts;
    conflicts_place(&shape->conflicts, &placed, shape->buffers, shape->count, arena, &conflicts);
    const LayoutProblem problem = {.count = shape->count,
                                   .bytes = bytes,
                                   .lifetime = shape->lifetime,
                                   .birth = shape->birth,
                                   .pairs = conflicts.pairs,
                                   .forbidden = conflicts.forbidden};
    plan->arena_bytes = plan->persistent_bytes + layout_solve(&problem, offset, arena);
    for (int32_t i = 0; i < shape->count; i++) {
        plan->offset_bytes[shape->buffers[i]] = plan->persistent_bytes + offset[i];
    }
}

static void place_all(const StepProgram *program, const PlanShape *shape, Arena *arena, Arena *scratch,
                      MemoryPlan *plan) {
    *plan = (MemoryPlan){.offset_bytes = ARENA_ARRAY(arena, int64_t, program->buffer_count), .place = shape->places.of};
    place_persistent(program, shape, plan);
    place_sharing(program, shape, scratch, plan);
}

Status memory_plan(const StepProgram *program, Arena *arena, MemoryPlan *plan, Error *error) {
    Arena scratch = {0};
    PlanShape shape;
    const Status status = plan_shape_find(program, arena, &scratch, &shape, error);
    if (status == STATUS_OK) {
        place_all(program, &shape, arena, &scratch, plan);
    }
    arena_free(&scratch);
    return status == STATUS_OK ? STATUS_OK : error_wrap(error, "memory plan");
}

Status memory_plan_among(const StepProgram *program, PlanShapes *shapes, Arena *arena, MemoryPlan *plan, Error *error) {
    const PlanShape *shape;
    if (plan_shapes_find(shapes, program, &shape, error) != STATUS_OK) {
        return error_wrap(error, "memory plan");
    }
    place_all(program, shape, arena, &shapes->scratch, plan);
    return STATUS_OK;
}

int64_t memory_ref_offset(const MemoryPlan *plan, const StepProgram *program, const BufferRef *ref,
                          const StepInstance *instance, const MeshCoordinates *at) {
    const Buffer *buffer = &program->buffers[ref->buffer];
    const int32_t *const place = plan->place ? plan->place[ref->buffer] : NULL;
    const int32_t slot = place ? step_slot(buffer, ref->index, instance) : 0;
    const int64_t moved = place ? (place[slot] - slot) * buffer->slot_bytes : 0;
    return plan->offset_bytes[ref->buffer] + step_ref_offset(program, ref, instance, at) + moved;
}
