// Ring: every rank passes parts to its neighbour; ordered so that a node is left and entered once per ring and rail.
// Formulas: sim/SOURCES.md C4. Start-up grows with the steps, each at the
// latency of its link; the payload takes as long as the slower of the node's links and the network, as chunks follow
// each other: rings of 4 to 128 H100 nodes reach 367 to 391 GB/s, where a node's own reach 368 and the NICs 384. kappa
// is the local copy of a rank's own part, which costs NVLink-class bandwidth but not the network.

#include "sim/cost/collective.h"

#include <math.h>

static bool ring_applicable(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group) {
    return kind <= COLLECTIVE_ALL_REDUCE && (group->nodes == 1 || profile->fabric.nics > 0);
}

// Of summing what arrived, on machines where that does not overlap the transfer ((P-1)/P r m: Thakur,
// Rabenseifner and Gropp 2005, their gamma).
static double reduction_s(const Node *node, CollectiveKind kind, int members, double payload_bytes) {
    const bool reduces = kind != COLLECTIVE_ALL_GATHER && node->reduction_bytes_per_s > 0;
    return reduces ? payload_bytes * (members - 1) / members / node->reduction_bytes_per_s : 0;
}

// What pipelining loses at most, in start-ups: fitted on two nodes and, on Slingshot, on up to 540 of few ranks. It
// grows with the steps between nodes, which set the pace; steps inside further nodes overlap those.
static LinkCurve paced_curve(const ClusterProfile *profile, const GroupPlacement *group, double start_s,
                             double steps_inside) {
    LinkCurve curve = profile->fabric.ring;
    const double beside = fmax(0, steps_inside - 2.0 * (group->per_node - 1));
    curve.ceiling *= start_s > 0 ? 1 - beside * profile->node.step_latency_s / start_s : 1;
    return curve;
}

static CollectiveCost ring_cost(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                                double payload_bytes) {
    const Node *node = &profile->node;
    const double members = group->size;
    const double steps = collective_steps(kind, group->size);
    const NodeLinks links = collective_node_links(profile, group);
    const double wire_bytes = steps / members * payload_bytes;
    const double link_s = (steps + node->ring_copy) / members * payload_bytes / links.ring.bandwidth_bytes_per_s;
    CollectiveCost cost = {.wire_bytes = wire_bytes, .ctas = node->ring_ctas, .link_s = link_s};
    const double sum_s = reduction_s(node, kind, group->size, payload_bytes);
    if (group->nodes == 1) {
        const double start_s = links.ring_start_s + node->step_latency_s * (steps - (members - 1));
        cost.seconds = collective_curve_s(start_s, link_s + sum_s, &links.ring);
        return cost;
    }
    const double fabric_steps = collective_steps(kind, group->nodes);
    const double start_s = node->link_latency_s + node->step_latency_s * (steps - fabric_steps) +
                           profile->fabric.ring_step_latency_s * fabric_steps +
                           collective_tiers_latency_s(profile, group, collective_steps, kind);
    cost.nic_s = wire_bytes / collective_fabric_bytes_per_s(profile, group);
    if (group->per_node == 1) {
        cost.link_s = 0;  // one rank per node: nothing passes between the ranks of a node
    }
    cost.uplink_s = collective_tiers_s(profile, group, wire_bytes);
    const double network_s = smooth_max(cost.nic_s, cost.uplink_s);
    const LinkCurve curve = paced_curve(profile, group, start_s, steps - fabric_steps);
    cost.seconds = collective_curve_s(start_s, fmax(cost.link_s, network_s) + sum_s, &curve) +
                   collective_between_nodes_s(profile, group);
    return cost;
}

const CollectiveAlgorithm collective_ring = {.name = "ring", .applicable = ring_applicable, .cost = ring_cost};
