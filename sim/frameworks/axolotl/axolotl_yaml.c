// axolotl's YAML (0.19, utils/schemas; parallelism.md 2.2), read and written. Its schema has some hundred keys about
// data, adapters and logging; those known here as of no matter to the plan are passed over, others are named.
// Underneath is the same ParallelismConfig, with context parallelism by ring-flash-attn. Its setup_fsdp_envs passes
// reshard_after_forward on only when it is true, and accelerate's default is true, so false would be lost: the row
// refuses it.

#include <string.h>

#include "sim/frameworks/axolotl/axolotl_files.h"
#include "sim/frameworks/config_keys.h"

static const char *const of_no_matter[] = {"base_model_config",
                                           "type_of_model",
                                           "tokenizer_config",
                                           "tokenizer_type",

                                           "processor_type",
                                           "trust_remote_code",
                                           "datasets",
                                           "test_datasets",
                                           "dataset_prepared_path",
                                           "val_set_size",
                                           "eval_sample_packing",
                                           "eval_steps",
                                           "evals_per_epoch",
                                           "save_steps",
                                           "saves_per_epoch",
                                           "save_total_limit",
                                           "save_first_step",
                                           "output_dir",
                                           "num_epochs",
                                           "max_steps",
                                           "optimizer",
                                           "optim_args",
                                           "lr_scheduler",
                                           "learning_rate",
                                           "warmup_steps",
                                           "warmup_ratio",
                                           "weight_decay",
                                           "max_grad_norm",
                                           "adam_beta1",
                                           "adam_beta2",
                                           "adam_epsilon",

                                           "logging_steps",
                                           "wandb_project",
                                           "wandb_entity",
                                           "wandb_watch",
                                           "wandb_name",
                                           "wandb_log_model",
                                           "wandb_run_id",
                                           "mlflow_tracking_uri",
                                           "mlflow_experiment_name",
                                           "use_tensorboard",
                                           "seed",
                                           "tf32",
                                           "special_tokens",
                                           "tokens",
                                           "chat_template",
                                           "train_on_inputs",
                                           "group_by_length",
                                           "early_stopping_patience",
                                           "resume_from_checkpoint",
                                           "auto_resume_from_checkpoints",
                                           "local_rank",
                                           "strict",
                                           "hub_model_id",
                                           "hub_strategy",
                                           "push_dataset_to_hub",
                                           "dataset_processes",
                                           "dataset_num_proc",
                                           "dataloader_num_workers",
                                           "dataloader_pin_memory",
                                           "dataloader_prefetch_factor",
                                           "shuffle_merged_datasets",
                                           "plugins",
                                           "ddp_timeout",

                                           "gradient_checkpointing_kwargs",
                                           "is_llama_derived_model",
                                           "is_mistral_derived_model",
                                           NULL};

// ---- the keys

static const char *model_path(const ConfigJob *job) {
    bool known = false;
    return export_model_path(job, &known);
}

static const char *packs(const ConfigJob *job) {
    const bool passes_on = export_axis(job, AXIS_CP) > 1 && job->plan->cp_rotate == CP_ROTATE_RING;
    return export_bool(!passes_on && job->plan->attention == ATTENTION_FLASH);
}

static const char *in_bf16(const ConfigJob *job) {
    return export_bool(job->plan->precision == DTYPE_BF16);
}

static const char *in_fp16(const ConfigJob *job) {
    return export_bool(job->plan->precision == DTYPE_FP16);
}

static const char *layer_class(const ConfigJob *job) {
    return export_layer_class(job->model);
}

static const char *checkpoints(const ConfigJob *job) {
    return export_bool(job->plan->recompute == RECOMPUTE_FULL);
}

static bool compiles(const ConfigJob *job) {
    return job->plan->fused == FUSED_COMPILED;
}

static bool cuts_sequences(const ConfigJob *job) {
    return export_axis(job, AXIS_CP) > 1;
}

static bool checkpoints_itself(const ConfigJob *job) {  // there is no FSDP to do it
    return !export_shards(job) && job->plan->recompute == RECOMPUTE_FULL;
}

