// How far the walk must be ahead of the simulation. A lane without a queued task forces the walk on only if its next
// task could start before the walk gets there anyway. It cannot when it waits for a task that has not been walked yet:
// when something between the stretch being walked and the task surely records the very slot that it waits for, or is
// an earlier collective of its communicator. Everything else is looked for eagerly, slots of a micro-step of their own
// too, which is always right and only costs memory.

#include "sim/engine/engine_program.h"

// Tasks in the order in which they are first issued after the stretch.
typedef struct Ahead {
    const EngineProgram *compiled;
    int32_t *tasks;  // collected so far, with the segment of their layer loop
    int32_t *layer_loop;
    int32_t count;
} Ahead;

static bool surely_runs(const EngineTask *task) {
    return task->guard == 0;
}

static bool surely_records(const EngineTask *recorder, const EventSite *sites, const EventSite *wait, bool same_layer) {
    for (int32_t i = 0; i < recorder->record_count; i++) {
        const EventSite *record = &sites[recorder->first_record + i];
        if (record->event != wait->event || record->micro_steps > 1 || wait->micro_steps > 1) {
            continue;
        }
        const bool fixed = record->index.layer_scale == 0 && wait->index.layer_scale == 0;
        const bool shifted = record->index.layer_scale == wait->index.layer_scale && same_layer;
        if (wait->slots == 1 || ((fixed || shifted) && record->index.layer_offset == wait->index.layer_offset)) {
            return true;
        }
    }
    return false;
}

// The last task of the list is the first of its lane: does it wait for one of the others?
static bool waits_ahead(const Ahead *ahead) {
    const EngineProgram *compiled = ahead->compiled;
    const EngineTask *task = &compiled->tasks[ahead->tasks[ahead->count - 1]];
    for (int32_t i = 0; i + 1 < ahead->count; i++) {
        const EngineTask *other = &compiled->tasks[ahead->tasks[i]];
        if (!surely_runs(other)) {
            continue;
        }
        if (task->group >= 0 && other->group >= 0 && (compiled->siblings[task->lane] >> other->lane & 1)) {
            return true;
        }
        const bool same_layer = ahead->layer_loop[i] == ahead->layer_loop[ahead->count - 1];
        for (int32_t k = 0; k < task->wait_count; k++) {
            if (surely_records(other, compiled->sites, &compiled->sites[task->first_wait + k], same_layer)) {
                return true;
            }
        }
    }
    return false;
}

typedef enum { NOT_FOUND, FOUND_SAFE, FOUND_EAGER } Found;

// Collects the tasks of segments [from, to) until one of this lane comes.
static Found collect(Ahead *ahead, int32_t from, int32_t to, int lane) {
    const StepProgram *program = ahead->compiled->step;
    int32_t loop = -1, loop_end = -1;
    for (int32_t s = from; s < to; s++) {
        const Segment *segment = &program->segments[s];
        loop = s >= loop_end ? -1 : loop;
        if (segment->kind == SEGMENT_LAYERS) {
            loop = s;
            loop_end = segment->end;
        }
        for (int32_t t = 0; segment->kind == SEGMENT_TASKS && t < segment->task_count; t++) {
            ahead->tasks[ahead->count] = segment->first_task + t;
            ahead->layer_loop[ahead->count++] = loop;
            if (ahead->compiled->tasks[segment->first_task + t].lane == lane) {
                // A guarded first task may be skipped over; what comes after it is not looked at: eager.
                const bool safe = surely_runs(&ahead->compiled->tasks[segment->first_task + t]) && waits_ahead(ahead);
                return safe ? FOUND_SAFE : FOUND_EAGER;
            }
        }
    }
    return NOT_FOUND;
}

// Is the lane's next task after segments [.., end) safely far away? repeat: segment of the micro-step loop around, or
// -1.
static bool lane_is_eager(Ahead *ahead, int32_t end, int32_t repeat, int lane) {
    const StepProgram *program = ahead->compiled->step;
    ahead->count = 0;
    const int32_t body_end = repeat >= 0 ? program->segments[repeat].end : program->segment_count;
    const Found here = collect(ahead, end, body_end, lane);
    if (here != NOT_FOUND || repeat < 0) {
        return here == FOUND_EAGER;
    }
    const int32_t before = ahead->count;
    const Found again = program->segments[repeat].count > 1 ? collect(ahead, repeat + 1, end, lane) : NOT_FOUND;
    ahead->count = before;
    return again == FOUND_EAGER || collect(ahead, body_end, program->segment_count, lane) == FOUND_EAGER;
}

void engine_find_eager_lanes(EngineProgram *compiled, Arena *arena) {
    const StepProgram *program = compiled->step;
    Ahead ahead = {.compiled = compiled,
                   .tasks = ARENA_ARRAY(arena, int32_t, 2 * program->task_count + 1),
                   .layer_loop = ARENA_ARRAY(arena, int32_t, 2 * program->task_count + 1)};
    int32_t repeat = -1;
    for (int32_t s = 0; s < program->segment_count; s++) {
        const Segment *segment = &program->segments[s];
        LoopShape *shape = &compiled->shapes[s];
        repeat = repeat >= 0 && s >= program->segments[repeat].end ? -1 : repeat;
        repeat = segment->kind == SEGMENT_MICRO_STEPS ? s : repeat;
        shape->eager_lanes = shape->lanes;
        const int32_t end = segment->kind == SEGMENT_TASKS ? s + 1 : segment->end;
        for (int lane = 0; segment->kind != SEGMENT_MICRO_STEPS && lane < compiled->lane_count; lane++) {
            if (!(shape->lanes >> lane & 1) && lane_is_eager(&ahead, end, repeat, lane)) {
                shape->eager_lanes |= 1u << lane;
            }
        }
    }
}
