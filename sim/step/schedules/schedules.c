// The available schedules, one row each.

#include "sim/step/schedules/schedule.h"

#include <stddef.h>
#include <string.h>

extern const Schedule schedule_accumulate, schedule_gpipe, schedule_1f1b, schedule_interleaved, schedule_zero_bubble,
    schedule_zbv, schedule_dualpipev;

const Schedule *const schedules[] = {&schedule_accumulate,  &schedule_gpipe, &schedule_1f1b,     &schedule_interleaved,
                                     &schedule_zero_bubble, &schedule_zbv,   &schedule_dualpipev};
const int schedule_count = sizeof schedules / sizeof schedules[0];

const Schedule *schedule_find(const char *name) {
    for (int i = 0; i < schedule_count; i++) {
        if (strcmp(schedules[i]->name, name) == 0) {
            return schedules[i];
        }
    }
    return NULL;
}

const Schedule *schedule_of(const TrainPlan *plan) {
    return plan->pp_schedule != PP_FILE ? schedule_find(pp_schedule_names[plan->pp_schedule])
           : plan->pp_order             ? plan->pp_order->schedule
                                        : NULL;
}

static void order_round(const Schedule *schedule, const ScheduleShape *round, ScheduleAction *actions) {
    if (schedule->written) {
        memcpy(actions, schedule->written[round->stage],
               (size_t)schedule_action_count(schedule, round) * sizeof *actions);
    } else {
        schedule->order(round, actions);
    }
}

void schedule_order(const Schedule *schedule, const ScheduleShape *shape, ScheduleAction *actions) {
    ScheduleShape round = *shape;
    round.micro_steps /= schedule_rounds(shape);
    const int32_t count = schedule_action_count(schedule, &round);
    for (int32_t r = 0; r < schedule_rounds(shape); r++, actions += count) {
        order_round(schedule, &round, actions);
        for (int32_t i = 0; i < count; i++) {
            actions[i].micro_step += r * round.micro_steps;
        }
    }
}
