// The end of a step: gradients that are reduced after the last backward, square sums, the clip scale, the update, and
// the gathers of what it changed.

#include <math.h>

#include "sim/analytic/overlap_clocks.h"

enum { PACED = 3 };  // instances of a unit after which the others follow by their pace

// The lanes of scatters and of replica sums after the last backward: a scatter overlaps the sums of the units
// before it for as long as both have work.
typedef struct LateLanes {
    double free_s;            // the scatter lane is free
    double left_s;            // of the sums, in isolation, that could run then
    double scatter, replica;  // rates while both run
} LateLanes;

static LateLanes late_lanes(const OverlapContention *contention, const double layer_s[SHARD_KINDS], double free_s) {
    const bool share = contention && layer_s[SHARD_SCATTER] > 0 && layer_s[SHARD_REPLICA] > 0;
    const double *rates = share ? contention->rates[SCATTERS | REPLICA_SUMS] : NULL;
    return (LateLanes){.free_s = free_s,
                       .scatter = rates ? rates[BACKGROUND_SCATTER] : 1,
                       .replica = rates ? rates[BACKGROUND_REPLICA] : 1};
}

static void reduce_one(const double unit_s[SHARD_KINDS], double from_s, LateLanes *lanes) {
    const double start_s = later(lanes->free_s, from_s);
    double left_s = later(0, lanes->left_s - (start_s - lanes->free_s));
    const double both_s = fmin(unit_s[SHARD_SCATTER] / lanes->scatter, left_s / lanes->replica);
    left_s = later(0, left_s - both_s * lanes->replica - unit_s[SHARD_CAST]);
    lanes->free_s = start_s + both_s + (unit_s[SHARD_SCATTER] - both_s * lanes->scatter) + unit_s[SHARD_CAST];
    lanes->left_s = left_s + unit_s[SHARD_REPLICA];
}

// `count` kernels in a row, bound by the device or by the host.
static void run_kernels(double seconds, double host_s, int count, Clocks *clocks) {
    const double issue_s = clocks->host;
    clocks->host += host_s * count;
    clocks->compute = later(later(clocks->compute, issue_s + host_s) + seconds * count, clocks->host + seconds);
}

static void wait_reduced(int unit, Clocks *clocks) {
    const double late = clocks->reduced[unit] - later(clocks->compute, clocks->host);
    if (late > 0) {
        clocks->exposed += late;
        clocks->compute = clocks->reduced[unit];
    }
}

// Scatters of those units, layers first; after each, on its own lane, the sum over replicas.
static void reduce_late(const Overlap *overlap, const ShardCosts *costs, const OverlapContention *contention,
                        Clocks *clocks) {
    static const int order[UNIT_COUNT] = {UNIT_EXPERTS, UNIT_LAYER, UNIT_HEAD, UNIT_EMBEDDING};
    LateLanes lanes = late_lanes(contention, costs->seconds[UNIT_LAYER], clocks->rs);
    lanes.left_s = later(0, clocks->rep - clocks->rs);  // of what is not late
    for (int i = 0; i < UNIT_COUNT; i++) {
        const int unit = order[i];
        const int count = overlap->late_units >> unit & 1 ? overlap_instances(overlap, unit) : 0;
        const double *unit_s = costs->seconds[unit], *host_s = costs->host_s[unit];
        const double scatter_host_s = host_s[SHARD_SCATTER] + host_s[SHARD_CAST];
        for (int done = 1; done <= count; done++) {
            const LateLanes before = lanes;
            clocks->host += scatter_host_s;
            reduce_one(unit_s, later(clocks->gradient[unit], clocks->host), &lanes);
            clocks->host += host_s[SHARD_REPLICA];
            if (done == PACED) {
                const int rest = count - done;
                lanes.free_s += (lanes.free_s - before.free_s) * rest;
                lanes.left_s += (lanes.left_s - before.left_s) * rest;
                clocks->host += (scatter_host_s + host_s[SHARD_REPLICA]) * rest;
                break;
            }
        }
        if (count == 0) {
            continue;
        }
        clocks->rs = lanes.free_s;
        clocks->reduced[unit] = lanes.free_s + lanes.left_s;
        clocks->rep = unit_s[SHARD_REPLICA] > 0 ? clocks->reduced[unit] : clocks->rep;
    }
}