static const ImportWord kernels[] = {{"flash_attention_2", ATTENTION_FLASH},
                                     {"flash_attention_3", ATTENTION_FLASH3},
                                     {"sdpa", ATTENTION_FLASH},
                                     {"eager", ATTENTION_EAGER},
                                     {"xformers", ATTENTION_FLASH},
                                     {NULL, 0}};
// The packed sequences of varlen_llama3 gather, batch_ring passes on.
static const ImportWord rings[] = {{"batch_ring", CP_ROTATE_RING},
                                   {"varlen_llama3", CP_ROTATE_ALLGATHER},
                                   {"batch_zigzag", CP_ROTATE_RING},
                                   {"batch_stripe", CP_ROTATE_RING},
                                   {NULL, 0}};

enum {
    MODEL,
    SEQUENCE_LEN,
    MICRO_BATCH,
    ACCUMULATION,
    PACKING,
    PADDING,
    BF16,
    FP16,
    ATTENTION,
    COMPILE,
    REPLICATE,
    SHARD,
    CONTEXT,
    TENSOR,
    RING,
    STRIDE,
    VERSION,
    WRAP,
    LAYER,
    RESHARD,
    FSDP_CHECKPOINT,
    OFFLOAD,
    STATE_DICT,
    CHECKPOINT,
    KEYS
};

static const ConfigKey keys[KEYS + 1] = {
    [MODEL] = {"base_model", .text = model_path, .quoted = true},
    [SEQUENCE_LEN] = {"sequence_len", KEY_SEQ},
    [MICRO_BATCH] = {"micro_batch_size", KEY_MICRO_BATCH},
    [ACCUMULATION] = {"gradient_accumulation_steps", KEY_ACCUMULATION},
    [PACKING] = {"sample_packing", .text = packs},
    [PADDING] = {"pad_to_sequence_len", .literal = "true"},
    [BF16] = {"bf16", .text = in_bf16},
    [FP16] = {"fp16", .text = in_fp16},
    [ATTENTION] = {"attn_implementation", KEY_CHOICE, PLAN_ATTENTION, kernels},
    [COMPILE] = {"torch_compile", KEY_SWITCH, PLAN_FUSED, .on = FUSED_COMPILED, .off = FUSED_EAGER, .when = compiles},
    [REPLICATE] = {"dp_replicate_size", KEY_AXIS, AXIS_DP_REPLICATE},
    [SHARD] = {"dp_shard_size", KEY_AXIS, AXIS_DP_SHARD},
    [CONTEXT] = {"context_parallel_size", KEY_AXIS, AXIS_CP},
    [TENSOR] = {"tensor_parallel_size", KEY_AXIS, AXIS_TP},
    [RING] = {"ring_attn_func", KEY_CHOICE, PLAN_CP_ROTATE, rings, .when = cuts_sequences},
    [STRIDE] = {"heads_k_stride", .literal = "1", .when = cuts_sequences},
    [VERSION] = {"fsdp_version", .literal = "2", .when = export_shards},
    [WRAP] = {"fsdp_config.auto_wrap_policy", .literal = "TRANSFORMER_BASED_WRAP", .when = export_shards},
    [LAYER] = {"fsdp_config.transformer_layer_cls_to_wrap", .text = layer_class, .when = export_shards},
    [RESHARD] = {"fsdp_config.reshard_after_forward", .literal = "true", .when = export_shards},
    [FSDP_CHECKPOINT] = {"fsdp_config.activation_checkpointing", .text = checkpoints, .when = export_shards},
    [OFFLOAD] = {"fsdp_config.offload_params", .literal = "false", .when = export_shards},
    [STATE_DICT] = {"fsdp_config.state_dict_type", .literal = "SHARDED_STATE_DICT", .when = export_shards},
    [CHECKPOINT] = {"gradient_checkpointing", .literal = "true", .when = checkpoints_itself},
};

// ---- reading

