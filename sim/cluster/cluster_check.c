// Checks across the fields of a profile: numbers that contradict each other. Each error names both sides.

#include "sim/cluster/cluster_fields.h"

const double cluster_clock_headroom = 1.3;  // GeForce cards run 1.08 to 1.2 times it (RTX 4090, 5090)

static Status check_gemm(const ClusterProfile *profile, Error *error) {
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        const GemmRate *rate = &profile->accelerator.gemm[dtype];
        const char *name = dtype_name((Dtype)dtype);
        FAIL_IF(rate->burst_flop_per_s > cluster_clock_headroom * rate->peak_flop_per_s, error, STATUS_USAGE,
                "accelerator.gemm.%s: burst_flop_per_s %.4g must not be above %g x peak_flop_per_s %.4g", name,
                rate->burst_flop_per_s, cluster_clock_headroom, rate->peak_flop_per_s);
        FAIL_IF(rate->sustained_flop_per_s > rate->burst_flop_per_s, error, STATUS_USAGE,
                "accelerator.gemm.%s: sustained_flop_per_s %.4g must not be above burst_flop_per_s %.4g", name,
                rate->sustained_flop_per_s, rate->burst_flop_per_s);
    }
    return STATUS_OK;
}

static Status check_node(const ClusterProfile *profile, Error *error) {
    const Node *node = &profile->node;
    FAIL_IF(node->accelerators % node->hosts != 0, error, STATUS_USAGE,
            "node.accelerators %d must be a multiple of node.hosts %d", node->accelerators, node->hosts);
    FAIL_IF(node->nvls_min_ranks > 0 && node->nvls.bandwidth_bytes_per_s <= 0.0, error, STATUS_USAGE,
            "node.nvls_min_ranks is %d, so node.nvls.bandwidth_bytes_per_s must be above 0", node->nvls_min_ranks);
    FAIL_IF(profile->accelerator.device_class == DEVICE_CLASS_CPU && node->cores <= 0.0, error, STATUS_USAGE,
            "node.cores must be above 0 for accelerator.class \"cpu\", got %g", node->cores);
    return STATUS_OK;
}

static Status check_fabric(const ClusterProfile *profile, Error *error) {
    const Fabric *fabric = &profile->fabric;
    FAIL_IF(fabric->nics > 0 &&
                (fabric->nic_bytes_per_s <= 0.0 || fabric->efficiency <= 0.0 || fabric->p2p_efficiency <= 0.0),
            error, STATUS_USAGE,
            "fabric.nics is %d, so fabric.nic_bytes_per_s, fabric.efficiency and fabric.p2p_efficiency must be "
            "above 0, got %.4g, %.4g and %.4g",
            fabric->nics, fabric->nic_bytes_per_s, fabric->efficiency, fabric->p2p_efficiency);
    const int inner = fabric->tier[0].nodes, outer = fabric->tier[1].nodes;
    FAIL_IF(outer > 0 && (inner == 0 || outer <= inner), error, STATUS_USAGE,
            "fabric.tier2.nodes %d must be above fabric.tier1.nodes, which is %d%s", outer, inner,
            inner == 0 ? " (no such level)" : "");
    return STATUS_OK;
}

Status cluster_check(const ClusterProfile *profile, Error *error) {
    TRY(check_fabric(profile, error));
    TRY(check_node(profile, error));
    return check_gemm(profile, error);
}