// Layer by layer, then the edges.
static void run_squares(const Overlap *overlap, const ShardCosts *costs, Clocks *clocks) {
    static const int layered[2] = {UNIT_EXPERTS, UNIT_LAYER}, edges[2] = {UNIT_HEAD, UNIT_EMBEDDING};
    for (int i = overlap->experts ? 0 : 1; i < 2; i++) {
        wait_reduced(layered[i], clocks);
        run_kernels(costs->seconds[layered[i]][SHARD_SQUARE], costs->host_s[layered[i]][SHARD_SQUARE], overlap->layers,
                    clocks);
    }
    for (int i = 0; i < 2; i++) {
        wait_reduced(edges[i], clocks);
        run_kernels(costs->seconds[edges[i]][SHARD_SQUARE], costs->host_s[edges[i]][SHARD_SQUARE], 1, clocks);
    }
}

// Sums over ranks of loss and squares, and the clip scale.
static void run_scalars(const ShardCosts *costs, Clocks *clocks) {
    clocks->host += costs->edge_host_s;
    const double loss_s =
        later(clocks->compute - costs->seconds[UNIT_EMBEDDING][SHARD_SQUARE], clocks->host) + costs->loss_sum_s;
    clocks->compute =
        later(later(clocks->compute, clocks->host), loss_s) + costs->scalars_s - costs->loss_sum_s + costs->clip_s;
}

// The unit's updates; returns the device time of one. Stages 1 and 2 gather afterwards.
static double update_unit(const ShardCosts *costs, const OverlapContention *contention, int unit, int count,
                          Clocks *clocks, double *regathered) {
    const double *seconds = costs->seconds[unit];
    const bool contends = contention && seconds[SHARD_REGATHER] > 0;
    const double beside = contends ? fmin(1, seconds[SHARD_REGATHER] / seconds[SHARD_ADAMW]) : 0;
    const double update_s = seconds[SHARD_ADAMW] * (1 + beside * (contends ? contention->update_slow - 1 : 0));
    const double regather_s = seconds[SHARD_REGATHER] * (contends ? contention->regather_slow : 1);
    const double first = later(clocks->compute, clocks->host) + update_s;
    run_kernels(update_s, costs->host_s[unit][SHARD_ADAMW] + costs->host_s[unit][SHARD_REGATHER], count, clocks);
    if (regather_s > 0) {
        *regathered = later(later(*regathered, first) + regather_s * count, clocks->compute + regather_s);
    }
    return update_s;
}

void overlap_run_update(const Overlap *overlap, const ShardCosts *costs, const OverlapContention *contention,
                        Clocks *clocks, OverlapTimes *times) {
    static const int order[UNIT_COUNT] = {UNIT_EMBEDDING, UNIT_HEAD, UNIT_LAYER, UNIT_EXPERTS};
    double busy = costs->zero_s + costs->clip_s, reduces_s = 0, computed_s = clocks->compute;
    const double behind_s = later(0, later(clocks->rs, clocks->rep) - computed_s);
    clocks->compute = later(clocks->compute, clocks->host) + costs->zero_s;
    if (overlap->late_units) {
        reduce_late(overlap, costs, contention, clocks);
    }
    const double reduced_s = later(clocks->compute, later(clocks->rs, clocks->rep));
    run_squares(overlap, costs, clocks);
    run_scalars(costs, clocks);
    double regathered = clocks->ag;
    for (int i = 0; i < UNIT_COUNT; i++) {
        const int unit = order[i], count = overlap_instances(overlap, unit);
        if (count > 0) {
            const double *seconds = costs->seconds[unit];
            const double update_s = update_unit(costs, contention, unit, count, clocks, &regathered);
            busy += count * (update_s + seconds[SHARD_SQUARE]);
            reduces_s += count * (seconds[SHARD_SCATTER] + seconds[SHARD_CAST]);
        }
    }
    const double exposed_s = later(0, regathered - clocks->compute);
    clocks->exposed += exposed_s;
    clocks->compute = later(clocks->compute, regathered);
    times->step_s = later(later(clocks->compute, clocks->host), later(clocks->rs, clocks->rep));
    times->optimizer_s = busy;
    times->update = (UpdateTimes){.seconds = times->step_s - reduced_s,
                                  .late_s = reduced_s - computed_s,
                                  .behind_s = behind_s,
                                  .reduces_s = reduces_s,
                                  .exposed_s = exposed_s,
                                  .axis = (int)overlap->reduce_axis};
}
