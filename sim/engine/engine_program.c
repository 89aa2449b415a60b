// Compiles a StepProgram with its costs for the engine. Tasks that occupy the same get the same demand, so that the
// rates of a set of running tasks can be looked up by a few small numbers.

#include "sim/engine/engine_program.h"

#include <math.h>
#include <string.h>

#include "sim/engine/walk_path.h"

enum { MAX_DEMANDS = 65535 };

static const double ps_per_s = 1e12;
static const double longest_s = 4e6;  // int64 picoseconds reach 9.2e6 s

int64_t engine_picoseconds(double seconds) {
    return (int64_t)llround(seconds * ps_per_s);
}

// Programs have tens of distinct demands: a linear search per task, once per run.
static int32_t demand_index(EngineProgram *compiled, const Task *task, const TaskCost *cost) {
    const ShareDemand demand = share_demand(task, cost);
    for (int32_t i = 1; i < compiled->demand_count; i++) {
        if (share_demand_equal(&compiled->demands[i], &demand)) {
            return i;
        }
    }
    compiled->demands[compiled->demand_count] = demand;
    return compiled->demand_count++;
}

// A bit for each event that a task of another lane waits for; others are not looked up. Of more than there are bits
// several have the same one.
static uint64_t *event_bits(const StepProgram *program, Arena *arena) {
    enum { EVENT_BITS = 64 };
    uint64_t *bits = ARENA_ARRAY(arena, uint64_t, program->event_count);
    int32_t awaited = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        for (int32_t k = task->first_wait; k < task->first_wait + task->wait_count; k++) {
            const int32_t event = program->event_refs[k].event;
            if (program->events[event].lane != task->lane && bits[event] == 0) {
                bits[event] = UINT64_C(1) << awaited++ % EVENT_BITS;
            }
        }
    }
    return bits;
}

static Status compile_sites(const StepProgram *program, const int32_t *first_slot, const uint64_t *bits,
                            EngineProgram *compiled, Error *error) {
    int32_t next = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        EngineTask *out = &compiled->tasks[i];
        for (int pass = 0; pass < 2; pass++) {
            const int32_t first = pass == 0 ? task->first_wait : task->first_record;
            const int32_t count = pass == 0 ? task->wait_count : task->record_count;
            *(pass == 0 ? &out->first_wait : &out->first_record) = next;
            for (int32_t k = first; k < first + count; k++) {
                const EventRef *ref = &program->event_refs[k];
                const Event *event = &program->events[ref->event];
                FAIL_IF(pass == 1 && event->lane != task->lane, error, STATUS_INTERNAL,
                        "task %s on lane %s records an event of lane %s", task->name, program->lanes[task->lane].name,
                        program->lanes[event->lane].name);
                if (pass == 0 && event->lane == task->lane) {
                    continue;
                }
                *(pass == 0 ? &out->waits : &out->records) |= bits[ref->event];
                const Buffer *buffer = &program->buffers[event->buffer];
                const bool own_slots = ref->index.micro_scale != 0;
                compiled->sites[next++] = (EventSite){.event = ref->event,
                                                      .first_slot = first_slot[ref->event],
                                                      .slots = own_slots ? buffer_layer_slots(buffer) : buffer->slots,
                                                      .micro_steps = own_slots ? buffer->micro_steps : 0,
                                                      .index = ref->index,
                                                      .lane = event->lane};
            }
            *(pass == 0 ? &out->wait_count : &out->record_count) =
                next - (pass == 0 ? out->first_wait : out->first_record);
        }
    }
    return STATUS_OK;
}

static HostStop host_stop(const StepProgram *program, const Task *task, const TaskCost *cost) {
    const bool stops = task_is_message(task) && target_stops_host(program->target, &program->plan);
    return cost->host_stop != HOST_GOES_ON || !stops     ? cost->host_stop
           : program->target->runtime.messages_announced ? HOST_WAITS_FOR_START
                                                         : HOST_WAITS_FOR_END;
}