static Status read_precision(Import *import, Error *error) {
    const char *bf16 = NULL;
    int fp16 = 0, bits = 0;
    TRY(import_word(import, keys[BF16].path, &bf16, error));
    if (bf16 && strcmp(bf16, "full") == 0) {
        import_find(import, FINDING_UNMODELLED, keys[BF16].path,
                    "bf16: full keeps no fp32 master: the prediction has one");
    } else {
        TRY(import_bool(import, keys[BF16].path, &bits, error));
    }
    TRY(import_bool(import, keys[FP16].path, &fp16, error));
    const bool is_auto = import_has(import, keys[BF16].path) && !bf16;
    import->said.choice[PLAN_PRECISION] = bits || is_auto || (bf16 && strcmp(bf16, "full") == 0) ? DTYPE_BF16
                                          : fp16                                                 ? DTYPE_FP16
                                                                                                 : DTYPE_FP32;
    if (bits && fp16) {
        import_find(import, FINDING_REFUSED, keys[FP16].path, "bf16 and fp16 are both on");
    }
    int fp8 = 0;
    TRY(import_bool(import, "fp8", &fp8, error));
    if (fp8) {
        import_find(import, FINDING_UNMODELLED, "fp8", "fp8 under axolotl: predicted in bf16");
    }
    return STATUS_OK;
}

static Status read_attention(Import *import, Error *error) {
    static const char *const switches[] = {"flash_attention", "sdp_attention", "xformers_attention", "eager_attention"};
    for (int i = 0; i < 4; i++) {
        int on = 0;
        TRY(import_bool(import, switches[i], &on, error));
        if (on && import->said.choice[PLAN_ATTENTION] == IMPORT_UNSAID) {
            import->said.choice[PLAN_ATTENTION] = i < 3 ? ATTENTION_FLASH : ATTENTION_EAGER;
        }
    }
    return STATUS_OK;
}

static Status read_recompute(Import *import, Error *error) {
    const char *kind = NULL;
    int of_layers = 0, of_fsdp = 0;
    TRY(import_word(import, keys[CHECKPOINT].path, &kind, error));
    if (kind && (strcmp(kind, "unsloth") == 0 || strcmp(kind, "offload") == 0 || strcmp(kind, "offload_disk") == 0)) {
        of_layers = 1;
        import_find(import, FINDING_UNMODELLED, keys[CHECKPOINT].path,
                    "activations kept on the CPU: predicted as recomputed from what stays on the accelerator");
    } else {
        TRY(import_bool(import, keys[CHECKPOINT].path, &of_layers, error));
    }
    TRY(import_bool(import, keys[FSDP_CHECKPOINT].path, &of_fsdp, error));
    TRY(import_bool(import, "fsdp_config.fsdp_activation_checkpointing", &of_fsdp, error));
    import->said.choice[PLAN_RECOMPUTE] = of_layers || of_fsdp ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    if (of_layers && of_fsdp) {
        import_find(
            import, FINDING_TRAP, keys[CHECKPOINT].path,
            "gradient_checkpointing and FSDP's activation_checkpointing are both on: layers are recomputed twice; "
            "the prediction counts once");
    }
    return STATUS_OK;
}

static Status read_adapters(Import *import, Error *error) {
    static const char *const switches[] = {"load_in_8bit", "load_in_4bit"};
    static const char *const of_lora[] = {"lora_r",
                                          "lora_alpha",
                                          "lora_dropout",
                                          "lora_target_modules",
                                          "lora_target_linear",
                                          "lora_fan_in_fan_out",
                                          "lora_modules_to_save",
                                          "lora_model_dir",
                                          "peft_use_dora",
                                          "lora_mlp_kernel",
                                          "lora_qkv_kernel",
                                          "lora_o_kernel",
                                          "qlora_sharded_model_loading",
                                          "peft",
                                          NULL};
    const char *adapter = NULL;
    TRY(import_word(import, "adapter", &adapter, error));
    if (adapter) {
        import_find(
            import, FINDING_UNMODELLED, "adapter",
            "adapter %s: the prediction trains every parameter, so it needs more memory and more time than your "
            "run",
            adapter);
    }
    for (int i = 0; i < 2; i++) {
        int on = 0;
        TRY(import_bool(import, switches[i], &on, error));
        if (on) {
            import_find(import, FINDING_UNMODELLED, switches[i], "%s: the prediction keeps weights in full precision",
                        switches[i]);
        }
    }
    import_known(import, of_lora);
    return STATUS_OK;
}

