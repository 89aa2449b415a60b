// The arguments of transformers' Trainer (5.23, training_args.py) as a YAML or JSON file, which HfArgumentParser or
// TrlParser hand to a script, or as the call in a module of the script. A file of them has no mesh: FSDP shards over
// all ranks, else every rank is a replica; a module may have one (trainer_module.c). FSDP is version 2 unless the file
// says 1.

#include <string.h>

#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/hf_optimizers.h"
#include "sim/frameworks/import_python.h"
#include "sim/frameworks/peft.h"
#include "sim/frameworks/trainer/trainer_files.h"

static const ConfigKey keys[] = {
    {.path = "per_device_train_batch_size", .means = KEY_MICRO_BATCH},
    {.path = "gradient_accumulation_steps", .means = KEY_ACCUMULATION},
    {"accelerator_config.gradient_accumulation_kwargs.sync_each_batch", KEY_SWITCH, PLAN_GRAD_SYNC,
     .on = GRAD_SYNC_EACH, .off = GRAD_SYNC_LAST},
    {NULL},
};

// Memory and time that the prediction leaves out.
static const ImportLeftOut left_out[] = {
    {"torch_compile_mode", "default",
     "another mode of torch.compile, such as CUDA graphs: the figures are of the default"},
    {"torch_empty_cache_steps", NULL, "the allocator's cache is emptied now and then: those steps stall"},
    {"auto_find_batch_size", NULL, "the batch is halved until it fits: the figures are of the one in the file"},
    {"ddp_bucket_cap_mb", "25", "another size of the buckets of gradients: latency and overlap differ"},
    {"ddp_static_graph", NULL, "one order of gradients for all steps: a little less overhead"},
    {"fsdp_config.forward_prefetch", NULL, "the next unit is gathered beside forward: the prediction does so anyway"},
    {NULL, NULL, NULL},
};

// Data, logging, saving, evaluation, the optimizer's numbers.
static const char *const of_no_matter[] = {
    "output_dir num_train_epochs max_steps learning_rate lr_scheduler_type lr_scheduler_kwargs warmup_steps",
    "warmup_ratio optim_args weight_decay adam_beta1 adam_beta2 adam_epsilon optim_target_modules",
    "average_tokens_across_devices max_grad_norm label_smoothing_factor bf16_full_eval fp16_full_eval tf32 use_cache",
    "neftune_noise_alpha logging_strategy logging_steps logging_first_step log_on_each_node logging_nan_inf_filter",
    "logging_dir include_num_input_tokens_seen log_level log_level_replica disable_tqdm report_to run_name project",
    "trackio_space_id trackio_bucket_id trackio_static_space_id eval_strategy eval_steps eval_delay",
    "per_device_eval_batch_size prediction_loss_only eval_on_start eval_do_concat_batches eval_use_gather_object",
    "eval_accumulation_steps include_for_metrics batch_eval_metrics save_only_model save_strategy save_steps",
    "save_on_each_node save_total_limit enable_jit_checkpoint push_to_hub hub_token hub_private_repo hub_model_id",
    "hub_strategy hub_always_push hub_revision load_best_model_at_end metric_for_best_model greater_is_better",
    "ignore_data_skip restore_callback_states_from_checkpoint full_determinism seed data_seed dataloader_drop_last",
    "dataloader_num_workers dataloader_pin_memory dataloader_persistent_workers dataloader_prefetch_factor",
    "dataloader_multiprocessing_context dataloader_in_order remove_unused_columns label_names train_sampling_strategy",
    "length_column_name ddp_find_unused_parameters ddp_broadcast_buffers ddp_backend ddp_timeout debug",
    "skip_memory_metrics do_train do_eval do_predict resume_from_checkpoint local_rank",
    "accelerator_config.split_batches accelerator_config.dispatch_batches accelerator_config.even_batches",
    "accelerator_config.use_seedable_sampler accelerator_config.non_blocking",
    "gradient_checkpointing_kwargs.use_reentrant activation_checkpointing_kwargs.use_reentrant",
    "fsdp_config.transformer_layer_cls_to_wrap fsdp_config.cpu_ram_efficient_loading fsdp_config.state_dict_type",
    "fsdp_config.sync_module_states fsdp_config.use_orig_params fsdp_config.limit_all_gathers",
    "fsdp_config.backward_prefetch fsdp_config.min_num_params",
    // of the scripts that come with transformers
    "model_name_or_path tokenizer_name config_name dataset_name dataset_config_name train_file validation_file",
    "max_train_samples max_eval_samples preprocessing_num_workers overwrite_cache validation_split_percentage",
    "streaming trust_remote_code token model_revision cache_dir",
    // in front of the script that is launched
    "launcher", NULL};

