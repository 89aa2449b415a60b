// A send puts its message into the mailbox of its counterpart when it ends; a receive that comes too early waits for
// it. A collective over stages starts when all its members of all stages have arrived. Each actor that is released is
// examined again in its own simulation, at the same instant.

#include "sim/engine/meeting.h"

static int32_t box_key(const Task *task) {
    return task->peer * PHASE_COUNT + (int32_t)task->phase;
}

// ---- matching of actors across stages

static void make_boxes(Meeting *meeting, MeetingStage *stage) {
    const StepProgram *program = stage->simulation.program.step;
    const int32_t actors = stage->simulation.classes.actors, keys = meeting->count * PHASE_COUNT;
    int32_t boxes = 0;
    stage->box_of = ARENA_UNCLEARED(meeting->arena, int32_t, keys);
    for (int32_t key = 0; key < keys; key++) {
        stage->box_of[key] = -1;
    }
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        if (task->kind == TASK_RECEIVE && stage->box_of[box_key(task)] < 0) {
            stage->box_of[box_key(task)] = boxes;
            boxes += actors;
        }
    }
    stage->boxes = ARENA_ARRAY(meeting->arena, Mailbox, boxes);
    for (int32_t i = 0; i < boxes; i++) {
        stage->boxes[i].waiting = -1;
    }
}

// By group and first member.
static int32_t meeting_place(const Meeting *meeting, const Simulation *simulation, int32_t group, int32_t actor) {
    const StepProgram *program = simulation->program.step;
    const MeshCoordinates at = mesh_coordinates(&program->plan.mesh, simulation->classes.rank[actor]);
    return group * meeting->world + mesh_group_member(&program->plan.mesh, program->groups[group].axes, &at, 0);
}

void meeting_init(Meeting *meeting, Arena *arena) {
    const StepProgram *first = meeting->stages[0].simulation.program.step;
    meeting->arena = arena;
    meeting->world = mesh_world(&first->plan.mesh);
    meeting->next_ps = ARENA_ARRAY(arena, int64_t, meeting->count);
    meeting->members = ARENA_ARRAY(arena, int32_t, first->group_count * meeting->world);
    meeting->arrived = ARENA_ARRAY(arena, int32_t, first->group_count * meeting->world);
    for (int32_t s = 0; s < meeting->count; s++) {
        Simulation *simulation = &meeting->stages[s].simulation;
        simulation->meeting = meeting;
        make_boxes(meeting, &meeting->stages[s]);
        for (int32_t group = 0; group < first->group_count; group++) {
            for (int32_t actor = 0; actor < simulation->classes.actors && meeting_joins(simulation, group); actor++) {
                meeting->members[meeting_place(meeting, simulation, group, actor)]++;
            }
        }
    }
}

bool meeting_joins(const Simulation *simulation, int32_t group) {
    const StepProgram *program = simulation->program.step;
    return simulation->meeting && (program->groups[group].axes & AXES_STAGE);
}

// The actor of the other stage that is the rank with the same place on the other axes. Stages have one actor each or
// all of their ranks, in the order of the ranks.
static int32_t counterpart(const MeetingStage *other, int32_t actor) {
    return actor < other->simulation.classes.actors ? actor : 0;
}

// ---- messages

static void wake(MeetingStage *stage, int32_t actor, int lane, int64_t now_ps) {
    stage->simulation.now_ps = now_ps;
    stage->woken = stage->simulation.meeting->any_woken = true;
    simulation_wake(&stage->simulation, actor, lane);
}

void meeting_send(Simulation *simulation, int32_t actor, const Task *task, int64_t began_ps) {
    Meeting *meeting = simulation->meeting;
    MeetingStage *to = &meeting->stages[task->peer];
    const int32_t box_of = to->box_of[simulation->program.step->stage * PHASE_COUNT + (int32_t)task->phase];
    ASSERT(box_of >= 0);
    Mailbox *box = &to->boxes[box_of + counterpart(to, actor)];
    ARENA_PUSH(meeting->arena, box->began_ps, box->sent, &box->capacity) = began_ps;
    if (box->waiting >= 0) {
        const int lane = box->waiting;
        box->waiting = -1;
        wake(to, counterpart(to, actor), lane, simulation->now_ps);
    }
}

bool meeting_receive(Simulation *simulation, int32_t actor, int lane, const Task *task, int64_t *began_ps) {
    MeetingStage *stage = &simulation->meeting->stages[simulation->program.step->stage];
    Mailbox *box = &stage->boxes[stage->box_of[box_key(task)] + actor];
    if (box->received == box->sent) {
        box->waiting = (int16_t)lane;
        return false;
    }
    *began_ps = box->began_ps[box->received++];
    return true;
}

// ---- collectives over stages

bool meeting_arrive(Simulation *simulation, int32_t actor, int lane, int32_t group) {
    Meeting *meeting = simulation->meeting;
    const int32_t place = meeting_place(meeting, simulation, group, actor);
    meeting->pending++;
    if (++meeting->arrived[place] < meeting->members[place]) {
        return false;
    }
    meeting->pending -= meeting->arrived[place];
    meeting->arrived[place] = 0;
    for (int32_t s = 0; s < meeting->count; s++) {
        Simulation *other = &meeting->stages[s].simulation;
        for (int32_t i = 0; i < other->classes.actors; i++) {
            if ((other != simulation || i != actor) && meeting_place(meeting, other, group, i) == place) {
                other->actors[i].released |= 1u << lane;
                wake(&meeting->stages[s], i, lane, simulation->now_ps);
            }
        }
    }
    return true;
}

// ---- the common clock

static void settle_woken(Meeting *meeting) {
    while (meeting->any_woken) {
        meeting->any_woken = false;
        for (int32_t s = 0; s < meeting->count; s++) {
            MeetingStage *stage = &meeting->stages[s];
            if (stage->woken) {
                stage->woken = false;
                simulation_settle(&stage->simulation);
                meeting->next_ps[s] = simulation_next_ps(&stage->simulation);
            }
        }
    }
}

static int64_t next_instant(const Meeting *meeting) {
    const int64_t *next_ps = meeting->next_ps;
    int64_t first_ps = INT64_MAX;
#pragma GCC unroll 4
    for (int32_t s = 0; s < meeting->count; s++) {
        first_ps = next_ps[s] < first_ps ? next_ps[s] : first_ps;
    }
    return first_ps;
}

static void do_instant(Meeting *meeting, int64_t now_ps) {
#pragma GCC unroll 4
    for (int32_t s = 0; s < meeting->count; s++) {
        if (meeting->next_ps[s] == now_ps) {
            Simulation *simulation = &meeting->stages[s].simulation;
            simulation_instant(simulation, now_ps);
            meeting->next_ps[s] = simulation_next_ps(simulation);
        }
    }
    settle_woken(meeting);
}

Status meeting_run(Meeting *meeting, Error *error) {
    for (int32_t s = 0; s < meeting->count; s++) {
        simulation_begin(&meeting->stages[s].simulation);
        meeting->next_ps[s] = simulation_next_ps(&meeting->stages[s].simulation);
    }
    settle_woken(meeting);
    for (int64_t now_ps; (now_ps = next_instant(meeting)) != INT64_MAX;) {
        do_instant(meeting, now_ps);
        if (meeting->repetition) {
            meeting_repetition_check(meeting, now_ps);
        }
    }
    for (int32_t s = 0; s < meeting->count; s++) {
        TRY(simulation_check_ended(&meeting->stages[s].simulation, error));
    }
    return STATUS_OK;
}
