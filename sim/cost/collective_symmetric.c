// A what-if: gathers and reductions of registered buffers. Inside a node in symmetric memory (NCCL 2.27): every rank
// reads or writes the parts of all others at once, so start-up is one step whatever the ranks, and no part is copied to
// itself. Across nodes with SHARP: switches sum and copy, so an all-reduce sends its data once and start-up grows with
// the depth of the tree; the slower of links and network sets the pace, as of rings (collective_ring.c). Enabled where
// a profile gives their SMs (node.symmetric_ctas, fabric.sharp_ctas); 4 or 5, and 6, by Megatron-LM's table
// (distributed_data_parallel_config.py, nccl_ub). A guess: bandwidths are those of the rings, nothing here is fitted,
// and what registration costs in memory is left out.

#include <math.h>

#include "sim/cost/collective.h"

static bool symmetric_applicable(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group) {
    return kind <= COLLECTIVE_REDUCE_SCATTER && group->nodes == 1 && profile->node.symmetric_ctas > 0;
}

static CollectiveCost symmetric_cost(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                                     double payload_bytes) {
    const Node *node = &profile->node;
    const NodeLinks links = collective_node_links(profile, group);
    const double wire_bytes = collective_steps(kind, group->size) / group->size * payload_bytes;
    const double link_s = wire_bytes / links.ring.bandwidth_bytes_per_s;
    return (CollectiveCost){.seconds =
                                collective_curve_s(node->link_latency_s + node->step_latency_s, link_s, &links.ring),
                            .link_s = link_s,
                            .wire_bytes = wire_bytes,
                            .ctas = node->symmetric_ctas};
}

const CollectiveAlgorithm collective_symmetric = {
    .name = "symmetric", .applicable = symmetric_applicable, .cost = symmetric_cost};

static bool sharp_applicable(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group) {
    return kind <= COLLECTIVE_ALL_REDUCE && group->nodes > 1 && profile->fabric.nics > 0 &&
           profile->fabric.sharp_ctas > 0;
}

static CollectiveCost sharp_cost(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                                 double payload_bytes) {
    const Node *node = &profile->node;
    const double parts = kind == COLLECTIVE_ALL_REDUCE ? 1 + 1.0 / group->size : (group->size - 1.0) / group->size;
    const double wire_bytes = parts * payload_bytes;
    const NodeLinks links = collective_node_links(profile, group);
    CollectiveCost cost = {.wire_bytes = wire_bytes, .ctas = profile->fabric.sharp_ctas};
    cost.link_s = group->per_node > 1 ? wire_bytes / links.ring.bandwidth_bytes_per_s : 0;
    cost.nic_s = wire_bytes / collective_fabric_bytes_per_s(profile, group);
    cost.uplink_s = collective_tiers_s(profile, group, wire_bytes);
    const double start_s = node->link_latency_s + node->step_latency_s +
                           profile->fabric.ring_step_latency_s * ceil(log2(group->nodes)) +
                           collective_tiers_latency_s(profile, group, collective_steps, kind);
    const double network_s = smooth_max(cost.nic_s, cost.uplink_s);
    cost.seconds = collective_curve_s(start_s, fmax(cost.link_s, network_s), &profile->fabric.ring) +
                   collective_between_nodes_s(profile, group);
    return cost;
}

const CollectiveAlgorithm collective_sharp = {.name = "sharp", .applicable = sharp_applicable, .cost = sharp_cost};
