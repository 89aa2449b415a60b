// What PyTorch frameworks have in common. Numbers such as (P6), here and in the folders, are those of
// sim/SOURCES.md.

#include "sim/frameworks/pytorch.h"

const TargetVersion pytorch = {
    .settings = SETTINGS(
        SET(shared_shard_lane, true),  // gather and reduce of a sharded group share one communicator (P6)
        SET(master_fp32, true),        // trainable parameters are upcast before sharding (P2)
        SET(axes, AXES_DP | AXES_TP), SET(runtime.follows_processor, true),
        SET(runtime.lost_lead, 0.49),             // fitted; 0.48 to 0.59 without the sweep that has its own
        SET(runtime.host_s_per_op, 13e-6),        // sim/SOURCES.md H7: B200 eager Llama-3.2-1B, 615 kernels in 8.1 ms
        SET(runtime.context_bytes, 0.7e9),        // estimated: CUDA 12 context, cuBLAS workspaces and loaded modules
        SET(runtime.communicator_bytes, 0.25e9),  // estimated: 24 channels x 10 MB of LL, LL128, Simple buffers
                                                  // (sim/SOURCES.md C10)
        SET(runtime.allocator_slack, 0.05)),      // sim/SOURCES.md P9: reserved 5 to 10 % over allocated (estimated
                                                  // there too)
};

// Read in PyTorch's fsdp/_fully_shard and what Trainers pass to it (sim/SOURCES.md P6).
const TargetVersion pytorch_fsdp = {
    .extends = &pytorch,
    .settings =
        SETTINGS(SET(reduce_dtype_bf16, DTYPE_BF16),  // MixedPrecisionPolicy(reduce_dtype=bf16) (P2)
                 SET(shard_copies, true),             // copy-out and chunk_cat on the compute stream (P6)
                 SET(backward_prefetch, true),        // one layer ahead in pre_backward (P6)
                 SET(runtime.shard_hooks, SHARD_HOOKS_BY_PARAMETER),  // FSDPParamGroup
                 SET(shard_needs_fsdp, true),                         // fully_shard is the only sharding (P1)
                 SET(max_zero, 3), SET(runtime.loss_by_row, true),
                 SET(offloads, 1u << OFFLOAD_PARAMETERS),  // CPUOffloadPolicy; FSDP 1: CPUOffload(offload_params)
                 SET(bf16_optimizer_bytes_per_parameter, 20.0)),  // sim/SOURCES.md A6: pure bf16
};
