// In a job that makes progress: does everybody always wait for the same rank?

#pragma once

#include "autotune/blame/job.h"

typedef struct Pace {
    int rank;        // -1 = none
    double excess;   // share of the time that the others wait for it, in excess of the next slowest
    int clock_rank;  // always late by the same: clock skew, or the rank itself; -1 = none
    double clock_s;
    bool measured;  // from collective durations, else from issue times on the hosts
} Pace;

void pace_find(const Job *job, Arena *arena, Pace *pace);
