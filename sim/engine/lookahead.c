// How far the walk must be ahead of the simulation. A lane without a queued task forces the walk on only if its next
// task could start before the walk gets there anyway. It cannot when it waits for a task that has not been walked yet:
// when something between the stretch being walked and the task surely records the very slot that it waits for, or is
// an earlier collective of its communicator; or when the last iteration of the layer loop being walked does. Nor need
// the walk go there when nothing on the way to a task outside of layer loops can change what it waits for: it is queued
// early, with the time at which the host will have issued it, and the walk passes over it later. Everything else is
// looked for eagerly, slots of a micro-step of their own too: always right, but it costs memory, and a loop that the
// walk has left is not repeated.

#include <string.h>

#include "sim/engine/walk_path.h"

enum { MOST_EARLY = 16 };  // on a stretch: a few units of gathers

typedef struct Ahead {
    const EngineProgram *compiled;
    uint32_t lanes;  // of the whole program
    WalkStretch stretch;
    WalkPath path;
    PathPlace early[MOST_EARLY];  // queued before the walk comes there
    int32_t early_count;
    bool without_early;
} Ahead;

static int32_t slot_at(const EventSite *site, int32_t layer) {
    return slot_modulo(site->index.layer_scale * layer + site->index.layer_offset, site->slots);
}

typedef enum { NEVER, PERHAPS, SURELY } Meets;

// Does a record fill the slot that is waited for? whole_loop: the record is one of all layers.
static Meets record_meets(const EventSite *record, int32_t layer, bool whole_loop, const EventSite *wait,
                          int32_t waiting_layer) {
    if (record->event != wait->event) {
        return NEVER;
    }
    if (record->micro_steps > 1 || wait->micro_steps > 1) {
        return PERHAPS;
    }
    if (whole_loop && record->index.layer_scale != 0 && record->slots > 1) {
        return PERHAPS;
    }
    return slot_at(record, layer) == slot_at(wait, waiting_layer) ? SURELY : NEVER;
}

static inline bool task_may_meet(const EngineProgram *compiled, const EngineTask *other, const EngineTask *task) {
    return (other->records & task->waits) ||
           (task->group >= 0 && other->group >= 0 && (compiled->siblings[task->lane] >> other->lane & 1));
}

// Must the task wait for this one, where it comes before?
static Meets task_meets(const EngineProgram *compiled, const EngineTask *other, int32_t layer, bool whole_loop,
                        const EngineTask *task, int32_t waiting_layer) {
    if (task->group >= 0 && other->group >= 0 && (compiled->siblings[task->lane] >> other->lane & 1)) {
        return SURELY;
    }
    Meets most = NEVER;
    for (int32_t i = 0; i < other->record_count; i++) {
        for (int32_t k = 0; k < task->wait_count && most != SURELY; k++) {
            const Meets meets = record_meets(&compiled->sites[other->first_record + i], layer, whole_loop,
                                             &compiled->sites[task->first_wait + k], waiting_layer);
            most = meets > most ? meets : most;
        }
    }
    return most;
}

// May a task of the segment, which is a list of tasks, be one that the task must wait for?
static bool segment_may_meet(const EngineProgram *compiled, int32_t segment, const EngineTask *task) {
    const LoopShape *shape = &compiled->shapes[segment];
    return (shape->records & task->waits) || (task->group >= 0 && (compiled->siblings[task->lane] & shape->joined));
}

static bool is_queued_early(const Ahead *ahead, int32_t step, int32_t task) {
    bool early = false;
    for (int32_t i = 0; i < ahead->early_count; i++) {
        early |= ahead->early[i].step == step && ahead->early[i].task == task;
    }
    return early;
}

