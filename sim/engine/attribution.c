// Attribution of the observed rank's step. Every moment is charged once: the compute lane busy -> compute or optimizer;
// idle -> the collective that its next task waited for last (by the slowest axis of its group; scalars of the control
// lane are overhead), what came before a message that this one waited for itself aside; before other stages sent or
// met, the bubble; what remains (the host, other ranks, the step's
// edges) -> overhead. So the terms sum to the step.

#include "sim/engine/simulation.h"

#include <string.h>

// Until other stages had sent what was waited for, or were there.
static int64_t charge_bubble(Attribution *attribution, int64_t from_ps, int64_t to_ps, int64_t ready_ps) {
    const int64_t until = ready_ps < from_ps ? from_ps : ready_ps > to_ps ? to_ps : ready_ps;
    attribution->bubble_ps += until - from_ps;
    return until;
}

static void charge_lane(Simulation *simulation, const Actor *actor, int lane, int64_t from_ps, int64_t to_ps) {
    Attribution *attribution = &simulation->attribution;
    const StepProgram *program = simulation->program.step;
    const Instance *last = walker_head(&simulation->walker, lane, actor->ended[lane] - 1);
    const Task *task = &program->tasks[last->task];
    if (actor->host_bound[lane]) {
        const int64_t issued = actor->start_ps[lane] < to_ps ? actor->start_ps[lane] : to_ps;
        if (issued > from_ps) {
            attribution->overhead_ps += issued - from_ps;
            from_ps = issued;
        }
    }
    int64_t *term = &attribution->overhead_ps;
    const bool meets = task_is_collective(task) && meeting_joins(simulation, task->group);
    if (meets || task->kind == TASK_RECEIVE) {
        from_ps = charge_bubble(attribution, from_ps, to_ps, meets ? actor->start_ps[lane] : actor->message_ps);
    }
    if (task_is_message(task)) {
        term = &attribution->exposed_ps[axes_slowest(mesh_real_axes(&program->plan.mesh, AXES_STAGE))];
    } else if (task_is_collective(task) && lane != LANE_CTL) {
        const Axis axis = axes_slowest(program->groups[task->group].axes);
        term = axis < AXIS_COUNT ? &attribution->exposed_ps[axis] : term;
    } else if (task->kind == TASK_COPY && task->phase == PHASE_OPTIMIZER) {
        term = &attribution->optimizer_ps;  // of updated weights, around their gather
    }
    *term += to_ps - from_ps;
}

// Was the last task that ended on the lane one?
static bool is_receive(Simulation *simulation, const Actor *actor, int lane) {
    const Instance *last = walker_head(&simulation->walker, lane, actor->ended[lane] - 1);
    return simulation->program.step->tasks[last->task].kind == TASK_RECEIVE;
}

// The lane of the message from another stage that this lane's collective waited for; -1 = it began without one.
static int message_before(Simulation *simulation, const Actor *actor, int lane, int64_t from_ps) {
    int latest = -1;
    for (int other = LANE_SEND; other <= LANE_RECEIVE && other != lane; other++) {
        const int64_t came_ps = actor->end_ps[other];
        if (came_ps > from_ps && came_ps <= actor->start_ps[lane] && actor->start_ps[lane] < actor->end_ps[lane] &&
            is_receive(simulation, actor, other)) {
            latest = latest < 0 || came_ps > actor->end_ps[latest] ? other : latest;
        }
    }
    return latest;
}

// The compute lane was idle until now. charged: lanes to look at.
static void charge_gap(Simulation *simulation, const Actor *actor, uint32_t lanes) {
    Attribution *attribution = &simulation->attribution;
    const int64_t from = attribution->idle_since_ps, now = simulation->now_ps;
    int latest = -1;
    for (uint32_t left = lanes & simulation->lanes & ~1u; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (actor->end_ps[lane] > from && (latest < 0 || actor->end_ps[lane] > actor->end_ps[latest])) {
            latest = lane;
        }
    }
    int64_t charged = from;
    const int message = latest >= 0 ? message_before(simulation, actor, latest, from) : -1;
    if (message >= 0) {
        charged = actor->end_ps[message];
        charge_lane(simulation, actor, message, from, charged);
    }
    if (latest >= 0) {
        charge_lane(simulation, actor, latest, charged, actor->end_ps[latest]);
        charged = actor->end_ps[latest];
    }
    attribution->overhead_ps += now - charged;
}

void attribution_start(Simulation *simulation, const Actor *actor, const Instance *instance) {
    if (simulation->now_ps == simulation->attribution.idle_since_ps) {
        return;
    }
    uint32_t binding = 0;  // lanes whose latest task was the one waited for
    for (uint32_t left = instance->needs; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        binding |= instance->need[lane] == 2 * actor->ended[lane] ? 1u << lane : 0;
    }
    charge_gap(simulation, actor, binding);
}

void attribution_end(Simulation *simulation, const Actor *actor) {
    Attribution *attribution = &simulation->attribution;
    const int64_t busy = simulation->now_ps - actor->start_ps[0];
    const Phase phase = simulation->program.step->tasks[actor->task[0]].phase;
    *(phase == PHASE_OPTIMIZER ? &attribution->optimizer_ps : &attribution->compute_ps) += busy;
    attribution->idle_since_ps = simulation->now_ps;
}

void attribution_finish(Simulation *simulation, const Actor *actor) {
    charge_gap(simulation, actor, ~0u);
}

static size_t sum_bytes(const Simulation *simulation) {
    return (size_t)simulation->program.step->task_count * sizeof(TaskSum);
}

Totals totals_new(const Simulation *simulation, Arena *arena) {
    return (Totals){.sums = arena_alloc(arena, sum_bytes(simulation))};
}

void totals_take(const Simulation *simulation, Totals *totals) {
    totals->attribution = simulation->attribution;
    memcpy(totals->sums, simulation->sums, sum_bytes(simulation));
}

void totals_add(Simulation *simulation, const Totals *before, int64_t count) {
    Attribution *sum = &simulation->attribution;
    const Attribution *old = &before->attribution;
    sum->compute_ps += (sum->compute_ps - old->compute_ps) * count;
    sum->optimizer_ps += (sum->optimizer_ps - old->optimizer_ps) * count;
    sum->overhead_ps += (sum->overhead_ps - old->overhead_ps) * count;
    sum->bubble_ps += (sum->bubble_ps - old->bubble_ps) * count;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        sum->exposed_ps[axis] += (sum->exposed_ps[axis] - old->exposed_ps[axis]) * count;
    }
    for (int32_t i = 0; i < simulation->program.step->task_count; i++) {
        simulation->sums[i].count += (simulation->sums[i].count - before->sums[i].count) * count;
        simulation->sums[i].ps += (simulation->sums[i].ps - before->sums[i].ps) * count;
    }
}
