// TRL's SFTTrainer: transformers' Trainer with a loss of its own (kernels/chunked_logprob.py): tiles of logits,
// recomputed in backward. Its gradients of the hidden states and of the head are collected in fp32; the head's, 4 bytes
// an entry while the loss runs backward, is not counted. Recorded in tests/frameworks/traces/trl-1.16.

#include "sim/frameworks/accelerate/accelerate.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/trainer/trainer.h"
#include "sim/frameworks/trl/trl_files.h"

static const TargetVersion trl_1_16 = {
    .version = "1.16",
    .extends = &trainer_5_23,
    .evidence = "unvalidated",
    .settings =
        SETTINGS(SET(axes, AXES_DP | AXES_TP | AXES_CP),                     // ranks of experts: not looked at
                 SET(own_loss, LOSS_FUSED), SET(loss_remakes_logits, true),  // add_fused_lm_head (sft_trainer.py)
                 SET(losses, 0),  // with it Liger's is disabled (sft_trainer.py)
                 SET_TEXT(loss_note, "its own keeps no logits and makes them again in backward")),
};

// Its loss is the model's own, until 1.7 of 2026-06-25 made one in chunks the default (its pull request 5846):
// ForCausalLMLoss of transformers (loss/loss_utils.py), log-softmax of an fp32 copy and, in backward, two gradients.
// The Trainer has the same, but stands for models whose code has no fp32 copy, too (tests/accuracy/configs).
static const TargetVersion trl_1_6 = {
    .version = "1.6",
    .extends = &trainer_5_23,
    .until = "2026-06-25",
    .evidence = "unvalidated",
    .settings = SETTINGS(SET(axes, AXES_DP | AXES_TP | AXES_CP), SET(loss_fp32_copies[FUSED_EAGER], 3)),
};

// Its loss calls the head's weights, not the head (tests/frameworks/traces/trl-1.16, shard2_tp2).
static const char *trl_refuse(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int tp = plan->mesh.size[AXIS_TP];
    REFUSE_IF(arena, tp > 1,
              "tp=%d: TRL's loss gathers the head over tp and runs it whole on every rank, which is not modelled: use "
              "tp=1",
              tp);
    return transformers_refuse(target, model, plan, arena);
}

const Framework framework_trl = {
    .name = "trl",
    .versions = (const TargetVersion *const[]){&trl_1_16, &trl_1_6, NULL},
    .refuse = trl_refuse,
    .formats = (const ExportFormat *const[]){&export_trl, NULL},
    .config = &import_trl,
    .micro_batch = "per_device_train_batch_size",
    .accumulation = "gradient_accumulation_steps",
    .compile = "torch_compile=True",
    .sync_each = "accelerator_config={\"gradient_accumulation_kwargs\": {\"sync_each_batch\": True}}",
};
