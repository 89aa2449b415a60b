// Progress rates of concurrent tasks (reference collectives.md 4.2, profile fields in Interference):
//   collectives among themselves   progressive filling: every collective's dominant share of a link grows at the same
//                                  speed until it runs at full rate or a link it needs is full (max-min on one link;
//                                  dominant resource fairness, Ghodsi et al. 2011, where node links and NICs are both in use)
//   kernel beside collectives      1 / (max(1/(1 - c), d + sum of the collectives' HBM) x residue), c = SMs they take
//   collective beside a kernel     its link rate / collective_slowdown
//   kernels beside each other      1 / max(1, sum of their HBM, sum of their arithmetic shares): a copy and a GEMM
//                                  mostly overlap
// Not modelled: wave quantisation of the SMs left over, priorities, L2 contention beyond the residue, two kernels'
// SMs.

#include "sim/cost/interference.h"

#include <math.h>

static const double most_sm_share =
    0.9;  // collectives never starve a kernel; more channels than SMs is a profile error

ShareDemand share_demand(const Task *task, const TaskCost *cost) {
    ShareDemand demand = {
        .sm_share = cost->sm_share, .memory_bound = cost->memory_bound, .collective = task_is_collective(task)};
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        demand.use[r] = cost->use[r];
    }
    return demand;
}

bool share_demand_equal(const ShareDemand *a, const ShareDemand *b) {
    bool same = a->collective == b->collective && a->sm_share == b->sm_share && a->memory_bound == b->memory_bound;
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        same &= a->use[r] == b->use[r];
    }
    return same;
}

static double dominant_use(const ShareDemand *demand) {
    return fmax(demand->use[RESOURCE_NODE_LINK], demand->use[RESOURCE_NIC]);
}

// Level at which the link is full when the collectives still growing have dominant share `level`; infinity when never.
static double link_full_level(const ShareDemand *const *demands, int count, const bool *growing, const double *rates,
                              int link) {
    double taken = 0, growth = 0;
    for (int i = 0; i < count; i++) {
        if (growing[i]) {
            growth += demands[i]->use[link] / dominant_use(demands[i]);
        } else if (demands[i]->collective) {
            taken += rates[i] * demands[i]->use[link];
        }
    }
    return growth > 0 ? fmax(0, 1 - taken) / growth : INFINITY;
}

// One round: raises the level to the next event, stops whoever has full rate or sits on a full link. False when none
// grows.
static bool fill_links(const ShareDemand *const *demands, int count, bool *growing, double *rates) {
    double full[RESOURCE_COUNT] = {[RESOURCE_NODE_LINK] =
                                       link_full_level(demands, count, growing, rates, RESOURCE_NODE_LINK),
                                   [RESOURCE_NIC] = link_full_level(demands, count, growing, rates, RESOURCE_NIC)};
    double level = fmin(full[RESOURCE_NODE_LINK], full[RESOURCE_NIC]);
    for (int i = 0; i < count; i++) {
        level = growing[i] ? fmin(level, dominant_use(demands[i])) : level;
    }
    bool left = false;
    for (int i = 0; i < count; i++) {
        if (!growing[i]) {
            continue;
        }
        rates[i] = fmin(1, level / dominant_use(demands[i]));
        const bool stopped = (demands[i]->use[RESOURCE_NODE_LINK] > 0 && full[RESOURCE_NODE_LINK] <= level) ||
                             (demands[i]->use[RESOURCE_NIC] > 0 && full[RESOURCE_NIC] <= level);
        growing[i] = !stopped && dominant_use(demands[i]) > level;
        left |= growing[i];
    }
    return left;
}

static void share_links(const ShareDemand *const *demands, int count, double *rates) {
    bool growing[SHARE_MAX_ACTIVE] = {false};
    bool any = false;
    for (int i = 0; i < count; i++) {
        rates[i] = 1;
        growing[i] = demands[i]->collective && dominant_use(demands[i]) > 0;
        any |= growing[i];
    }
    while (any) {
        any = fill_links(demands, count, growing, rates);
    }
}

void share_rates(const ShareDemand *const *demands, int count, const Interference *interference, double *rates) {
    share_links(demands, count, rates);
    double sm_taken = 0, hbm = 0, arithmetic = 0;
    int kernels = 0, collectives = 0;
    for (int i = 0; i < count; i++) {
        if (demands[i]->collective) {
            sm_taken += demands[i]->sm_share;
            hbm += rates[i] * demands[i]->use[RESOURCE_HBM];
            collectives++;
        } else {
            hbm += demands[i]->use[RESOURCE_HBM];
            arithmetic += 1 - demands[i]->memory_bound;
            kernels++;
        }
    }
    const double sm = 1 / (1 - fmin(sm_taken, most_sm_share));
    const double residue = collectives > 0 ? fmax(1, interference->residue) : 1;
    const double kernel_slow = kernels + collectives > 1 ? fmax(fmax(1, sm), fmax(hbm, arithmetic)) * residue : 1;
    const double collective_slow = kernels > 0 ? fmax(1, interference->collective_slowdown) : 1;
    for (int i = 0; i < count; i++) {
        rates[i] /= demands[i]->collective ? collective_slow : kernel_slow;
    }
}
