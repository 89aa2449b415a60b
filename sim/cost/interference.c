// Progress rates of concurrent tasks (sim/SOURCES.md C9, profile fields in Interference):
//   collectives among themselves   max-min on every link: a full link gives each what it asks, up to the same share
//                                  (what fair queueing does; SimGrid's solution where flows pass as many bytes on
//                                  either link)
//   messages between stages        are collectives here
//   kernel with collectives        1 / (max(1/(1 - c), d + sum of the collectives' HBM) x residue), c = SMs they take
//   collective with a kernel       its link rate / collective_slowdown
//   concurrent kernels             1 / max(1, sum of their HBM, sum of their arithmetic shares): a copy and a GEMM
//                                  mostly overlap
//   anything on the cores of a CPU  1 / max(1, sum of what it all needs of the rank's part of the cores)
// Not modelled: wave quantisation of the SMs left over, priorities, L2 contention beyond the residue, two kernels'
// SMs.

#include "sim/cost/interference.h"

#include <math.h>

static const double most_sm_share =
    0.9;  // collectives never starve a kernel; more channels than SMs is a profile error
static const double link_precision = 1e-9;
enum { LINKS = RESOURCE_HBM, MOST_LINK_ROUNDS = 64 };  // links come first; a handful of rounds is usual
_Static_assert(RESOURCE_NODE_LINK == 0 && LINKS == 3, "resources that are links come first");

ShareDemand share_demand(const Task *task, const TaskCost *cost) {
    ShareDemand demand = {
        .sm_share = cost->sm_share, .memory_bound = cost->memory_bound, .collective = task_is_transfer(task)};
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        demand.use[r] = cost->use[r];
    }
    return demand;
}

bool share_demand_equal(const ShareDemand *a, const ShareDemand *b) {
    bool same = a->collective == b->collective && a->sm_share == b->sm_share && a->memory_bound == b->memory_bound;
    for (int r = 0; same && r < RESOURCE_COUNT; r++) {
        same = a->use[r] == b->use[r];
    }
    return same;
}

// What share of a link a collective may take at most; infinite: the link is not full.
typedef struct LinkLevels {
    double link[LINKS];
} LinkLevels;

// Of all links but one.
static double rate_within(const ShareDemand *demand, const LinkLevels *levels, int skipped) {
    double rate = 1;
    for (int link = 0; link < LINKS; link++) {
        if (link != skipped && demand->use[link] > 0) {
            rate = fmin(rate, levels->link[link] / demand->use[link]);
        }
    }
    return rate;
}

// Progressive filling of one link by collectives that its neighbours limit: demands below the level are met in full.
static double link_level(const ShareDemand *const *demands, int count, const LinkLevels *levels, int link) {
    double wants[SHARE_MAX_ACTIVE], left = 1, level = INFINITY;
    int waiting = 0;
    for (int i = 0; i < count; i++) {
        if (demands[i]->collective && demands[i]->use[link] > 0) {
            wants[waiting++] = demands[i]->use[link] * rate_within(demands[i], levels, link);
        }
    }
    for (int before = -1; waiting > 0 && waiting != before;) {
        before = waiting;
        level = left / waiting;
        waiting = 0;
        for (int i = 0; i < before; i++) {
            if (wants[i] > level) {
                wants[waiting++] = wants[i];
            } else {
                left -= wants[i];
            }
        }
    }
    return waiting > 0 ? level : INFINITY;
}

// Settles links 0 to `last` with the others fixed: alternates between the last and those before it until it does not
// move. Its level follows theirs piecewise linearly, so steps on one piece shrink by one ratio, which gives their
// limit.
static void settle_links(const ShareDemand *const *demands, int count, int last, LinkLevels *levels) {
    double before = INFINITY, last_step = 0;
    levels->link[last] = INFINITY;
    for (int round = 0; round < MOST_LINK_ROUNDS; round++) {
        bool others_full = false;
        if (last > 0) {
            settle_links(demands, count, last - 1, levels);
        }
        for (int link = 0; link < last; link++) {
            others_full = others_full || isfinite(levels->link[link]);
        }
        levels->link[last] = link_level(demands, count, levels, last);
        const double level = levels->link[last], step = level - before;
        if ((round == 0 && !others_full) || level == before || fabs(step) <= link_precision * level) {
            return;
        }
        const double ratio = last_step < 0 || last_step > 0 ? step / last_step : 0;
        const bool leads = (ratio > 0 || ratio < 0) && ratio < 1;
        before = leads ? level + step * ratio / (1 - ratio) : level;
        last_step = leads || !isfinite(step) ? 0 : step;
        levels->link[last] = before;
    }
}

// Nothing is held up where no link is requested twice and none beyond its capacity.
static bool links_suffice(const ShareDemand *const *demands, int count) {
    int asking[LINKS] = {0};
    bool suffice = true;
    for (int i = 0; i < count; i++) {
        for (int link = 0; link < LINKS && demands[i]->collective; link++) {
            asking[link] += demands[i]->use[link] > 0;
            suffice &= asking[link] <= 1 && demands[i]->use[link] <= 1;
        }
    }
    return suffice;
}

static void share_links(const ShareDemand *const *demands, int count, double *rates) {
    if (links_suffice(demands, count)) {
        for (int i = 0; i < count; i++) {
            rates[i] = 1;
        }
        return;
    }
    LinkLevels levels = {{INFINITY, INFINITY, INFINITY}};
    settle_links(demands, count, LINKS - 1, &levels);
    for (int i = 0; i < count; i++) {
        rates[i] = demands[i]->collective ? rate_within(demands[i], &levels, LINKS) : 1;
    }
}

void share_rates(const ShareDemand *const *demands, int count, const Interference *interference, double *rates) {
    share_links(demands, count, rates);
    double sm_taken = 0, hbm = 0, arithmetic = 0, cores = 0;
    int kernels = 0, collectives = 0;
    for (int i = 0; i < count; i++) {
        cores += demands[i]->use[RESOURCE_CORES];
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
        const double slow = demands[i]->collective ? collective_slow : kernel_slow;
        rates[i] /= demands[i]->use[RESOURCE_CORES] > 0 ? fmax(slow, cores) : slow;
    }
}
