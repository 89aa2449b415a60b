// Send to the next rank of a ring while receiving from the previous one: the hop of ring attention. Formula:
// sim/SOURCES.md C7. Inside a node the p2p curve. Across nodes the hop between nodes sets the pace: one flow reaches
// only a share of its rank's NICs (p2p_efficiency), and the flows of sibling groups divide the node's NICs. Each group
// has one flow leaving a node in block placement, next to the hops inside the node, which may be the slower ones on
// machines without a switch. Not modelled: alignment of rails, several channels per peer.

#include "sim/cost/collective.h"

#include <math.h>

static bool p2p_applicable(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group) {
    return kind == COLLECTIVE_SEND_RECV && (group->nodes == 1 || profile->fabric.nics > 0);
}

static CollectiveCost p2p_cost(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                               double payload_bytes) {
    const Node *node = &profile->node;
    const Fabric *fabric = &profile->fabric;
    const NodeLinks links = collective_node_links(profile, group);
    CollectiveCost cost = {.wire_bytes = payload_bytes,
                           .ctas = node->ring_ctas,
                           .link_s = payload_bytes / links.p2p.bandwidth_bytes_per_s};
    if (group->nodes == 1) {
        cost.seconds = collective_curve_s(links.p2p_start_s, cost.link_s, &links.p2p);
        return cost;
    }
    const GroupPlacement one_flow = {.size = 2, .nodes = 2, .per_node = 1, .siblings = group->siblings};
    const double share = collective_fabric_bytes_per_s(profile, &one_flow);
    const double flow = fmin(share, fabric->p2p_efficiency * collective_rail_bytes_per_s(profile));
    cost.nic_s = payload_bytes / share;
    cost.link_s = group->per_node > 1 ? cost.link_s : 0;
    cost.ctas = fmin(node->ring_ctas, fabric->p2p_ctas);
    const double start_s = fabric->p2p_latency_s + collective_tiers_latency_s(profile, group, collective_one_hop, kind);
    cost.uplink_s = collective_tiers_s(profile, group, payload_bytes);
    const double network_s = smooth_max(payload_bytes / flow, cost.uplink_s);
    cost.seconds = collective_curve_s(start_s, fmax(network_s, cost.link_s), &fabric->p2p);
    return cost;
}

const CollectiveAlgorithm collective_p2p = {.name = "p2p", .applicable = p2p_applicable, .cost = p2p_cost};
