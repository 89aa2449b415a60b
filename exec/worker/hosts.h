// Which machine each rank runs on, and its resources.

#pragma once

#include "exec/worker/session.h"

enum { HOST_NAME_BYTES = 64 };

typedef struct RankHost {
    char name[HOST_NAME_BYTES];
    char processor[HOST_NAME_BYTES];  // "model name" of /proc/cpuinfo
    char core_type[HOST_NAME_BYTES];  // for which OpenBLAS runs its kernels
    char boot[HOST_NAME_BYTES];       // id of the running kernel: hosts with the same one share their cores
    int32_t node;                     // ranks on one machine share it; 0, 1, ... in the order of the ranks
    int32_t place;                    // of this rank among those of its machine
    int64_t cores;                    // available to its processes
    int64_t memory_bytes;             // available to new processes; 0 = unknown
    int64_t locked_limit_bytes;       // RLIMIT_MEMLOCK; -1 = none
    int64_t address_limit_bytes;      // RLIMIT_AS; -1 = none
    int64_t shared_bytes;             // free in /dev/shm; -1 = absent
} RankHost;

// One row per rank, the same on every rank.
Status hosts_gather(Session *session, Arena *arena, RankHost **hosts, Error *error);

// How many machines the ranks of this rank's group run on, and the most that share one.
void hosts_of_group(const Session *session, const RankHost *hosts, AxisMask axes, int *nodes, int *per_node);
