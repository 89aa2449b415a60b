// ndtune's own executor. It is not a PyTorch framework and extends none.

#include "sim/frameworks/framework.h"

// Units are flat: the gather writes where the GEMM reads, no copies. Lanes run ahead by themselves, nothing is issued
// out of order. It reports its arena, which the planner gives exactly, and nothing else.
static const TargetVersion ndtune_1 = {
    .version = "1",
    .evidence = "unvalidated",
    .settings = SETTINGS(
        SET(zigzag, true), SET(cp_ring, true), SET(recompute_counts, RECOMPUTE_FIRST_N),
        SET(recompute_other_unit, true),  // any program of a lowering
        SET(recompute_modules, RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS | RECOMPUTE_MLP),
        SET(fused_projections, true), SET(tp_reduce_overlaps, true), SET(fuses_passes, true), SET(own_kernels, true),
        SET(master_fp32, true), SET(finetunes, 1u << FINETUNE_LORA), SET(tiles_mlp, true),
        SET(adapter_units, true),  // so that each rank's shards of weights and of gradients are the same
        SET(grad_syncs,
            GRAD_SYNC_BIT(GRAD_SYNC_EACH) | GRAD_SYNC_BIT(GRAD_SYNC_SHARDS) | GRAD_SYNC_BIT(GRAD_SYNC_LAST)),
        SET(losses, LOSS_BIT(LOSS_WHOLE) | LOSS_BIT(LOSS_CHUNKED)), SET(loss_chunks, 8),
        SET_TEXT(loss_note, "it has no kernel for head and loss, and its own is in place"),
        SET(rank_order_rule, RANK_ORDER_ANY),  // its groups come from sim/axes
        SET(axes, AXES_DP | AXES_TP | AXES_CP | AXES_SP | AXES_PP | AXES_EP),
        SET(pp_schedules, PP_BIT(PP_1F1B) | PP_BIT(PP_GPIPE) | PP_BIT(PP_INTERLEAVED) | PP_BIT(PP_ZERO_BUBBLE) |
                              PP_BIT(PP_ZBV) | PP_BIT(PP_DUALPIPEV) | PP_BIT(PP_FILE)),
        SET(splits, PP_BIT(SPLIT_EVEN) | PP_BIT(SPLIT_WEIGHTED) | PP_BIT(SPLIT_ENDS) | PP_BIT(SPLIT_CHUNKS)),
        SET(ties_stages, true), SET(max_zero, 3), SET(pp_rounds, true),
        SET(runtime.host_s_per_op, 3e-6),         // estimated: one interpreted task, no allocation, no Python
        SET(runtime.memory_passes, 1.0),          // one pass per kernel: kernels.h
        SET(runtime.loss_bytes_per_logit, 16.0),  // fp32 logits: max reads 4, sum reads 4, gradient reads and writes 8
                                                  // (kernels.h); bf16: half; without tp: see TASK_LOSS
        SET(runtime.optimizer_bytes_per_parameter, 28.0),  // fused AdamW: g, master, m, v in, master, m, v out;
                                                           // sim/SOURCES.md H6
        SET(runtime.relative_uncertainty, 0.10)),  // estimated: no framework between the program and the machine
};

const Framework framework_ndtune = {
    .name = "ndtune",
    .versions = (const TargetVersion *const[]){&ndtune_1, NULL},
};
