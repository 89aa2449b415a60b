// The clocks of overlap_run.c, private to it and to what advances them or makes them wait.

#pragma once

#include "sim/analytic/overlap.h"

// Only doubles, so that the pace of all of them is one loop; few, because each layer is compared with the one before.
typedef struct Clocks {
    double compute, host, ag, rs, rep, shard_comm;
    double ready[UNIT_COUNT], ready_before[UNIT_COUNT];  // gathered weights: the latest, the second latest
    double released[UNIT_COUNT];                         // their buffer
    double reduced[UNIT_COUNT];                          // the unit's latest gradient, wherever its last reduction is
    double scattered[UNIT_COUNT];                        // the reduction has read its input
    double released_before[UNIT_COUNT], scattered_before[UNIT_COUNT];  // the second latest times
    double gradient[UNIT_COUNT];                                       // the unit's latest gradient is complete
    double reduce_input[UNIT_COUNT];                                   // copied in
    double block_end;                                                  // of the latest block
    double exposed;                                                    // compute idle because of sharding
    double hidden;                                                     // inner waits hidden by sharding's copies
} Clocks;

// Whether the pass, whose layers computed from from_s on, took longer because its copies to the host or back did, or
// because they had to be issued: the last layer then ends as much later.
bool overlap_wait_copies(const Overlap *overlap, int pass, double from_s, Clocks *clocks);

// The end of a step, after its last backward.
void overlap_run_update(const Overlap *overlap, const ShardCosts *costs, const OverlapContention *contention,
                        Clocks *clocks, OverlapTimes *times);
