// Of a job that goes on: does everybody always wait for the same rank?

#pragma once

#include "autotune/blame/job.h"

typedef struct Pace {
    int rank;        // -1 = nobody
    double excess;   // share of the time that the others wait for it, beyond the next slowest
    int clock_rank;  // always late by the same: its clock, or it; -1 = nobody
    double clock_s;
    bool measured;  // by the durations of collectives, else by when the hosts issued them
} Pace;

void pace_find(const Job *job, Arena *arena, Pace *pace);
