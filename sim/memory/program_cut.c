// Cutting loops. Layer l of the original keeps its number when it is in the first half of the model and loses
// removed_layers otherwise; buffers with a slot per layer (give or take SLOT_MARGIN) shrink alike. Rotating buffers
// keep their slots: the number of layers left is congruent to the original modulo their slot counts, so every layer
// meets the same slot from its end. Micro-steps that are left out are a multiple of those that have slots of their own.
// Not modelled: loops that end in the middle of the model, layer steps other than 1 and -1; such programs stay whole.

#include "sim/memory/program_cut.h"

#include "sim/base/integer.h"
#include "sim/step/slots.h"

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
    int32_t micro_period;  // micro-steps after which every buffer is back at its slots; 0 = micro-steps stay whole
} Cutter;

static int32_t least_common_multiple(int32_t a, int32_t b) {
    return (int32_t)(a / gcd(a, b) * b);
}

// Notes what an access at an index says about a buffer; false when the program cannot be cut.
static bool cutter_see_index(Cutter *cutter, int32_t buffer, SlotIndex index) {
    const Buffer *touched = &cutter->original->buffers[buffer];
    if (index.layer_scale == 0) {
        return true;
    }
    if (touched->micro_steps > 0 && index.micro_scale == 0) {
        return false;  // through the slots of all micro-steps
    }
    const int32_t slots = buffer_layer_slots(touched);
    cutter->reach = abs(index.layer_offset) > cutter->reach ? abs(index.layer_offset) : cutter->reach;
    if (abs(slots - cutter->layers) <= SLOT_MARGIN) {
        cutter->per_layer[buffer] = true;
        return true;
    }
    if (slots > MAX_CUT_PERIOD) {
        return false;
    }
    cutter->period = least_common_multiple(cutter->period, slots);
    return cutter->period <= MAX_CUT_PERIOD;
}

// The i-th access of the program: of its operands, then of its events.
typedef struct Touch {
    int32_t buffer;  // -1 = none
    SlotIndex *index;
} Touch;

static int32_t touch_count(const StepProgram *program) {
    return program->operand_count + program->event_ref_count;
}

static Touch touch_at(const StepProgram *program, int32_t i) {
    if (i < program->operand_count) {
        BufferRef *ref = &program->operands[i].ref;
        return (Touch){ref->buffer, &ref->index};
    }
    EventRef *ref = &program->event_refs[i - program->operand_count];
    return (Touch){program->events[ref->event].buffer, &ref->index};
}

static bool cutter_see_program(Cutter *cutter) {
    for (int32_t i = 0; i < touch_count(cutter->original); i++) {
        const Touch touch = touch_at(cutter->original, i);
        if (touch.buffer >= 0 && !cutter_see_index(cutter, touch.buffer, *touch.index)) {
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

// The layer offset that a fixed index has in the cut program; -1 where its layer is left out.
static int32_t cutter_map_fixed(const Cutter *cutter, int32_t buffer, SlotIndex index) {
    const int32_t slots = buffer_layer_slots(&cutter->original->buffers[buffer]);
    const int32_t layer = index.micro_scale == 0 ? index.layer_offset % slots : index.layer_offset;
    const int32_t mapped = cutter_map(cutter, layer);
    return mapped < 0 ? -1 : mapped + (index.layer_offset - layer) / slots * (slots - cutter->removed);
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

// Is the access at a fixed layer of a buffer that is cut?
static bool is_fixed(const Cutter *cutter, const Touch *touch) {
    return touch->buffer >= 0 && touch->index->layer_scale == 0 && cutter->per_layer[touch->buffer];
}

static bool cutter_constants_regular(const Cutter *cutter) {
    for (int32_t i = 0; i < touch_count(cutter->original); i++) {
        const Touch touch = touch_at(cutter->original, i);
        if (is_fixed(cutter, &touch) && cutter_map_fixed(cutter, touch.buffer, *touch.index) < 0) {
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

static void cutter_find_micro_period(Cutter *cutter) {
    cutter->micro_period = 1;
    for (int32_t i = 0; i < cutter->original->buffer_count; i++) {
        const int32_t micro_steps = cutter->original->buffers[i].micro_steps;
        if (micro_steps > 0 && cutter->micro_period > 0) {
            const int32_t period = least_common_multiple(cutter->micro_period, micro_steps);
            cutter->micro_period = period <= MAX_CUT_PERIOD ? period : 0;
        }
    }
}

// Iterations of a micro-step loop that stay.
static int32_t cutter_micro_steps(const Cutter *cutter, int32_t count, int32_t most) {
    const int32_t least = most + cutter->micro_period - 1;
    return cutter->micro_period == 0 || count <= least ? count : least + (count - least) % cutter->micro_period;
}

static void *arena_copy(Arena *arena, const void *from, size_t bytes) {
    void *copy = arena_array_uncleared(arena, bytes, 1);
    if (bytes > 0) {
        memcpy(copy, from, bytes);
    }
    return copy;
}

// After a steady loop as much is in flight as before it: what follows counts on from the iterations that stay.
static void cut_micro_steps(const Cutter *cutter, const CutOptions *options, int32_t *left_out, Segment *loop) {
    const int32_t steady = cut_steady_loop(loop, options);
    loop->first -= *left_out;
    *left_out += (loop->count - steady) * loop->step;
    loop->count = steady < loop->count ? steady : cutter_micro_steps(cutter, loop->count, options->max_micro_steps);
}

static void cut_segments(const Cutter *cutter, const CutOptions *options, StepProgram *program, Arena *arena) {
    int32_t left_out = 0;  // micro-steps
    program->segments = arena_copy(arena, program->segments, (size_t)program->segment_count * sizeof(Segment));
    for (int32_t i = 0; i < program->segment_count; i++) {
        Segment *loop = &program->segments[i];
        if (loop->kind == SEGMENT_MICRO_STEPS) {
            cut_micro_steps(cutter, options, &left_out, loop);
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
        const int32_t micro_steps = program->buffers[i].micro_steps > 0 ? program->buffers[i].micro_steps : 1;
        program->buffers[i].slots -= cutter->per_layer[i] ? cutter->removed * micro_steps : 0;
    }
    for (int32_t i = 0; i < touch_count(program); i++) {
        const Touch touch = touch_at(program, i);
        if (is_fixed(cutter, &touch)) {
            touch.index->layer_offset = (int16_t)cutter_map_fixed(cutter, touch.buffer, *touch.index);
        }
    }
    program->layers -= cutter->removed;
}

static bool counts_from_far(const Cutter *cutter, const Task *task) {
    return 2 * abs(task->layer_guard) > cutter->layers;
}

// A guard that lets only layers at one end through is counted from the other end.
static void cut_guards(const Cutter *cutter, StepProgram *program, Arena *arena) {
    bool some = false;
    for (int32_t i = 0; i < program->task_count; i++) {
        some |= counts_from_far(cutter, &program->tasks[i]);
    }
    if (some) {
        program->tasks = arena_copy(arena, program->tasks, (size_t)program->task_count * sizeof(Task));
    }
    for (int32_t i = 0; i < program->task_count && some; i++) {
        Task *task = &program->tasks[i];
        if (counts_from_far(cutter, task)) {
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
    cutter_find_micro_period(&cutter);
    cut->program = *program;
    cut_segments(&cutter, options, &cut->program, arena);
    if (cutter.removed > 0) {
        cut_slots(&cutter, &cut->program, arena);
        cut_guards(&cutter, &cut->program, arena);
    }
    cut->removed_layers = cutter.removed;
    cut->reach = cutter.reach;
    cut->per_layer = cutter.per_layer;
}
