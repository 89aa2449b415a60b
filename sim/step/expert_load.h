// How unevenly the tokens of a run came to the ranks of ep: those of its busiest rank over the mean, in per cent.

#pragma once

#include <stdbool.h>

typedef struct ExpertLoad {
    bool measured;  // experts were spread over ranks
    double over;    // in the mean of all layers, micro-steps and steps
    double most;    // in one layer of a micro-step
} ExpertLoad;
