// LLaMA-Factory's YAML: TrainingArguments beside its own arguments of model, data and method (0.9: hparams/*.py,
// model/adapter.py, model/model_utils). Its own are turned into those that the Trainer's reader has.

#include <string.h>

#include "sim/frameworks/peft.h"
#include "sim/frameworks/trainer/trainer_files.h"

static const ImportLeftOut left_out[] = {
    {"use_dora", NULL, "DoRA trains magnitudes of the weights too, with passes of their own"},
    {"additional_target", NULL, "modules are trained beside the adapters: predicted without"},
    {"shift_attn", NULL, "attention of shifted groups: predicted whole"},
    {"upcast_layernorm", NULL, "norms in fp32: your run moves more bytes"},
    {"upcast_lmhead_output", NULL, "logits in fp32: your run needs more memory"},
    {"use_unsloth", NULL, "Unsloth's kernels: your run needs less memory and time"},
    {"use_unsloth_gc", NULL, "inputs of recomputed layers wait on the host: your run needs less memory"},
    {"neat_packing", NULL, "documents are packed and see themselves only: your run computes less attention"},
    {"use_galore", NULL, "another optimizer: predicted with two states a parameter"},
    {"use_apollo", NULL, "another optimizer: predicted with two states a parameter"},
    {"use_adam_mini", NULL, "another optimizer: predicted with two states a parameter"},
    {"use_muon", NULL, "another optimizer: predicted with two states a parameter"},
    {"fp8", NULL, "fp8: predicted in bf16"},
    {"enable_torch_profiler", NULL, "profiled steps are slower"},
    {NULL, NULL, NULL}};

static const char *const of_no_matter[] = {
    // data
    "template dataset eval_dataset dataset_dir media_dir train_on_prompt mask_history buffer_size mix_strategy",
    "interleave_probs preprocessing_batch_size eval_num_beams ignore_pad_token_for_loss val_size",
    "eval_on_each_dataset tool_format default_system enable_thinking preserve_thinking tokenized_path",
    "data_shared_file_system max_samples packing use_audio_in_video audio_sampling_rate image_max_pixels",
    "image_min_pixels image_do_pan_and_scan crop_to_patches video_max_pixels video_min_pixels video_fps video_maxlen",
    // model
    "adapter_name_or_path adapter_folder use_fast_tokenizer resize_vocab split_special_tokens add_tokens",
    "add_special_tokens new_special_tokens_config init_special_tokens low_cpu_mem_usage rope_scaling moe_aux_loss_coef",
    "use_reentrant_gc train_from_scratch infer_backend infer_dtype offload_folder use_kv_cache use_v1_kernels",
    "hf_hub_token ms_hub_token om_hub_token print_param_status quantization_type double_quantization",
    "quantization_device_map",
    // method
    "freeze_trainable_layers freeze_trainable_modules freeze_extra_modules lora_alpha lora_dropout loraplus_lr_ratio",
    "loraplus_lr_embedding use_rslora pissa_init pissa_iter pissa_convert create_new_adapter use_swanlab",
    "freeze_vision_tower freeze_multi_modal_projector freeze_language_model compute_accuracy disable_shuffling",
    "early_stopping_steps plot_loss include_effective_tokens_per_second use_dft_loss use_eaft_loss eaft_alpha",
    "ray_run_name ray_storage_path ray_storage_filesystem ray_num_workers resources_per_worker placement_strategy",
    "ray_init_kwargs overwrite_output_dir", NULL};
static const char *const of_families[] = {"swanlab_", "galore_", "apollo_", "profiler_", "pref_", NULL};

bool llama_factory_is(Import *import) {
    return import_has(import, "finetuning_type") || import_has(import, "cutoff_len") ||
           (import_has(import, "stage") && import_has(import, "template"));
}

static void put(Import *import, const char *key, const char *text, const char *as) {
    const ConfigNode *node = import_at(import, as);
    if (!import_has(import, key)) {
        config_append(import->arena, import->root, config_scalar(import->arena, key, text, node ? node->line : 0));
    }
}

// Of the Trainer's own words.
static Status put_arguments(Import *import, Error *error) {
    static const char *const kernels[][2] = {
        {"fa2", "flash_attention_2"}, {"fa3", "flash_attention_3"}, {"sdpa", "sdpa"}, {"disabled", "eager"}};
    const char *kernel = NULL;
    int whole = 0, liger = 0, pure = 0;
    TRY(import_word(import, "flash_attn", &kernel, error));
    for (size_t i = 0; kernel && i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernel, kernels[i][0]) == 0) {
            put(import, "attn_implementation", kernels[i][1], "flash_attn");
        }
    }
    TRY(import_bool(import, "disable_gradient_checkpointing", &whole, error));
    put(import, "gradient_checkpointing", whole ? "false" : "true", "disable_gradient_checkpointing");
    FIND_IF(!import_has(import, "disable_gradient_checkpointing"), import, FINDING_ASSUMED, NULL,
            "layers are recomputed, LLaMA-Factory's default; disable_gradient_checkpointing: true keeps activations");
    TRY(import_bool(import, "enable_liger_kernel", &liger, error));
    if (liger) {
        put(import, "use_liger_kernel", "true", "enable_liger_kernel");
    }
    TRY(import_bool(import, "pure_bf16", &pure, error));  // what is trained is made fp32 otherwise (adapter.py)
    put(import, "dtype", pure ? "bfloat16" : "float32", "pure_bf16");
    return STATUS_OK;
}

