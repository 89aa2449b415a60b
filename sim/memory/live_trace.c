// See the header.

#include "sim/memory/live_trace.h"

#include <string.h>

#include "sim/step/slots.h"

// With reach r, layers 0 .. r+1 from either end touch at most 2r+1 layers from it, and the slot of layer 2r+2 stands
// for the middle.
static int32_t *slots_of_lifetimes(const ProgramCut *cut, const Lifetimes *lifetimes, Arena *arena) {
    int32_t *slots = ARENA_UNCLEARED(arena, int32_t, lifetimes->count + 1);
    for (int32_t i = 0; i < lifetimes->count; i++) {
        const SlotLifetime *row = &lifetimes->rows[i];
        slots[i] = 1;
        if (cut->per_layer[row->buffer]) {
            const int32_t layer = row->slot % buffer_layer_slots(&cut->program.buffers[row->buffer]);
            slots[i] += layer == 2 * cut->reach + 2 ? cut->removed_layers : 0;
        }
    }
    return slots;
}

static void make_trace(const StepProgram *program, const CutOptions *options, const OperandCells *cells, Arena *arena,
                       Arena *scratch, LiveTrace *trace) {
    ProgramCut cut;
    program_cut(program, options, scratch, &cut);
    trace->count = (int32_t)step_instance_count(&cut.program);
    trace->instances = ARENA_UNCLEARED(arena, StepInstance, trace->count);
    step_instances(&cut.program, trace->instances);
    lifetimes_of_cells(&cut.program, cells, trace->instances, trace->count, scratch, &trace->lifetimes);
    trace->lifetimes.rows = memcpy(ARENA_UNCLEARED(arena, SlotLifetime, trace->lifetimes.count + 1),
                                   trace->lifetimes.rows, (size_t)trace->lifetimes.count * sizeof(SlotLifetime));
    trace->slots = slots_of_lifetimes(&cut, &trace->lifetimes, arena);
    trace->layers = cut.program.layers;
    trace->removed_layers = cut.removed_layers;
    trace->reach = cut.reach;
}

Status live_traces_find(LiveTraces *traces, const StepProgram *program, const CutOptions *options,
                        const LiveTrace **trace, Error *error) {
    const OperandCells *cells;
    arena_reset(&traces->scratch);
    TRY(slot_cells_find(program, &traces->scratch, &cells, error));
    const Structure structure = structure_of(program, options, cells, false, &traces->scratch);
    *trace = by_structure_find(&traces->by, &structure);
    if (*trace) {
        return STATUS_OK;
    }
    by_structure_make_room(&traces->by, LIVE_TRACES_BYTES);
    LiveTrace *made = ARENA_NEW(&traces->by.arena, LiveTrace);
    make_trace(program, options, cells, &traces->by.arena, &traces->scratch, made);
    by_structure_keep(&traces->by, &structure, made);
    *trace = made;
    return STATUS_OK;
}

void live_traces_free(LiveTraces *traces) {
    arena_free(&traces->by.arena);
    arena_free(&traces->scratch);
    plan_shapes_free(&traces->shapes);
    *traces = (LiveTraces){0};
}
