// Kernels that stream memory: norms, rotary, activations, copies, the loss, the optimizer. Time = floor + bytes at
// achieved bandwidth, sim/SOURCES.md H5; the gap to the next kernel of the stream is H7. How many
// bytes a target really moves (eager chains of operations) is its own number: memory_passes and friends, applied in
// cost.c. Not modelled: caches (a small tensor may stay in L2), strided access.

#include "sim/cost/compute.h"

KernelTime stream_time(const Accelerator *accelerator, double bytes, int kernels) {
    const double memory_s = bytes / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    const double idle_s = (kernels - 1) * accelerator->kernel_gap_s;  // inside the chain
    return (KernelTime){
        .seconds = kernels * accelerator->kernel_floor_s + idle_s + memory_s, .memory_s = memory_s, .memory_bound = 1};
}
