// Reductions after the last backward: private to overlap_run.c.

#pragma once

#include <math.h>

#include "sim/analytic/overlap.h"

// The lanes of scatters and of replica sums after the last backward: a scatter overlaps the sums of the units
// before it for as long as both have work.
typedef struct LateLanes {
    double free_s;            // the scatter lane is free
    double left_s;            // of the sums, in isolation, that could run then
    double scatter, replica;  // rates while both run
} LateLanes;

static inline LateLanes late_lanes(const OverlapContention *contention, const double layer_s[SHARD_KINDS],
                                   double free_s) {
    const bool share = contention && layer_s[SHARD_SCATTER] > 0 && layer_s[SHARD_REPLICA] > 0;
    const double *rates = share ? contention->rates[SCATTERS | REPLICA_SUMS] : NULL;
    return (LateLanes){.free_s = free_s,
                       .scatter = rates ? rates[BACKGROUND_SCATTER] : 1,
                       .replica = rates ? rates[BACKGROUND_REPLICA] : 1};
}

static inline void reduce_one(const double unit_s[SHARD_KINDS], double from_s, LateLanes *lanes) {
    const double start_s = later(lanes->free_s, from_s);
    double left_s = later(0, lanes->left_s - (start_s - lanes->free_s));
    const double both_s = fmin(unit_s[SHARD_SCATTER] / lanes->scatter, left_s / lanes->replica);
    left_s = later(0, left_s - both_s * lanes->replica - unit_s[SHARD_CAST]);
    lanes->free_s = start_s + both_s + (unit_s[SHARD_SCATTER] - both_s * lanes->scatter) + unit_s[SHARD_CAST];
    lanes->left_s = left_s + unit_s[SHARD_REPLICA];
}