// ---- precision, kernels

static Status read_precision(Import *import, const TrainerDefaults *defaults, Loaded loaded, Error *error) {
    int bf16 = python_leave(import, "bf16", "on, unless --precision says another") ? 1 : -1, fp16 = 0;
    python_leave(import, "fp16", "off, unless --precision says it");
    TRY(import_bool(import, "fp16", &fp16, error));
    TRY(import_bool(import, "bf16", &bf16, error));
    FIND_IF(bf16 == 1 && fp16, import, FINDING_REFUSED, "fp16",
            "At most one of fp16 and bf16 can be True, but not both");
    const bool half = bf16 < 0 ? defaults->bf16 && !fp16 : bf16;
    FIND_IF(bf16 < 0 && !fp16, import, FINDING_ASSUMED, NULL, "neither bf16 nor fp16 is set: %s",
            half                     ? "bf16, its default"
            : loaded_is_half(loaded) ? "bf16, as the model is loaded"
                                     : "fp32, its default");
    import->said.choice[PLAN_PRECISION] = half ? DTYPE_BF16 : fp16 ? DTYPE_FP16 : DTYPE_FP32;
    return STATUS_OK;
}

static Status read_kernels(Import *import, Error *error) {
    const char *backend = NULL;
    int compiles = 0;
    python_leave_choice(import, "torch_compile", PLAN_FUSED);
    TRY(import_bool(import, "torch_compile", &compiles, error));
    TRY(import_word(import, "torch_compile_backend", &backend, error));
    compiles |= backend != NULL || import_is_on(import, "torch_compile_mode");  // either switches it on
    import->said.choice[PLAN_FUSED] = compiles ? FUSED_COMPILED : FUSED_EAGER;
    static const char of_module[] = "model_arguments.attn_implementation";
    const char *path = import_has(import, of_module) ? of_module : "attn_implementation";
    return attention_read(import, path, error);
}

// Liger's other kernels are on unless its config says otherwise.
static Status read_liger(Import *import, const TrainerDefaults *defaults, Error *error) {
    static const char *const kernels[] = {"rope", "rms_norm", "swiglu", "geglu"};
    int liger = 0, fused = 1, others = 0;
    python_leave_choice(import, "use_liger_kernel", PLAN_LOSS);
    TRY(import_bool(import, "use_liger_kernel", &liger, error));
    TRY(import_bool(import, "liger_kernel_config.fused_linear_cross_entropy", &fused, error));
    for (int i = 0; i < 4; i++) {
        int on = 1;
        const char *path = arena_format(import->arena, "liger_kernel_config.%s", kernels[i]);
        TRY(import_bool(import, path, &on, error));
        others |= on;
    }
    import_known(import, (const char *const[]){"liger_kernel_config.cross_entropy", NULL});
    if (!liger) {
        return STATUS_OK;
    }
    FIND_IF(others, import, FINDING_UNMODELLED, "use_liger_kernel",
            "one kernel for each norm, the rotation and the activation: your run needs less memory and time "
            "than these kernels");
    if (fused && defaults->own_loss) {
        import_find(import, FINDING_TRAP, "use_liger_kernel", "its loss is turned off beside %s's own",
                    import->format->name);
    } else if (fused) {
        import->said.choice[PLAN_LOSS] = LOSS_FUSED;
    }
    return STATUS_OK;
}

// ---- recomputation

