// Ranks on the cores of one CPU. A rank computes with one core: the profile's GEMM rate, bandwidth and link curves are
// what one rank reaches while every rank has a core to itself. With more ranks than cores all of them take turns, so
// rates divide by ranks/cores and latencies multiply by it, collectives included: through shared memory they are copies
// by the same cores (reference executor.md 6.3: 8 MB reduce-scatter of 2, 4, 8 ranks on 2 cores 0.094, 0.35, 1.5 ms; 64
// MB all-reduce 6.6, 15.6, 41 ms). This is the only place that knows about it. Not modelled: memory channels that
// saturate before the cores do, caches.

#include "sim/cost/cost.h"

static void curve_slow(LinkCurve *curve, double turns) {
    curve->bandwidth_bytes_per_s /= turns;
}

ClusterProfile cost_shared_profile(const ClusterProfile *profile, int ranks_on_node) {
    ClusterProfile shared = *profile;
    const double cores = profile->node.cores > 0 ? profile->node.cores : 1;
    const double turns = ranks_on_node / cores;
    if (profile->accelerator.device_class != DEVICE_CLASS_CPU || turns <= 1) {
        return shared;
    }
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        GemmRate *rate = &shared.accelerator.gemm[dtype];
        rate->peak_flop_per_s /= turns;
        rate->burst_flop_per_s /= turns;
        rate->sustained_flop_per_s /= turns;
        rate->tile_overhead_s *= turns;
        rate->launch_s *= turns;
    }
    shared.accelerator.memory_bytes_per_s /= turns;
    shared.accelerator.kernel_floor_s *= turns;
    shared.accelerator.kernel_gap_s *= turns;
    shared.node.link_latency_s *= turns;
    shared.node.step_latency_s *= turns;
    shared.node.p2p_latency_s *= turns;
    curve_slow(&shared.node.ring, turns);
    curve_slow(&shared.node.p2p, turns);
    return shared;
}
