// The clock of waits and of elapsed time: steady, in seconds.

#pragma once

#include <time.h>

static inline double clock_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
