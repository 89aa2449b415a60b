// The event loop. An instant is: everything that ends now, then everything that can start because of it (tasks of no
// length end within the instant), then the rates of what runs, then the next instant. Nothing depends on the order
// inside an instant, so equal times need no further tie-break than the actor's number.

#include "sim/engine/simulation.h"

#include <math.h>

static void touch(Simulation *simulation, int32_t actor) {
    if (!simulation->actors[actor].touched) {
        simulation->actors[actor].touched = true;
        int32_t at = simulation->touched_first + simulation->touched_count++;
        at -= at >= simulation->classes.actors ? simulation->classes.actors : 0;
        simulation->touched[at] = actor;
    }
}

static void mark_changed(Simulation *simulation, int32_t actor) {
    if (!simulation->actors[actor].changed) {
        simulation->actors[actor].changed = true;
        simulation->changed[simulation->changed_count++] = actor;
    }
}

static void keep_span(Simulation *simulation, int32_t actor, int lane) {
    const Instance *instance = walker_head(&simulation->walker, lane, simulation->actors[actor].ended[lane]);
    const int64_t shift = simulation->skipped_ps;
    ARENA_PUSH(simulation->arena, simulation->spans, simulation->span_count, &simulation->span_capacity) =
        (SpanEntry){.position = instance->position,
                    .span = {.rank = simulation->classes.rank[actor],
                             .task = instance->task,
                             .layer = instance->layer,
                             .micro_step = instance->micro_step,
                             .start_s = (double)(simulation->actors[actor].start_ps[lane] + shift) * 1e-12,
                             .end_s = (double)(simulation->now_ps + shift) * 1e-12}};
}

// The lane has got further.
static void look_at_waiting(Actor *actor, int lane) {
    for (uint32_t left = actor->waiting[lane]; left; left &= left - 1) {
        const int other = __builtin_ctz(left);
        if (actor_progress(actor, lane) >= actor->blocked_until[other]) {
            actor->waiting[lane] &= ~(1u << other);
            actor->look |= 1u << other;
        }
    }
}

// The lane's task has come as far as its host waits for.
static void release_host(const Simulation *simulation, Actor *actor, int lane) {
    actor->host_lag_ps = simulation->now_ps - walker_head(&simulation->walker, lane, actor->ended[lane])->issue_ps;
}

// The task of this lane ended on this actor.
static void end_task(Simulation *simulation, int32_t index, int lane) {
    Actor *actor = &simulation->actors[index];
    const int64_t now = simulation->now_ps;
    if (index == simulation->observed) {
        TaskSum *sum = &simulation->sums[actor->task[lane]];
        sum->count++;
        sum->ps += now - actor->start_ps[lane];
        if (lane == 0) {
            attribution_end(simulation, actor);
        }
    }
    if (simulation->options.keep_spans) {
        keep_span(simulation, index, lane);
    }
    if (simulation->program.tasks[actor->task[lane]].host_stop == HOST_WAITS_FOR_END) {
        release_host(simulation, actor, lane);
    }
    actor->ended[lane]++;
    actor->done++;
    actor_set_idle(actor, lane);
    look_at_waiting(actor, lane);
    actor->next_ps[lane] = INT64_MAX;
    actor->end_ps[lane] = now;
    if (actor->demand[lane]) {
        actor->demand[lane] = 0;
        mark_changed(simulation, index);
    }
    simulation->events++;
    touch(simulation, index);
}

static void end_everywhere(Simulation *simulation, int32_t leader, int lane) {
    const Actor *actor = &simulation->actors[leader];
    const int32_t group = simulation->program.tasks[actor->task[lane]].group;
    if (group < 0 || simulation->classes.actors == 1 || meeting_joins(simulation, group)) {
        end_task(simulation, leader, lane);
        if (group == ENGINE_SEND && simulation->meeting) {
            meeting_send(simulation, leader, &simulation->program.step->tasks[actor->task[lane]],
                         actor->start_ps[lane]);
        }
        return;
    }
    const int32_t entry = group * simulation->classes.actors + leader;
    const int32_t *members = &simulation->classes.members[simulation->classes.first[entry]];
    for (int32_t i = 0; i < simulation->classes.count[entry]; i++) {
        end_task(simulation, members[i], lane);
    }
}