static Status compile_tasks(const StepProgram *program, const EngineCosts *costs, EngineProgram *compiled,
                            Error *error) {
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        const TaskCost *cost = &costs->tasks[i];
        FAIL_IF(!(cost->seconds >= 0 && cost->seconds < longest_s && cost->host_s >= 0 && cost->host_s < longest_s),
                error, STATUS_INTERNAL, "task %s costs %g s and %g s of host time: not a time", task->name,
                cost->seconds, cost->host_s);
        FAIL_IF(task->lane < 0 || task->lane >= program->lane_count, error, STATUS_INTERNAL,
                "task %s is on lane %d of %d", task->name, task->lane, program->lane_count);
        const bool occupies = cost->seconds > 0 && cost->sm_share + cost->use[RESOURCE_NODE_LINK] +
                                                           cost->use[RESOURCE_NIC] + cost->use[RESOURCE_UPLINK] +
                                                           cost->use[RESOURCE_CORES] >
                                                       0;
        FAIL_IF(occupies && task->lane >= ENGINE_RATED, error, STATUS_INTERNAL, "task %s on lane %s occupies something",
                task->name, program->lanes[task->lane].name);
        compiled->tasks[i].duration_ps = engine_picoseconds(cost->seconds);
        compiled->tasks[i].host_ps = engine_picoseconds(cost->host_s);
        compiled->tasks[i].lane = task->lane;
        compiled->tasks[i].guard = task->layer_guard;
        compiled->tasks[i].group = task_is_collective(task)     ? task->group
                                   : task->kind == TASK_SEND    ? ENGINE_SEND
                                   : task->kind == TASK_RECEIVE ? ENGINE_RECEIVE
                                                                : ENGINE_ALONE;
        compiled->tasks[i].host_stop = host_stop(program, task, cost);
        compiled->stopping |= compiled->tasks[i].host_stop != HOST_GOES_ON ? 1u << task->lane : 0;
        compiled->tasks[i].demand = (uint16_t)(occupies ? demand_index(compiled, task, cost) : 0);
    }
    return STATUS_OK;
}

