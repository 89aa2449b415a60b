// What every collective shares: the curve of one algorithm over message size, the group's share of the node's NICs, and
// the choice of the fastest algorithm, as NCCL's tuner chooses. Formulas: collectives.md 6.1 (curve) and 6.2
// (geometry). Not modelled: oversubscribed tiers above the nodes, slow links, holes in the curve where protocols
// switch, PAT (one rank per node; no measurements of it are published).

#include "sim/cost/collective.h"

#include <math.h>

double smooth_max(double a, double b) {
    const double a2 = a * a, b2 = b * b;
    return sqrt(sqrt(a2 * a2 + b2 * b2));
}

double collective_curve_s(double start_s, double transfer_s, const LinkCurve *curve) {
    const double loss = 2 * curve->pipelining * sqrt(start_s * transfer_s);
    const double ceiling = curve->ceiling * start_s;
    if (loss <= 0 || ceiling <= 0 || isinf(loss)) {
        return start_s + transfer_s;
    }
    return start_s + transfer_s + loss * ceiling / sqrt(loss * loss + ceiling * ceiling);
}

double collective_fabric_bytes_per_s(const ClusterProfile *profile, const GroupPlacement *group) {
    const Fabric *fabric = &profile->fabric;
    const double node_bytes_per_s = fabric->nics * fabric->nic_bytes_per_s;
    // One rank reaches its own NIC, or all of its NICs where a node has more NICs than ranks (collectives.md 6.2).
    const double rail_bytes_per_s = fabric->nics > profile->node.accelerators
                                        ? node_bytes_per_s / profile->node.accelerators
                                        : fabric->nic_bytes_per_s;
    const double own = group->per_node * rail_bytes_per_s;
    const double shared = node_bytes_per_s / (group->siblings > 0 ? group->siblings : 1);
    return fabric->efficiency * fmin(own, shared);
}

double collective_steps(CollectiveKind kind, int members) {
    return (kind == COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0) * (members - 1);
}

CollectiveCost cost_collective(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                               double payload_bytes, const char **algorithm) {
    CollectiveCost best = {0};
    const char *name = "none";
    if (group->size > 1 && payload_bytes > 0) {
        best.seconds = INFINITY;
        for (int i = 0; collective_table[i]; i++) {
            const CollectiveAlgorithm *row = collective_table[i];
            if (!row->applicable(profile, kind, group)) {
                continue;
            }
            const CollectiveCost cost = row->cost(profile, kind, group, payload_bytes);
            if (cost.seconds < best.seconds) {
                best = cost;
                name = row->name;
            }
        }
    }
    if (algorithm) {
        *algorithm = name;
    }
    return best;
}

double cost_collective_s(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                         double payload_bytes, const char **algorithm) {
    return cost_collective(profile, kind, group, payload_bytes, algorithm).seconds;
}

int cost_ranks_per_node(const ClusterProfile *profile, const Mesh *mesh) {
    return profile->fabric.nics > 0 ? profile->node.accelerators : mesh_world(mesh);
}
