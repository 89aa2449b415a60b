// Ranks on the cores of one CPU; the only place that knows about it. A CPU profile's rates (GEMM, memory bandwidth,
// link curves) are those of one core.
//   fewer ranks than cores   the launcher gives each rank cores/ranks threads (exec/launch): kernels run that much
//                            faster, collectives and latencies stay
//   more ranks than cores    time-sharing: rates divide by ranks/cores and latencies multiply by it, collectives too,
//                            which are copies by the same cores (sim/SOURCES.md X1: 8 MB reduce-scatter of 2,
//                            4, 8 ranks on 2 cores 0.094, 0.35, 1.5 ms; 64 MB all-reduce 6.6, 15.6, 41 ms)
// So a rank has cores/ranks of them as its own part, and what it runs at the same time (its lanes) shares that part: a
// kernel is as many threads as it has whole cores, a collective one (cost_core_share).
// Not modelled: that a rank which waits lends its part to the others; memory channels that saturate before the cores
// do, kernels too small for several threads.
// Between two uses of a weight a step touches all that the ranks hold from step to step: where that is more than the
// caches, streams read and write memory (cost_streams_from). Not modelled: what the task before left in a cache.

#include "sim/cost/cost.h"

#include <math.h>

static void kernels_scale(Accelerator *accelerator, double speed) {
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        GemmRate *rate = &accelerator->gemm[dtype];
        rate->peak_flop_per_s *= speed;
        rate->burst_flop_per_s *= speed;
        rate->sustained_flop_per_s *= speed;
    }
    accelerator->memory_bytes_per_s *= speed;
    accelerator->beyond_cache_bytes_per_s *= speed;
}

static void latencies_scale(ClusterProfile *profile, double turns) {
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        profile->accelerator.gemm[dtype].tile_overhead_s *= turns;
        profile->accelerator.gemm[dtype].launch_s *= turns;
    }
    profile->accelerator.kernel_floor_s *= turns;
    profile->accelerator.kernel_gap_s *= turns;
    profile->node.link_latency_s *= turns;
    profile->node.step_latency_s *= turns;
    profile->node.p2p_latency_s *= turns;
}

void cost_streams_from(Accelerator *accelerator, double held_bytes) {
    if (accelerator->device_class == DEVICE_CLASS_CPU && accelerator->beyond_cache_bytes_per_s > 0 &&
        held_bytes > accelerator->cache_bytes) {
        accelerator->memory_bytes_per_s = accelerator->beyond_cache_bytes_per_s;
        accelerator->memory_efficiency = 1;
    }
}

double cost_core_share(const ClusterProfile *profile, int ranks_on_node, bool one_thread) {
    if (profile->accelerator.device_class != DEVICE_CLASS_CPU || ranks_on_node < 1) {
        return 0;
    }
    const double part = fmax(1, profile->node.cores) / ranks_on_node;
    return one_thread ? fmin(1, 1 / part) : fmax(1, floor(part)) / fmax(1, part);
}

ClusterProfile cost_shared_profile(const ClusterProfile *profile, int ranks_on_node) {
    ClusterProfile shared = *profile;
    if (profile->accelerator.device_class != DEVICE_CLASS_CPU || ranks_on_node < 1) {
        return shared;
    }
    const double cores = fmax(1, profile->node.cores), turns = ranks_on_node / cores;
    if (turns <= 1) {
        kernels_scale(&shared.accelerator, floor(cores / ranks_on_node));
        return shared;
    }
    kernels_scale(&shared.accelerator, 1 / turns);
    latencies_scale(&shared, turns);
    shared.node.ring.bandwidth_bytes_per_s /= turns;
    shared.node.p2p.bandwidth_bytes_per_s /= turns;
    shared.node.reduction_bytes_per_s /= turns;
    return shared;
}
