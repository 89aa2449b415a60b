// Forward until the first gradient can be back, then alternating one backward and one forward (Narayanan et al. 2019,
// PipeDream-flush): at most as many micro-steps are in flight as there are stages from here to the last.

#include "sim/step/schedules/schedule.h"

static void order(const ScheduleShape *shape, ScheduleAction *actions) {
    const int32_t behind = shape->stages - shape->stage - 1;
    const int32_t ahead = behind < shape->micro_steps ? behind : shape->micro_steps;
    for (int32_t forward = 0; forward < ahead; forward++) {
        *actions++ = (ScheduleAction){.work = WORK_FORWARD, .micro_step = forward};
    }
    for (int32_t backward = 0; backward < shape->micro_steps; backward++) {
        if (backward + ahead < shape->micro_steps) {
            *actions++ = (ScheduleAction){.work = WORK_FORWARD, .micro_step = backward + ahead};
        }
        *actions++ = (ScheduleAction){.work = WORK_BACKWARD, .micro_step = backward};
    }
}

extern const Schedule schedule_1f1b;
const Schedule schedule_1f1b = {.name = "1f1b", .order = order};
