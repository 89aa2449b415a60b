// Timing something short over and over: the middle of the repeats, and how far they scatter.

#pragma once

#include "sim/base/error.h"

typedef struct Timing {
    double seconds;    // median of one call
    double low, high;  // quartiles
    int repeats;
} Timing;

// Of `count` repeats, which it sorts.
Timing timing_of(double *seconds, int count);

enum { STOPWATCH_MOST_REPEATS = 256, STOPWATCH_FEWEST_REPEATS = 5 };

typedef Status TimedCall(void *context, Error *error);

// The time that this thread was computing: what others on the machine do does not count.
double stopwatch_cpu_s(void);

// Which time counts: the one above for what computes, clock_s for what waits.
typedef double StopwatchClock(void);

// Calls once to warm up, then as planned; a repeat is so many calls that the clock's own cost vanishes.
typedef struct StopwatchPlan {
    StopwatchClock *clock;
    int repeats, calls;
} StopwatchPlan;
Status stopwatch_run(TimedCall *call, void *context, const StopwatchPlan *plan, Timing *timing, Error *error);

// How many repeats of how many calls fill about budget_s when one takes call_s.
StopwatchPlan stopwatch_plan(StopwatchClock *clock, double call_s, double budget_s);
