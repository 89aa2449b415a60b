// transformers' Trainer. Without tensor parallelism it drives accelerate's FSDP2 (trainer.py: fsdp_config,
// parallelism_config); a model with it, or with ranks of experts, is sharded by transformers itself, at load time
// (DistributedConfig), and accelerate only steps it. Recorded in tests/frameworks/traces/trainer-5.23.

#include <string.h>

#include "sim/frameworks/trainer/trainer.h"

#include "sim/frameworks/accelerate/accelerate.h"
#include "sim/frameworks/pytorch.h"
#include "sim/frameworks/trainer/trainer_files.h"

const TargetVersion trainer_5_23 = {
    .version = "5.23",
    .extends = &accelerate_1_15,
    .evidence = "unvalidated",
    .settings = SETTINGS(
        SET(tp_splits_head, true),       // _tp_plan {"lm_head": "colwise_gather_output"} (modeling_llama.py)
        SET(tp_splits_embedding, true),  // init_parallel_plans: embed_tokens embedding_rowwise (distributed/mixin.py)
        SET(tp_shards_itself, true),     // fsdp_mixed_precision: reduce_dtype float32; keep and free by its plan; and
                                         // _defer_fsdp_gradient_reduction (distributed/fsdp.py, trainer.py)
        SET(vocab_uneven, true),         // DTensor: the last rank has fewer rows
        SET(axes, AXES_DP | AXES_TP | AXES_CP | AXES_EP),  // ep_size (distributed/configuration_utils.py)
        // FSDP is refused with pp_size (distributed/configuration_utils.py)
        SET_TEXT(stages_note,
                 "the pp_size of transformers' DistributedConfig has no backward schedule and is refused beside FSDP"),
        SET(experts_apart, true),  // fully_shard of each layer's experts on efsdp (distributed/fsdp.py)
        SET(recompute_counts, RECOMPUTE_EVERY_FIRST),  // activation_checkpointing_kwargs every_n_layers
        // adamw_torch_fused, its default (training_args.py): weight, gradient and moments read, all but the gradient
        // written, of 4 or 2 bytes.
        SET(runtime.optimizer_bytes_per_parameter, 28.0), SET(bf16_optimizer_bytes_per_parameter, 14.0),
        SET(optimizer_temporary_bytes_per_parameter, 0.0), SET(own_optimizer, OPTIMIZER_TARGET),
        SET(optimizers, OPTIMIZERS_OF_TRANSFORMERS)),
};

// Beside accelerate before 1.14, whose fsdp2_prepare_model wraps what transformer_layer_cls_to_wrap names and then the
// model (its PR #4015): Halo's baseline of stock TRL pins transformers 5.16, TRL 1.6 and accelerate 1.11
// (whitecircle/halo, pyproject.toml at 020d7370).
static const TargetVersion trainer_5_16 = {
    .version = "5.16",
    .extends = &trainer_5_23,
    .evidence = "unvalidated",
    .settings = SETTINGS(SET(root_unit, true)),
};

// distributed/configuration_utils.py (_validate_mesh_config) and mixin.py (_resolve_parallel_plans). Beside tp each of
// its ranks sends a part of the batch that they share, and results are gathered (expert_parallel.py, AllToAllEP).
static const char *refuse_mesh(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int ep = plan->mesh.size[AXIS_EP], tp = plan->mesh.size[AXIS_TP], shard = plan->mesh.size[AXIS_DP_SHARD];
    REFUSE_IF(arena, ep % tp != 0, "`ep_size` must be a multiple of `tp_size`: ep=%d is none of tp=%d, use ep=1", ep,
              tp);
    REFUSE_IF(arena, shard * tp % ep != 0,
              "`ep_size` must divide `fsdp_size * tp_size`: ep=%d does not divide %d, use ep=1", ep, shard * tp);
    REFUSE_IF(arena, model->type && strcmp(model->type, "llama4_text") == 0,
              "`ep_size=%d` was requested, but %s models have no `ep_plan`: use ep=1", ep, model->type);
    REFUSE_IF(arena, tp > 1,
              "ep=%d beside tp=%d: the ranks of tp share out their batch before experts and gather it behind, which is "
              "not predicted yet: use tp=1 or ep=1",
              ep, tp);
    return NULL;
}

static const FrameworkSynonym synonyms[] = {
    {"hf", NULL},
    {"huggingface", NULL},
    {"transformers", NULL},
    {"hf-trainer", NULL},
    {"ms-swift", "ms-swift trains by it"},
    {NULL, NULL},
};

const Framework framework_trainer = {
    .name = "trainer",
    .versions = (const TargetVersion *const[]){&trainer_5_23, &trainer_5_16, NULL},
    .refuse = transformers_refuse,
    .refuse_mesh = refuse_mesh,
    .formats = (const ExportFormat *const[]){&export_trainer, NULL},
    .config = &import_trainer,
    .synonyms = synonyms,
    .name_is_word = true,
    .micro_batch = "per_device_train_batch_size",
    .accumulation = "gradient_accumulation_steps",
    .compile = "torch_compile=True",
    .fuse_loss = "use_liger_kernel=True",
    .sync_each = "accelerator_config={\"gradient_accumulation_kwargs\": {\"sync_each_batch\": True}}",
};
