// How unevenly a run's tokens were routed to the ep ranks: tokens of the busiest rank over the mean, in percent.

#pragma once

#include <stdbool.h>

typedef struct ExpertLoad {
    bool measured;  // experts were distributed over ranks
    double over;    // averaged over all layers, micro-steps and steps
    double most;    // the worst single layer of a micro-step
} ExpertLoad;
