// From the kernel's machine-wide counters, less what this process and its children used.

#include "autotune/measure/core_clock.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds_of(const struct timeval *time) {
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

CoreClock core_clock_now(void) {
    CoreClock now = {0};
    double user, nice, system, idle, wait, interrupt, soft, steal;
    FILE *file = fopen("/proc/stat", "r");
    if (file && fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait, &interrupt,
                       &soft, &steal) == 8) {
        const double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
        now.idle_s = tick_s * (idle + wait);
        now.all_s = now.idle_s + tick_s * (user + nice + system + interrupt + soft + steal);
    }
    if (file) {
        fclose(file);
    }
    for (int who = 0; who < 2; who++) {
        struct rusage usage;
        if (getrusage(who == 0 ? RUSAGE_SELF : RUSAGE_CHILDREN, &usage) == 0) {
            now.own_s += seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
        }
    }
    return now;
}

CoreUse core_clock_use(const CoreClock *begin, int ranks) {
    const CoreClock end = core_clock_now();
    const double all_s = end.all_s - begin->all_s, idle_s = end.idle_s - begin->idle_s;
    CoreUse use = {.cores = (int)sysconf(_SC_NPROCESSORS_ONLN), .ranks = ranks};
    if (all_s > 0) {
        use.others = fmax(0, (all_s - idle_s - (end.own_s - begin->own_s)) / all_s);
    }
    return use;
}
