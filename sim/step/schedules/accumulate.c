// One stage: every micro-step runs forward, then backward right away.

#include "sim/step/schedules/schedule.h"

static void order(const ScheduleShape *shape, ScheduleAction *actions) {
    for (int32_t micro_step = 0; micro_step < shape->micro_steps; micro_step++) {
        *actions++ = (ScheduleAction){.work = WORK_FORWARD, .micro_step = micro_step};
        *actions++ = (ScheduleAction){.work = WORK_BACKWARD, .micro_step = micro_step};
    }
}

extern const Schedule schedule_accumulate;
const Schedule schedule_accumulate = {.name = "accumulate", .order = order};
