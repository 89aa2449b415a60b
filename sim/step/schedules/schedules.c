// The schedules that there are, a row each.

#include "sim/step/schedules/schedule.h"

extern const Schedule schedule_accumulate;

const Schedule *const schedules[] = {&schedule_accumulate};
const int schedule_count = sizeof schedules / sizeof schedules[0];