static void refuse_methods(Import *import, const char *stage, const char *method) {
    IMPORT_REFUSE_IF(strcmp(stage, "pt") != 0 && strcmp(stage, "sft") != 0, import, "stage",
                     "training on preferences or rewards is not modelled yet (stage: %s)", stage);
    IMPORT_REFUSE_IF(strcmp(method, "lora") != 0 && strcmp(method, "full") != 0, import, "finetuning_type",
                     "finetuning_type: %s is not modelled: lora and full are", method);
    static const ImportLeftOut others[] = {
        {"dist_config", NULL, "configs of LLaMA-Factory's v1 are not read"},
        {"train_dataset", NULL, "configs of LLaMA-Factory's v1 are not read"},
        {"tensor_model_parallel_size", NULL, "this trains by Megatron: give its own arguments to --from"},
        {"export_dir", NULL, "this merges adapters and trains nothing"},
        {"use_llama_pro", NULL, "some layers are trained at a time, which is not modelled yet"},
        {"use_badam", NULL, "some layers are trained at a time, which is not modelled yet"},
        {"mixture_of_depths", NULL, "layers that pass tokens by are not modelled"},
        {"use_asft_loss", NULL, "a reference model beside the trained one is not modelled yet"},
        {"use_kt", NULL, "experts that are computed on the host (KTransformers) are not modelled"},
        {"use_mca", NULL, "this trains by Megatron: give its own arguments to --from"},
        {"use_megatron_bridge", NULL, "this trains by Megatron: give its own configuration to --from"},
        {"use_hyper_parallel", NULL, "HyperParallel is not modelled"},
        {NULL, NULL, NULL}};
    for (const ImportLeftOut *row = others; row->path; row++) {
        IMPORT_REFUSE_IF(import_is_on(import, row->path), import, row->path, "%s", row->sentence);
        import_known(import, (const char *const[]){row->path, NULL});
    }
}

// q_proj,v_proj
static void split(Import *import, ConfigNode *words) {
    static const char between[] = ", ";
    const char *at = words->text;
    words->kind = NODE_LIST;
    while (*(at += strspn(at, between))) {
        const size_t length = strcspn(at, between);
        config_append(
            import->arena, words,
            config_scalar(import->arena, NULL, arena_format(import->arena, "%.*s", (int)length, at), words->line));
        at += length;
    }
}

static Status put_adapters(Import *import, const char *method, Error *error) {
    const char *by = "bnb";
    int bits = 0;
    TRY(import_int(import, "quantization_bit", 1, 8, &bits, error));
    TRY(import_word(import, "quantization_method", &by, error));
    if (strcmp(method, "lora") != 0) {
        FIND_IF(bits != 0, import, FINDING_REFUSED, "quantization_bit",
                "a base in %d bits is trained by adapters alone: finetuning_type: lora, or no quantization_bit", bits);
        return STATUS_OK;
    }
    IMPORT_REFUSE_IF(
        bits != 0 && ((bits != 4 && bits != 8) || (strcmp(by, "bnb") != 0 && strcmp(by, "bitsandbytes") != 0)), import,
        "quantization_bit", "a base in %d bits by %s is not modelled: 4 and 8 bits by bnb are", bits, by);
    static const PeftKeys adapters = {"lora_rank", "lora_target", NULL, LORA_ALL, 8};
    ConfigNode *targets = import_at(import, "lora_target");
    if (targets && targets->kind == NODE_SCALAR && strcmp(targets->text, "all") == 0) {
        targets->text = "all-linear";
    } else if (targets && targets->kind == NODE_SCALAR && strchr(targets->text, ',')) {
        split(import, targets);
    }
    return peft_read(import, &adapters, peft_finetune(bits == 4, bits == 8), error);
}

static const ImportKeys its_keys = {.mesh = "fsdp_config of accelerate launch",
                                    .micro_batch = "per_device_train_batch_size",
                                    .reshard = "fsdp_config of accelerate launch",
                                    .recompute = "disable_gradient_checkpointing",
                                    .rotate = "none",
                                    .zero = "fsdp",
                                    .sync = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch",
                                    .kernels = "torch_compile",
                                    .overlap = "fsdp",
                                    .loss = "enable_liger_kernel"};

Status llama_factory_read(Import *import, Error *error) {
    import->keys = &its_keys;
    const char *stage = "sft", *method = "lora";
    TRY(import_word(import, "stage", &stage, error));
    TRY(import_word(import, "finetuning_type", &method, error));
    refuse_methods(import, stage, method);
    TRY(put_arguments(import, error));
    TRY(put_adapters(import, method, error));
    if (!import_has(import, "cutoff_len")) {
        import_find(import, FINDING_ASSUMED, NULL, "cutoff_len is 2048, LLaMA-Factory's default");
        put(import, "cutoff_len", "2048", "cutoff_len");
    }
    import_leave_out(import, left_out);
    import_known(import, of_no_matter);
    for (ConfigNode *node = import->root->first; node; node = node->next) {
        for (int i = 0; of_families[i]; i++) {
            if (node->key && strncmp(node->key, of_families[i], strlen(of_families[i])) == 0) {
                import_known(import, (const char *const[]){node->key, NULL});
            }
        }
    }
    return STATUS_OK;
}
