// Live bytes of a framework: a slot is allocated at its first write and freed after its last use, in issue order, as
// caching allocators with stream-ordered frees do (sim/SOURCES.md P6, P9); the peak is the largest moment of any
// phase (sim/SOURCES.md A7). Layer loops are cut: the slot of one middle layer stands for all that are left out, and
// only moments that do not touch it are looked at. Live bytes at one task are affine in the layer between them, so
// their largest value is there. Of the middle micro-steps only one is examined: what the first one leaves allocated is
// all that another one in the middle would.
// Not modelled: fragmentation of a caching allocator that is not replayed, beyond the target's slack.

#include <math.h>
#include <string.h>

#include "sim/memory/cached_bytes.h"
#include "sim/memory/memory.h"
#include "sim/memory/memory_breakdown.h"
#include "sim/plan/optimizers.h"

typedef struct Trace {
    const StepProgram *program;
    const LiveTrace *who;
    int64_t persistent_bytes;
    double kept_bytes;  // by a chunk whose backward runs beside the next one's forward
    double *live;       // bytes at each instance
    int32_t peak;       // instance
    double peak_bytes;
} Trace;

// Layers whose tasks look at first and last layers only, whose slots stand for themselves (live_trace.c).
static bool trace_looks_at(const LiveTrace *who, int32_t layer) {
    const int32_t from_end = who->layers - 1 - layer;
    const int32_t edge = who->reach + 1;
    return who->removed_layers == 0 || layer <= edge || from_end <= edge;
}

static double lifetime_bytes(const Trace *trace, int32_t lifetime) {
    const int32_t buffer = trace->who->lifetimes.rows[lifetime].buffer;
    const Buffer *lived = &trace->program->buffers[buffer];
    return lived->host ? 0 : (double)trace->who->slots[lifetime] * (double)lived->slot_bytes;
}

// A stage that is lowered alone has one chunk, with which ep_overlap is refused: its chunks are known elsewhere
// (sim/analytic/stage_bytes.c).
static double kept_bytes(const StepProgram *program) {
    int32_t most = 0;
    for (int32_t c = 0; c < program->held.chunk_count; c++) {
        most = program->held.chunks[c].count > most ? program->held.chunks[c].count : most;
    }
    const bool alone = plan_has_stages(&program->plan) && program->held.chunk_count == 1;
    return alone ? 0 : target_kept_bytes(program->target, &program->model, &program->plan, most);
}

static double kept_beside(const Trace *trace, int32_t instance) {
    const Task *task = &trace->program->tasks[trace->who->instances[instance].task];
    return task->phase == PHASE_OPTIMIZER ? 0 : trace->kept_bytes;
}

static void trace_add_up(Trace *trace, Arena *arena) {
    const LiveTrace *who = trace->who;
    double *change = ARENA_ARRAY(arena, double, who->count + 1);
    for (int32_t i = 0; i < who->lifetimes.count; i++) {
        const SlotLifetime *row = &who->lifetimes.rows[i];
        const double bytes = lifetime_bytes(trace, i);
        change[row->first] += bytes;
        change[row->last + 1] -= bytes;
    }
    double live = (double)trace->persistent_bytes;
    for (int32_t i = 0; i < who->count; i++) {
        live += change[i];  // whole bytes far below 2^53: exact
        change[i] = live + (trace->kept_bytes > 0 ? kept_beside(trace, i) : 0);
    }
    trace->live = change;
}

static void trace_find_peak(Trace *trace) {
    const LiveTrace *who = trace->who;
    trace->peak_bytes = (double)trace->persistent_bytes;
    trace->peak = -1;
    for (int32_t i = 0; i < who->count; i++) {
        if (trace->live[i] > trace->peak_bytes && trace_looks_at(who, who->instances[i].layer)) {
            trace->peak_bytes = trace->live[i];
            trace->peak = i;
        }
    }
}

// Resident on the accelerator all the time.
static int64_t resident_bytes(const Buffer *buffer) {
    return buffer->persistent && !buffer->host ? buffer->slots * buffer->slot_bytes : 0;
}

// What is kept on the host stays there for the whole step: pinned once.
static double host_bytes(const StepProgram *program) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes += buffer->host ? buffer->slots * buffer->slot_bytes : 0;
    }
    return (double)bytes;
}

