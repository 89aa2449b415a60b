// Found on the program with its loops cut (first, typical and last iterations; what holds between two of them holds for
// the rest by transitivity).

#include "sim/memory/plan_shape.h"

#include <string.h>

// Of the cut program.
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

// The host reads the last two after the step.
static bool keeps_bytes(const StepProgram *program, int32_t buffer) {
    return program->buffers[buffer].persistent || buffer == program->loss_buffer || buffer == program->norm_buffer;
}

static void list_sharing(const StepProgram *program, const PartSpans *whole, Arena *arena, PlanShape *shape) {
    shape->buffers = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    shape->lifetime = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    shape->birth = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (!keeps_bytes(program, i)) {
            const int32_t at = shape->count++;
            shape->buffers[at] = i;
            span_shape(whole, whole->parts.first[i], &shape->lifetime[at], &shape->birth[at]);
        }
    }
}

static void keep_conflicts(const ConflictShape *found, Arena *arena, ConflictShape *kept) {
    *kept = *found;
    if (found->pair_count > 0) {
        kept->pairs = ARENA_UNCLEARED(arena, ConflictPair, found->pair_count);
        kept->runs = ARENA_UNCLEARED(arena, ConflictRun, found->run_count);
        memcpy(kept->pairs, found->pairs, found->pair_count * sizeof *found->pairs);
        memcpy(kept->runs, found->runs, found->run_count * sizeof *found->runs);
    }
}

Status plan_shape_find(const StepProgram *program, Arena *arena, Arena *scratch, PlanShape *shape, Error *error) {
    Findings found;
    ConflictShape conflicts;
    *shape = (PlanShape){0};
    TRY(findings_make(program, arena, scratch, &found, error));
    shape->places = found.places;
    list_sharing(program, &found.whole, arena, shape);
    const StepProgram placed = slot_places_placed(program, &found.places, scratch);
    conflicts_find(&(ConflictInput){.program = &placed,
                                    .cut = &found.cut,
                                    .whole = &found.whole,
                                    .split = &found.split,
                                    .buffers = shape->buffers,
                                    .count = shape->count},
                   scratch, &conflicts);
    keep_conflicts(&conflicts, arena, &shape->conflicts);
    return STATUS_OK;
}

Status plan_shapes_find(PlanShapes *shapes, const StepProgram *program, const PlanShape **shape, Error *error) {
    const OperandCells *cells;
    arena_reset(&shapes->scratch);
    TRY(slot_cells_find(program, &shapes->scratch, &cells, error));
    const Structure structure = structure_of(program, &conflict_cut, cells, true, &shapes->scratch);
    *shape = by_structure_find(&shapes->by, &structure);
    if (*shape) {
        return STATUS_OK;
    }
    by_structure_make_room(&shapes->by, PLAN_SHAPES_BYTES);
    PlanShape *made = ARENA_NEW(&shapes->by.arena, PlanShape);
    TRY(plan_shape_find(program, &shapes->by.arena, &shapes->scratch, made, error));
    by_structure_keep(&shapes->by, &structure, made);
    *shape = made;
    return STATUS_OK;
}

void plan_shapes_free(PlanShapes *shapes) {
    arena_free(&shapes->by.arena);
    arena_free(&shapes->scratch);
    *shapes = (PlanShapes){0};
}