// Puts the lane's head into its running state; next_ps is set by the leader.
static void start_on(Simulation *simulation, int32_t index, int lane, const Instance *instance) {
    Actor *actor = &simulation->actors[index];
    // Where the host lags behind the walk, which skips with the lag, the walk's own time says nothing.
    actor->host_bound[lane] = actor_issue_ps(actor, instance) == simulation->now_ps && simulation->now_ps > 0;
    actor_set_busy(actor, lane, LANE_RUNNING);
    actor->task[lane] = instance->task;
    actor->start_ps[lane] = simulation->now_ps;
    actor->next_ps[lane] = INT64_MAX;
    if (simulation->program.tasks[instance->task].host_stop == HOST_WAITS_FOR_START) {
        release_host(simulation, actor, lane);
        look_at_waiting(actor, lane);
    }
    if (index == simulation->observed && lane == 0) {
        attribution_start(simulation, actor, instance);
    }
    if (!simulation->options.no_contention) {
        actor->demand[lane] = simulation->program.tasks[instance->task].demand;
        actor->local_rate[lane] = 1;
        if (actor->demand[lane]) {
            mark_changed(simulation, index);
        }
    }
}

// Until the rates of the instant are known: at the rate of the worst links among the members.
static void run_for(Simulation *simulation, int32_t leader, int lane, int64_t duration_ps, double link_slowdown) {
    Actor *actor = &simulation->actors[leader];
    const double rate = 1 / link_slowdown;
    actor->remaining_ps[lane] = (double)duration_ps;
    actor->rate[lane] = rate;
    actor->update_ps[lane] = simulation->now_ps;
    actor->next_ps[lane] = simulation->now_ps + (rate < 1 ? (int64_t)ceil((double)duration_ps / rate) : duration_ps);
    if (duration_ps == 0) {
        end_everywhere(simulation, leader, lane);
    }
}

static void start_alone(Simulation *simulation, int32_t index, int lane, const Instance *instance) {
    const EngineTask *task = &simulation->program.tasks[instance->task];
    const double slowdown = simulation->classes.slowdown[index];
    int64_t duration_ps = task->duration_ps;
    if (task->group < 0 && slowdown > 1) {
        duration_ps = (int64_t)((double)duration_ps * slowdown + 0.5);
    }
    start_on(simulation, index, lane, instance);
    simulation->actors[index].leader[lane] = index;
    run_for(simulation, index, lane, duration_ps, task->group < 0 ? 1 : simulation->classes.link_slowdown[index]);
}

// A member has reached its collective; the last one starts it for all.
static void arrive(Simulation *simulation, int32_t index, int lane, const Instance *instance) {
    const EngineTask *task = &simulation->program.tasks[instance->task];
    const int32_t entry = task->group * simulation->classes.actors + index;
    const int32_t count = simulation->classes.count[entry];
    if (count == 1) {
        start_alone(simulation, index, lane, instance);
        return;
    }
    const int32_t *members = &simulation->classes.members[simulation->classes.first[entry]];
    int32_t *arrived =
        &simulation
             ->arrived[(task->group * simulation->program.lane_count + lane) * simulation->classes.actors + members[0]];
    actor_set_busy(&simulation->actors[index], lane, LANE_ARRIVED);
    simulation->actors[index].next_ps[lane] = INT64_MAX;
    if (++*arrived < count) {
        return;
    }
    *arrived = 0;
    double link_slowdown = 1;
    for (int32_t i = 0; i < count; i++) {
        link_slowdown = fmax(link_slowdown, simulation->classes.link_slowdown[members[i]]);
        start_on(simulation, members[i], lane, instance);
        simulation->actors[members[i]].leader[lane] = members[0];
        touch(simulation, members[i]);
    }
    run_for(simulation, members[0], lane, task->duration_ps, link_slowdown);
}

// Records what holds the head back, so that it is examined again only when that has changed.
static bool needs_met(const Instance *instance, int lane, Actor *actor) {
    for (uint32_t left = instance->needs; left; left &= left - 1) {
        const int other = __builtin_ctz(left);
        if (actor_progress(actor, other) < instance->need[other]) {
            actor->waiting[other] |= 1u << lane;
            actor->blocked_until[lane] = instance->need[other];
            return false;
        }
    }
    return true;
}

