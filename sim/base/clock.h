// Clocks, in seconds: a steady one for waits and elapsed time, and any other of POSIX; and waits.

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

static inline void clock_nap(double seconds) {
    const time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){.tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9)}, NULL);
}