// By the step's tasks that precede the place; what is queued early blocks nothing until the walk gets there.
static Meets step_meets(const Ahead *ahead, int32_t index, const PathPlace *place) {
    const EngineProgram *compiled = ahead->compiled;
    const PathStep *step = walk_path_step(&ahead->path, index);
    const Segment *segment = &compiled->step->segments[step->segment];
    const int32_t waiting_layer = walk_path_step(&ahead->path, place->step)->layer;
    const int32_t end = index == place->step ? place->task : segment->first_task + segment->task_count;
    const EngineTask *task = &compiled->tasks[place->task];
    Meets most = NEVER;
    if (!segment_may_meet(compiled, step->segment, task)) {
        return NEVER;
    }
    for (int32_t t = end - 1; t >= segment->first_task && most != SURELY; t--) {
        const EngineTask *other = &compiled->tasks[t];
        const bool open = step->rest || step_guard_open(compiled->step, &compiled->step->tasks[t], step->layer);
        if (!task_may_meet(compiled, other, task) || !open) {
            continue;
        }
        Meets meets = task_meets(compiled, other, step->layer, step->rest, task, waiting_layer);
        const bool perhaps = (step->rest && other->guard != 0) || is_queued_early(ahead, index, t);
        meets = meets == SURELY && perhaps ? PERHAPS : meets;
        most = meets > most ? meets : most;
    }
    return most;
}

// Backwards: what a task surely waits for is mostly close before it.
static Meets path_meets(const Ahead *ahead, const PathPlace *place) {
    Meets most = NEVER;
    for (int32_t i = place->step; i >= 0 && most != SURELY; i--) {
        const Meets meets = step_meets(ahead, i, place);
        most = meets > most ? meets : most;
    }
    return most;
}

// By the stretch: SURELY if its last iteration, in a layer loop, does; if it is not a loop, what the walk has passed
// already is not distinguished from what is to come.
static Meets stretch_meets(const Ahead *ahead, const PathPlace *place) {
    const EngineProgram *compiled = ahead->compiled;
    const StepProgram *program = compiled->step;
    const Segment *stretch = &program->segments[ahead->stretch.segment];
    const EngineTask *task = &compiled->tasks[place->task];
    const int32_t waiting_layer = walk_path_step(&ahead->path, place->step)->layer;
    const bool loop = stretch->kind == SEGMENT_LAYERS;
    const int32_t layer = loop ? stretch->first + (stretch->count - 1) * stretch->step : 0;
    Meets most = NEVER;
    for (int32_t s = ahead->stretch.segment; s < ahead->stretch.end; s++) {
        const Segment *body = &program->segments[s];
        const bool may_meet = body->kind == SEGMENT_TASKS && segment_may_meet(compiled, s, task);
        const int32_t end = may_meet ? body->first_task + body->task_count : 0;
        for (int32_t t = body->first_task; t < end && most != SURELY; t++) {
            const EngineTask *other = &compiled->tasks[t];
            if (!task_may_meet(compiled, other, task)) {
                continue;
            }
            const bool last = loop && step_guard_open(program, &program->tasks[t], layer) &&
                              task_meets(compiled, other, layer, false, task, waiting_layer) == SURELY;
            const bool any = task_meets(compiled, other, layer, loop, task, waiting_layer) != NEVER;
            most = last ? SURELY : any ? PERHAPS : most;
        }
    }
    return most;
}

typedef enum { NEXT_FAR, NEXT_HELD, NEXT_EARLY, NEXT_EAGER } Next;

// The lane's task after `passed` others: waits for something on the way to it, or for the layer loop; can be queued
// early, because nothing decides what it waits for; or none of these.
static Next next_of(const Ahead *ahead, int lane, int32_t passed, PathPlace *place) {
    *place = walk_path_find(ahead->compiled, &ahead->path, lane, passed);
    if (place->step < 0) {
        return place->known ? NEXT_FAR : NEXT_EAGER;
    }
    const Meets on_path = path_meets(ahead, place);
    if (on_path == SURELY) {
        return NEXT_FAR;
    }
    const Meets in_stretch = stretch_meets(ahead, place);
    const bool reachable = ahead->stretch.last || place->step < ahead->path.loop_count;
    const bool can = reachable && !ahead->without_early && ahead->early_count < MOST_EARLY;
    const bool early = can && on_path == NEVER && in_stretch == NEVER;
    return in_stretch == SURELY ? NEXT_HELD : early ? NEXT_EARLY : NEXT_EAGER;
}

