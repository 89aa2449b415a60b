// Clocks, in seconds: a steady one for waits and elapsed time, and any other of POSIX.

#pragma once

#include <time.h>

static inline double clock_of_s(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline double clock_s(void) {
    return clock_of_s(CLOCK_MONOTONIC);
}
