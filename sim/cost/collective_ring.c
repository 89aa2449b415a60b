// Ring: every rank passes parts to its neighbour; ordered so that a node is left and entered once per ring and rail.
// Formulas: collectives.md 6.3, "one node, ring" and "many nodes, ring". Start-up grows with the steps, each at the
// latency of its link; the payload is limited by the node links, the NICs, or both (smooth maximum). kappa is the local
// copy of a rank's own part, which costs NVLink-class bandwidth but not the network. Not modelled: bandwidth lost in
// very large fat trees.

#include "sim/cost/collective.h"

static bool ring_applicable(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group) {
    return kind != COLLECTIVE_SEND_RECV && (group->nodes == 1 || profile->fabric.nics > 0);
}

static CollectiveCost ring_cost(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                                double payload_bytes) {
    const Node *node = &profile->node;
    const double members = group->size;
    const double steps = collective_steps(kind, group->size);
    const double wire_bytes = steps / members * payload_bytes;
    const double link_s = (steps + node->ring_copy) / members * payload_bytes / node->ring.bandwidth_bytes_per_s;
    CollectiveCost cost = {.wire_bytes = wire_bytes, .ctas = node->ring_ctas, .link_s = link_s};
    if (group->nodes == 1) {
        const double start_s = node->link_latency_s + node->step_latency_s * steps;
        cost.seconds = collective_curve_s(start_s, link_s, &node->ring);
        return cost;
    }
    const double fabric_steps = collective_steps(kind, group->nodes);
    const double start_s = node->link_latency_s + node->step_latency_s * (steps - fabric_steps) +
                           profile->fabric.ring_step_latency_s * fabric_steps;
    cost.nic_s = wire_bytes / collective_fabric_bytes_per_s(profile, group);
    if (group->per_node == 1) {
        cost.link_s = 0;  // one rank per node: nothing passes between the ranks of a node
    }
    cost.seconds = collective_curve_s(start_s, smooth_max(cost.link_s, cost.nic_s), &profile->fabric.ring);
    return cost;
}

const CollectiveAlgorithm collective_ring = {.name = "ring", .applicable = ring_applicable, .cost = ring_cost};