static Status read_recompute(Import *import, const TrainerDefaults *defaults, Error *error) {
    static const char *const names[] = {"gradient_checkpointing", "activation_checkpointing"};
    int of_model = defaults->recomputes, of_units = 0, every = 0, offload = 0;
    const char *offload_path = NULL;
    for (int i = 0; i < 2; i++) {
        python_leave_choice(import, names[i], PLAN_RECOMPUTE);
        TRY(import_bool(import, names[i], &of_model, error));
        TRY(import_int(import, arena_format(import->arena, "%s_kwargs.every_n_layers", names[i]), 1, 1 << 16, &every,
                       error));
        const char *path = arena_format(import->arena, "%s_kwargs.offload", names[i]);
        TRY(import_bool(import, path, &offload, error));
        offload_path = import_has(import, path) ? path : offload_path;
    }
    python_leave_choice(import, "fsdp_config.activation_checkpointing", PLAN_RECOMPUTE);
    TRY(import_bool(import, "fsdp_config.activation_checkpointing", &of_units, error));
    FIND_IF(defaults->recomputes && !import_has(import, names[0]) && !import_has(import, names[1]), import,
            FINDING_ASSUMED, NULL, "gradient_checkpointing is on, %s's default", import->format->name);
    FIND_IF(of_model && of_units, import, FINDING_TRAP, names[0],
            "gradient_checkpointing and FSDP's activation_checkpointing are both on: layers are recomputed "
            "twice; the prediction counts once");
    import->said.choice[PLAN_RECOMPUTE] = of_model || of_units ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    if (of_model && every > 1) {
        import->said.choice[PLAN_RECOMPUTE_EVERY] = every;
    }
    if (of_model && offload) {  // save_on_cpu around each (modeling_utils.py)
        import_take_offload(import, offload_path, OFFLOAD_ACTIVATIONS, "cpu");
    } else if (offload) {
        import_find(import, FINDING_TRAP, offload_path, "offload does nothing while %s is not set", names[0]);
    }
    return STATUS_OK;
}

// ---- sharding

// What its JSON does not hold.
#define BESIDE_DEEPSPEED                                                                                               \
    "with --world, --micro-batch, --grad-accum and --seq, and --finetune and --lora-rank of adapters"

// The old words of `fsdp`, in one string or a list; *shards is left alone by those that say nothing of it.
static void read_old_word(Import *import, const char *word, const char *strategy_of, int *reshards, int *offload) {
    if (strstr(word, "shard_grad_op")) {
        *reshards = 0;
    }
    if (strstr(word, "offload")) {
        *offload = 1;
    }
    FIND_IF(strstr(word, "hybrid_shard") && strcmp(strategy_of, "2") == 0, import, FINDING_REFUSED, "fsdp",
            "`fsdp=%s` is only available with FSDP1", word);
}

static void read_old_words(Import *import, const char *version, int *reshards, int *offload) {
    const ConfigNode *node = import_at(import, "fsdp");
    if (node && node->kind == NODE_SCALAR) {
        read_old_word(import, node->text, version, reshards, offload);
    }
    for (const ConfigNode *item = node ? node->first : NULL; item; item = item->next) {
        if (item->kind == NODE_SCALAR) {
            read_old_word(import, item->text, version, reshards, offload);
        }
    }
}

static const char *without_prefix(const char *key, Arena *arena) {
    (void)arena;
    return strncmp(key, "fsdp_", 5) == 0 ? key + 5 : NULL;
}

static Status read_wrapping(Import *import, Error *error) {
    const char *policy = "TRANSFORMER_BASED_WRAP";  // FSDP_AUTO_WRAP_POLICY[0]
    TRY(import_word(import, "fsdp_config.auto_wrap_policy", &policy, error));
    if (import_same_word(policy, "NO_WRAP")) {
        import_find(import, FINDING_TRAP, "fsdp_config.auto_wrap_policy",
                    "NO_WRAP makes the whole model one unit, gathered at once; the prediction has a unit per layer");
    } else if (!import_same_word(policy, "TRANSFORMER_BASED_WRAP")) {
        import_find(import, FINDING_UNMODELLED, "fsdp_config.auto_wrap_policy",
                    "units by size: the prediction has a unit per layer");
    }
    return STATUS_OK;
}

static Status read_fsdp(Import *import, Error *error) {
    const char *version = "2";
    int reshards = 1, offload = 0;
    TRY(import_word(import, "fsdp_config.version", &version, error));
    read_old_words(import, version, &reshards, &offload);
    python_leave_choice(import, "fsdp_config.cpu_offload", PLAN_OFFLOAD);
    TRY(import_bool(import, "fsdp_config.cpu_offload", &offload, error));
    TRY(read_wrapping(import, error));
    import->said.choice[PLAN_ZERO] = 3;
    import->said.size[AXIS_DP_SHARD] = -1;
    python_leave_choice(import, "fsdp_config.reshard_after_forward", PLAN_RESHARD);
    if (strcmp(version, "1") == 0) {
        const char *strategy = "full_shard";
        TRY(import_word(import, "fsdp_config.reshard_after_forward", &strategy, error));
        reshards = strstr(strategy, "grad_op") ? 0 : reshards;
        import->flavour = arena_format(import->arena, "%s, FSDP version 1", import->flavour);
        import->target = "accelerate@1.0";
        import->successor = import->format->name;
    } else {
        TRY(import_bool(import, "fsdp_config.reshard_after_forward", &reshards, error));
        import->flavour = arena_format(import->arena, "%s, FSDP version 2", import->flavour);
    }
    if (offload && import->said.choice[PLAN_OFFLOAD] == OFFLOAD_ACTIVATIONS) {
        import_find(import, FINDING_UNMODELLED, "fsdp_config.cpu_offload",
                    "parameters and inputs of recomputed layers both wait on the host: the prediction has the "
                    "parameters there, so your run needs less memory and more time");
        import->said.choice[PLAN_OFFLOAD] = OFFLOAD_PARAMETERS;
    }
    import_switch_offload(import, offload, "fsdp_config.cpu_offload", OFFLOAD_PARAMETERS);
    import->said.choice[PLAN_RESHARD] = reshards ? RESHARD_ALWAYS : RESHARD_NEVER;
    return STATUS_OK;
}