int64_t memory_resident_bytes(const StepProgram *program) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        bytes += resident_bytes(&program->buffers[i]);
    }
    return bytes;
}

static void trace_begin(Trace *trace, const StepProgram *program, const LiveTrace *who, Arena *arena) {
    *trace = (Trace){.program = program,
                     .who = who,
                     .persistent_bytes = memory_resident_bytes(program),
                     .kept_bytes = kept_bytes(program)};
    trace_add_up(trace, arena);
}

// Valid until the next one is built among the same traces.
static Status trace_build(Trace *trace, const StepProgram *program, const CutOptions *options, LiveTraces *traces,
                          Error *error) {
    const LiveTrace *who;
    TRY(live_traces_find(traces, program, options, &who, error));
    trace_begin(trace, program, who, &traces->scratch);
    return STATUS_OK;
}

static double *breakdown_term(MemoryBreakdown *breakdown, BufferRole role) {
    switch (role) {
    case ROLE_PARAMETER:
        return &breakdown->parameters;
    case ROLE_GRADIENT:
        return &breakdown->gradients;
    case ROLE_OPTIMIZER:
        return &breakdown->optimizer;
    case ROLE_ACTIVATION:
        return &breakdown->activations;
    case ROLE_LOGITS:
        return &breakdown->logits;
    case ROLE_GATHERED:
        return &breakdown->gathered_parameters;
    case ROLE_COMMUNICATION:
        return &breakdown->communication;
    default:
        return &breakdown->runtime;
    }
}

static const char *phase_text(Phase phase) {
    static const char *const names[PHASE_COUNT] = {
        [PHASE_FORWARD] = "forward",   [PHASE_RECOMPUTE] = "backward", [PHASE_LOSS] = "loss",
        [PHASE_BACKWARD] = "backward", [PHASE_REDUCE] = "backward",    [PHASE_OPTIMIZER] = "optimizer"};
    return names[phase];
}

// The terms alive at the peak; their sum is the peak.
static void trace_break_down(const Trace *trace, MemoryBreakdown *breakdown, Arena *arena) {
    const StepProgram *program = trace->program;
    double *bytes = ARENA_ARRAY(arena, double, program->buffer_count);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes[i] = (double)resident_bytes(buffer);
    }
    for (int32_t i = 0; i < trace->who->lifetimes.count; i++) {
        const SlotLifetime *row = &trace->who->lifetimes.rows[i];
        bytes[row->buffer] += row->first <= trace->peak && trace->peak <= row->last ? lifetime_bytes(trace, i) : 0;
    }
    for (int32_t i = 0; i < program->buffer_count; i++) {
        *breakdown_term(breakdown, program->buffers[i].role) += bytes[i];
        if (bytes[i] > breakdown->top_bytes) {
            breakdown->top_bytes = bytes[i];
            breakdown->top_name = program->buffers[i].name;
        }
    }
    breakdown->peak_phase = phase_text(PHASE_FORWARD);
    if (trace->peak >= 0) {
        breakdown->activations += kept_beside(trace, trace->peak);
        breakdown->peak_phase = phase_text(program->tasks[trace->who->instances[trace->peak].task].phase);
    }
    breakdown->peak_bytes = trace->peak_bytes;
}

// Communicators that really join ranks: one per lane group that serialises and per set of axes.
static int32_t communicator_count(const StepProgram *program, Arena *arena) {
    const size_t groups = (size_t)program->group_count;
    int32_t communicators = 0;
    for (int32_t i = 0; i < program->lane_count; i++) {
        communicators =
            program->lanes[i].communicator >= communicators ? program->lanes[i].communicator + 1 : communicators;
    }
    bool *seen = ARENA_ARRAY(arena, bool, (size_t)communicators *groups);
    int32_t count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        const int32_t communicator = program->lanes[task->lane].communicator;
        if (task_is_collective(task) && communicator >= 0 && task->group >= 0 &&
            program->groups[task->group].size > 1) {
            bool *mark = &seen[(size_t)communicator * groups + (size_t)task->group];
            count += !*mark;
            *mark = true;
        }
    }
    return count;
}

double memory_outside_bytes(const StepProgram *program, Arena *arena) {
    const TargetRuntime *runtime = &program->target->runtime;
    const double reduced = target_reduce_buffers(program->target, &program->model, &program->plan) *
                           dtype_bytes(plan_activation_dtype(&program->plan));
    return runtime->context_bytes + communicator_count(program, arena) * runtime->communicator_bytes + reduced +
           target_overlap_bytes(program->target, &program->model, &program->plan);
}

