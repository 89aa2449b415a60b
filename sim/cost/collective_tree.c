// Tree all-reduce across nodes: reduce up and broadcast down a double binary tree of nodes, chains inside a node; on
// machines with in-switch reduction NCCL runs its NVLSTree here. Formula: sim/SOURCES.md C6.
// Logarithmic start-up, so it wins for short messages on many nodes; with two nodes both directions carry useful data,
// so it wins for long ones too. The cap is the rate of the tree kernels. Not modelled: trees inside one node (the ring
// is never slower there).

#include "sim/cost/collective.h"

#include <math.h>

static bool tree_applicable(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group) {
    return kind == COLLECTIVE_ALL_REDUCE && group->nodes > 1 && profile->fabric.nics > 0 &&
           profile->fabric.tree.bandwidth_bytes_per_s > 0;
}

// What a rank sends inside its node: once with the switch summing, else up and down a chain.
static double tree_wire_bytes(const Node *node, int per_node, double payload_bytes) {
    const bool in_switch = node->nvls_min_ranks > 0 && per_node >= node->nvls_min_ranks;
    return in_switch ? payload_bytes * (1 + 1.0 / per_node) : payload_bytes * 2 * (per_node - 1) / per_node;
}

// Up and down.
static double tree_hops(CollectiveKind kind, int nodes) {
    (void)kind;
    return 2 * ceil(log2(nodes));
}

static CollectiveCost tree_cost(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                                double payload_bytes) {
    const Fabric *fabric = &profile->fabric;
    const double cap = fabric->tree.bandwidth_bytes_per_s;
    const double passes = group->nodes == 2 ? 1 : group->nodes == 3 ? 1.5 : 2;  // w(N) of sim/SOURCES.md C6
    // Two nodes use both directions of the cards, so nothing but their rate and the cap limits them.
    const double own = collective_fabric_bytes_per_s(profile, group) / (group->nodes == 2 ? fabric->efficiency : 1);
    const double bandwidth = group->nodes == 2 ? fmin(own, cap) : 1 / smooth_max(passes / own, 1 / cap);
    const double start_s = profile->node.link_latency_s + 2 * (group->per_node - 1) * profile->node.step_latency_s +
                           tree_hops(kind, group->nodes) * fabric->tree_step_latency_s +
                           collective_tiers_latency_s(profile, group, tree_hops, kind);
    const double wire_bytes = tree_wire_bytes(&profile->node, group->per_node, payload_bytes);
    CollectiveCost cost = {.wire_bytes = fmax(wire_bytes, payload_bytes * passes / group->per_node),
                           .ctas = profile->node.ring_ctas,
                           .link_s = wire_bytes / collective_node_links(profile, group).ring.bandwidth_bytes_per_s,
                           .nic_s = payload_bytes * passes / own,
                           .uplink_s = collective_tiers_s(profile, group, payload_bytes * passes)};
    const double tree_s = fmax(payload_bytes / bandwidth, cost.link_s);  // links of NVLink class are never the limit
    const double transfer_s = smooth_max(tree_s, cost.uplink_s);
    cost.seconds = collective_curve_s(start_s, transfer_s, &fabric->tree) + collective_between_nodes_s(profile, group);
    return cost;
}

const CollectiveAlgorithm collective_tree = {.name = "tree", .applicable = tree_applicable, .cost = tree_cost};
