// All-to-all: every rank sends a part to every other. Formula: collectives.md 6.3, "alltoall". Inside a node the curve
// of the p2p links, over the parts of the peers there; across nodes the parts of the others at the rank's share of the
// NICs, as long as the slower of the two. Start-up grows with the peers on other nodes. A pod's edge sees all that
// leaves the pod, so oversubscription counts in full. Not modelled: several channels per peer, hierarchical exchanges.

#include "sim/cost/collective.h"

#include <math.h>

// What InfiniBand clusters reach (nccl-tests of 10 H100 nodes: 46 of 50 GB/s, Sophia; collectives.md 6.5).
static const double usual_efficiency = 0.85, usual_peer_s = 1e-6;

static bool exchange_applicable(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group) {
    return kind == COLLECTIVE_ALL_TO_ALL && (group->nodes == 1 || profile->fabric.nics > 0);
}

static double exchange_hops(CollectiveKind kind, int pods) {
    (void)kind;
    return pods > 1 ? 1 : 0;
}

// Of the group's ranks on a node together.
static double network_bytes_per_s(const ClusterProfile *profile, const GroupPlacement *group) {
    const Fabric *fabric = &profile->fabric;
    const double efficiency = fabric->exchange_efficiency > 0 ? fabric->exchange_efficiency : usual_efficiency;
    return collective_fabric_bytes_per_s(profile, group) * fmin(1, efficiency / fabric->efficiency);
}

static CollectiveCost exchange_cost(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                                    double payload_bytes) {
    const Node *node = &profile->node;
    const Fabric *fabric = &profile->fabric;
    const NodeLinks links = collective_node_links(profile, group);
    const double part = payload_bytes / group->size;
    const int inside = group->per_node - 1, outside = group->size - group->per_node;
    CollectiveCost cost = {.wire_bytes = part * (group->size - 1),
                           .ctas = node->ring_ctas,
                           .link_s = part * inside / links.p2p.bandwidth_bytes_per_s};
    if (group->nodes == 1) {
        cost.seconds = collective_curve_s(links.p2p_start_s, cost.link_s, &links.p2p);
        return cost;
    }
    const double leaving = part * outside * group->per_node;  // a node
    const double peer_s = fabric->exchange_peer_s > 0 ? fabric->exchange_peer_s : usual_peer_s;
    const double start_s =
        fabric->p2p_latency_s + peer_s * outside + collective_tiers_latency_s(profile, group, exchange_hops, kind);
    cost.nic_s = leaving / network_bytes_per_s(profile, group);
    cost.uplink_s = collective_tiers_exchange_s(profile, group, part);
    const double network_s = smooth_max(cost.nic_s, cost.uplink_s);
    cost.seconds = collective_curve_s(start_s, fmax(network_s, cost.link_s), &fabric->p2p);
    return cost;
}

const CollectiveAlgorithm collective_exchange = {
    .name = "exchange", .applicable = exchange_applicable, .cost = exchange_cost};