// Unset sizes are filled in: with nothing but dp_replicate 1 dp_shard takes what is left, else dp_replicate does.
static Status read_sizes(Import *import, bool fsdp, Error *error) {
    int *size = import->said.size;
    TRY(import_int(import, "sequence_parallel_degree", 1, MESH_MAX_WORLD, &size[AXIS_CP], error));
    if (!fsdp && size[AXIS_DP_SHARD] == 0) {
        size[AXIS_DP_SHARD] = 1;
        size[AXIS_DP_REPLICATE] = size[AXIS_DP_REPLICATE] ? size[AXIS_DP_REPLICATE] : -1;
    } else if (size[AXIS_DP_SHARD] == 0) {
        size[AXIS_DP_SHARD] = -1;
    } else if (size[AXIS_DP_REPLICATE] == 0) {
        size[AXIS_DP_REPLICATE] = -1;
    }
    return STATUS_OK;
}

static Status read_context(Import *import, Error *error) {
    int packs = 0;
    TRY(import_bool(import, keys[PACKING].path, &packs, error));
    if (import->said.choice[PLAN_CP_ROTATE] == IMPORT_UNSAID) {
        import->said.choice[PLAN_CP_ROTATE] = packs ? CP_ROTATE_ALLGATHER : CP_ROTATE_RING;
    }
    const int cp = import->said.size[AXIS_CP];
    if (cp > 1 && packs && import->said.micro_batch > 1) {
        import_find(import, FINDING_REFUSED, keys[MICRO_BATCH].path,
                    "packed sequences with context_parallel_size %d take micro_batch_size 1", cp);
    }
    if (!packs) {
        import_find(import, FINDING_ASSUMED, keys[PACKING].path,
                    "every sequence is sequence_len long; without sample_packing most are padded");
    }
    return STATUS_OK;
}

static Status read_fsdp(Import *import, Error *error) {
    static const char *const known[] = {"fsdp", "fsdp_config", NULL};
    int version = 1, reshards = 1, offload = 0;
    TRY(import_int(import, keys[VERSION].path, 1, 2, &version, error));
    TRY(import_bool(import, keys[RESHARD].path, &reshards, error));
    TRY(import_bool(import, "fsdp_config.fsdp_reshard_after_forward", &reshards, error));
    TRY(import_bool(import, keys[OFFLOAD].path, &offload, error));
    TRY(import_bool(import, "fsdp_config.fsdp_offload_params", &offload, error));
    if (offload) {
        import_say_offload(import, "fsdp_config", "the CPU");
    }
    if (!reshards) {
        import_find(import, FINDING_TRAP, "fsdp_config",
                    "reshard_after_forward: false may be lost: axolotl hands on only true, and accelerate's default is "
                    "true");
    }
    import_known(import, known);
    import->said.choice[PLAN_ZERO] = 3;
    import->said.choice[PLAN_RESHARD] = RESHARD_ALWAYS;
    import->flavour = version == 2 ? "axolotl config, FSDP version 2" : "axolotl config, FSDP version 1";
    if (version == 1) {
        import->target = "accelerate@1.0";
        import->successor = "axolotl";
        import_find(import, FINDING_TRAP, "fsdp_config",
                    "no fsdp_version: 2, so this is FSDP version 1, without tensor or context parallelism");
    }
    return STATUS_OK;
}

static Status read_deepspeed(Import *import, Error *error) {
    const char *file = NULL;
    TRY(import_word(import, "deepspeed", &file, error));
    return !file ? STATUS_OK
                 : error_set(error, STATUS_USAGE,
                             "%s:%d: this trains with DeepSpeed: give %s to --from, with --world, --micro-batch, "
                             "--grad-accum and --seq",
                             import->path, import_at(import, "deepspeed")->line, file);
}

