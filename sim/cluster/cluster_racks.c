// Racks of an NVL72 are domains of many machines, and a job seldom fills whole ones: schedulers give it as many
// machines of each as makes its racks alike, so that a group of 16 or 64 ranks stays inside one (Slurm's --segment;
// MLPerf's configurations of GB200 have SEGMENT=16 machines of 4, 64 of a rack's 72).

#include "sim/cluster/cluster_fields.h"

static bool can_be(const ClusterProfile *profile, int ranks) {
    const Node *node = &profile->node;
    const int machine = node->accelerators / node->hosts;
    return ranks % machine == 0 && profile->fabric.nics * ranks % node->accelerators == 0;
}

// Of the fewest racks that can be alike, and at most twice as many as are needed; whole racks where none are.
static int ranks_of_rack(const ClusterProfile *profile, int whole, int world) {
    const int fewest = (world + whole - 1) / whole;
    for (int racks = fewest; racks <= 2 * fewest && world > whole; racks++) {
        if (world % racks == 0 && can_be(profile, world / racks)) {
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

int cluster_make_racks_alike(ClusterProfile *profile, int world, Arena *arena) {
    const Node *node = &profile->node;
    const int now = node->accelerators, whole = profile->whole_rack > 0 ? profile->whole_rack : now;
    if (node->hosts <= 1 || profile->fabric.nics == 0 || is_asked(profile)) {
        return 0;
    }
    const int ranks = ranks_of_rack(profile, whole, world);
    const struct {
        const char *path;
        int value;
    } parts[] = {{"node.accelerators", ranks},
                 {"node.hosts", node->hosts * ranks / now},
                 {"fabric.nics", profile->fabric.nics * ranks / now}};
    const Provenance origin = {.source =
                                   arena_format(arena, "%d of %d in each rack, so that they are alike", ranks, whole),
                               .grade = GRADE_ESTIMATED};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && ranks != now; i++) {
        cluster_put(profile, parts[i].path, parts[i].value, &origin, arena);
    }
    profile->whole_rack = whole;
    return ranks < whole ? whole : 0;
}
