// A schedule's order written as a file of actions.

#pragma once

#include "sim/step/schedules/schedule.h"

static inline const char *order_written(const Schedule *schedule, ScheduleShape shape, Arena *arena) {
    const char *text = "";
    const int32_t count = schedule_action_count(schedule, &shape);
    ScheduleAction *actions = ARENA_ARRAY(arena, ScheduleAction, count);
    for (shape.stage = 0; shape.stage < shape.stages; shape.stage++) {
        schedule_order(schedule, &shape, actions);
        for (int32_t i = 0; i < count; i++) {
            const ScheduleAction *action = &actions[i];
            const bool back = schedule->folded && action->chunk == 1;
            const int32_t part = action->chunk * shape.stages + (back ? shape.stages - 1 - shape.stage : shape.stage);
            const char kind = action->work == WORK_FORWARD   ? 'F'
                              : action->work == WORK_WEIGHTS ? 'W'
                              : schedule->splits             ? 'I'
                                                             : 'B';
            text = arena_format(arena, "%s%s%d%c%d", text, i > 0 ? "," : "", part, kind, action->micro_step);
        }
        text = arena_format(arena, "%s\n", text);
    }
    return text;
}