Status memory_breakdown_cut(const StepProgram *program, const CutOptions *options, LiveTraces *traces,
                            MemoryBreakdown *breakdown, Error *error) {
    *breakdown = (MemoryBreakdown){.top_name = "nothing", .host_bytes = host_bytes(program)};
    Trace trace;
    TRY(trace_build(&trace, program, options, traces, error));
    trace_find_peak(&trace);
    trace_break_down(&trace, breakdown, &traces->scratch);
    breakdown->allocator_bytes =
        target_cached_bytes(program->target, &program->plan, breakdown->peak_bytes, (double)trace.persistent_bytes);
    breakdown->reserved_bytes = memory_outside_bytes(program, &traces->scratch) + breakdown->allocator_bytes;
    const double workspaces = runtime_workspace_bytes(&program->target->runtime);  // moved from outside
    breakdown->peak_bytes += workspaces;
    breakdown->runtime += workspaces;
    breakdown->allocator_bytes += workspaces;
    return STATUS_OK;
}

static int32_t behind_last_forward(const StepProgram *program, const LiveTrace *who) {
    int32_t first = who->count;
    while (first > 0 && program->tasks[who->instances[first - 1].task].phase != PHASE_FORWARD) {
        first--;
    }
    return first;
}

static void add_moments(const Trace *trace, int32_t first, int32_t end, LiveMoments *moments) {
    const LiveTrace *who = trace->who;
    LiveMoment *next = &moments->rows[moments->count];
    for (int32_t i = first; i < end; i++) {
        if (trace_looks_at(who, who->instances[i].layer)) {
            *next++ = (LiveMoment){.task = who->instances[i].task, .bytes = trace->live[i]};
        }
    }
    moments->count = (int32_t)(next - moments->rows);
}

LiveMoments memory_moments_of(const StepProgram *program, const LiveTrace *who, Arena *arena) {
    const int32_t behind = behind_last_forward(program, who);
    LiveMoments moments = {.rows = ARENA_UNCLEARED(arena, LiveMoment, who->count)};
    Trace trace;
    trace_begin(&trace, program, who, arena);
    add_moments(&trace, 0, behind, &moments);
    moments.drained = moments.count;
    add_moments(&trace, behind, who->count, &moments);
    return moments;
}

const CutOptions memory_breakdown_cut_options = {
    .reach_factor = 4, .base_layers = 5, .max_micro_steps = 1, .any_slots = true};

static void hold(MemoryBreakdown *breakdown, double allocator_bytes) {
    breakdown->reserved_bytes += allocator_bytes - breakdown->allocator_bytes;
    breakdown->allocator_bytes = allocator_bytes;
}

Status memory_breakdown_among(const StepProgram *program, LiveTraces *traces, Arena *arena, MemoryBreakdown *breakdown,
                              Error *error) {
    const Status status = memory_breakdown_cut(program, &memory_breakdown_cut_options, traces, breakdown, error);
    if (status != STATUS_OK) {
        return error_wrap(error, "memory breakdown");
    }
    if (!target_is_executor(program->target)) {
        return STATUS_OK;
    }
    // Our executor maps the planner's arena: its remainder beyond the live terms is alignment and fragmentation.
    MemoryPlan plan;
    TRY(memory_plan_among(program, &traces->shapes, arena, &plan, error));
    const double rest = (double)plan.arena_bytes - breakdown->peak_bytes;
    breakdown->runtime += rest;
    breakdown->peak_bytes += rest;
    hold(breakdown, breakdown->allocator_bytes + target_cached_bytes(program->target, &program->plan, rest, rest));
    return STATUS_OK;
}

typedef struct Room {
    double workspaces, left, peak;  // what a stage may hold beside its workspaces, 0 = all it wants; what lives there
} Room;

static Room room_of(const StepProgram *program, double limit_bytes, const MemoryBreakdown *breakdown) {
    const double workspaces = runtime_workspace_bytes(&program->target->runtime);
    const double outside = breakdown->reserved_bytes - breakdown->allocator_bytes + workspaces;
    return (Room){workspaces, limit_bytes > 0 ? limit_bytes - outside : 0, breakdown->peak_bytes - workspaces};
}

