// Walks segments, loops and guards in issue order (the order that sim/step's cursor defines) and converts event
// references into counts per lane. Collectives of lanes that share a communicator wait for each other the same way.

#include "sim/engine/walker.h"

#include <string.h>

enum { FIRST_RING = 64 };

static int32_t tasks_on(const EngineProgram *compiled, const Segment *segment, int lane) {
    int32_t count = 0;
    for (int32_t t = segment->first_task; t < segment->first_task + segment->task_count; t++) {
        count += compiled->tasks[t].lane == lane;
    }
    return count;
}

// May tasks after the stretch, or of its last iteration, have been queued before the walk reached it? Then what waits
// for them can start although the walk is not there, which what the stretch needs was found without. Of a layer loop
// no more than PATH_ITERATIONS are queued early.
static bool is_queued_past(const Walker *walker, int32_t at) {
    const EngineProgram *compiled = walker->compiled;
    const Segment *stretch = &compiled->step->segments[at];
    const bool loop = stretch->kind != SEGMENT_TASKS;
    for (uint32_t left = compiled->shapes[at].lanes; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (walker->early[lane] > 0 &&
            (loop ? stretch->count <= PATH_ITERATIONS : walker->early[lane] > tasks_on(compiled, stretch, lane))) {
            return true;
        }
    }
    return false;
}

// Lanes that may have work which could start before the walk leaves the stretch that it is in.
static void find_stretch(Walker *walker) {
    static const WalkNeeds nothing = {0};
    const StepProgram *program = walker->compiled->step;
    const LoopRun *outer = &walker->loops[0], *inner = &walker->loops[walker->depth - (walker->depth > 0)];
    const bool in_micro_steps = walker->depth > 0 && program->segments[outer->segment].kind == SEGMENT_MICRO_STEPS;
    const bool in_layers = walker->depth > 0 && program->segments[inner->segment].kind == SEGMENT_LAYERS;
    const int32_t at = in_layers ? inner->segment : walker->segment;
    if (at >= program->segment_count) {
        walker->needs = &nothing;
        walker->eager = 0;
        return;
    }
    const Segment *segment = &program->segments[at];
    walker->stretch =
        (WalkStretch){.segment = at,
                      .end = segment->kind == SEGMENT_TASKS ? at + 1 : segment->end,
                      .repeat = in_micro_steps ? outer->segment : -1,
                      .last = !in_micro_steps || outer->iteration + 1 == program->segments[outer->segment].count};
    walker->needs = &walker->compiled->shapes[at].needs[walker->stretch.last];
    const bool ends = in_layers && inner->iteration + 1 == segment->count;
    walker->eager = is_queued_past(walker, at) ? (1u << walker->compiled->lane_count) - 1
                                               : walker->needs->eager | (ends ? walker->needs->held : 0);
}

void walker_begin(Walker *walker, const EngineProgram *compiled, Arena *arena) {
    *walker = (Walker){.compiled = compiled, .arena = arena, .path = walk_path_new(compiled, arena)};
    walker->slot_counts = ARENA_ARRAY(arena, int32_t, compiled->slot_count + 1);
    for (int lane = 0; lane < ENGINE_LANES; lane++) {
        walker->rings[lane].slots = ARENA_UNCLEARED(arena, Instance, FIRST_RING);
        walker->rings[lane].mask = FIRST_RING - 1;
    }
    find_stretch(walker);
}

static void ring_grow(LaneRing *ring, int32_t kept, Arena *arena) {
    const uint32_t size = 2 * (ring->mask + 1);
    Instance *slots = ARENA_UNCLEARED(arena, Instance, size);
    for (int32_t i = kept > 0 ? kept - 1 : 0; i < ring->pulled; i++) {
        slots[(uint32_t)i & (size - 1)] = ring->slots[(uint32_t)i & ring->mask];
    }
    ring->slots = slots;
    ring->mask = size - 1;
}

