// transformers' Trainer. Without tensor parallelism it drives accelerate's FSDP2 (trainer.py: fsdp_config,
// parallelism_config); a model with it is sharded by transformers itself, at load time (DistributedConfig), and
// accelerate only steps it. Recorded in tests/frameworks/traces/trainer-5.23.

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
        SET(recompute_counts, RECOMPUTE_EVERY_FIRST),  // activation_checkpointing_kwargs every_n_layers
        // adamw_torch_fused, its default (training_args.py): weight, gradient and moments read, all but the gradient
        // written, of 4 or 2 bytes.
        SET(runtime.optimizer_bytes_per_parameter, 28.0), SET(bf16_optimizer_bytes_per_parameter, 14.0),
        SET(optimizer_temporary_bytes_per_parameter, 0.0), SET(own_optimizer, OPTIMIZER_TARGET),
        SET(optimizers, OPTIMIZERS_OF_TRANSFORMERS)),
};

static const FrameworkSynonym synonyms[] = {
    {"hf", NULL}, {"huggingface", NULL}, {"transformers", NULL}, {"hf-trainer", NULL}, {NULL, NULL},
};

const Framework framework_trainer = {
    .name = "trainer",
    .versions = (const TargetVersion *const[]){&trainer_5_23, NULL},
    .refuse = transformers_refuse,
    .formats = (const ExportFormat *const[]){&export_trainer, NULL},
    .config = &import_trainer,
    .synonyms = synonyms,
    .micro_batch = "per_device_train_batch_size",
    .accumulation = "gradient_accumulation_steps",
    .compile = "torch_compile=True",
    .fuse_loss = "use_liger_kernel=True",
    // distributed/configuration_utils.py of transformers 5.23: FSDP is refused beside pp_size
    .without_stages =
        "the pp_size of transformers' DistributedConfig has no backward schedule and is refused beside FSDP",
    .sync_each = "accelerator_config={\"gradient_accumulation_kwargs\": {\"sync_each_batch\": True}}",
};