static Status axolotl_read(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    import->unknown.kind = import->unknown_below.kind = FINDING_UNKNOWN;
    import->unknown.words = import->unknown_below.words =
        "no key that ndtune knows: what it sets is not in the prediction";
    import->target = "axolotl";
    import->flavour = "axolotl config, data-parallel replicas (DDP)";
    said->choice[PLAN_ZERO] = 0;
    said->grad_accum = 1;
    said->choice[PLAN_FUSED] = FUSED_EAGER;
    import_known(import, of_no_matter);
    TRY(config_read(import, keys, error));
    import_known(import, (const char *const[]){keys[STRIDE].path, NULL});
    import->model_key = keys[MODEL].path;
    TRY(import_word(import, import->model_key, &import->model, error));
    TRY(read_deepspeed(import, error));
    TRY(read_precision(import, error));
    TRY(read_attention(import, error));
    TRY(read_recompute(import, error));
    TRY(read_adapters(import, error));
    const char *mode = NULL;
    TRY(import_word(import, "torch_compile_backend", &mode, error));
    const bool fsdp =
        import_has(import, "fsdp") || import_has(import, "fsdp_config") || import_has(import, keys[SHARD].path);
    TRY(read_sizes(import, fsdp, error));
    TRY(read_context(import, error));
    return fsdp ? read_fsdp(import, error) : STATUS_OK;
}

static const char *const marks[] = {"base_model", "sequence_len",  "micro_batch_size", "datasets",
                                    "num_epochs", "dp_shard_size", "fsdp_version",     NULL};

const ImportFormat import_axolotl = {
    .name = "axolotl",
    .marks = marks,
    .keys = {.mesh = "dp_replicate_size, dp_shard_size, context_parallel_size, tensor_parallel_size",
             .micro_batch = "micro_batch_size, gradient_accumulation_steps",
             .reshard = "fsdp_config.reshard_after_forward",
             .recompute = "gradient_checkpointing, fsdp_config.activation_checkpointing",
             .rotate = "ring_attn_func",
             .zero = "fsdp_version"},
    .read = axolotl_read,
};

// ---- writing

static const char *axolotl_refuse(const ConfigJob *job) {
    const int cp = export_axis(job, AXIS_CP);
    const TrainPlan *plan = job->plan;
    if (cp > 1 && plan->attention != ATTENTION_FLASH) {
        return arena_format(job->arena, "axolotl's cp=%d needs flash attention: use --attention flash, not %s", cp,
                            attention_names[plan->attention]);
    }
    if (cp > 1 && plan->micro_batch > 1) {
        return arena_format(job->arena,
                            "axolotl takes cp=%d with micro-batches of one sequence: use --micro-batch 1, not %d", cp,
                            plan->micro_batch);
    }
    return NULL;
}

static void axolotl_write(const ConfigJob *job, FILE *out) {
    config_write(job, keys, CONFIG_YAML, out);
    fputs("# Yours: data, optimizer, learning rate.\n"
          "datasets:\n  - path: your/dataset\n    type: completion\n"
          "optimizer: adamw_torch_fused\nlearning_rate: 0.0001\nnum_epochs: 1\noutput_dir: ./outputs\n",
          out);
}

const ExportFormat export_axolotl_yaml = {
    .name = "axolotl",
    .target = "axolotl",
    .file_name = "axolotl.yaml",
    .versions = "axolotl 0.19",
    .comment = "# ",
    .precisions = EXPORT_BF16 | EXPORT_FP16 | EXPORT_FP32,
    .recomputes = EXPORT_NONE | EXPORT_FULL,
    .attentions = EXPORT_FLASH | EXPORT_BIT(ATTENTION_EAGER),
    .fuseds = EXPORT_EAGER | EXPORT_COMPILED,
    .refuse = axolotl_refuse,
    .write = axolotl_write,
    .launch = launch_torchrun,
    .program = "-m axolotl.cli.train %s",
};