static void need_at_least(Instance *instance, int lane, int32_t progress) {
    if (progress > instance->need[lane]) {
        instance->need[lane] = progress;
        instance->needs |= 1u << lane;
    }
}

static void find_needs(const Walker *walker, const EngineTask *task, int32_t layer, int32_t micro_step,
                       Instance *instance) {
    const EngineProgram *compiled = walker->compiled;
    memset(instance->need, 0, sizeof instance->need);
    instance->needs = 0;
    for (int32_t i = 0; i < task->wait_count; i++) {
        const EventSite *site = &compiled->sites[task->first_wait + i];
        need_at_least(instance, site->lane, 2 * walker->slot_counts[event_site_slot(site, layer, micro_step)]);
    }
    for (uint32_t left = task->group >= 0 ? compiled->siblings[task->lane] : 0; left; left &= left - 1) {
        const int other = __builtin_ctz(left);
        need_at_least(instance, other, 2 * walker->rings[other].last_collective);
    }
    for (uint32_t left = compiled->stopping; left; left &= left - 1) {
        const int other = __builtin_ctz(left);
        need_at_least(instance, other, walker->rings[other].last_stop);
    }
}

static Instance *queue_task(Walker *walker, int32_t index, int32_t layer, int32_t micro_step, const int32_t *kept) {
    const EngineTask *task = &walker->compiled->tasks[index];
    LaneRing *ring = &walker->rings[task->lane];
    if ((uint32_t)(ring->pulled - kept[task->lane]) >= ring->mask) {  // the last ended one is still looked at
        ring_grow(ring, kept[task->lane], walker->arena);
    }
    Instance *instance = &ring->slots[(uint32_t)ring->pulled++ & ring->mask];
    find_needs(walker, task, layer, micro_step, instance);
    instance->task = index;
    instance->layer = layer;
    instance->micro_step = micro_step;
    return instance;
}

// The walk is at a task: queues it, unless it was queued early. True when it was not.
static bool reach_task(Walker *walker, int32_t index, int32_t micro_step, const int32_t *kept) {
    const EngineTask *task = &walker->compiled->tasks[index];
    LaneRing *ring = &walker->rings[task->lane];
    const bool here = walker->early[task->lane] == 0;
    walker->host_ps += task->host_ps;
    if (here) {
        Instance *instance = queue_task(walker, index, walker->layer, micro_step, kept);
        instance->issue_ps = walker->host_ps;
        instance->position = walker->position;
    } else {
        walker->early[task->lane]--;
    }
    walker->position++;
    const int32_t count = ring->pulled - walker->early[task->lane];
    ring->last_collective = task->group >= 0 ? count : ring->last_collective;
    if (task->host_stop != HOST_GOES_ON) {
        ring->last_stop = 2 * count - (task->host_stop == HOST_WAITS_FOR_START);
    }
    for (int32_t i = 0; i < task->record_count; i++) {
        const EventSite *site = &walker->compiled->sites[task->first_record + i];
        walker->slot_counts[event_site_slot(site, walker->layer, micro_step)] = count;
    }
    return here;
}

// Of a task on the path: that of the next iteration, or the first one of a later loop.
static int32_t micro_step_at(const Walker *walker, int32_t step) {
    const Segment *segments = walker->compiled->step->segments;
    const PathStep *place = walk_path_step(&walker->path, step);
    int32_t micro_step = place->micro_loop >= 0 ? segments[place->micro_loop].first : 0;
    if (step < walker->path.loop_count) {
        const Segment *loop = &segments[walker->stretch.repeat];
        micro_step = walker->micro_step + (place->segment < walker->stretch.segment ? loop->step : 0);
    }
    return micro_step + segments[place->segment].micro_offset;
}

