// Two programs have one structure when everything that decides lifetimes is equal: loops, guards, which slots and cells
// each operand touches and how. That is written down as words and compared whole; its hash only finds candidates.

#include "sim/memory/live_trace.h"

#include <string.h>

#include "sim/base/hash.h"
#include "sim/memory/slot_cells.h"
#include "sim/step/slots.h"

typedef struct Structure {
    uint64_t *words;
    size_t count;
    uint64_t hash;
} Structure;

typedef struct KnownTrace {
    Structure structure;
    LiveTrace *trace;
} KnownTrace;

static void add_word(Structure *structure, uint64_t word) {
    structure->words[structure->count++] = word;
}

static uint64_t pair_of(int32_t high, int32_t low) {
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

enum { INDEX_BITS = 34 };

// Scales are 0 or 1.
static uint64_t index_of(SlotIndex index) {
    return (uint64_t)index.micro_scale << 33 | (uint64_t)(uint16_t)index.micro_offset << 17 |
           (uint64_t)index.layer_scale << 16 | (uint16_t)index.layer_offset;
}

static bool keeps_micro_steps_apart(const StepProgram *program) {
    bool apart = false;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        apart |= program->buffers[i].micro_steps > 0;
    }
    return apart;
}

// Where all micro-steps use the same slots, which one it is and how many more than the cut leaves do not matter.
static void add_loops(Structure *structure, const StepProgram *program, const CutOptions *options) {
    const bool apart = keeps_micro_steps_apart(program);
    for (int32_t i = 0; i < program->segment_count; i++) {
        const Segment *segment = &program->segments[i];
        const bool alike = segment->kind == SEGMENT_MICRO_STEPS && !apart;
        const bool cut = alike && segment->count > options->max_micro_steps;
        add_word(structure, pair_of((int32_t)segment->kind, segment->end));
        add_word(structure, pair_of(segment->first_task, segment->task_count));
        add_word(structure, pair_of(alike ? 0 : segment->first, segment->step));
        add_word(structure, pair_of(cut ? options->max_micro_steps : segment->count, segment->micro_offset));
    }
    for (int32_t i = 0; i < program->task_count; i++) {
        add_word(structure, pair_of(program->tasks[i].layer_guard, program->tasks[i].operand_count));
    }
}

static void add_references(Structure *structure, const StepProgram *program, const OperandCells *cells) {
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        add_word(structure, pair_of(buffer->slots, 4 * buffer->micro_steps + 2 * buffer->held + buffer->persistent));
    }
    for (int32_t i = 0; i < program->operand_count; i++) {
        const BufferRef *ref = &program->operands[i].ref;
        add_word(structure, (uint64_t)(uint32_t)ref->buffer << (INDEX_BITS + 2) |
                                (uint64_t)program->operands[i].access << INDEX_BITS | index_of(ref->index));
        add_word(structure, cells[i].touched);
        add_word(structure, cells[i].covered);
    }
    for (int32_t i = 0; i < program->event_ref_count; i++) {  // a loop is cut by them, too
        const EventRef *ref = &program->event_refs[i];
        add_word(structure,
                 (uint64_t)(uint32_t)program->events[ref->event].buffer << INDEX_BITS | index_of(ref->index));
    }
}

static Structure structure_of(const StepProgram *program, const CutOptions *options, const OperandCells *cells,
                              Arena *arena) {
    enum { EDGES = 4, PER_SEGMENT = 4, PER_OPERAND = 3 };
    const size_t most = EDGES + (size_t)program->segment_count * PER_SEGMENT + (size_t)program->task_count +
                        (size_t)program->buffer_count + (size_t)program->operand_count * PER_OPERAND +
                        (size_t)program->event_ref_count;
    Structure structure = {.words = ARENA_UNCLEARED(arena, uint64_t, most)};
    add_word(&structure, pair_of(options->reach_factor, options->base_layers));
    add_word(&structure, pair_of(options->max_micro_steps, program->layers));
    add_word(&structure, pair_of(program->segment_count, program->task_count));
    add_word(&structure, pair_of(program->buffer_count, program->operand_count));
    add_loops(&structure, program, options);
    add_references(&structure, program, cells);
    Hash hash = hash_begin();
    for (size_t i = 0; i < structure.count; i++) {
        hash_int(&hash, (int64_t)structure.words[i]);
    }
    structure.hash = hash_end(&hash);
    return structure;
}

static const LiveTrace *known_trace(const LiveTraces *traces, const Structure *structure) {
    for (size_t i = 0; i < traces->count; i++) {
        const Structure *other = &traces->known[i].structure;
        if (other->hash == structure->hash && other->count == structure->count &&
            memcmp(other->words, structure->words, structure->count * sizeof *structure->words) == 0) {
            return traces->known[i].trace;
        }
    }
    return NULL;
}

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
    Structure structure = structure_of(program, options, cells, &traces->scratch);
    *trace = known_trace(traces, &structure);
    if (*trace) {
        return STATUS_OK;
    }
    if (traces->arena.used_bytes > LIVE_TRACES_BYTES) {
        arena_free(&traces->arena);
        traces->known = NULL;
        traces->count = traces->capacity = 0;
    }
    LiveTrace *made = ARENA_NEW(&traces->arena, LiveTrace);
    make_trace(program, options, cells, &traces->arena, &traces->scratch, made);
    structure.words = memcpy(ARENA_UNCLEARED(&traces->arena, uint64_t, structure.count), structure.words,
                             structure.count * sizeof *structure.words);
    ARENA_PUSH(&traces->arena, traces->known, traces->count, &traces->capacity) = (KnownTrace){structure, made};
    *trace = made;
    return STATUS_OK;
}

void live_traces_free(LiveTraces *traces) {
    arena_free(&traces->arena);
    arena_free(&traces->scratch);
    *traces = (LiveTraces){0};
}