static Status replay(const StepProgram *program, const Room *room, LiveTraces *traces, double *held, Error *error) {
    double cached;
    const double more = program->target->runtime.allocator_slack - program->target->replayed_slack;
    TRY(memory_cached_bytes(program, room->left, traces, &cached, error));
    *held = fmax(cached + more * room->peak, room->peak);
    return STATUS_OK;
}

Status memory_hold(const StepProgram *program, double limit_bytes, LiveTraces *traces, MemoryBreakdown *breakdown,
                   Error *error) {
    const Room room = room_of(program, limit_bytes, breakdown);
    const bool replays = program->target->allocator != ALLOCATOR_NONE && !plan_has_stages(&program->plan);
    if (!replays || (limit_bytes > 0 && room.peak > room.left)) {
        return STATUS_OK;
    }
    double held;
    TRY(replay(program, &room, traces, &held, error));
    hold(breakdown, held + room.workspaces);
    return STATUS_OK;
}

// What a host leaves to streams that it is ahead of.
static double ahead_bytes(const StepProgram *program) {
    const TrainPlan *plan = &program->plan;
    const int in_flight = mesh_stages(&plan->mesh) - program->stage;
    const int more = (in_flight < plan->grad_accum ? in_flight : plan->grad_accum) - 2;
    const double tokens = (double)plan->micro_batch * plan->seq / mesh_group_size(&plan->mesh, AXES_SEQUENCE);
    const bool streams = plan->mesh.size[AXIS_TP] > 1 && more > 0;
    return streams ? program->target->runtime.ahead_bytes * program->model.hidden * tokens * program->layers * more : 0;
}

bool memory_replays_stage(const Target *target, const TrainPlan *plan) {
    return target->replays_stages && plan_has_stages(plan) && plan->pp_schedule == PP_1F1B;
}

Status memory_hold_stage(const StepProgram *program, double limit_bytes, bool ahead, LiveTraces *traces,
                         MemoryBreakdown *breakdown, Error *error) {
    const Room room = room_of(program, limit_bytes, breakdown);
    const bool replays = memory_replays_stage(program->target, &program->plan);
    if (!replays || (limit_bytes > 0 && room.peak > room.left)) {
        return STATUS_OK;
    }
    double held;
    TRY(replay(program, &room, traces, &held, error));
    const double streams = ahead ? ahead_bytes(program) : 0;  // given back where there is no room for them
    const double taken = limit_bytes > 0 ? fmax(fmin(streams, room.left - held), 0) : streams;
    breakdown->allocator_bytes = held + taken + room.workspaces;
    return STATUS_OK;
}

Status memory_breakdown_stages(const StepPrograms *programs, double limit_bytes, LiveTraces *traces, Arena *arena,
                               MemoryBreakdown *breakdown, Error *error) {
    double *by_stage = ARENA_ARRAY(arena, double, programs->count);
    for (int stage = 0; stage < programs->count; stage++) {
        MemoryBreakdown here;
        TRY(memory_breakdown_among(&programs->of[stage], traces, arena, &here, error));
        TRY(memory_hold(&programs->of[stage], limit_bytes, traces, &here, error));
        here.stage = stage;
        by_stage[stage] = here.reserved_bytes;
        *breakdown = stage == 0 || here.reserved_bytes > breakdown->reserved_bytes ? here : *breakdown;
    }
    breakdown->stages = programs->count > 1 ? programs->count : 0;
    breakdown->by_stage = by_stage;
    return STATUS_OK;
}

Status memory_breakdown(const StepProgram *program, Arena *arena, MemoryBreakdown *breakdown, Error *error) {
    LiveTraces traces = {0};
    const Status status = memory_breakdown_among(program, &traces, arena, breakdown, error);
    live_traces_free(&traces);
    return status;
}

// bitsandbytes keeps paged states in managed memory, which CUDA moves to the host when the accelerator is full: what
// has to be there while nothing is updated does not include them (optim/optimizer.py, get_paged).
double memory_needed_bytes(const TrainPlan *plan, const MemoryBreakdown *memory) {
    const bool updates = memory->peak_phase && strcmp(memory->peak_phase, "optimizer") == 0;
    const bool paged = optimizer_rows[plan->optimizer].paged && !updates;
    return memory->reserved_bytes - (paged ? memory->optimizer : 0);
}
