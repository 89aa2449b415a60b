// Cutting loops. Layer l of the original keeps its number when it is in the first half of the model and loses
// removed_layers otherwise; buffers with a slot per layer (give or take SLOT_MARGIN) shrink alike. Rotating buffers
// keep their slots: the number of layers left is congruent to the original modulo their slot counts, so every layer
// meets the same slot from its end.
// Not modelled: loops that end in the middle of the model, layer steps other than 1 and -1; such programs stay whole.

#include "sim/memory/program_cut.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOT_MARGIN = 2,      // layers + 1 slots where a layer's output is the next one's input
    MAX_CUT_PERIOD = 16,  // least common multiple of rotating slot counts; beyond it cutting gains nothing
};

typedef struct Cutter {
    const StepProgram *original;
    bool *per_layer;
    int32_t layers, removed;  // of the original; left out
    int32_t reach, period;
} Cutter;

static int32_t greatest_common_divisor(int32_t a, int32_t b) {
    while (b != 0) {
        const int32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Notes what an access at (scale, offset) says about a buffer; false when the program cannot be cut.
static bool cutter_see_index(Cutter *cutter, int32_t buffer, int scale, int offset) {
    if (scale == 0) {
        return true;
    }
    const int32_t slots = cutter->original->buffers[buffer].slots;
    cutter->reach = abs(offset) > cutter->reach ? abs(offset) : cutter->reach;
    if (abs(slots - cutter->layers) <= SLOT_MARGIN) {
        cutter->per_layer[buffer] = true;
        return true;
    }
    if (slots > MAX_CUT_PERIOD) {
        return false;
    }
    cutter->period = cutter->period / greatest_common_divisor(cutter->period, slots) * slots;
    return cutter->period <= MAX_CUT_PERIOD;
}

static bool cutter_see_program(Cutter *cutter) {
    const StepProgram *program = cutter->original;
    for (int32_t i = 0; i < program->operand_count; i++) {
        const BufferRef *ref = &program->operands[i].ref;
        if (ref->buffer >= 0 && !cutter_see_index(cutter, ref->buffer, ref->layer_scale, ref->layer_offset)) {
            return false;
        }
    }
    for (int32_t i = 0; i < program->event_ref_count; i++) {
        const EventRef *ref = &program->event_refs[i];
        if (!cutter_see_index(cutter, program->events[ref->event].buffer, ref->layer_scale, ref->layer_offset)) {
            return false;
        }
    }
    return true;
}

// A layer number of the cut program, for numbers near either end; -1 for one that is left out.
static int32_t cutter_map(const Cutter *cutter, int32_t layer) {
    const int32_t left = cutter->layers - cutter->removed;
    if (layer < left / 2) {
        return layer;
    }
    return layer >= cutter->layers - left / 2 ? layer - cutter->removed : -1;
}

static bool cutter_loops_regular(const Cutter *cutter) {
    const StepProgram *program = cutter->original;
    for (int32_t i = 0; i < program->segment_count; i++) {
        const Segment *loop = &program->segments[i];
        if (loop->kind != SEGMENT_LAYERS || loop->count == 0) {
            continue;
        }
        const int32_t last = loop->first + (loop->count - 1) * loop->step;
        if (abs(loop->step) != 1 || cutter_map(cutter, loop->first) < 0 || cutter_map(cutter, last) < 0) {
            return false;
        }
    }
    return true;
}

static bool cutter_constants_regular(const Cutter *cutter) {
    const StepProgram *program = cutter->original;
    for (int32_t i = 0; i < program->operand_count; i++) {
        const BufferRef *ref = &program->operands[i].ref;
        if (ref->buffer >= 0 && ref->layer_scale == 0 && cutter->per_layer[ref->buffer] &&
            cutter_map(cutter, ref->layer_offset) < 0) {
            return false;
        }
    }
    for (int32_t i = 0; i < program->event_ref_count; i++) {
        const EventRef *ref = &program->event_refs[i];
        if (ref->layer_scale == 0 && cutter->per_layer[program->events[ref->event].buffer] &&
            cutter_map(cutter, ref->layer_offset) < 0) {
            return false;
        }
    }
    return true;
}

// How many layers to leave out; 0 when the program must stay whole.
static void cutter_choose(Cutter *cutter, const CutOptions *options) {
    if (!cutter_see_program(cutter)) {
        return;
    }
    const int32_t least = options->reach_factor * cutter->reach + options->base_layers;
    const int32_t spare = cutter->layers - least;
    cutter->removed = spare > 0 ? spare / cutter->period * cutter->period : 0;
    if (cutter->removed > 0 && !(cutter_loops_regular(cutter) && cutter_constants_regular(cutter))) {
        cutter->removed = 0;
    }
}

static void *arena_copy(Arena *arena, const void *from, size_t bytes) {
    void *copy = arena_alloc(arena, bytes);
    if (bytes > 0) {
        memcpy(copy, from, bytes);
    }
    return copy;
}

static void cut_segments(const Cutter *cutter, int max_micro_steps, StepProgram *program, Arena *arena) {
    program->segments = arena_copy(arena, program->segments, (size_t)program->segment_count * sizeof(Segment));
    for (int32_t i = 0; i < program->segment_count; i++) {
        Segment *loop = &program->segments[i];
        if (loop->kind == SEGMENT_MICRO_STEPS && loop->count > max_micro_steps) {
            loop->count = max_micro_steps;
        } else if (loop->kind == SEGMENT_LAYERS && loop->count > 0 && cutter->removed > 0) {
            const int32_t last = cutter_map(cutter, loop->first + (loop->count - 1) * loop->step);
            loop->first = cutter_map(cutter, loop->first);
            loop->count = abs(last - loop->first) + 1;
        }
    }
}

static void cut_slots(const Cutter *cutter, StepProgram *program, Arena *arena) {
    program->buffers = arena_copy(arena, program->buffers, (size_t)program->buffer_count * sizeof(Buffer));
    program->operands = arena_copy(arena, program->operands, (size_t)program->operand_count * sizeof(Operand));
    program->event_refs = arena_copy(arena, program->event_refs, (size_t)program->event_ref_count * sizeof(EventRef));
    for (int32_t i = 0; i < program->buffer_count; i++) {
        program->buffers[i].slots -= cutter->per_layer[i] ? cutter->removed : 0;
    }
    for (int32_t i = 0; i < program->operand_count; i++) {
        BufferRef *ref = &program->operands[i].ref;
        if (ref->buffer >= 0 && ref->layer_scale == 0 && cutter->per_layer[ref->buffer]) {
            ref->layer_offset = (int16_t)cutter_map(cutter, ref->layer_offset);
        }
    }
    for (int32_t i = 0; i < program->event_ref_count; i++) {
        EventRef *ref = &program->event_refs[i];
        if (ref->layer_scale == 0 && cutter->per_layer[program->events[ref->event].buffer]) {
            ref->layer_offset = (int16_t)cutter_map(cutter, ref->layer_offset);
        }
    }
    program->layers -= cutter->removed;
}

// A guard that lets only layers at one end through is counted from the other end.
static void cut_guards(const Cutter *cutter, StepProgram *program, Arena *arena) {
    program->tasks = arena_copy(arena, program->tasks, (size_t)program->task_count * sizeof(Task));
    for (int32_t i = 0; i < program->task_count; i++) {
        Task *task = &program->tasks[i];
        if (2 * abs(task->layer_guard) > cutter->layers) {
            task->layer_guard = (int16_t)(task->layer_guard + (task->layer_guard > 0 ? -1 : 1) * cutter->removed);
        }
    }
}

void program_cut(const StepProgram *program, const CutOptions *options, Arena *arena, ProgramCut *cut) {
    Cutter cutter = {.original = program,
                     .per_layer = ARENA_ARRAY(arena, bool, program->buffer_count),
                     .layers = program->layers,
                     .period = 1};
    cutter_choose(&cutter, options);
    cut->program = *program;
    cut_segments(&cutter, options->max_micro_steps, &cut->program, arena);
    if (cutter.removed > 0) {
        cut_slots(&cutter, &cut->program, arena);
        cut_guards(&cutter, &cut->program, arena);
    }
    cut->removed_layers = cutter.removed;
    cut->reach = cutter.reach;
    cut->per_layer = cutter.per_layer;
}