static void leave_sharding(Import *import) {
    ConfigNode *fsdp = import_at(import, "fsdp");
    if (python_leave(import, "fsdp", "taken as on: all ranks shard")) {
        fsdp->text = "true";
    }
    python_leave(import, "fsdp_config", "say what it holds with --reshard, --offload and --recompute");
    python_leave(import, "deepspeed",
                 "where it is a file, this trains with DeepSpeed: give that file to --from, " BESIDE_DEEPSPEED);
}

// As DeepSpeed-Chat does: a configuration that the program makes of its options is no file to give.
static Status refuse_made(Import *import, const ConfigNode *deepspeed, Error *error) {
    const ConfigNode *stage = import_at(import, "zero_stage");
    const bool is_said = stage->kind == NODE_SCALAR && strlen(stage->text) == 1 && strchr("0123", stage->text[0]);
    error_set(error, STATUS_USAGE,
              "%s:%d: this trains with DeepSpeed, whose configuration the program makes itself of zero_stage %s",
              import->path, deepspeed->line, stage->kind == NODE_SCALAR ? stage->text : "and others");
    return error_hint(error,
                      "ndtune predict --target deepspeed --zero %s --mesh ... --micro-batch %d --seq ... prices it",
                      is_said ? stage->text : "0|1|2|3", import->said.micro_batch);
}

static Status read_sharding(Import *import, Error *error) {
    leave_sharding(import);
    const ConfigNode *config = import_at(import, "fsdp_config");
    FAIL_IF(config && config->kind == NODE_SCALAR && config->text[0], error, STATUS_USAGE,
            "%s:%d: fsdp_config is the file %s: put its keys here", import->path, config->line, config->text);
    const char *deepspeed = NULL;
    TRY(import_word(import, "deepspeed", &deepspeed, error));
    const ConfigNode *node = import_at(import, "deepspeed");
    if (node && node->alone && import_has(import, "zero_stage")) {
        return refuse_made(import, node, error);
    }
    import->left_to = deepspeed;
    FAIL_IF(deepspeed, error, STATUS_USAGE, "%s:%d: this trains with DeepSpeed: give %s to --from, " BESIDE_DEEPSPEED,
            import->path, node->line, node->alone ? "its configuration, a JSON file," : deepspeed);
    if (import_is_on(import, "fsdp")) {
        return read_fsdp(import, error);
    }
    if (config && config->first) {
        import_find(import, FINDING_TRAP, "fsdp_config", "fsdp_config does nothing while fsdp is not set");
        import_known(import, (const char *const[]){"fsdp_config", NULL});
    }
    import->said.choice[PLAN_ZERO] = 0;
    import->said.size[AXIS_DP_REPLICATE] = -1;
    import->flavour = arena_format(import->arena, "%s, data-parallel replicas (DDP)", import->flavour);
    FIND_IF(
        !import_has(import, "parallelism_config") && !import_has(import, "model_arguments.distributed_config"), import,
        FINDING_ASSUMED, NULL,
        "fsdp is not set: every rank is a replica, unless the launcher shards; give the file of accelerate launch to "
        "--from then, with --micro-batch, --grad-accum, --seq and --finetune");
    return STATUS_OK;
}

