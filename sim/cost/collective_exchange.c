// All-to-all: every rank sends a part to every other. Formula: sim/SOURCES.md C7. Inside a node the curve
// of the p2p links, over the parts of the peers there, one link each where pairs have their own; across nodes the parts
// of the others at the rank's share of the NICs, as long as the slower of the two. Start-up grows with the peers on
// other nodes. A pod's edge sees all that leaves the pod, so oversubscription counts in full. Parts for a node that
// travel as one (DeepEP) leave once for each other node, and are spread inside it. Not modelled: several channels per
// peer.

#include "sim/cost/collective.h"

#include <math.h>

// What InfiniBand clusters reach (nccl-tests of 10 H100 nodes: 46 of 50 GB/s, Sophia; sim/SOURCES.md C8).
static const double usual_efficiency = 0.85, usual_peer_s = 1e-6;

// What DeepEP's kernels reach of it inside a node: 643 GB/s of 8 B200 by 24 SMs, a rank's own eighth counted
// (deepseek-ai/DeepEP@dd758ca:docs/legacy.md), of 685 (dgx-b200). By 64 SMs, which trainers do not give them, 726.
static const double merged_efficiency = 643.0 * 7 / 8 / 685;

static bool exchange_applicable(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group) {
    return kind == COLLECTIVE_ALL_TO_ALL && (group->nodes == 1 || profile->fabric.nics > 0);
}

// Of so many of the group's ranks on a node together. What rings lose on large fabrics and what their channels carry
// does not bind it: nccl-tests on 4 and 8 nodes of p5 leave 42 and 45 of 50 GB/s, where rings share 318 of 400. Not
// modelled: what exchanges lose themselves (p6-b300's fall from 96 to 72 of 100 GB/s between 2 and 32 nodes).
static double network_bytes_per_s(const ClusterProfile *profile, const GroupPlacement *group, int ranks) {
    const Fabric *fabric = &profile->fabric;
    const double efficiency =
        fabric->exchange_efficiency > 0 ? fabric->exchange_efficiency : fmin(usual_efficiency, fabric->efficiency);
    GroupPlacement of_node = *group;
    of_node.per_node = ranks;
    return efficiency * collective_cards_bytes_per_s(profile, &of_node);
}

// What leaves a node with so many of the group, a part for each rank elsewhere.
static double leaving_s(const ClusterProfile *profile, const GroupPlacement *group, int ranks, double part_bytes) {
    return part_bytes * ranks * (group->size - ranks) / network_bytes_per_s(profile, group, ranks);
}

// The group fills nodes one after another; the last one has what is left.
static int fewest_on_node(const GroupPlacement *group) {
    const int left = group->size - (group->nodes - 1) * group->per_node;
    return left > 1 ? left : 1;
}

static CollectiveCost exchange_cost(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                                    double payload_bytes) {
    const Node *node = &profile->node;
    const Fabric *fabric = &profile->fabric;
    const NodeLinks links = collective_node_links(profile, group);
    const double part = payload_bytes / group->size;
    const int inside = group->per_node - 1, outside = group->size - group->per_node;
    const bool merged = group->merged > 0;
    const double spread = merged ? payload_bytes / group->per_node : part;  // of each on the node, over its links
    const double all_bytes_per_s =
        node->mesh > 0 ? node->p2p.bandwidth_bytes_per_s * fmax(inside, 1) : links.p2p.bandwidth_bytes_per_s;
    const double link_bytes_per_s = all_bytes_per_s * (merged ? merged_efficiency : 1);
    CollectiveCost cost = {
        .wire_bytes = part * (group->size - 1), .ctas = node->ring_ctas, .link_s = spread * inside / link_bytes_per_s};
    if (group->nodes == 1) {
        cost.seconds = collective_curve_s(links.p2p_start_s, cost.link_s, &links.p2p);
        return cost;
    }
    const double as_one = merged ? group->merged : 1;
    const double peer_s = fabric->exchange_peer_s > 0 ? fabric->exchange_peer_s : usual_peer_s;
    const int peers = merged ? group->nodes - 1 : outside;
    const double start_s =
        fabric->p2p_latency_s + peer_s * peers + collective_tiers_latency_s(profile, group, collective_one_hop, kind);
    // Ranks of the emptiest node send most of their parts away, those of the fullest share its cards.
    cost.nic_s = fmax(leaving_s(profile, group, group->per_node, part / as_one),
                      leaving_s(profile, group, fewest_on_node(group), part / as_one));
    cost.uplink_s = collective_tiers_exchange_s(profile, group, part / as_one);
    const double network_s = smooth_max(cost.nic_s, cost.uplink_s);
    cost.seconds = collective_curve_s(start_s, fmax(network_s, cost.link_s), &fabric->p2p);
    return cost;
}

const CollectiveAlgorithm collective_exchange = {
    .name = "exchange", .applicable = exchange_applicable, .cost = exchange_cost};
