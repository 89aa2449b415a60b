// The median, because a shared machine disturbs in one direction only; the quartiles show by how much.

#include "exec/worker/stopwatch.h"

#include <math.h>

#include "sim/base/clock.h"
#include "sim/base/sorted.h"

static const double SHORTEST_REPEAT_S = 50e-6;  // against clock_gettime's 30 ns, and 200 ns of the thread's own clock

Timing timing_of(double *seconds, int count) {
    sorted_doubles(seconds, count);
    return (Timing){seconds[count / 2], seconds[count / 4], seconds[count - 1 - count / 4], count};
}

double stopwatch_cpu_s(void) {
    return clock_of_s(CLOCK_THREAD_CPUTIME_ID);
}

StopwatchPlan stopwatch_plan(StopwatchClock *clock, double call_s, double budget_s) {
    const double call = fmax(call_s, 1e-9);
    StopwatchPlan plan = {.clock = clock, .calls = (int)fmax(1, ceil(SHORTEST_REPEAT_S / call))};
    const double fit = budget_s / (call * plan.calls);
    plan.repeats = (int)fmin(STOPWATCH_MOST_REPEATS, fmax(STOPWATCH_FEWEST_REPEATS, fit));
    return plan;
}

Status stopwatch_run(TimedCall *call, void *context, const StopwatchPlan *plan, Timing *timing, Error *error) {
    const int repeats = plan->repeats;
    double seconds[STOPWATCH_MOST_REPEATS];
    TRY(call(context, error));
    for (int i = 0; i < repeats; i++) {
        const double start_s = plan->clock();
        for (int j = 0; j < plan->calls; j++) {
            TRY(call(context, error));
        }
        seconds[i] = (plan->clock() - start_s) / plan->calls;
    }
    *timing = timing_of(seconds, repeats);
    return STATUS_OK;
}
