// Racks of an NVL72 are domains of many machines, and a job seldom fills whole ones: schedulers give it as many
// machines of each as makes its racks alike, so that a group of 16 or 64 ranks stays inside one (Slurm's --segment;
// MLPerf's configurations of GB200 have SEGMENT=16 machines of 4, 64 of a rack's 72).

#include "sim/cluster/cluster_fields.h"

static bool is_whole(const ClusterProfile *profile, int ranks) {
    const Node *node = &profile->node;
    const int machine = node->accelerators / node->hosts;
    return ranks % machine == 0 && profile->fabric.nics * ranks % node->accelerators == 0;
}

// Of the fewest racks that can be alike, and at most twice as many as are needed; whole racks where none are.
static int ranks_of_rack(const ClusterProfile *profile, int world) {
    const int whole = profile->node.accelerators, fewest = (world + whole - 1) / whole;
    for (int racks = fewest; racks <= 2 * fewest; racks++) {
        if (world % racks == 0 && is_whole(profile, world / racks)) {
            return world / racks;
        }
    }
    return whole;
}

static bool is_asked(const ClusterProfile *profile) {
    const Provenance *ranks = cluster_provenance(profile, "node.accelerators");
    const Provenance *hosts = cluster_provenance(profile, "node.hosts");
    return (ranks && ranks->grade == GRADE_USER) || (hosts && hosts->grade == GRADE_USER);
}

bool cluster_make_racks_alike(ClusterProfile *profile, int world, Arena *arena) {
    const Node *node = &profile->node;
    if (node->hosts == 1 || profile->fabric.nics == 0 || world <= node->accelerators || is_asked(profile)) {
        return false;
    }
    const int whole = node->accelerators, ranks = ranks_of_rack(profile, world);
    const struct {
        const char *path;
        int value;
    } parts[] = {{"node.accelerators", ranks},
                 {"node.hosts", node->hosts * ranks / whole},
                 {"fabric.nics", profile->fabric.nics * ranks / whole}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && ranks < whole; i++) {
        cluster_put(
            profile, parts[i].path, parts[i].value,
            &(Provenance){.source = arena_format(arena, "%d of %d in each rack, so that they are alike", ranks, whole),
                          .grade = GRADE_ESTIMATED},
            arena);
    }
    return ranks < whole;
}
