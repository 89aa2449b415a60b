// Micro-steps in groups, each through chunk after chunk: shared by the schedules with several chunks (interleaved.c).

#pragma once

#include "sim/step/schedules/schedule.h"

typedef struct Groups {
    int32_t size;  // the last one may be smaller
    const ScheduleShape *shape;
} Groups;

Groups groups_of(const ScheduleShape *shape);
// The n-th work item of a kind; backward, and hence weight gradients, go through the chunks from the last one.
ScheduleAction groups_nth(const Groups *groups, Work work, int32_t n);
// Forwards before the first one that is followed by a backward: a group for each chunk but the last, and `each_stage`
// for each stage after this one.
int32_t groups_ahead(const Groups *groups, int32_t each_stage);
