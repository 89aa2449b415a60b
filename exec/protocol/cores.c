// The affinity mask, which children inherit. cgroup quotas are not read: they give all cores for part of the time.

#define _GNU_SOURCE  // CPU_COUNT

#include "exec/protocol/cores.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/base/open.h"

int cores_allowed(void) {
    cpu_set_t allowed;
    const long there = sysconf(_SC_NPROCESSORS_ONLN);
    const int count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : (int)there;
    return count < 1 ? 1 : count;
}

int64_t memory_available_bytes(void) {
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    long long kib = -1;
    while (line_next(file, line, sizeof line)) {
        sscanf(line, "MemAvailable: %lld", &kib);  // else unchanged
    }
    return kib < 0 ? -1 : kib * 1024;
}
