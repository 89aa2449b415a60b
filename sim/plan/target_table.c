// The capability table, one row per framework and version, default version first. What the accelerate row runs was read
// in huggingface/accelerate 16cb6eb (tag v1.14.0), PyTorch's fsdp/_fully_shard and transformers' tensor_parallel.py;
// section numbers in the rows are those of our notes parallelism.md, hardware.md, collectives.md and accuracy-notes.md.
// accelerate 1.13 is left out: it differs from 1.14 by keeping embedding, final norm and head in the root unit
// (gathered for the whole forward pass), which needs a unit split that the lowering does not make.

#include "sim/plan/target.h"

static const Target targets[] = {
    {
        .name = "accelerate",
        .version = "1.14",
        .evidence = "unvalidated",
        .tp_flavour = TP_HF,  // transformers' plan: each projection reduces its own input gradient (3.3)
        .recompute_flavour = RECOMPUTE_CHILD,  // wraps norm1, attention, norm2, mlp separately (1.2)
        .zigzag = true,                        // torch context_parallel's head-tail balancer (1.3, 3.2)
        .cp_ring = true,                       // cp_comm_strategy alltoall (1.3)
        .cp_allgather = true,                  // the default strategy (1.3)
        .reduce_dtype_bf16 = DTYPE_BF16,       // MixedPrecisionPolicy(reduce_dtype=bf16) (1.2)
        .fused_projections = false,            // transformers' Llama has q, k, v, gate, up apart
        .deferred_reduce = true,               // accumulate() -> no_sync: last micro-step only (1.2)
        .shared_shard_lane = true,             // gather and reduce share shard_process_group (3.1)
        .shard_copies = true,                  // copy-out and chunk_cat on the compute stream (3.1)
        .backward_prefetch = true,             // one layer ahead in pre_backward (3.1)
        .tp_reduce_overlaps = false,           // a linear layer's backward ends before its hook reduces (3.3)
        .master_fp32 = true,                   // trainable parameters are upcast before sharding (1.2)
        .replicate_needs_shard = true,         // ParallelismConfig's check (1.1)
        .shard_needs_fsdp = true,              // fully_shard is the only sharding (1.1)
        .max_zero = 3,
        .host_s_per_op = 13e-6,        // hardware.md 5.3 and 6: B200 eager Llama-3.2-1B, 615 kernels in 8.1 ms
        .step_fixed_s = 10e-3,         // estimated: half of fsdp1's 20 ms lower end (accuracy-notes.md 2); without it
                                       // the accelerate rows score no worse (3, "step constant")
        .memory_passes = 3.0,          // accuracy-notes.md 2, eager over least bytes of norms, rotary, SwiGLU:
                                       // 107h/32h = 3.3 on llama-2-7b, 100h/34h = 2.9 on llama-3-8b
        .loss_bytes_per_logit = 32.0,  // accuracy-notes.md 2: eager fp32 cross-entropy, forward and backward
        .optimizer_bytes_per_parameter = 60.0,           // accuracy-notes.md 2: fsdp1 and accelerate, foreach AdamW
        .optimizer_temporary_bytes_per_parameter = 4.0,  // foreach temporary: accuracy-notes.md 4, "12+4+4"
        .context_bytes = 0.7e9,        // estimated: CUDA 12 context, cuBLAS workspaces and loaded modules
        .communicator_bytes = 0.25e9,  // estimated: 24 channels x 10 MB of LL, LL128, Simple buffers (collectives.md 2)
        .allocator_slack = 0.05,       // parallelism.md 6.2: reserved 5 to 10 % over allocated (estimated there too)
        .relative_uncertainty = 0.12,  // with a GPU profile's 0.20 this gives 0.23, the width of -20/+45 % at 80 %
                                       // (accuracy-notes.md 1.1, uncalibrated)
    },
    {
        .name = "ndtune",
        .version = "1",
        .evidence = "unvalidated",
        .tp_flavour = TP_SP,
        .recompute_flavour = RECOMPUTE_BLOCK,
        .zigzag = true,
        .cp_ring = true,
        .cp_allgather = false,
        .reduce_dtype_bf16 = DTYPE_FP32,
        .fused_projections = true,
        .deferred_reduce = false,
        .shared_shard_lane = false,
        .shard_copies = false,       // flat units: the gather writes where the GEMM reads
        .backward_prefetch = false,  // lanes run ahead by themselves; nothing is issued out of order
        .tp_reduce_overlaps = true,
        .master_fp32 = true,
        .replicate_needs_shard = false,
        .shard_needs_fsdp = false,
        .max_zero = 3,
        .host_s_per_op = 3e-6,  // estimated: one interpreted task, no allocation, no Python
        .step_fixed_s = 0.0,
        .memory_passes = 1.0,          // one pass per kernel: kernels.h
        .loss_bytes_per_logit = 16.0,  // fp32 logits: max reads 4, sum reads 4, gradient reads and writes 8 (kernels.h)
        .optimizer_bytes_per_parameter = 28.0,  // fused AdamW: g, master, m, v in, master, m, v out; hardware.md 5.3
        .optimizer_temporary_bytes_per_parameter = 0.0,
        .context_bytes = 0.0,  // the executor reports its arena, which the planner gives exactly
        .communicator_bytes = 0.0,
        .allocator_slack = 0.0,
        .relative_uncertainty = 0.10,  // estimated: no framework between the program and the machine
    },
};

const Target *target_table(int *count) {
    *count = (int)(sizeof targets / sizeof targets[0]);
    return targets;
}
