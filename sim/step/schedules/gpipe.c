// All micro-steps forward, then all backward (Huang et al. 2019, GPipe): every one of them is in flight at once.

#include "sim/step/schedules/schedule.h"

static void order(const ScheduleShape *shape, ScheduleAction *actions) {
    for (Work work = WORK_FORWARD; work <= WORK_BACKWARD; work++) {
        for (int32_t micro_step = 0; micro_step < shape->micro_steps; micro_step++) {
            *actions++ = (ScheduleAction){.work = work, .micro_step = micro_step};
        }
    }
}

extern const Schedule schedule_gpipe;
const Schedule schedule_gpipe = {.name = "gpipe", .order = order};
