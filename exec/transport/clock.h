// The clock of everything that waits in exec/: steady, in seconds.

#pragma once

#include <math.h>
#include <time.h>

static inline double clock_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Seconds since the last look, which becomes now; 0 before the first one, where looked_s is 0. A longer time between
// two looks means that this process stood still itself (stopped, suspended, starved): it does not count as waiting for
// others.
static inline double clock_past_s(double *looked_s) {
    const double LONGEST_LOOK_S = 0.25, now_s = clock_s();
    const double past_s = *looked_s > 0 ? fmin(now_s - *looked_s, LONGEST_LOOK_S) : 0;
    *looked_s = now_s;
    return past_s;
}
