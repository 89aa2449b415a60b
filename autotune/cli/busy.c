// What is measured while others use the machine is slower than the machine is; a user should know before believing it.

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "autotune/cli/cli.h"
#include "exec/protocol/cores.h"

static const double MOST_LOAD = 0.5;  // per core, before we add our own

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

void cli_warn_if_bound(const ClusterProfile *profile) {
    const int allowed = cores_allowed();
    if (profile->accelerator.device_class == DEVICE_CLASS_CPU && allowed < (int)sysconf(_SC_NPROCESSORS_ONLN) &&
        allowed < profile->node.cores) {
        fprintf(stderr,
                "ndtune: runs are bound to %d of the %.0f cores that %s predicts for: give --set node.cores=%d\n",
                allowed, profile->node.cores, profile->name, allowed);
    }
}

void cli_warn_if_busy(const char *consequence) {
    double load = 0;
    FILE *file = fopen("/proc/loadavg", "r");
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (file && fscanf(file, "%lf", &load) == 1 && load > MOST_LOAD * (double)cores) {
        fprintf(stderr, "ndtune: this machine is busy (load %.1f on %ld cores): %s\n", load, cores, consequence);
    }
    if (file) {
        fclose(file);
    }
}