// ModelConfig's defaults (TRL 1.16, trainer/model_config.py): rank 16; peft's own modules, which are q_proj and v_proj
// of Llama's kind (peft utils/constants.py). A quantised base without an adapter cannot be trained.
static Status read_adapters(Import *import, Error *error) {
    static const PeftKeys peft_keys = {"lora_r", "lora_target_modules", NULL, LORA_QUERY_VALUE, 16};
    int adapters = 0, in_4bit = 0, in_8bit = 0;
    TRY(import_bool(import, "use_peft", &adapters, error));
    TRY(import_bool(import, "load_in_4bit", &in_4bit, error));
    TRY(import_bool(import, "load_in_8bit", &in_8bit, error));
    if (adapters) {
        return peft_read(import, &peft_keys, peft_finetune(in_4bit, in_8bit), error);
    }
    const char *rank = import_has(import, "lora_r") ? "lora_r" : "lora_rank";
    FIND_IF(import_has(import, rank) && !import_has(import, "use_peft"), import, FINDING_ASSUMED, rank,
            "adapters that your script makes of it are not read: --finetune lora, with --lora-rank");
    FIND_IF(in_4bit || in_8bit, import, FINDING_REFUSED, in_4bit ? "load_in_4bit" : "load_in_8bit",
            "a model that is loaded in fewer bits cannot be trained without use_peft");
    return STATUS_OK;
}

Status trainer_read_arguments(Import *import, const TrainerDefaults *defaults, Error *error) {
    import->unknown.kind = import->unknown_below.kind = FINDING_UNKNOWN;
    import->unknown.words = defaults->unknown;
    import->unknown_below.words = "no key that is looked at there";
    import->target = import->format->name;
    import->flavour = defaults->flavour;
    config_rename_keys(import->arena, import_at(import, "fsdp_config"), without_prefix);
    const bool by_environment = trainer_takes_environment(import);
    const bool known_later[] = {python_leave_to(import, keys[0].path, "micro-batch"),
                                python_leave_to(import, keys[1].path, "grad-accum")};
    TRY(config_read(import, keys, error));
    import->model_key = "model_name_or_path";
    TRY(import_word(import, import->model_key, &import->model, error));
    if (!import->said.micro_batch && !known_later[0]) {
        enum { DEFAULT_BATCH = 8 };
        import->said.micro_batch = DEFAULT_BATCH;
        import_find(import, FINDING_ASSUMED, NULL, "per_device_train_batch_size is %d, its default", DEFAULT_BATCH);
    }
    import->said.grad_accum = import->said.grad_accum || known_later[1] ? import->said.grad_accum : 1;
    for (int i = 0; defaults->sequence[i]; i++) {
        python_leave_to(import, defaults->sequence[i], "seq");
        TRY(import_int(import, defaults->sequence[i], 1, 1 << 30, &import->said.seq, error));
    }
    trainer_take_init_kwargs(import);
    const Loaded loaded = trainer_model_is(import);
    TRY(read_precision(import, defaults, loaded, error));
    TRY(read_kernels(import, error));
    TRY(read_liger(import, defaults, error));
    TRY(hf_optimizer_read(import, "optim", error));
    TRY(read_recompute(import, defaults, error));
    TRY(read_sharding(import, error));
    if (by_environment) {
        trainer_is_of_environment(import);
    }
    TRY(read_adapters(import, error));
    TRY(trainer_read_module(import, error));
    loaded_take(import, loaded, !import_has(import, "model_arguments.distributed_config"));
    import_leave_out(import, left_out);
    import_known(import, of_no_matter);
    return STATUS_OK;
}

static Status read(Import *import, Error *error) {
    static const char *const sequence[] = {"block_size", "max_seq_length", "model_max_length", NULL}, *const cut[] = {
                                                                                                          "cutoff_len",
                                                                                                          NULL};
    static const TrainerDefaults factory = {
        .flavour = "LLaMA-Factory", .unknown = "no argument of LLaMA-Factory's, which stops at it", .sequence = cut};
    if (llama_factory_is(import)) {
        TRY(llama_factory_read(import, error));
        return trainer_read_arguments(import, &factory, error);
    }
    static const TrainerDefaults defaults = {
        .flavour = "TrainingArguments",
        .unknown = "no argument of the Trainer: your script's own, or HfArgumentParser stops at it",
        .sequence = sequence};
    return trainer_read_arguments(import, &defaults, error);
}

const ImportFormat import_trainer = {
    .name = "trainer",
    .marks = "per_device_train_batch_size fsdp TrainingArguments Seq2SeqTrainingArguments per_device_eval_batch_size "
             "num_train_epochs "
             "model_name_or_path do_train do_eval block_size output_dir finetuning_type cutoff_len template",
    .keys = TRAINER_KEYS,
    .read = read,
    .others =
        (const ImportOther[]){
            {" swift ", "ms-swift"}, {"swift/cli/", "ms-swift"}, {" swift.cli.", "ms-swift"}, {NULL, NULL}},
};
