// Times something short repeatedly: the median of the repeats, and their spread.

#pragma once

#include "sim/base/error.h"

typedef struct Timing {
    double seconds;    // median per call
    double low, high;  // quartiles
    int repeats;
} Timing;

// Over `count` repeats, which it sorts.
Timing timing_of(double *seconds, int count);

enum { STOPWATCH_MOST_REPEATS = 256, STOPWATCH_FEWEST_REPEATS = 5 };

typedef Status TimedCall(void *context, Error *error);

// CPU time of this thread: other load on the machine does not count.
double stopwatch_cpu_s(void);

// Which clock applies: the one above for compute, clock_s for waits.
typedef double StopwatchClock(void);

// Calls once to warm up, then as planned; a repeat has enough calls to make the clock's own cost negligible.
typedef struct StopwatchPlan {
    StopwatchClock *clock;
    int repeats, calls;
} StopwatchPlan;
Status stopwatch_run(TimedCall *call, void *context, const StopwatchPlan *plan, Timing *timing, Error *error);

// How many repeats of how many calls fill about budget_s when one call takes call_s.
StopwatchPlan stopwatch_plan(StopwatchClock *clock, double call_s, double budget_s);
