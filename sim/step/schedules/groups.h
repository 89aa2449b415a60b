// Micro-steps in groups, each through chunk after chunk: what the orders with several chunks have in common
// (interleaved.c).

#pragma once

#include "sim/step/schedules/schedule.h"

typedef struct Groups {
    int32_t size;
    const ScheduleShape *shape;
} Groups;

Groups groups_of(const ScheduleShape *shape);
// The n-th work of a kind; backward, and so the weights, take the chunks from the last one on.
ScheduleAction groups_nth(const Groups *groups, Work work, int32_t n);
// Forwards before the first one that a backward follows: a group for each chunk but the last, and some for each stage
// behind this one.
int32_t groups_ahead(const Groups *groups, int32_t each_stage);
