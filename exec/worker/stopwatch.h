// Timing something short over and over: the middle of the repeats, and how far they scatter.

#pragma once

#include "sim/base/error.h"

typedef struct Timing {
    double seconds;    // median of one call
    double low, high;  // quartiles
    int repeats;
} Timing;

enum { STOPWATCH_MOST_REPEATS = 256, STOPWATCH_FEWEST_REPEATS = 5 };

typedef Status TimedCall(void *context, Error *error);

// Calls once to warm up, then `repeats` times; a repeat is so many calls that the clock's own cost vanishes.
Status stopwatch_run(TimedCall *call, void *context, int repeats, int calls, Timing *timing, Error *error);

// How many repeats of how many calls fill about budget_s when one takes call_s.
void stopwatch_plan(double call_s, double budget_s, int *repeats, int *calls);
