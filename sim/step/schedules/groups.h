// Micro-steps in groups, each through chunk after chunk: shared by the schedules with several chunks (interleaved.c).

#pragma once

#include "sim/step/schedules/schedule.h"

// Forwards before the first one that is followed by a backward: a group for each chunk but the last, and `each_stage`
// for each stage after this one. With `splits` weight gradients follow as many work items later as there are stages
// before this one.
void groups_order(const ScheduleShape *shape, int32_t each_stage, bool splits, ScheduleAction *actions);
