// What a pipeline's stage does once a round, and what it does once a step. Once a round where it keeps what it gathers:
// all gathers go with the first forward, all reductions with the last backward, and what of them exceeds the layers
// delays the later stages.

#pragma once

#include <stdint.h>

typedef struct OnceTimes {
    double begin_s, forward_s;   // by which the first forward is longer than others: before its layers, and in them
    double backward_s, end_s;    // by which the last backward is longer than others: in its layers, and after them
    double tail_s;               // both, between the layers' forward and backward: the head's
    double gather_s, scatter_s;  // of a layer; gather_s 0: gathers are not once a round
    double forward_slow, backward_slow;  // of a layer overlapping them: the share by which it takes longer,
    double copy_out_s, copy_in_s;        // and its copies on the compute lane
    int32_t ahead;                       // layers gathered before the first one has computed
} OnceTimes;

// What a step does after its last reduction, whose time it is: however many rounds there are, once.
typedef struct UpdateTimes {
    double seconds;    // of all of it
    double late_s;     // from the end of the last backward until it, in which gradients are reduced
    double behind_s;   // of that, before what is reduced after the last backward anyway
    double reduces_s;  // of all reductions of a round
    double exposed_s;  // of these, gathers of updated weights that the update does not hide
    int axis;          // theirs
} UpdateTimes;

static inline double once_sum_s(const OnceTimes *once) {
    return once->begin_s + once->forward_s + once->backward_s + once->end_s + once->tail_s;
}