// A lane that the stretch does not use: its next tasks are queued early up to one that is far or held.
static Next look_at(Ahead *ahead, int lane, int32_t *early) {
    Next next = NEXT_EARLY;
    for (*early = 0; next == NEXT_EARLY; *early += next == NEXT_EARLY) {
        PathPlace place;
        next = next_of(ahead, lane, *early, &place);
        if (next == NEXT_EARLY && !is_queued_early(ahead, place.step, place.task)) {
            ahead->early[ahead->early_count++] = place;
        }
    }
    return next;
}

// False when tasks that are queued early lead to others that would have to be.
static bool find_needs(Ahead *ahead, WalkNeeds *needs) {
    const uint32_t own = ahead->compiled->shapes[ahead->stretch.segment].lanes;
    ahead->early_count = 0;
    walk_path_make(ahead->compiled, &ahead->stretch, &ahead->path);
    *needs = (WalkNeeds){.eager = own};
    for (int round = 0; round < 2 && (round == 0 || needs->early); round++) {
        for (uint32_t left = ahead->lanes & ~own; left; left &= left - 1) {
            const int lane = __builtin_ctz(left);
            int32_t early;
            const Next next = look_at(ahead, lane, &early);
            const bool eager = next == NEXT_EAGER;
            early = eager ? 0 : early;
            if (round > 0 && (eager != (needs->eager >> lane & 1) || early != needs->early_tasks[lane])) {
                return false;
            }
            needs->eager |= eager ? 1u << lane : 0;
            needs->held |= next == NEXT_HELD ? 1u << lane : 0;
            needs->early |= early > 0 ? 1u << lane : 0;
            needs->early_tasks[lane] = (uint8_t)early;
        }
    }
    return true;
}

// How a layer loop's last iteration and that of the micro-step loop around it differ from the others.
static void note_last(const EngineProgram *compiled, const WalkStretch *stretch) {
    LoopShape *shape = &compiled->shapes[stretch->segment];
    const bool again = stretch->repeat >= 0 && compiled->step->segments[stretch->repeat].count > 1;
    shape->last_differs = shape->needs[1].held || (again && shape->needs[0].held);
    if (again && memcmp(&shape->needs[0], &shape->needs[1], sizeof shape->needs[0]) != 0) {
        compiled->shapes[stretch->repeat].last_differs = true;
    }
}

static bool find_all(Ahead *ahead, EngineProgram *compiled) {
    const Segment *segments = compiled->step->segments;
    int32_t repeat = -1;
    for (int32_t s = 0; s < compiled->step->segment_count; s++) {
        WalkNeeds *needs = compiled->shapes[s].needs;
        repeat = repeat >= 0 && s >= segments[repeat].end ? -1 : repeat;
        if (segments[s].kind == SEGMENT_MICRO_STEPS) {
            repeat = s;
            needs[0] = needs[1] = (WalkNeeds){.eager = compiled->shapes[s].lanes};
            continue;
        }
        const int32_t end = segments[s].kind == SEGMENT_TASKS ? s + 1 : segments[s].end;
        for (int last = repeat >= 0 && segments[repeat].count > 1 ? 0 : 1; last < 2; last++) {
            ahead->stretch = (WalkStretch){s, end, repeat, last};
            if (!find_needs(ahead, &needs[last])) {
                return false;
            }
        }
        note_last(compiled, &ahead->stretch);
        s = end - 1;  // what is inside a layer loop is no stretch of its own
    }
    return true;
}

void engine_find_needs(EngineProgram *compiled, Arena *arena) {
    Ahead ahead = {.compiled = compiled, .path = walk_path_new(compiled, arena)};
    for (int32_t s = 0; s < compiled->step->segment_count; s++) {
        ahead.lanes |= compiled->shapes[s].lanes;
    }
    if (!find_all(&ahead, compiled)) {
        ahead.without_early = true;
        find_all(&ahead, compiled);
    }
}
