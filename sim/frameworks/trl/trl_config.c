// TRL's SFTConfig: written as a module that a script imports, as the Trainer's arguments are; read as such a module and
// as the YAML of `trl sft --config` (1.16, trainer/sft_config.py, trainer/base_config.py, scripts/utils.py), which
// holds ModelConfig and ScriptArguments too.

#include <string.h>

#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/trainer/trainer_files.h"
#include "sim/frameworks/trl/trl_files.h"

// ---- reading

// Classes of its other trainers, and keys that only they have.
#define PREFERENCES                                                                                                    \
    "DPOConfig GRPOConfig KTOConfig ORPOConfig CPOConfig RLOOConfig PPOConfig BCOConfig GKDConfig OnlineDPOConfig "    \
    "RewardConfig PRMConfig"
static const char *const of_others[] = {
    "beta",         "num_generations",   "max_completion_length",    "max_prompt_length",
    "reward_funcs", "reward_model_path", "precompute_ref_log_probs", NULL};

static bool learns_preferences(Import *import, const char **key) {
    static const char classes[] = PREFERENCES;
    for (const char *at = classes; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        *key = arena_format(import->arena, "%.*s", (int)strcspn(at, " "), at);
        if (import_has(import, *key)) {
            return true;
        }
    }
    for (int i = 0; of_others[i]; i++) {
        *key = of_others[i];
        if (import_has(import, *key)) {
            return true;
        }
    }
    return false;
}

static void refuse_preferences(Import *import) {
    const char *key = NULL;
    if (!learns_preferences(import, &key)) {
        return;
    }
    import_refuse(import, key, "training on preferences or rewards is not modelled yet: SFTConfig is read");
    for (const ConfigNode *node = import->root->first; node; node = node->next) {
        import_known(import, (const char *const[]){node->key, NULL});
    }
}

static const ImportLeftOut left_out[] = {
    {"activation_offloading", NULL,
     "saved activations wait in host memory: your run needs less memory and, where the copies do not hide, more time"},
    {"padding_free", NULL, "rows without padding, documents that attend to themselves only: less attention"},
    {"use_dora", NULL, "DoRA: magnitudes of the weights are trained beside the adapters, with passes of their own"},
    {"router_aux_loss_coef", NULL, "a loss of routed experts, which the figures have none of"},
    {NULL, NULL, NULL},
};

static const char *const of_no_matter[] = {
    "trust_remote_code chat_template_path dataset_text_field dataset_kwargs dataset_num_proc",
    "eos_token truncation_mode shuffle_dataset packing_strategy pad_to_multiple_of eval_packing completion_only_loss",
    "assistant_only_loss pad_token dataset_config dataset_train_split dataset_test_split dataset_streaming",
    "ignore_bias_buffers datasets env lora_alpha lora_dropout lora_task_type use_rslora bnb_4bit_quant_type",
    "use_bnb_nested_quant bnb_4bit_quant_storage",
    NULL};

static Status read_loss(Import *import, Error *error) {
    const char *loss = "nll";
    TRY(import_word(import, "loss_type", &loss, error));
    FIND_IF(!import_same_word(loss, "nll"), import, FINDING_UNMODELLED, "loss_type", "loss %s: predicted as nll", loss);
    return STATUS_OK;
}

static Status read_rows(Import *import, Error *error) {
    int packs = 0;
    TRY(import_bool(import, "packing", &packs, error));
    if (!import->said.seq) {
        enum { DEFAULT_MAX_LENGTH = 1024 };
        import->said.seq = DEFAULT_MAX_LENGTH;
        import_find(import, FINDING_ASSUMED, NULL, "max_length is %d, TRL's default", DEFAULT_MAX_LENGTH);
    }
    import_find(import, FINDING_ASSUMED, "packing",
                packs ? "a packed sequence is one document; attention of shorter ones, which see themselves only, "
                        "costs less (--pack says their mean length)"
                      : "rows are max_length tokens long; shorter ones cost less");
    return STATUS_OK;
}

static Status trl_read(Import *import, Error *error) {
    static const char *const sequence[] = {"max_length", NULL};
    static const TrainerDefaults defaults = {.flavour = "SFTConfig",
                                             .unknown = "no key of SFTConfig, ModelConfig or ScriptArguments: "
                                                        "TrlParser stops at it",
                                             .sequence = sequence,
                                             .bf16 = true,
                                             .recomputes = true,
                                             .own_loss = true};
    TRY(trainer_read_arguments(import, &defaults, error));
    refuse_preferences(import);
    TRY(read_loss(import, error));
    TRY(read_rows(import, error));
    import_leave_out(import, left_out);
    import_known(import, of_no_matter);
    return STATUS_OK;
}

const ImportFormat import_trl = {
    .name = "trl",
    .marks = "per_device_train_batch_size fsdp SFTConfig per_device_eval_batch_size num_train_epochs "
             "model_name_or_path do_train do_eval output_dir dataset_name dataset_mixture max_length packing "
             "padding_free loss_type completion_only_loss "
             "assistant_only_loss " PREFERENCES,
    .keys = TRAINER_KEYS,
    .read = trl_read};

// ---- writing

// What its class would set otherwise.
static void write_defaults(const ConfigJob *job, FILE *out) {
    fprintf(out, "        max_length=%d,\n", job->plan->seq);
    PRINT_IF(!trainer_recomputes_by_model(job), out, "        gradient_checkpointing=False,  # on unless said\n");
    PRINT_IF(job->plan->pack > 0, out, "        packing=True,  # documents of %d tokens in the mean\n",
             job->plan->pack);
    PRINT_IF(job->plan->precision == DTYPE_FP32, out, "        bf16=False,  # on unless said\n");
}

static void sft_write(const ConfigJob *job, FILE *out) {
    trainer_write(job, "trl", "SFTConfig", write_defaults, out);
}

const ExportFormat export_trl = {
    .name = "trl",
    .target = "trl@1.16",
    .file_name = "sft_config.py",
    .versions = "trl 1.16, transformers 5.23, accelerate 1.15; torch >= 2.8",
    EXPORT_OF_ACCELERATE,
    .takes = PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_RECOMPUTE_EVERY) |
             PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_FINETUNE) | PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_PACK),
    .refuse = accelerate_python_refuse,
    .write = sft_write,
    .launch = launch_torchrun,
    .program = "train.py  # which imports %s",
};
