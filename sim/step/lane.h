// The lanes of a rank as a table: a lane runs its tasks in order, lanes run concurrently.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// LANE(symbol, name, communicator). Template hashes contain the numbers: append new lanes at the end.
#define LANE_LIST(LANE)                                                                                                \
    LANE(COMPUTE, compute, -1)                                                                                         \
    LANE(AG, ag, 0)   /* weights, gathered over the shard group */                                                     \
    LANE(RS, rs, 1)   /* gradients, scattered over it; AG's communicator where the target has one for both */          \
    LANE(REP, rep, 2) /* gradients, summed over replicas */                                                            \
    LANE(TP, tp, 3)   /* of the axis of that name, as the next one */                                                  \
    LANE(CP, cp, 4)                                                                                                    \
    LANE(CTL, ctl, 5)    /* norms and other scalars */                                                                 \
    LANE(SEND, send, -1) /* to other stages */                                                                         \
    LANE(RECEIVE, receive, -1)

#define LANE_SYMBOL(symbol, name, communicator) LANE_##symbol,
// HOST: saved activations to the host's memory and back; no plan has both these and messages to other stages.
typedef enum { LANE_LIST(LANE_SYMBOL) LANE_COUNT, LANE_HOST = LANE_SEND } LaneId;

// Of weights gathered and gradients reduced, over shards or replicas.
static inline bool lane_is_sharding(int lane) {
    return lane == LANE_AG || lane == LANE_RS || lane == LANE_REP;
}

typedef struct Lane {
    const char *name;
    int16_t communicator;  // lanes that share one serialise; -1 for compute and messages
} Lane;
