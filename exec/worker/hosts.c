// From uname, /proc, statvfs and getrlimit. Ranks with the same host name are on one machine. Not read: cgroups, NUMA.

#include "exec/worker/hosts.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "exec/protocol/cores.h"
#include "exec/worker/gather.h"
#include "kernels/kernels.h"
#include "sim/base/open.h"

static void processor_name(char out[HOST_NAME_BYTES]) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    bool known = false;
    snprintf(out, HOST_NAME_BYTES, "unknown processor");
    while (line_next(file, line, sizeof line)) {
        const char *colon = strchr(line, ':');
        if (!known && colon && strncmp(line, "model name", 10) == 0) {
            snprintf(out, HOST_NAME_BYTES, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            known = true;
        }
    }
}

static void boot_name(char out[HOST_NAME_BYTES]) {
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    while (line_next(file, out, HOST_NAME_BYTES)) {
        out[strcspn(out, "\n")] = '\0';
    }
}

static int64_t limit_of(int what) {
    struct rlimit limit;
    return getrlimit(what, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)limit.rlim_cur;
}

static void host_read(RankHost *host) {
    struct utsname about = {0};
    struct statvfs shared;
    uname(&about);
    snprintf(host->name, sizeof host->name, "%.*s", HOST_NAME_BYTES - 1, about.nodename);
    processor_name(host->processor);
    snprintf(host->core_type, sizeof host->core_type, "%s", kernel_blas_name());
    boot_name(host->boot);
    host->cores = cores_allowed();
    const int64_t free_bytes = memory_available_bytes();
    host->memory_bytes = free_bytes < 0 ? 0 : free_bytes;
    host->locked_limit_bytes = limit_of(RLIMIT_MEMLOCK);
    host->address_limit_bytes = limit_of(RLIMIT_AS);
    host->shared_bytes = statvfs("/dev/shm", &shared) == 0 ? (int64_t)shared.f_bavail * (int64_t)shared.f_frsize : -1;
}

Status hosts_gather(Session *session, Arena *arena, RankHost **hosts, Error *error) {
    const int world = mesh_world(&session->request->plan.mesh);
    RankHost own = {.node = -1};
    host_read(&own);
    RankHost *all = ARENA_ARRAY(arena, RankHost, world);
    TRY(gather(session, &own, all, sizeof own, error));
    int nodes = 0;
    for (int rank = 0; rank < world; rank++) {
        all[rank].node = -1;
        for (int other = 0; other < rank; other++) {
            if (strcmp(all[other].name, all[rank].name) == 0) {
                all[rank].node = all[other].node;
                all[rank].place++;
            }
        }
        all[rank].node = all[rank].node < 0 ? nodes++ : all[rank].node;
    }
    *hosts = all;
    return STATUS_OK;
}

void hosts_of_group(const Session *session, const RankHost *hosts, AxisMask axes, int *nodes, int *per_node) {
    const Mesh *mesh = &session->request->plan.mesh;
    const int size = mesh_group_size(mesh, axes);
    *nodes = *per_node = 0;
    for (int i = 0; i < size; i++) {
        const int node = hosts[mesh_group_member(mesh, axes, &session->at, i)].node;
        int members = 0, first = i;
        for (int j = 0; j < size; j++) {
            const bool same = hosts[mesh_group_member(mesh, axes, &session->at, j)].node == node;
            members += same;
            first = same && j < first ? j : first;
        }
        *nodes += first == i;
        *per_node = members > *per_node ? members : *per_node;
    }
}