// Have the other stages progressed as far as the head needs?
static bool meets(Simulation *simulation, int32_t index, int lane, const Instance *head) {
    Actor *actor = &simulation->actors[index];
    const int32_t group = simulation->program.tasks[head->task].group;
    if (group == ENGINE_RECEIVE) {
        return meeting_receive(simulation, index, lane, &simulation->program.step->tasks[head->task],
                               &actor->message_ps);
    }
    if (group < 0 || !meeting_joins(simulation, group)) {
        return true;
    }
    const bool released = actor->released >> lane & 1;
    actor->released &= ~(1u << lane);
    return released || meeting_arrive(simulation, index, lane, group);
}

static void start_head(Simulation *simulation, int32_t index, int lane, const Instance *head) {
    Actor *actor = &simulation->actors[index];
    const int64_t issue_ps = actor_issue_ps(actor, head), slack_ps = simulation->now_ps - issue_ps;
    if (slack_ps < 0) {
        actor_set_busy(actor, lane, LANE_ISSUING);
        actor->next_ps[lane] = issue_ps;
        return;
    }
    actor->new_slack_ps = slack_ps < actor->new_slack_ps ? slack_ps : actor->new_slack_ps;
    const int32_t group = simulation->program.tasks[head->task].group;
    if (simulation->meeting && !meets(simulation, index, lane, head)) {
        actor_set_busy(actor, lane, LANE_ARRIVED);
        actor->next_ps[lane] = INT64_MAX;
    } else if (group < 0 || meeting_joins(simulation, group)) {
        start_alone(simulation, index, lane, head);
    } else {
        arrive(simulation, index, lane, head);
    }
}

// Starts what can.
static void start_heads(Simulation *simulation, int32_t index) {
    Actor *actor = &simulation->actors[index];
    while (actor->look) {
        const int lane = __builtin_ctz(actor->look);
        const Instance *head = walker_head(&simulation->walker, lane, actor->ended[lane]);
        actor->look &= actor->look - 1;
        if (!head) {
            actor->empty |= 1u << lane;
        } else if (needs_met(head, lane, actor)) {
            start_head(simulation, index, lane, head);
        }
    }
}

static void update_kept(Simulation *simulation) {
    for (int lane = 0; lane < simulation->program.lane_count; lane++) {
        int32_t kept = INT32_MAX;
        for (int32_t i = 0; i < simulation->classes.actors; i++) {
            kept = simulation->actors[i].ended[lane] < kept ? simulation->actors[i].ended[lane] : kept;
        }
        simulation->kept[lane] = kept;
    }
}

static bool actor_busy(const Simulation *simulation, const Actor *actor) {
    return actor->idle != simulation->lanes;
}

static void look_at_pulled(Actor *actor, uint32_t lanes) {
    actor->look |= actor->empty & lanes;
    actor->empty &= ~lanes;
}

// Queues further instances while an idle lane of the stretch being walked has none.
static void pull_for(Simulation *simulation, Actor *actor) {
    Walker *walker = &simulation->walker;
    const int32_t *kept = simulation->classes.actors == 1 ? actor->ended : simulation->kept;
    while (!walker->ended) {
        const uint32_t early = actor->empty & walker_early_lanes(walker);
        int lane_pulled = -1;
        if (early) {
            lane_pulled = __builtin_ctz(early);
            walker_pull_early(walker, lane_pulled, kept);
        } else if ((actor->empty & walker->eager) || !actor_busy(simulation, actor)) {
            lane_pulled = walker_pull(walker, kept);
        }
        if (lane_pulled < 0) {
            break;
        }
        simulation->pulled_lanes |= 1u << lane_pulled;
        look_at_pulled(actor, 1u << lane_pulled);
        if (!actor_busy(simulation, actor)) {
            break;  // perhaps this one can start
        }
    }
}

static void settle_actor(Simulation *simulation, int32_t index) {
    Actor *actor = &simulation->actors[index];
    do {
        start_heads(simulation, index);
        if (actor->empty) {
            pull_for(simulation, actor);
        }
    } while (actor->look);
}