static void compile_lanes(const StepProgram *program, EngineProgram *compiled) {
    compiled->lane_count = program->lane_count;
    for (int32_t i = 0; i < program->lane_count; i++) {
        for (int32_t k = 0; k < program->lane_count; k++) {
            const bool same =
                program->lanes[i].communicator >= 0 && program->lanes[i].communicator == program->lanes[k].communicator;
            compiled->siblings[i] |= same && i != k ? 1u << k : 0;
        }
    }
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

// Layers at either end where the guard is not as in between: all but one of them may be closed.
static int32_t guarded_layers(int32_t guard, int32_t layers) {
    const int32_t skipped = abs(guard);
    return skipped < layers - skipped ? skipped : larger(layers - skipped, 0);
}

// How a loop meets an event.
enum { SEEN_FIXED_LAYER = 1, SEEN_LAYER = 2, SEEN_FIXED_MICRO_STEP = 4, SEEN_MICRO_STEP = 8 };

// An event that a layer loop records both per layer and at a fixed slot, or that a loop meets both per micro-step and
// at a fixed slot, has no meaning under a shift: such a loop is unrolled.
static void see_site(const EventSite *site, bool recorded_per_layer, uint8_t *seen, LoopShape *shape) {
    uint8_t *how = &seen[site->event];
    *how |= site->index.micro_scale != 0 ? SEEN_MICRO_STEP : SEEN_FIXED_MICRO_STEP;
    if (recorded_per_layer && site->slots > 1) {
        *how |= site->index.layer_scale != 0 ? SEEN_LAYER : SEEN_FIXED_LAYER;
    }
    shape->uniform &= (*how & (SEEN_FIXED_LAYER | SEEN_LAYER)) != (SEEN_FIXED_LAYER | SEEN_LAYER) &&
                      (*how & (SEEN_FIXED_MICRO_STEP | SEEN_MICRO_STEP)) != (SEEN_FIXED_MICRO_STEP | SEEN_MICRO_STEP);
}

static void shape_add_site(const EventSite *site, bool recorded, bool layered, int32_t layers, uint8_t *seen,
                           LoopShape *shape) {
    see_site(site, recorded && layered, seen, shape);
    if (!layered) {
        return;
    }
    shape->margin = larger(shape->margin, abs(site->index.layer_offset));
    if (site->index.layer_scale != 0 && site->slots < layers) {
        shape->ring_iterations = larger(shape->ring_iterations, site->slots);
    }
}

static void shape_add_task(const EngineProgram *compiled, const EngineTask *task, bool layered, uint8_t *seen,
                           LoopShape *shape) {
    const int32_t layers = compiled->step->layers;
    if (layered) {
        shape->margin = larger(shape->margin, guarded_layers(task->guard, layers));
    }
    for (int32_t k = 0; k < task->wait_count; k++) {
        shape_add_site(&compiled->sites[task->first_wait + k], false, layered, layers, seen, shape);
    }
    for (int32_t k = 0; k < task->record_count; k++) {
        shape_add_site(&compiled->sites[task->first_record + k], true, layered, layers, seen, shape);
    }
}

// ---- rings of micro-steps

// Segments of a loop of micro-steps that run the same tasks for the same layers.
static bool runs_same(const StepProgram *program, int32_t segment, int32_t other) {
    const Segment *a = &program->segments[segment], *b = &program->segments[other];
    const bool layers = a[-1].kind == SEGMENT_LAYERS;
    return b->kind == SEGMENT_TASKS && a->first_task == b->first_task && layers == (b[-1].kind == SEGMENT_LAYERS) &&
           (!layers || (a[-1].first == b[-1].first && a[-1].count == b[-1].count));
}

// Iterations of the loop until these tasks have met every slot of a ring that they ever will, at all their places in
// the body: once they meet none that is new they never do again.
static int32_t iterations_around(const StepProgram *program, int32_t loop, int32_t first, int32_t slots, bool *met) {
    const Segment *segments = program->segments;
    memset(met, 0, (size_t)slots * sizeof *met);
    for (int32_t i = 0;; i++) {
        bool any_new = false;
        for (int32_t s = first; s < segments[loop].end; s++) {
            if (runs_same(program, first, s)) {
                bool *slot = &met[slot_modulo(segments[s].micro_offset + i * segments[loop].step, slots)];
                any_new |= !*slot;
                *slot = true;
            }
        }
        if (!any_new) {
            return i;
        }
    }
}

static bool runs_earlier(const StepProgram *program, int32_t loop, int32_t segment) {
    bool earlier = false;
    for (int32_t s = loop + 1; s < segment && !earlier; s++) {
        earlier = runs_same(program, segment, s);
    }
    return earlier;
}

static void find_iterations(const EngineProgram *compiled, int32_t loop, bool *met, LoopShape *shape) {
    const Segment *segments = compiled->step->segments;
    for (int32_t s = loop + 1; s < segments[loop].end; s++) {
        if (segments[s].kind != SEGMENT_TASKS || runs_earlier(compiled->step, loop, s)) {
            continue;
        }
        int32_t known = 0;  // mostly all rings have as many slots
        for (int32_t t = segments[s].first_task; t < segments[s].first_task + segments[s].task_count; t++) {
            const EngineTask *task = &compiled->tasks[t];
            for (int32_t k = 0; k < task->wait_count + task->record_count; k++) {
                const int32_t slots = compiled->sites[task->first_wait + k].micro_steps;
                if (slots > 0 && slots != known) {
                    known = slots;
                    shape->ring_iterations =
                        larger(shape->ring_iterations, iterations_around(compiled->step, loop, s, slots, met));
                }
            }
        }
    }
}

static void compile_shape(const EngineProgram *compiled, int32_t index, uint8_t *seen, LoopShape *shape) {
    const StepProgram *program = compiled->step;
    const Segment *segment = &program->segments[index];
    *shape = (LoopShape){.uniform = true};
    memset(seen, 0, (size_t)program->event_count);
    for (int32_t i = index; i < (segment->kind == SEGMENT_TASKS ? index + 1 : segment->end); i++) {
        const Segment *body = &program->segments[i];
        for (int32_t t = 0; body->kind == SEGMENT_TASKS && t < body->task_count; t++) {
            const EngineTask *task = &compiled->tasks[body->first_task + t];
            shape->lanes |= 1u << task->lane;
            shape->joined |= task->group >= 0 ? 1u << task->lane : 0;
            shape->records |= task->records;
            if (segment->kind != SEGMENT_TASKS) {
                shape_add_task(compiled, task, segment->kind == SEGMENT_LAYERS, seen, shape);
            }
        }
    }
}

Status engine_compile(const StepProgram *program, const EngineCosts *costs, Arena *arena, EngineProgram *compiled,
                      Error *error) {
    FAIL_IF(program->lane_count > ENGINE_LANES || program->lane_count < 1, error, STATUS_INTERNAL,
            "the engine knows 1 to %d lanes, the program has %d", ENGINE_LANES, program->lane_count);
    *compiled = (EngineProgram){.step = program, .interference = costs->interference};
    const int32_t most_demands = program->task_count + 1 < MAX_DEMANDS ? program->task_count + 1 : MAX_DEMANDS;
    FAIL_IF(program->task_count >= MAX_DEMANDS, error, STATUS_INTERNAL, "the program has %d tasks, the engine knows %d",
            program->task_count, MAX_DEMANDS);
    compiled->tasks = ARENA_ARRAY(arena, EngineTask, program->task_count);
    compiled->sites = ARENA_ARRAY(arena, EventSite, program->event_ref_count);
    compiled->demands = ARENA_ARRAY(arena, ShareDemand, most_demands);
    compiled->demand_count = 1;
    const int32_t *first_slot = step_event_slots(program, arena);
    compiled->slot_count = first_slot[program->event_count];
    TRY(compile_tasks(program, costs, compiled, error));
    TRY(compile_sites(program, first_slot, event_bits(program, arena), compiled, error));
    compile_lanes(program, compiled);
    compiled->shapes = ARENA_ARRAY(arena, LoopShape, program->segment_count);
    uint8_t *seen = ARENA_ARRAY(arena, uint8_t, program->event_count);
    bool *met = ARENA_ARRAY(arena, bool, compiled->slot_count);
    for (int32_t i = 0; i < program->segment_count; i++) {
        compile_shape(compiled, i, seen, &compiled->shapes[i]);
        if (program->segments[i].kind == SEGMENT_MICRO_STEPS) {
            find_iterations(compiled, i, met, &compiled->shapes[i]);
        }
    }
    walk_path_compile(compiled, arena);
    engine_find_needs(compiled, arena);
    return STATUS_OK;
}
