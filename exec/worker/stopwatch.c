// The median, because a shared machine disturbs in one direction only; the quartiles say how much it did.

#include "exec/worker/stopwatch.h"

#include <math.h>
#include <stdlib.h>

#include "exec/worker/interpreter.h"

static const double SHORTEST_REPEAT_S = 20e-6;  // against clock_gettime's 30 ns

static int by_value(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

void stopwatch_plan(double call_s, double budget_s, int *repeats, int *calls) {
    const double call = fmax(call_s, 1e-9);
    *calls = (int)fmax(1, ceil(SHORTEST_REPEAT_S / call));
    const double fit = budget_s / (call * *calls);
    *repeats = (int)fmin(STOPWATCH_MOST_REPEATS, fmax(STOPWATCH_FEWEST_REPEATS, fit));
}

Status stopwatch_run(TimedCall *call, void *context, int repeats, int calls, Timing *timing, Error *error) {
    double seconds[STOPWATCH_MOST_REPEATS];
    TRY(call(context, error));
    for (int i = 0; i < repeats; i++) {
        const double start_s = interpreter_clock_s();
        for (int j = 0; j < calls; j++) {
            TRY(call(context, error));
        }
        seconds[i] = (interpreter_clock_s() - start_s) / calls;
    }
    qsort(seconds, (size_t)repeats, sizeof *seconds, by_value);
    *timing = (Timing){.seconds = seconds[repeats / 2],
                       .low = seconds[repeats / 4],
                       .high = seconds[repeats - 1 - repeats / 4],
                       .repeats = repeats};
    return STATUS_OK;
}