// What one actor had queued may be able to start on others immediately.
static void touch_hungry(Simulation *simulation) {
    for (int32_t i = 0; simulation->classes.actors > 1 && i < simulation->classes.actors; i++) {
        if (simulation->actors[i].empty & simulation->pulled_lanes) {
            look_at_pulled(&simulation->actors[i], simulation->pulled_lanes);
            touch(simulation, i);
        }
    }
    simulation->pulled_lanes = 0;
}

void simulation_settle(Simulation *simulation) {
    while (simulation->touched_count > 0 || simulation->pulled_lanes) {
        if (simulation->touched_count == 0) {
            touch_hungry(simulation);
            continue;
        }
        const int32_t actor = simulation->touched[simulation->touched_first++];
        simulation->touched_first -=
            simulation->touched_first >= simulation->classes.actors ? simulation->classes.actors : 0;
        simulation->touched_count--;
        simulation->actors[actor].touched = false;  // may be touched again by another actor's collective
        settle_actor(simulation, actor);
        actor_queue_update(&simulation->queue, actor, &simulation->actors[actor], simulation->lanes);
    }
    if (simulation->changed_count > 0) {
        rates_update(simulation);
    }
}

static void end_due(Simulation *simulation, int32_t index) {
    Actor *actor = &simulation->actors[index];
    for (uint32_t left = simulation->lanes & ~actor->idle; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (actor->next_ps[lane] != simulation->now_ps) {
            continue;
        }
        if (actor->status[lane] == LANE_ISSUING) {
            actor_set_idle(actor, lane);
            actor->next_ps[lane] = INT64_MAX;
            touch(simulation, index);
        } else {
            end_everywhere(simulation, index, lane);
        }
    }
    actor_queue_update(&simulation->queue, index, actor, simulation->lanes);
}

Status simulation_check_ended(const Simulation *simulation, Error *error) {
    for (int32_t i = 0; i < simulation->classes.actors; i++) {
        const Actor *actor = &simulation->actors[i];
        for (int lane = 0; lane < simulation->program.lane_count; lane++) {
            const Instance *head = walker_head(&simulation->walker, lane, actor->ended[lane]);
            FAIL_IF(head, error, STATUS_INTERNAL,
                    "the program deadlocks: task %s (layer %d, micro-step %d) of rank %d never starts",
                    simulation->program.step->tasks[head->task].name, head->layer, head->micro_step,
                    simulation->classes.rank[i]);
        }
    }
    return STATUS_OK;
}

void simulation_begin(Simulation *simulation) {
    for (int32_t i = 0; i < simulation->classes.actors; i++) {
        touch(simulation, i);
    }
    simulation_settle(simulation);
}

int64_t simulation_next_ps(Simulation *simulation) {
    return simulation->queue.key[actor_queue_first(&simulation->queue, simulation->actors, simulation->lanes)];
}

void simulation_wake(Simulation *simulation, int32_t actor, int lane) {
    actor_set_idle(&simulation->actors[actor], lane);
    touch(simulation, actor);
}

void simulation_instant(Simulation *simulation, int64_t now_ps) {
    ActorQueue *queue = &simulation->queue;
    simulation->now_ps = now_ps;
    int32_t first = actor_queue_first(queue, simulation->actors, simulation->lanes);
    while (queue->key[first] == now_ps) {
        end_due(simulation, first);
        first = actor_queue_first(queue, simulation->actors, simulation->lanes);
    }
    if (simulation->classes.actors > 1 && simulation->events >= simulation->next_update) {
        update_kept(simulation);
        simulation->next_update = simulation->events + 8 * (int64_t)simulation->classes.actors;
    }
    simulation_settle(simulation);
    if (!simulation->options.unroll) {
        repetition_check(simulation);
    }
}

Status simulation_run(Simulation *simulation, Error *error) {
    simulation_begin(simulation);
    for (int64_t next_ps; (next_ps = simulation_next_ps(simulation)) != INT64_MAX;) {
        simulation_instant(simulation, next_ps);
    }
    return simulation_check_ended(simulation, error);
}
