// axolotl: accelerate 1.13 underneath, which 0.18 and 0.19 pin, with its ParallelismConfig (P5), a preparation of
// FSDP2 of its own (monkeypatch/accelerate/fsdp2.py), and context parallelism by ring-flash-attn.

#include "sim/frameworks/accelerate/accelerate.h"
#include "sim/frameworks/axolotl/axolotl_files.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/pytorch.h"

static const TargetVersion axolotl_0_18 = {
    .version = "0.18",
    .extends = &accelerate_1_13,
    .evidence = "unvalidated",
    .settings = SETTINGS(
        // Weights are loaded as bf16 (utils/config: torch_dtype) and never upcast: neither its fsdp2_prepare_model nor
        // accelerate 1.13, whose upcast drops its result (axolotl issue #3154).
        SET(bf16_weights, true),
        SET_TEXT(stages_note, "its config has dp_replicate_size, dp_shard_size, context_parallel_size, "
                              "tensor_parallel_size and expert_parallel_size"),
        SET(recompute_flavour, RECOMPUTE_BLOCK),  // gradient_checkpointing: a layer's input is all that stays
        // Fused AdamW, its default: weight, gradient and moments read, all but the gradient written, of 4 or 2 bytes.
        SET(runtime.optimizer_bytes_per_parameter, 28.0), SET(bf16_optimizer_bytes_per_parameter, 14.0),
        SET(optimizer_temporary_bytes_per_parameter, 0.0), SET(own_optimizer, OPTIMIZER_TARGET),
        SET(optimizers, OPTIMIZERS_OF_TRANSFORMERS | OPTIMIZER_BIT(OPTIMIZER_MUON)),
        SET_TEXT(loss_note, "its chunked_cross_entropy keeps the logits, which is loss=whole here"),
        SET(tiles_mlp, true),    // tiled_mlp, tiled_mlp_num_shards (monkeypatch/tiled_mlp), with DeepSpeed's package
        SET(zigzag, false),      // ring-flash-attn splits contiguously: batch_ring, varlen_llama3 (P5)
        SET(cp_scatters, true),  // llama3_flash_attn_varlen.py of ring-flash-attention: reduce_scatter_tensor
        SET(cp_compiled_waits, false),  // its own ring, which is not traced
        SET(always_reshards, true),     // its setup_fsdp_envs hands on only true, and accelerate's default is true
        SET(runtime.relative_uncertainty, 0.12)),  // estimated: accelerate's, and no run of its own to compare with
};

// It pins transformers 5.16.1, whose plan splits the head, and the embedding only where it is the head's
// (modeling_llama.py: _tp_plan; configuration_utils.py: embedding_rowwise).
static const TargetVersion axolotl_0_19 = {
    .version = "0.19",
    .extends = &axolotl_0_18,
    .evidence = "unvalidated",
    .settings = SETTINGS(SET(tp_splits_head, true), SET(vocab_uneven, true),  // DTensor: the last rank has fewer rows
                         SET(axes, AXES_DP | AXES_TP | AXES_CP | AXES_EP),
                         SET(experts_apart, true),             // plugin.py, fully_shard_experts
                         SET(own_dispatch, DISPATCH_DEEPEP)),  // expert_parallel_backend has no other
};

static const char *refuse_mesh(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    (void)model;
    return axolotl_refuse_experts(plan, arena);
}

const Framework framework_axolotl = {
    .name = "axolotl",
    .versions = (const TargetVersion *const[]){&axolotl_0_19, &axolotl_0_18, NULL},
    .refuse = transformers_refuse,
    .refuse_mesh = refuse_mesh,
    .formats = (const ExportFormat *const[]){&export_axolotl_yaml, NULL},
    .config = &import_axolotl,
    .micro_batch = "micro_batch_size",
    .accumulation = "gradient_accumulation_steps",
    .compile = "torch_compile: true",
    .fuse_loss = "liger_fused_linear_cross_entropy: true, plugins: axolotl.integrations.liger.LigerPlugin",
    .sync_each = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch: true",
};