void walker_pull_early(Walker *walker, int lane, const int32_t *kept) {
    const EngineProgram *compiled = walker->compiled;
    walk_path_make(compiled, &walker->stretch, &walker->path);
    const PathPlace place = walk_path_find(compiled, &walker->path, lane, walker->early[lane]);
    const WalkDistance distance = walker_distance(walker, &walker->path, place);
    const int32_t layer = walk_path_step(&walker->path, place.step)->layer;
    Instance *instance = queue_task(walker, place.task, layer, micro_step_at(walker, place.step), kept);
    instance->issue_ps = walker->host_ps + distance.host_ps + compiled->tasks[place.task].host_ps;
    instance->position = walker->position + distance.tasks;
    walker->early[lane]++;
}

static int32_t reached(const Walker *walker, int lane) {
    return walker->rings[lane].pulled - walker->early[lane];
}

static void set_loop_variable(Walker *walker, const LoopRun *run) {
    const Segment *loop = &walker->compiled->step->segments[run->segment];
    *(loop->kind == SEGMENT_LAYERS ? &walker->layer : &walker->micro_step) = loop->first + run->iteration * loop->step;
}

static void enter_loop(Walker *walker) {
    ASSERT(walker->depth < STEP_MAX_DEPTH);
    LoopRun *run = &walker->loops[walker->depth++];
    *run = (LoopRun){.id = ++walker->loop_runs, .segment = walker->segment++};
    for (int lane = 0; lane < ENGINE_LANES; lane++) {
        run->entered[lane] = reached(walker, lane);
    }
    set_loop_variable(walker, run);
}

static void note_boundary(Walker *walker, const LoopRun *run) {
    if (walker->boundary_count == WALKER_BOUNDARIES) {
        return;
    }
    Boundary *boundary = &walker->boundaries[(walker->boundary_first + walker->boundary_count++) % WALKER_BOUNDARIES];
    *boundary = (Boundary){
        .loop_run = run->id, .depth = walker->depth - 1, .iteration = run->iteration, .host_ps = walker->host_ps};
    for (int lane = 0; lane < ENGINE_LANES; lane++) {
        boundary->pulled[lane] = reached(walker, lane);
    }
}

// After a subtree ended: the next iteration of the innermost finished loop, or out of it.
static void close_loops(Walker *walker) {
    const Segment *segments = walker->compiled->step->segments;
    while (walker->depth > 0) {
        LoopRun *run = &walker->loops[walker->depth - 1];
        if (walker->segment != segments[run->segment].end) {
            return;
        }
        if (run->iteration + 1 < segments[run->segment].count) {
            note_boundary(walker, run);
            run->iteration++;
            walker->segment = run->segment + 1;
            set_loop_variable(walker, run);
            return;
        }
        *(segments[run->segment].kind == SEGMENT_LAYERS ? &walker->layer : &walker->micro_step) = 0;
        walker->depth--;
    }
}

int walker_pull(Walker *walker, const int32_t *kept) {
    const StepProgram *program = walker->compiled->step;
    while (walker->segment < program->segment_count) {
        const Segment *segment = &program->segments[walker->segment];
        if (segment->kind != SEGMENT_TASKS) {
            enter_loop(walker);
            find_stretch(walker);
            continue;
        }
        while (walker->task < segment->task_count) {
            const int32_t index = segment->first_task + walker->task++;
            const bool guarded = walker->compiled->tasks[index].guard != 0;
            if ((!guarded || step_guard_open(program, &program->tasks[index], walker->layer)) &&
                reach_task(walker, index, walker->micro_step + segment->micro_offset, kept)) {
                return walker->compiled->tasks[index].lane;
            }
        }
        walker->task = 0;
        walker->segment++;
        close_loops(walker);
        find_stretch(walker);
    }
    walker->ended = true;
    return -1;
}

