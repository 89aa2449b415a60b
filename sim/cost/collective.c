// What every collective shares: the curve of one algorithm over message size, the links of a group inside a node, its
// share of the node's NICs, and the choice of the fastest algorithm, as NCCL's tuner chooses. Formulas: sim/SOURCES.md
// C1 (curve) and C2 (geometry). Not modelled: slow links, holes in the curve where protocols switch, PAT (one rank per
// node; no measurements of it are published).

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

// On a machine without a switch: the row of the smallest group size that reaches as far. Groups between its members
// cross the same links, so they divide them (inferred; sweeps of interleaved groups are not published).
static const GroupRate *group_row(const Node *node, int reach) {
    for (int i = 0; i < node->group_count; i++) {
        if (node->groups[i].ranks >= reach) {
            return &node->groups[i];
        }
    }
    return &node->groups[node->group_count - 1];
}

NodeLinks collective_node_links(const ClusterProfile *profile, const GroupPlacement *group) {
    const Node *node = &profile->node;
    const double start_s = node->link_latency_s + node->step_latency_s * (group->size - 1);
    NodeLinks links = {start_s, node->ring, node->p2p_latency_s, node->p2p};
    if (node->group_count > 0) {
        const bool inside = group->nodes == 1;
        const int span = inside ? group->span : group->per_node * group->siblings;
        const int reach = span > group->per_node ? span : group->per_node;
        const double side_by_side = inside ? (reach - 1.0) / (group->per_node - 1) : group->siblings;
        const GroupRate *row = group_row(node, reach);
        links = (NodeLinks){row->ring_latency_s, row->ring, row->p2p_latency_s, row->p2p};
        links.ring.bandwidth_bytes_per_s /= side_by_side;
        links.p2p.bandwidth_bytes_per_s /= side_by_side;
    }
    return links;
}

// Of a bandwidth that shrinks with every doubling of the nodes beyond two.
static double kept_share(double decay, int nodes) {
    return decay > 0 && nodes > 2 ? pow(1 - decay, log2(nodes / 2.0)) : 1;
}

double collective_rail_bytes_per_s(const ClusterProfile *profile) {
    const Fabric *fabric = &profile->fabric;
    return fabric->nics > profile->node.accelerators
               ? fabric->nics * fabric->nic_bytes_per_s / profile->node.accelerators
               : fabric->nic_bytes_per_s;
}

double collective_cards_bytes_per_s(const ClusterProfile *profile, const GroupPlacement *group) {
    const double own = group->per_node * collective_rail_bytes_per_s(profile);
    const double node_bytes_per_s = profile->fabric.nics * profile->fabric.nic_bytes_per_s;
    return fmin(own, node_bytes_per_s / (group->siblings > 0 ? group->siblings : 1));
}

double collective_fabric_bytes_per_s(const ClusterProfile *profile, const GroupPlacement *group) {
    const Fabric *fabric = &profile->fabric;
    const double cards =
        fabric->efficiency * kept_share(fabric->decay, group->nodes) * collective_cards_bytes_per_s(profile, group);
    if (fabric->group_bytes_per_s <= 0) {
        return cards;
    }
    const double limit = fabric->group_bytes_per_s * kept_share(fabric->group_decay, group->nodes);
    return 1 / smooth_max(1 / cards, 1 / limit);
}

double collective_between_nodes_s(const ClusterProfile *profile, const GroupPlacement *group) {
    const Fabric *fabric = &profile->fabric;
    return (group->per_node > 1 ? fabric->group_latency_s : fabric->rail_latency_s) * log2(group->nodes);
}

double collective_steps(CollectiveKind kind, int members) {
    return (kind == COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0) * (members - 1);
}

static CollectiveCost fastest(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                              double payload_bytes, const char **algorithm) {
    CollectiveCost best = {.seconds = INFINITY};
    for (int i = 0; collective_table[i]; i++) {
        const CollectiveAlgorithm *row = collective_table[i];
        if (!row->applicable(profile, kind, group)) {
            continue;
        }
        const CollectiveCost cost = row->cost(profile, kind, group, payload_bytes);
        if (cost.seconds < best.seconds) {
            best = cost;
            *algorithm = row->name;
        }
    }
    return best;
}

static CollectiveCost measured(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                               double payload_bytes, const MeasuredCurve *curve) {
    const char *unused;
    CollectiveCost cost = fastest(profile, kind, group, payload_bytes, &unused);
    const double inside = collective_curve_clamp(curve, payload_bytes);
    double seconds = collective_curve_interpolate_s(curve, inside);
    if (inside < payload_bytes || inside > payload_bytes) {
        seconds *= cost.seconds / fastest(profile, kind, group, inside, &unused).seconds;
    }
    cost.seconds = seconds;
    cost.link_s = fmin(cost.link_s, seconds);
    cost.nic_s = fmin(cost.nic_s, seconds);
    cost.uplink_s = fmin(cost.uplink_s, seconds);
    return cost;
}

CollectiveCost cost_collective(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                               double payload_bytes, const char **algorithm) {
    CollectiveCost best = {0};
    const char *name = "none";
    if (group->size > 1 && payload_bytes > 0) {
        const MeasuredCurve *curve = profile->curve_count > 0 ? collective_curve_of(profile, kind, group) : NULL;
        best = curve ? measured(profile, kind, group, payload_bytes, curve)
                     : fastest(profile, kind, group, payload_bytes, &name);
        name = curve ? "measured" : name;
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
