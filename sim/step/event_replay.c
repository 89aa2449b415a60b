// An instance's waits resolve to the latest record of their slot; a collective also waits for the latest one on every
// lane that shares its communicator. Its own records take effect from then on.

#include "sim/step/event_replay.h"

#include <string.h>

#include "sim/step/slots.h"

EventReplay event_replay_new(const StepProgram *program, Arena *arena) {
    EventReplay replay = {.program = program, .first_slot = step_event_slots(program, arena)};
    replay.recorded = ARENA_ARRAY(arena, int32_t, replay.first_slot[program->event_count] + 1);
    replay.issued = ARENA_ARRAY(arena, int32_t, program->lane_count);
    replay.collectives = ARENA_ARRAY(arena, int32_t, program->lane_count);
    return replay;
}

void event_replay_restart(EventReplay *replay) {
    const size_t lanes = (size_t)replay->program->lane_count;
    memset(replay->recorded, 0, (size_t)replay->first_slot[replay->program->event_count] * sizeof(int32_t));
    memset(replay->issued, 0, lanes * sizeof(int32_t));
    memset(replay->collectives, 0, lanes * sizeof(int32_t));
}

static void need_least(int32_t *need, int32_t count) {
    *need = *need < count ? count : *need;
}

static void need_collectives(EventReplay *replay, int lane, int32_t *need) {
    const Lane *lanes = replay->program->lanes;
    for (int other = 0; other < replay->program->lane_count; other++) {
        if (other != lane && lanes[lane].communicator >= 0 && lanes[other].communicator == lanes[lane].communicator) {
            need_least(&need[other], replay->collectives[other]);
        }
    }
}

void event_replay_issue(EventReplay *replay, const StepInstance *instance, int32_t *need) {
    const StepProgram *program = replay->program;
    const Task *task = &program->tasks[instance->task];
    memset(need, 0, (size_t)program->lane_count * sizeof *need);
    for (int32_t i = 0; i < task->wait_count; i++) {
        const EventRef *wait = &program->event_refs[task->first_wait + i];
        const int lane = program->events[wait->event].lane;
        if (lane != task->lane) {
            need_least(&need[lane], replay->recorded[step_event_slot(program, replay->first_slot, wait, instance)]);
        }
    }
    const int32_t issued = ++replay->issued[task->lane];
    if (task_is_collective(task)) {
        need_collectives(replay, task->lane, need);
        replay->collectives[task->lane] = issued;
    }
    for (int32_t i = 0; i < task->record_count; i++) {
        const EventRef *record = &program->event_refs[task->first_record + i];
        ASSERT(program->events[record->event].lane == task->lane);
        replay->recorded[step_event_slot(program, replay->first_slot, record, instance)] = issued;
    }
}