// Event slots that the loop records per layer or micro-step move with the iterations; the ones between were recorded in
// skipped iterations and have happened.
static void rotate_event(Walker *walker, const EventSite *site, const LoopRun *run, bool layers, int32_t shift,
                         int32_t *scratch) {
    int32_t *slots = &walker->slot_counts[site->first_slot];
    const int32_t micro_steps = site->micro_steps > 0 ? site->micro_steps : 1;
    const size_t bytes = (size_t)(site->slots * micro_steps) * sizeof *slots;
    memcpy(scratch, slots, bytes);
    memset(slots, 0, bytes);
    for (int32_t i = 0; i < site->slots * micro_steps; i++) {
        if (scratch[i] > run->entered[site->lane]) {
            const int32_t layer = slot_modulo(i % site->slots + (layers ? shift : 0), site->slots);
            const int32_t micro_step = slot_modulo(i / site->slots + (layers ? 0 : shift), micro_steps);
            slots[micro_step * site->slots + layer] = scratch[i];
        }
    }
}

static bool site_rotates(const EventSite *site, bool layers) {
    return layers ? site->index.layer_scale != 0 && site->slots > 1 : site->micro_steps > 1;
}

static void rotate_events(Walker *walker, const LoopRun *run, bool layers, int32_t shift) {
    const EngineProgram *compiled = walker->compiled;
    const Segment *loop = &compiled->step->segments[run->segment];
    int32_t *scratch = ARENA_ARRAY(walker->arena, int32_t, compiled->slot_count + 1);
    bool *rotated = ARENA_ARRAY(walker->arena, bool, compiled->step->event_count);
    for (int32_t s = run->segment + 1; s < loop->end; s++) {
        const Segment *body = &compiled->step->segments[s];
        for (int32_t t = 0; body->kind == SEGMENT_TASKS && t < body->task_count; t++) {
            const EngineTask *task = &compiled->tasks[body->first_task + t];
            for (int32_t k = 0; k < task->record_count; k++) {
                const EventSite *site = &compiled->sites[task->first_record + k];
                if (site_rotates(site, layers) && !rotated[site->event]) {
                    rotated[site->event] = true;
                    rotate_event(walker, site, run, layers, shift, scratch);
                }
            }
        }
    }
}

bool walker_is_early(const Walker *walker, const Segment *loop) {
    const Segment *segments = walker->compiled->step->segments;
    bool early = false;
    for (int lane = 0; lane < walker->compiled->lane_count; lane++) {
        for (int32_t i = reached(walker, lane); i < walker->rings[lane].pulled; i++) {
            const int32_t task = walker_head(walker, lane, i)->task;
            for (const Segment *body = loop + 1; body < &segments[loop->end]; body++) {
                early |= task >= body->first_task && task < body->first_task + body->task_count;
            }
        }
    }
    return early;
}

void walker_skip(Walker *walker, int32_t depth, int32_t count, int64_t host_shift_ps, int64_t beyond_shift_ps,
                 const int32_t *kept) {
    LoopRun *run = &walker->loops[depth];
    const Segment *loop = &walker->compiled->step->segments[run->segment];
    const int32_t shift = count * loop->step;
    run->iteration += count;
    set_loop_variable(walker, run);
    walker->host_ps += host_shift_ps;
    for (int lane = 0; lane < walker->compiled->lane_count; lane++) {
        LaneRing *ring = &walker->rings[lane];
        const int32_t early = reached(walker, lane);
        for (int32_t i = kept[lane]; i < ring->pulled; i++) {
            Instance *instance = &ring->slots[(uint32_t)i & ring->mask];
            const bool moves = i < early || loop->kind == SEGMENT_MICRO_STEPS;
            *(loop->kind == SEGMENT_LAYERS ? &instance->layer : &instance->micro_step) += moves ? shift : 0;
            instance->issue_ps += moves ? host_shift_ps : beyond_shift_ps;
        }
    }
    for (uint32_t i = 0; i < walker->boundary_count; i++) {
        Boundary *boundary = &walker->boundaries[(walker->boundary_first + i) % WALKER_BOUNDARIES];
        boundary->host_ps += host_shift_ps;
        boundary->iteration += boundary->loop_run == run->id ? count : 0;
    }
    rotate_events(walker, run, loop->kind == SEGMENT_LAYERS, shift);
    find_stretch(walker);
}
