// The capability table, one row per framework and version, default version first. What the accelerate row runs was read
// in huggingface/accelerate 16cb6eb (tag v1.14.0), PyTorch's fsdp/_fully_shard and transformers' tensor_parallel.py;
// section numbers in the rows are those of our notes parallelism.md, hardware.md, collectives.md and accuracy-notes.md.
// Rows that say no source share the other version's figures.

#include "sim/frameworks/target.h"

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
        .fp8_flavour = FP8_TORCHAO,  // AORecipeKwargs, the default backend (accelerate 1.14 utils/dataclasses.py)
        .replicate_rule = REPLICATE_NOT_BESIDE_TP_OR_CP,  // ParallelismConfig's check (1.1)
        .rank_order_rule = RANK_ORDER_FIXED,  // ParallelismConfig sorts its mesh by one list (1.1), as all unsaid below
        .has_tp = true,
        .has_cp = true,
        .shard_needs_fsdp = true,  // fully_shard is the only sharding (1.1)
        .max_zero = 3,
        .default_attention = ATTENTION_FLASH,  // SDPA picks FlashAttention 2
        .default_fused = FUSED_EAGER,
        .runtime.host_s_per_op = 13e-6,  // hardware.md 5.3 and 6: B200 eager Llama-3.2-1B, 615 kernels in 8.1 ms
        .runtime.other_share = 0.03,     // fitted on half of the groups of one source (fms-acceleration), 1 to 4 A100
        .runtime.step_fixed_s = 10e-3,   // estimated: half of fsdp1's 20 ms lower end (accuracy-notes.md 2); without it
                                         // the accelerate rows score no worse (3, "step constant")
        .loss_fp32_copies = {[FUSED_EAGER] = 2, [FUSED_COMPILED] = 1},  // upcast logits, log-softmax; fused: none
        .runtime.optimizer_bytes_per_parameter = 60.0,   // accuracy-notes.md 2: fsdp1 and accelerate, foreach
                                                         // AdamW
        .bf16_optimizer_bytes_per_parameter = 20.0,      // accuracy-notes.md 2: pure bf16
        .optimizer_temporary_bytes_per_parameter = 4.0,  // foreach temporary: accuracy-notes.md 4, "12+4+4"
        .runtime.context_bytes = 0.7e9,        // estimated: CUDA 12 context, cuBLAS workspaces and loaded modules
        .runtime.communicator_bytes = 0.25e9,  // estimated: 24 channels x 10 MB of LL, LL128, Simple buffers
                                               // (collectives.md 2)
        .runtime.allocator_slack = 0.05,       // parallelism.md 6.2: reserved 5 to 10 % over allocated (estimated there
                                               // too)
        .runtime.relative_uncertainty = 0.12,  // with a GPU profile's 0.20 this gives 0.23, the width of -20/+45 % at
                                               // 80 % (accuracy-notes.md 1.1, uncalibrated)
    },
    {
        .name = "accelerate",
        .version = "1.13",  // before PR #4015: embedding, norm and head sit in the root unit (1.2)
        .root_unit = true,
        .evidence = "unvalidated",
        .tp_flavour = TP_HF,
        .recompute_flavour = RECOMPUTE_CHILD,
        .zigzag = true,
        .cp_ring = true,
        .cp_allgather = true,
        .reduce_dtype_bf16 = DTYPE_BF16,
        .deferred_reduce = true,
        .shared_shard_lane = true,
        .shard_copies = true,
        .backward_prefetch = true,
        .master_fp32 = true,
        .fp8_flavour = FP8_TORCHAO,
        .replicate_rule = REPLICATE_NOT_BESIDE_TP_OR_CP,
        .has_tp = true,
        .has_cp = true,
        .shard_needs_fsdp = true,
        .max_zero = 3,
        .default_attention = ATTENTION_FLASH,
        .default_fused = FUSED_EAGER,
        .runtime.host_s_per_op = 13e-6,
        .runtime.other_share = 0.03,
        .runtime.step_fixed_s = 10e-3,
        .loss_fp32_copies = {[FUSED_EAGER] = 2, [FUSED_COMPILED] = 1},
        .runtime.optimizer_bytes_per_parameter = 60.0,
        .bf16_optimizer_bytes_per_parameter = 20.0,
        .optimizer_temporary_bytes_per_parameter = 4.0,
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.05,
        .runtime.relative_uncertainty = 0.12,
    },
    {
        .name = "accelerate",
        .version = "1.0",    // transformers' Trainer over FSDP version 1, before fsdp_version 2 (accelerate 1.6)
        .until = "2025-04",  // accelerate 1.6 came out in April 2025
        .root_unit = true,
        .root_kept = true,  // tests/frameworks: fsdp1
        .evidence = "34 published runs of one stack",
        .tp_flavour = TP_AR,
        .recompute_flavour = RECOMPUTE_BLOCK,  // gradient_checkpointing: a layer's input is all that stays
        .reduce_dtype_bf16 = DTYPE_BF16,
        .deferred_reduce = true,
        .shared_shard_lane = true,
        .shard_copies = true,  // the cast to bf16 before the gather; no bf16 shard stays
        .backward_prefetch = true,
        .master_fp32 = true,
        .replicate_rule = REPLICATE_ANY,  // HYBRID_SHARD
        .has_tp = false,
        .has_cp = false,
        .shard_needs_fsdp = true,
        .max_zero = 3,
        .default_attention = ATTENTION_FLASH,
        .default_fused = FUSED_EAGER,
        .runtime.host_s_per_op = 13e-6,
        .runtime.other_share = 0.03,
        .runtime.step_fixed_s = 10e-3,
        .loss_fp32_copies = {[FUSED_EAGER] = 2, [FUSED_COMPILED] = 1},
        .runtime.optimizer_bytes_per_parameter = 60.0,
        .bf16_optimizer_bytes_per_parameter = 20.0,
        .optimizer_temporary_bytes_per_parameter = 4.0,
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.0,  // what it reports is what lives, to the last per mille (fms-acceleration)
        .runtime.relative_uncertainty = 0.10,
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
        .fuses_passes = true,
        .own_kernels = true,
        .master_fp32 = true,
        .replicate_rule = REPLICATE_ANY,
        .rank_order_rule = RANK_ORDER_ANY,  // its groups come from sim/axes
        .has_tp = true,
        .has_cp = true,
        .shard_needs_fsdp = false,
        .max_zero = 3,
        .default_attention = ATTENTION_FLASH,
        .default_fused = FUSED_FUSED,
        .runtime.host_s_per_op = 3e-6,  // estimated: one interpreted task, no allocation, no Python
        .runtime.step_fixed_s = 0.0,
        .runtime.memory_passes = 1.0,          // one pass per kernel: kernels.h
        .runtime.loss_bytes_per_logit = 16.0,  // fp32 logits: max reads 4, sum reads 4, gradient reads and writes 8
                                               // (kernels.h); bf16: half; without tp: see TASK_LOSS
        .runtime.optimizer_bytes_per_parameter = 28.0,  // fused AdamW: g, master, m, v in, master, m, v out;
                                                        // hardware.md 5.3
        .optimizer_temporary_bytes_per_parameter = 0.0,
        .runtime.context_bytes = 0.0,  // the executor reports its arena, which the planner gives exactly
        .runtime.communicator_bytes = 0.0,
        .runtime.allocator_slack = 0.0,
        .runtime.relative_uncertainty = 0.10,  // estimated: no framework between the program and the machine
    },
    {
        .name = "axolotl",
        .version = "0.18",
        .evidence = "unvalidated",
        .tp_flavour = TP_HF,
        .recompute_flavour = RECOMPUTE_CHILD,
        .zigzag = false,       // ring-flash-attn splits contiguously (2.2)
        .cp_ring = true,       // batch_ring (2.2)
        .cp_allgather = true,  // varlen_llama3, the default with packing (2.2)
        .cp_scatters = true,   // llama3_flash_attn_varlen.py of ring-flash-attention: reduce_scatter_tensor
        .reduce_dtype_bf16 = DTYPE_BF16,
        .fused_projections = false,
        .deferred_reduce = true,
        .shared_shard_lane = true,
        .shard_copies = true,
        .backward_prefetch = true,
        .tp_reduce_overlaps = false,
        .master_fp32 = true,
        .fp8_flavour = FP8_TORCHAO,                       // the same AORecipeKwargs
        .replicate_rule = REPLICATE_NOT_BESIDE_TP_OR_CP,  // same ParallelismConfig underneath (2.2)
        .has_tp = true,
        .has_cp = true,
        .shard_needs_fsdp = true,
        .max_zero = 3,
        .always_reshards = true,  // its setup_fsdp_envs hands on only true, and accelerate's default is true
        .default_attention = ATTENTION_FLASH,  // flash_attention_2 is required beside cp (2.2)
        .default_fused = FUSED_EAGER,
        .runtime.host_s_per_op = 13e-6,  // as accelerate: the same modules
        .runtime.other_share = 0.03,
        .runtime.step_fixed_s = 10e-3,
        .loss_fp32_copies = {[FUSED_EAGER] = 2, [FUSED_COMPILED] = 1},  // upcast logits, log-softmax; fused: none
        .runtime.optimizer_bytes_per_parameter = 60.0,
        .bf16_optimizer_bytes_per_parameter = 20.0,
        .optimizer_temporary_bytes_per_parameter = 4.0,
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.05,
        .runtime.relative_uncertainty = 0.15,  // estimated: accelerate's, and no run of its own to compare with
    },
    {
        .name = "torchtitan",
        .version = "0.2",
        .evidence = "118 published runs",
        .tp_flavour = TP_SP,                   // its plan is sequence parallel (2.1)
        .recompute_flavour = RECOMPUTE_BLOCK,  // full = whole block (2.1)
        .recompute_whole = true,               // early_stop False (2.1)
        .selective_flavour = SELECTIVE_OPS,    // selective_ac_option "op" (2.1, 6.2)
        .zigzag = true,
        .cp_ring = false,  // 0.2.2 reads context_parallel_rotate_method in validation only (tests/frameworks)
        .cp_allgather = true,
        .reduce_dtype_bf16 = DTYPE_FP32,
        .reduces_fp32_only = true,  // mixed_precision_reduce allows float32 only (1.2)
        .fused_projections = false,
        .deferred_reduce = false,    // never calls set_requires_gradient_sync (1.2)
        .replicas_each_step = true,  // tests/frameworks: replicate2_shard2_accumulate
        .shared_shard_lane = true,
        .shard_copies = true,
        .backward_prefetch = true,
        .tp_reduce_overlaps = false,
        .tp_copies = true,  // torch.distributed._functional_collectives: cat of chunks where the dimension is not 0
        .master_fp32 = true,
        .allocator = ALLOCATOR_EXPANDABLE,          // its run_train.sh
        .fp8_flavour = FP8_TORCHAO,                 // Float8LinearConverter
        .rank_order_rule = RANK_ORDER_FIXED,        // ParallelDims builds its meshes in one order (2.1)
        .replicate_rule = REPLICATE_NOT_BESIDE_TP,  // R > 1 with S = C = 1 is DDP, which does not combine (2.1)
        .has_tp = true,
        .has_cp = true,
        .shard_needs_fsdp = true,
        .max_zero = 3,
        .default_attention = ATTENTION_FLASH,                        // SDPA (2.1)
        .default_fused = FUSED_COMPILED,                             // its published recipes compile each block
        .runtime.host_s_per_op = 13e-6,                              // accuracy-notes.md 2
        .tp_overlap_exposed = 0.65,                                  // async TP (accuracy-notes.md 2)
        .runtime.step_fixed_s = 5e-3,                                // estimated: no Trainer around the step
        .loss_fp32_copies = {[FUSED_FUSED] = 3, [FUSED_EAGER] = 3},  // tests/frameworks/memory: log-softmax and two
                                                                     // gradients; compiled, Inductor of PyTorch 2.11
                                                                     // writes the gradient from bf16 logits at once
        .split_loss_fp32_copies = 1,                                 // the same: loss_parallel's exponentials
        .runtime.optimizer_bytes_per_parameter = 40.0,               // accuracy-notes.md 2
        .bf16_optimizer_bytes_per_parameter = 20.0,                  // training.dtype=bfloat16
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.15,  // its reserved memory over live bytes; 0.2 fits half of its groups better,
                                          // fewer fit
        .runtime.relative_uncertainty = 0.15,  // accuracy-notes.md 1.1: -15 to +27 % at 80 % even when fitted
    },
    {
        .name = "torchtitan",
        .version = "0.0",  // before #391: the logits live through backward
        .until = "2024-07",
        .root_unit = true,  // embedding, norm and output until pytorch/torchtitan f336766da
        .evidence = "12 published runs",
        .recompute_whole = true,
        .selective_flavour = SELECTIVE_OPS,
        .zigzag = true,
        .cp_allgather = true,
        .reduce_dtype_bf16 = DTYPE_FP32,
        .reduces_fp32_only = true,
        .replicas_each_step = true,
        .shared_shard_lane = true,
        .shard_copies = true,
        .backward_prefetch = true,
        .tp_copies = true,
        .master_fp32 = true,
        .allocator = ALLOCATOR_SEGMENTS,
        .fp8_flavour = FP8_TORCHAO,
        .replicate_rule = REPLICATE_NOT_BESIDE_TP,
        .has_tp = true,
        .has_cp = true,
        .shard_needs_fsdp = true,
        .max_zero = 3,
        .default_fused = FUSED_COMPILED,
        .runtime.host_s_per_op = 13e-6,
        .tp_overlap_exposed = 0.65,
        .runtime.step_fixed_s = 5e-3,
        .loss_fp32_copies = {[FUSED_FUSED] = 4, [FUSED_EAGER] = 4, [FUSED_COMPILED] = 4},
        .split_loss_fp32_copies = 1,
        .runtime.optimizer_bytes_per_parameter = 40.0,
        .bf16_optimizer_bytes_per_parameter = 20.0,
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.15,
        .runtime.relative_uncertainty = 0.15,
    },
    {
        .name = "torchtitan",
        .version = "0.1",    // compiled runs held what eager ones did: Inductor kept the log-softmax
        .until = "2025-04",  // its logs of 2025-02 and 2025-06
        .evidence = "45 published runs",
        .recompute_whole = true,
        .selective_flavour = SELECTIVE_OPS,
        .zigzag = true,
        .cp_allgather = true,
        .reduce_dtype_bf16 = DTYPE_FP32,
        .reduces_fp32_only = true,
        .replicas_each_step = true,
        .shared_shard_lane = true,
        .shard_copies = true,
        .backward_prefetch = true,
        .tp_copies = true,
        .master_fp32 = true,
        .allocator = ALLOCATOR_SEGMENTS,  // its logs of 2024-12 and 2025-02, first step and later: 42.1 and 49.6 GiB
        .fp8_flavour = FP8_TORCHAO,
        .replicate_rule = REPLICATE_NOT_BESIDE_TP,
        .has_tp = true,
        .has_cp = true,
        .shard_needs_fsdp = true,
        .max_zero = 3,
        .default_fused = FUSED_COMPILED,
        .runtime.host_s_per_op = 13e-6,
        .tp_overlap_exposed = 0.65,
        .runtime.step_fixed_s = 5e-3,
        .loss_fp32_copies = {[FUSED_FUSED] = 3, [FUSED_EAGER] = 3, [FUSED_COMPILED] = 3},
        .split_loss_fp32_copies = 1,
        .runtime.optimizer_bytes_per_parameter = 40.0,
        .bf16_optimizer_bytes_per_parameter = 20.0,
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.15,
        .runtime.relative_uncertainty = 0.15,
    },
    {
        .name = "torchtitan",
        .version = "head",
        .evidence = "unvalidated",
        .tp_flavour = TP_SP,
        .recompute_flavour = RECOMPUTE_BLOCK,
        .recompute_whole = true,
        .selective_flavour = SELECTIVE_OPS,
        .zigzag = true,
        .cp_ring = false,  // context_parallel_rotate_method is gone: keys and values are gathered (2.1)
        .cp_allgather = true,
        .cp_scatters = true,  // gradients are reduced back at the local_map boundary (2.1)
        .reduce_dtype_bf16 = DTYPE_FP32,
        .reduces_fp32_only = true,
        .replicas_each_step = true,
        .shared_shard_lane = true,
        .shard_copies = true,
        .backward_prefetch = true,
        .tp_copies = true,
        .master_fp32 = true,
        .allocator = ALLOCATOR_EXPANDABLE,
        .fp8_flavour = FP8_TORCHAO,
        .replicate_rule = REPLICATE_ANY,  // fully_shard is always applied (2.1)
        .has_tp = true,
        .has_cp = true,
        .shard_needs_fsdp = true,
        .max_zero = 3,
        .default_attention = ATTENTION_FLASH,
        .default_fused = FUSED_COMPILED,
        .runtime.host_s_per_op = 13e-6,
        .tp_overlap_exposed = 0.65,  // async TP (2.1), as 0.2
        .runtime.step_fixed_s = 5e-3,
        .runtime.optimizer_bytes_per_parameter = 40.0,
        .bf16_optimizer_bytes_per_parameter = 20.0,
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.05,
        .runtime.relative_uncertainty = 0.15,
    },
    {
        .name = "megatron",
        .version = "core",
        .evidence = "41 published runs",
        .tp_flavour = TP_SP,
        .recompute_flavour = RECOMPUTE_BLOCK,
        .selective_flavour = SELECTIVE_CORE,
        .zigzag = true,  // DualChunkSwap of Transformer Engine (executor.md 1.3)
        .cp_ring = true,
        .cp_allgather = true,
        .cp_scatters = true,        // _attn_cp_kv_allgather_bwd_reduce_scatter of Transformer Engine
        .cp_half_gradients = true,  // Transformer Engine context_parallel.py: p2p buffers of kv.dtype
        .reduce_dtype_bf16 = DTYPE_FP32,
        .reduces_often_bf16 = true,  // NeMo's bf16_mixed (grad_reduce_in_fp32=False), --grad-reduce-in-bf16 of
                                     // Megatron-LM examples/llama/train_llama3_8b_h100_fp8.sh
        .fused_projections = true,
        .deferred_reduce = true,    // main gradients are summed locally, reduced with the last micro-step
        .gradient_buffer = true,    // its ParamAndGradBuffer; 2+g+12/F bytes, g 3.1 to 3.5 (accuracy-notes.md 4)
        .shared_shard_lane = true,  // gather and scatter of the distributed optimizer use one group
        .shard_copies = false,      // flat buffers (executor.md 1.4)
        .backward_prefetch = false,
        .tp_reduce_overlaps = true,  // the input gradient is reduced beside the weight gradient
        .tp_regathers = true,        // its linear layer keeps the split input only
        .master_fp32 = true,
        .fp8_flavour = FP8_TRANSFORMER_ENGINE,  // --fp8-format, Transformer Engine layers
        .replicate_rule = REPLICATE_ANY,
        // RankGenerator takes the tokens of order= as they come; instances are slices of its dp-cp groups
        // (NVIDIA/Megatron-LM 00caa53, megatron/core/parallel_state.py)
        .rank_order_rule = RANK_ORDER_DP_AS_ONE,
        .rank_order_note = "Megatron-LM has no flag for it: pass order= to initialize_model_parallel",
        .has_tp = true,
        .has_cp = true,
        .shard_needs_fsdp = false,
        .max_zero = 1,                         // --use-distributed-optimizer
        .vocab_multiple = 128,                 // make-vocab-size-divisible-by, times tp (Megatron-LM arguments.py)
        .default_attention = ATTENTION_CUDNN,  // Transformer Engine
        .default_fused = FUSED_FUSED,
        .runtime.host_s_per_op = 13e-6,        // accuracy-notes.md 2: the eager Megatron-DeepSpeed stack had 29.5 us
        .runtime.step_fixed_s = 6e-3,          // accuracy-notes.md 2: 3 to 9 ms
        .tp_overlap_exposed = 0.2,             // user buffers (accuracy-notes.md 2; chosen there, not fitted)
        .runtime.loss_bytes_per_logit = 44.0,  // accuracy-notes.md 2: vocabulary-parallel
        .loss_fp32_copies =
            {[FUSED_FUSED] = 2, [FUSED_EAGER] = 2, [FUSED_COMPILED] = 2},  // fp32 logits and their softmax
        .runtime.optimizer_bytes_per_parameter = 50.0,                     // accuracy-notes.md 2
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.05,
        .runtime.relative_uncertainty = 0.12,
    },
    {
        .name = "megatron",
        .version = "2022",  // Megatron-DeepSpeed and its time: no sequence parallelism, no flash attention
        .evidence = "357 published runs",
        .tp_flavour = TP_AR,
        .recompute_flavour = RECOMPUTE_BLOCK,
        .selective_flavour = SELECTIVE_CORE,
        .reduce_dtype_bf16 = DTYPE_FP32,
        .fused_projections = true,
        .deferred_reduce = true,
        .gradient_buffer = true,
        .shared_shard_lane = true,
        .shard_copies = false,
        .backward_prefetch = false,
        .tp_reduce_overlaps = false,
        .fused_softmax = true,
        .master_fp32 = true,
        .replicate_rule = REPLICATE_ANY,
        .has_tp = true,
        .has_cp = false,
        .shard_needs_fsdp = false,
        .max_zero = 1,
        .vocab_multiple = 128,
        .default_attention = ATTENTION_EAGER,
        .default_fused = FUSED_FUSED,
        .runtime.host_s_per_op = 29.5e-6,  // accuracy-notes.md 2, stable in both halves
        .runtime.step_fixed_s = 0,         // vTrain single node: steps are micro-steps and the optimizer, nothing is
                                           // left
        .runtime.loss_bytes_per_logit = 44.0,
        .loss_fp32_copies = {[FUSED_FUSED] = 2, [FUSED_EAGER] = 2, [FUSED_COMPILED] = 2},  // as core
        .runtime.optimizer_bytes_per_parameter = 50.0,
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.05,
        .runtime.relative_uncertainty = 0.14,
    },
    {
        .name = "nanotron",
        .version = "0.4",
        .evidence = "300 published runs of one sweep",
        .tp_flavour = TP_SP,  // tp_mode REDUCE_SCATTER
        .recompute_flavour = RECOMPUTE_BLOCK,
        .zigzag = false,
        .reduce_dtype_bf16 = DTYPE_FP32,  // accumulate_grad_in_fp32
        .fused_projections = true,
        .deferred_reduce = true,
        .gradient_buffer = true,  // its fp32 gradient accumulator; 6+12/F bytes (accuracy-notes.md 4)
        .half_gradients = true,   // bf16 gradients of DDP buckets, added by FP32GradientAccumulator
        .gradient_copies = 1,     // autograd's own beside the buckets: 4 B per parameter in all fitted in its sweep
        .late_reduce = true,      // its published ZeRO-1 steps lose the whole reduction, however long backward is
        .shared_shard_lane = true,
        .shard_copies = false,
        .backward_prefetch = false,
        .tp_reduce_overlaps = true,  // tp_linear_async_communication
        .tp_regathers = false,       // its memory grows by the gathered inputs of every layer
        .master_fp32 = true,
        .rank_order_rule = RANK_ORDER_FIXED,  // ranks are one array of ep, pp, dp, cp, tp (1.1)
        .replicate_rule = REPLICATE_ANY,
        .has_tp = true,
        .has_cp = false,  // ring attention exists behind context_parallel_size, no published run: left out
        .shard_needs_fsdp = false,
        .max_zero = 1,
        .vocab_multiple = 1,  // padded to a multiple of tp (nanotron _vocab_size_with_padding)
        .default_attention = ATTENTION_FLASH,
        .default_fused = FUSED_FUSED,
        .runtime.host_s_per_op = 39e-6,  // fitted on steps of micro-batch 1 at tp 4 and 8; 35 us in accuracy-notes.md 2
        .runtime.other_share = 0.15,     // fitted with aws-p5, same half, one source; 0.15 to 0.28 in accuracy-notes.md
                                         // 2
        .runtime.step_fixed_s = 35e-3,   // accuracy-notes.md 2: 30 to 40 ms
        .loss_fp32_copies = {[FUSED_FUSED] = 3,
                             [FUSED_EAGER] = 3,
                             [FUSED_COMPILED] = 3},     // 14 B per logit, from micro-batch 1 to 2 at tp 1
        .runtime.bucket_bytes = 550e6,                  // accuracy-notes.md 2: its reductions run in pieces of
                                                        // about that
        .runtime.optimizer_bytes_per_parameter = 46.0,  // accuracy-notes.md 2
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.05,
        .runtime.relative_uncertainty = 0.20,  // accuracy-notes.md 1.1: the long lower tail
    },
    {
        .name = "deepspeed",
        .version = "0.19",
        .evidence = "unvalidated",
        .tp_flavour = TP_AR,  // autotp_size
        .recompute_flavour = RECOMPUTE_BLOCK,
        .reduce_dtype_bf16 = DTYPE_BF16,
        .fused_projections = false,
        .deferred_reduce = false,
        .shared_shard_lane = true,
        .shard_copies = true,  // bucket copies
        .backward_prefetch = true,
        .tp_reduce_overlaps = false,
        .master_fp32 = true,
        .rank_order_rule = RANK_ORDER_FIXED,  // tp ranks are neighbours (deepspeed/utils/groups.py)
        .replicate_rule = REPLICATE_ANY,      // hpZ, as an approximation (section 5, E8)
        .has_tp = true,
        .has_cp = false,  // sequence parallelism is Ulysses there: not an axis of this version
        .shard_needs_fsdp = false,
        .max_zero = 3,
        .default_attention = ATTENTION_FLASH,
        .default_fused = FUSED_EAGER,
        .runtime.host_s_per_op = 13e-6,
        .runtime.step_fixed_s = 20e-3,                                  // estimated between accelerate's and
                                                                        // fsdp1's
        .loss_fp32_copies = {[FUSED_EAGER] = 2, [FUSED_COMPILED] = 1},  // upcast logits, log-softmax; fused: none
        .runtime.optimizer_bytes_per_parameter = 28.0,                  // FusedAdam
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.05,
        .runtime.relative_uncertainty = 0.20,  // hardware.md 6, worked gap: 15 to 25 % unexplained for its eager runs
    },
    {
        .name = "fsdp1",
        .version = "2.0",
        .root_unit = true,  // tests/frameworks: traces of fsdp1
        .root_kept = true,  // FSDP's _post_forward_reshard spares the root
        .evidence = "243 published runs",
        .tp_flavour = TP_AR,
        .recompute_flavour = RECOMPUTE_BLOCK,
        .reduce_dtype_bf16 = DTYPE_BF16,
        .fused_projections = true,  // llm-foundry's MPT: Wqkv
        .deferred_reduce = false,   // Composer's default sync schedule reduces on every micro-step
        .replicas_each_step = true,
        .shared_shard_lane = true,
        .shard_copies = true,  // the cast to bf16 before the gather; no bf16 shard stays
        .backward_prefetch = true,
        .tp_reduce_overlaps = false,
        .master_fp32 = true,
        .replicate_rule = REPLICATE_ANY,  // HYBRID_SHARD
        .has_tp = false,
        .has_cp = false,
        .shard_needs_fsdp = true,
        .max_zero = 3,
        .default_attention = ATTENTION_FLASH,
        .default_fused = FUSED_FUSED,
        .runtime.host_s_per_op = 13e-6,
        .runtime.step_fixed_s = 25e-3,         // accuracy-notes.md 2: 20 to 35 ms
        .runtime.loss_bytes_per_logit = 26.0,  // accuracy-notes.md 2
        .runtime.optimizer_bytes_per_parameter =
            28.0,  // fused AdamW (hardware.md 5.3); where it shows, in DDP runs, no more fits
        .bf16_optimizer_bytes_per_parameter = 20.0,  // accuracy-notes.md 2: pure bf16
        .runtime.context_bytes = 0.7e9,
        .runtime.communicator_bytes = 0.25e9,
        .runtime.allocator_slack = 0.05,
        .runtime.relative_uncertainty = 0.10,
    },
};

const Target *target_table(int *count) {
    *count = (int)(sizeof targets / sizeof targets[0]);
    return targets;
}
