// How concurrent tasks on one rank slow each other down. Pure arithmetic, no state.

#pragma once

#include <stdbool.h>

#include "sim/cluster/cluster.h"
#include "sim/cost/cost.h"

// What a running task occupies: the part of TaskCost that sharing depends on.
typedef struct ShareDemand {
    float sm_share, memory_bound;
    float use[RESOURCE_COUNT];
    bool collective;
} ShareDemand;

ShareDemand share_demand(const Task *task, const TaskCost *cost);
bool share_demand_equal(const ShareDemand *a, const ShareDemand *b);

enum { SHARE_MAX_ACTIVE = 8 };

// rates[i] in (0, 1]: progress of demand i per unit of its isolated time while exactly these run together.
void share_rates(const ShareDemand *const *demands, int count, const Interference *interference, double *rates);
