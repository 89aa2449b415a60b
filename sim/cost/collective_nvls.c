// NVLS: all-reduce inside one node with the switch doing the sums, so each rank sends its data once instead of twice.
// Formula: sim/SOURCES.md C5: start-up independent of the ranks, W = S (1 + 1/n); used from
// nvls_min_ranks. Not modelled: NVLS all-gather and reduce-scatter (NCCL does not choose them by default).

#include "sim/cost/collective.h"

static bool nvls_applicable(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group) {
    return kind == COLLECTIVE_ALL_REDUCE && group->nodes == 1 && profile->node.nvls_min_ranks > 0 &&
           group->size >= profile->node.nvls_min_ranks;
}

static CollectiveCost nvls_cost(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                                double payload_bytes) {
    (void)kind;
    const Node *node = &profile->node;
    const double wire_bytes = payload_bytes * (1 + 1.0 / group->size);
    const double link_s = wire_bytes / node->nvls.bandwidth_bytes_per_s;
    return (CollectiveCost){.seconds = collective_curve_s(node->nvls_latency_s, link_s, &node->nvls),
                            .link_s = link_s,
                            .wire_bytes = wire_bytes,
                            .ctas = node->nvls_ctas};
}

const CollectiveAlgorithm collective_nvls = {.name = "nvls", .applicable = nvls_applicable, .cost = nvls_cost};
