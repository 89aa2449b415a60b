// axolotl's YAML as its own code takes it (0.19: utils/schemas, utils/config/__init__.py, utils/distributed.py,
// utils/trainer.py). The checks of its schema that refuse settings of a plan are here in its wording. Keys that no
// schema has are ignored by it.

#include <string.h>

#include "sim/base/text.h"
#include "sim/frameworks/axolotl/axolotl_files.h"
#include "sim/frameworks/hf_optimizers.h"
#include "sim/frameworks/peft.h"

static const char *path_of(int key) {
    return axolotl_keys[key].path;
}

// check_fsdp_config_kwargs_prefix cuts the old prefix off.
static const char *without_prefix(const char *key, Arena *arena) {
    (void)arena;
    return strncmp(key, "fsdp_", 5) == 0 && strcmp(key, "fsdp_version") != 0 ? key + 5 : NULL;
}

static bool has_fsdp(Import *import) {
    return import_is_on(import, "fsdp") || import_is_on(import, "fsdp_config");
}

// ---- precision

// resolve_dtype and prepare_optim_env: auto, which is the default, is bf16 on a GPU unless fp16 is on; bf16 beats fp16.
static Status read_precision(Import *import, Error *error) {
    static const ImportWord words[] = {{"false", 0}, {"true", 1}, {"auto", 2}, {"full", 3}, {"no", 0},
                                       {"yes", 1},   {"off", 0},  {"on", 1},   {NULL, 0}};
    int *precision = &import->said.choice[PLAN_PRECISION];
    const ConfigNode *node = import_at(import, path_of(AXOLOTL_BF16));
    const bool is_auto = !node || (node->kind == NODE_SCALAR && strcmp(node->text, "auto") == 0);
    int bf16 = is_auto ? 2 : 0;
    TRY(import_choice(import, path_of(AXOLOTL_BF16), words, &bf16, error));
    const bool fp16 = import_is_on(import, path_of(AXOLOTL_FP16));
    import_known(import, (const char *const[]){path_of(AXOLOTL_FP16), "bfloat16", "float16", "fp8", NULL});
    FIND_IF(bf16 == 3, import, FINDING_REFUSED, path_of(AXOLOTL_BF16), "bf16 takes auto, true or false, not full");
    *precision = bf16 == 2 ? (fp16 ? DTYPE_FP16 : DTYPE_BF16) : bf16 ? DTYPE_BF16 : fp16 ? DTYPE_FP16 : DTYPE_FP32;
    FIND_IF(fp16 && bf16 == 1, import, FINDING_TRAP, path_of(AXOLOTL_FP16), "bf16 is on too: fp16 is switched off");
    if (*precision == DTYPE_FP32 && (import_is_on(import, "bfloat16") || import_is_on(import, "float16"))) {
        const char *key = import_is_on(import, "bfloat16") ? "bfloat16" : "float16";
        *precision = key[0] == 'b' ? DTYPE_BF16 : DTYPE_FP16;
        import_find(import, FINDING_UNMODELLED, key, "%s without mixed precision: no weight or state is in fp32", key);
    }
    import->said.choice[PLAN_MASTER_WEIGHTS] = *precision == DTYPE_BF16;  // loaded so, and never upcast
    FIND_IF(import_is_on(import, "fp8"), import, FINDING_UNMODELLED, "fp8", "fp8 under axolotl: predicted in bf16");
    return STATUS_OK;
}

// ---- attention

typedef struct Kernel {
    const char *name;
    AttentionKernel kernel;
    bool exact;  // else another kernel than the one that is predicted
} Kernel;

// CANONICAL_ATTN_IMPLS, and what the kernels of the hub are called.
static const Kernel kernels[] = {{"flash_attention_2", ATTENTION_FLASH, true},
                                 {"flash_attention_3", ATTENTION_FLASH3, true},
                                 {"sdpa", ATTENTION_FLASH, true},
                                 {"eager", ATTENTION_EAGER, true},
                                 {"xformers", ATTENTION_FLASH, true},
                                 {"flash_attention_torch", ATTENTION_FLASH, true},
                                 {"flash_attention_4", ATTENTION_FLASH3, false},
                                 {"flex_attention", ATTENTION_FLASH, false},
                                 {"sage", ATTENTION_FLASH, false},
                                 {"fp8", ATTENTION_FLASH3, false}};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

// The old switches, those that are looked at first in front.
static const struct {
    const char *path, *name;
} old_switches[] = {
    {"xformers_attention", "xformers"},       {"sage_attention", "sage"}, {"flex_attention", "flex_attention"},
    {"flash_attention", "flash_attention_2"}, {"sdp_attention", "sdpa"},  {"eager_attention", "eager"}};
enum { OLD_SWITCHES = sizeof old_switches / sizeof old_switches[0] };

static const Kernel *kernel_named(const char *name) {
    static const Kernel of_hub2 = {"flash-attn2", ATTENTION_FLASH, true},
                        of_hub3 = {"flash-attn3", ATTENTION_FLASH3, true},
                        other_of_hub = {"of the hub", ATTENTION_FLASH, false};
    const Kernel *row = TEXT_FIND(kernels, KERNELS, name, name);
    if (row || !strchr(name, '/')) {
        return row;
    }
    return strstr(name, "flash-attn3") ? &of_hub3 : strstr(name, "flash-attn2") ? &of_hub2 : &other_of_hub;
}

// NULL = the file does not say which; *path: where it says so.
static Status attention_name(Import *import, const char **name, const char **path, Error *error) {
    *path = path_of(AXOLOTL_ATTENTION);
    TRY(import_word(import, *path, name, error));
    const char *named = *name;
    for (int i = 0; i < OLD_SWITCHES; i++) {
        const bool on = import_is_on(import, old_switches[i].path);
        import_known(import, (const char *const[]){old_switches[i].path, NULL});
        if (on && named) {
            import_find(import, FINDING_REFUSED, old_switches[i].path,
                        "attn_implementation cannot be combined with the legacy attention flag %s",
                        old_switches[i].path);
        } else if (on && !*name) {
            *name = old_switches[i].name;
            *path = old_switches[i].path;
        }
    }
    if (!*name && import_is_on(import, "gemma4_hybrid_attn_impl")) {
        *name = "flash_attention_2";
    }
    import_known(import, (const char *const[]){"gemma4_hybrid_attn_impl", NULL});
    return STATUS_OK;
}

static Status read_attention(Import *import, Error *error) {
    const char *name = NULL, *path = NULL;
    TRY(attention_name(import, &name, &path, error));
    const Kernel *kernel = name ? kernel_named(name) : NULL;
    if (kernel) {
        import->said.choice[PLAN_ATTENTION] = (int)kernel->kernel;
    }
    if (name && !kernel) {
        import_find(import, FINDING_REFUSED, path, "attn_implementation=%s is not a recognized backend", name);
    } else if (kernel && !kernel->exact) {
        import_find(import, FINDING_UNMODELLED, path, "attention by %s: predicted with %s", name,
                    attention_names[kernel->kernel]);
    }
    const int cp = import->said.size[AXIS_CP];
    const bool flash2 = name && (strcmp(name, "flash_attention_2") == 0);
    FIND_IF(cp > 1 && !flash2, import, FINDING_REFUSED, path_of(AXOLOTL_CONTEXT),
            "context_parallel_size > 1 requires attn_implementation: flash_attention_2");
    return STATUS_OK;
}

// ---- recomputation

static Status read_recompute(Import *import, Error *error) {
    static const ImportWord words[] = {{"false", 0},        {"true", 1}, {"offload", 2},
                                       {"offload_disk", 2}, {"no", 0},   {"yes", 1},
                                       {"off", 0},          {"on", 1},   {NULL, 0}};
    int of_layers = 0, of_units = 0;
    TRY(import_choice(import, path_of(AXOLOTL_CHECKPOINT), words, &of_layers, error));
    if (has_fsdp(import)) {
        TRY(import_bool(import, path_of(AXOLOTL_FSDP_CHECKPOINT), &of_units, error));
    }
    FIND_IF(of_layers == 2, import, FINDING_UNMODELLED, path_of(AXOLOTL_CHECKPOINT),
            "activations wait in host memory: the figures keep all that is not recomputed on the accelerator");
    import->said.choice[PLAN_RECOMPUTE] = of_layers || of_units ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    FIND_IF(of_layers && of_units, import, FINDING_TRAP, path_of(AXOLOTL_CHECKPOINT),
            "gradient_checkpointing and FSDP's activation_checkpointing are both on: layers are recomputed twice; "
            "the prediction counts once");
    static const char *const need_it[] = {"activation_offloading", "selective_checkpointing"};
    for (int i = 0; i < 2; i++) {
        FIND_IF(!of_layers && import_is_on(import, need_it[i]), import, FINDING_REFUSED, need_it[i],
                "%s requires gradient_checkpointing", need_it[i]);
    }
    return STATUS_OK;
}

// ---- what is trained

static Status read_adapters(Import *import, Error *error) {
    static const char *const switches[] = {"load_in_8bit", "load_in_4bit"};
    static const PeftKeys keys = {"lora_r", "lora_target_modules", "lora_target_linear", LORA_QUERY_VALUE, 8};
    const char *adapter = NULL;
    int loads[2] = {0};
    TRY(import_word(import, "adapter", &adapter, error));
    for (int i = 0; i < 2; i++) {
        TRY(import_bool(import, switches[i], &loads[i], error));
        FIND_IF(loads[i] && !adapter, import, FINDING_REFUSED, switches[i],
                "load_in_8bit and load_in_4bit are not supported without setting an adapter for training");
    }
    const bool quantised = adapter && strcmp(adapter, "qlora") == 0;
    if (adapter && !quantised && strcmp(adapter, "lora") != 0) {
        import_refuse(import, "adapter", "adapter %s is not modelled yet: only its few parameters are trained, and %s",
                      adapter, "figures of full fine-tuning would say nothing about it");
    } else if (adapter) {
        FIND_IF(quantised && !loads[1], import, FINDING_REFUSED, "adapter",
                "Require cfg.load_in_4bit to be True for qlora");
        TRY(peft_read(import, &keys, peft_finetune(quantised || loads[1], loads[0]), error));
    }
    for (const ImportLeftOut *row = axolotl_other_training; row->path; row++) {
        IMPORT_REFUSE_IF(import_is_on(import, row->path), import, row->path, "%s", row->sentence);
        import_known(import, (const char *const[]){row->path, NULL});
    }
    return STATUS_OK;
}

static Status read_optimizer(Import *import, Error *error) {
    const char *name = NULL;
    TRY(hf_optimizer_read(import, "optimizer", error));
    TRY(import_word(import, "optimizer", &name, error));
    int *said = &import->said.choice[PLAN_OPTIMIZER];
    if (*said == OPTIMIZER_MUON && has_fsdp(import)) {
        *said = IMPORT_UNSAID;
        import_find(import, FINDING_UNMODELLED, "optimizer",
                    "matrices that ranks exchange and orthogonalise: predicted as AdamW with two states");
    }
    const int optimizer = *said;
    const bool packed = optimizer == OPTIMIZER_ADAMW_8BIT || optimizer == OPTIMIZER_ADAMW_8BIT_PAGED;
    FIND_IF(import->said.size[AXIS_TP] > 1 && packed, import, FINDING_REFUSED, "optimizer",
            "tensor_parallel_size is not supported with %s", name);
    return STATUS_OK;
}

// ---- kernels and loss

// The plugins that give keys of axolotl's a meaning.
bool axolotl_has_plugin(Import *import, const char *name) {
    const ConfigNode *plugins = import_at(import, "plugins");
    for (const ConfigNode *item = plugins ? plugins->first : NULL; item; item = item->next) {
        if (item->kind == NODE_SCALAR && strstr(item->text, name)) {
            return true;
        }
    }
    return false;
}

static Status read_loss(Import *import, Error *error) {
    static const char *const losses[] = {"cut_cross_entropy", "chunked_cross_entropy", "liger_cross_entropy",
                                         "liger_fused_linear_cross_entropy"};
    int cuts = axolotl_has_plugin(import, "CutCrossEntropyPlugin"), on = 0;  // its switch is on by itself
    TRY(import_bool(import, "cut_cross_entropy", &cuts, error));
    for (int i = 0; i < 4; i++) {
        on += import_is_on(import, losses[i]);
    }
    const bool liger = axolotl_has_plugin(import, "LigerPlugin");
    int fused = 0;
    TRY(import_bool(import, losses[3], &fused, error));
    if (cuts || (fused && liger)) {
        import->said.choice[PLAN_LOSS] = LOSS_FUSED;
    }
    FIND_IF(cuts, import, FINDING_UNMODELLED, import_has(import, losses[0]) ? losses[0] : "plugins",
            "cut cross-entropy makes the logits again in backward: predicted as Liger's kernel, which does not");
    FIND_IF(fused && !liger, import, FINDING_TRAP, losses[3],
            "%s does nothing while plugins has no axolotl.integrations.liger.LigerPlugin", losses[3]);
    FIND_IF(on > 1, import, FINDING_REFUSED, NULL, "only one cross entropy optimization can be enabled at a time");
    if (!liger) {
        for (const ImportLeftOut *row = axolotl_left_out; row->path; row++) {
            FIND_IF(strncmp(row->path, "liger_", 6) == 0 && import_is_on(import, row->path), import, FINDING_TRAP,
                    row->path, "%s does nothing while plugins has no axolotl.integrations.liger.LigerPlugin",
                    row->path);
        }
    } else if (import->said.size[AXIS_TP] > 1 &&
               (import_is_on(import, "liger_rms_norm") || import_is_on(import, "liger_fused_linear_cross_entropy"))) {
        import_find(import, FINDING_REFUSED, path_of(AXOLOTL_TENSOR),
                    "Liger's norm and losses are incompatible with tensor parallelism");
    }
    return STATUS_OK;
}

// ---- the mesh

// _get_parallel_config_kwargs: dp_shard takes what is left of the world, unless it was said and dp_replicate was not.
static void fill_mesh(Import *import) {
    int *shard = &import->said.size[AXIS_DP_SHARD], *replicate = &import->said.size[AXIS_DP_REPLICATE];
    if (*shard > 1 && *replicate <= 1) {
        *replicate = -1;
    } else if (*shard <= 1) {
        *shard = -1;
    }
}

// Without FSDP every rank holds the whole model. The mesh is filled all the same where dp_shard_size was not said.
static void fill_replicas(Import *import) {
    int *shard = &import->said.size[AXIS_DP_SHARD], *replicate = &import->said.size[AXIS_DP_REPLICATE];
    const bool cuts = import->said.size[AXIS_CP] > 1 || import->said.size[AXIS_TP] > 1;
    if (*shard > 1) {
        import_find(import, FINDING_REFUSED, path_of(AXOLOTL_SHARD),
                    "dp_shard_size was configured without a corresponding fsdp_config");
    } else if (*shard == 0 && *replicate <= 1) {
        *(cuts ? shard : replicate) = -1;
    }
    FIND_IF(cuts && *shard < 0, import, FINDING_TRAP,
            path_of(import->said.size[AXIS_CP] > 1 ? AXOLOTL_CONTEXT : AXOLOTL_TENSOR),
            "no fsdp_config: the mesh has a dp_shard of what is left, and nothing is sharded over it");
}

static Status read_mesh(Import *import, Error *error) {
    int *cp = &import->said.size[AXIS_CP], old = 0;
    bool spread = false;
    TRY(import_int(import, "sequence_parallel_degree", 0, MESH_MAX_WORLD, &old, error));
    *cp = *cp == 0 ? old : *cp;
    TRY(axolotl_read_experts(import, has_fsdp(import), &spread, error));
    if (spread) {
        return STATUS_OK;
    }
    if (has_fsdp(import)) {
        fill_mesh(import);
    } else {
        fill_replicas(import);
    }
    return STATUS_OK;
}

static Status read_context(Import *import, Error *error) {
    int packs = 0;
    TRY(import_bool(import, path_of(AXOLOTL_PACKING), &packs, error));
    if (import->said.choice[PLAN_CP_ROTATE] == IMPORT_UNSAID) {
        import->said.choice[PLAN_CP_ROTATE] = packs ? CP_ROTATE_ALLGATHER : CP_ROTATE_RING;
    }
    const int cp = import->said.size[AXIS_CP];
    FIND_IF(cp > 1 && packs && import->said.micro_batch > 1, import, FINDING_REFUSED, path_of(AXOLOTL_MICRO_BATCH),
            "packed sequences with context_parallel_size %d take micro_batch_size 1", cp);
    import_find(import, FINDING_ASSUMED, path_of(AXOLOTL_PACKING),
                packs ? "a packed sequence is one document; attention of shorter ones, which see themselves only, "
                        "costs less (--pack says their mean length)"
                      : "every sequence is sequence_len long; without sample_packing most are padded");
    return STATUS_OK;
}

// ---- FSDP

// The key at the top, else `version` in the map, else `fsdp_version` there (check_fsdp_version_in_fsdp_config).
static Status read_version(Import *import, int *version, Error *error) {
    static const char *const places[] = {"fsdp_version", "fsdp_config.version", "fsdp_config.fsdp_version"};
    *version = 0;
    for (int i = 0; i < 3; i++) {
        int said = 0;
        TRY(import_int(import, places[i], 1, 2, &said, error));
        *version = *version ? *version : said;
    }
    return STATUS_OK;
}

// The old list of words has it too: transformers makes the policy of it.
static bool wraps_by_list(Import *import) {
    const ConfigNode *list = import_at(import, "fsdp");
    for (const ConfigNode *item = list ? list->first : NULL; item; item = item->next) {
        if (item->kind == NODE_SCALAR && import_same_word(item->text, "auto_wrap")) {
            return true;
        }
    }
    return false;
}

static Status read_wrapping(Import *import, Error *error) {
    const char *policy = NULL;
    TRY(import_word(import, path_of(AXOLOTL_WRAP), &policy, error));
    if (policy && import_same_word(policy, "SIZE_BASED_WRAP")) {
        import_find(import, FINDING_UNMODELLED, path_of(AXOLOTL_WRAP),
                    "units by size: the prediction has a unit per layer");
    } else if (!policy && !wraps_by_list(import)) {
        import_find(import, FINDING_TRAP, "fsdp_config",
                    "without auto_wrap_policy: TRANSFORMER_BASED_WRAP the whole model is one unit, gathered at once; "
                    "the prediction has a unit per layer");
    }
    return STATUS_OK;
}

// FSDPConfig has these; it drops others.
static void know_fsdp(Import *import) {
    static const char *const known[] = {
        "activation_checkpointing offload_params sync_module_states cpu_ram_efficient_loading cpu_offload_pin_memory",
        "use_orig_params state_dict_type final_state_dict_type auto_wrap_policy transformer_layer_cls_to_wrap",
        "min_num_params reshard_after_forward mixed_precision_policy", NULL};
    import_known(import, (const char *const[]){"fsdp fsdp_final_state_dict_type", NULL});
    import_at(import, "fsdp_config");
    import_known_below(import, "fsdp_config.", known);
    import_known_below(import, "fsdp_config.fsdp_", known);
}

static Status read_fsdp(Import *import, Error *error) {
    int version = 0, reshards = 1, offload = 0;
    TRY(read_version(import, &version, error));
    TRY(import_bool(import, path_of(AXOLOTL_RESHARD), &reshards, error));
    TRY(import_bool(import, path_of(AXOLOTL_OFFLOAD), &offload, error));
    import_switch_offload(import, offload, path_of(AXOLOTL_OFFLOAD), OFFLOAD_PARAMETERS);
    FIND_IF(!reshards, import, FINDING_TRAP, path_of(AXOLOTL_RESHARD),
            "reshard_after_forward: false may be lost: axolotl hands on only true, and accelerate's default is "
            "true");
    TRY(read_wrapping(import, error));
    import->said.choice[PLAN_ZERO] = 3;
    import->said.choice[PLAN_RESHARD] = RESHARD_ALWAYS;
    import->flavour = version == 2 ? "axolotl config, FSDP version 2" : "axolotl config, FSDP version 1";
    if (version != 2) {
        import->said.choice[PLAN_MASTER_WEIGHTS] = IMPORT_UNSAID;
        import->target = "accelerate@1.0";
        import->successor = "axolotl";
        if (import->said.choice[PLAN_LOSS] == LOSS_FUSED) {  // which that row does not have
            import->said.choice[PLAN_LOSS] = IMPORT_UNSAID;
            import_find(import, FINDING_UNMODELLED,
                        import_is_on(import, "liger_fused_linear_cross_entropy") ? "liger_fused_linear_cross_entropy"
                                                                                 : "plugins",
                        "the loss keeps no logits under FSDP version 1 either: your run needs less memory");
        }
        import_find(import, FINDING_TRAP, "fsdp_config",
                    "no fsdp_version: 2, so this is FSDP version 1, without tensor or context parallelism");
    }
    const char *optimizer = "";
    TRY(import_word(import, "optimizer", &optimizer, error));
    FIND_IF(version == 2 && (strcmp(optimizer, "adamw_8bit") == 0 || strcmp(optimizer, "adamw_bnb_8bit") == 0), import,
            FINDING_REFUSED, "optimizer", "FSDP2 not compatible with %s, use adamw_torch_8bit instead", optimizer);
    FIND_IF(version == 2 && import_is_on(import, "load_in_4bit") &&
                import_is_on(import, "fsdp_config.cpu_ram_efficient_loading"),
            import, FINDING_REFUSED, "fsdp_config.cpu_ram_efficient_loading",
            "FSDP2 does not support cpu_ram_efficient_loading with load_in_4bit: set it to false");
    FIND_IF(version != 2 && offload && strstr(optimizer, "8bit"), import, FINDING_REFUSED, "optimizer",
            "FSDP offload not compatible with %s", optimizer);
    FIND_IF(version != 2 && strcmp(optimizer, "muon") == 0, import, FINDING_REFUSED, "optimizer",
            "Muon is only compatible with FSDP2: set fsdp_version: 2");
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

// ---- the batch and the rest

// normalize_config would take accumulation from batch_size, but the schema has said 1 by then.
static Status read_batch(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    int batch = 0;
    TRY(import_int(import, "batch_size", 1, 1 << 20, &batch, error));
    FIND_IF(batch && said->grad_accum, import, FINDING_REFUSED, "batch_size",
            "please set only one of gradient_accumulation_steps or batch_size");
    const char *assumed = said->micro_batch ? NULL : "micro_batch_size is 1, axolotl's default";
    said->micro_batch = said->micro_batch ? said->micro_batch : 1;
    FIND_IF(assumed, import, FINDING_ASSUMED, NULL, "%s", assumed);
    FIND_IF(batch && !said->grad_accum, import, FINDING_TRAP, "batch_size",
            "batch_size does nothing: without gradient_accumulation_steps there is no accumulation");
    said->grad_accum = said->grad_accum ? said->grad_accum : 1;
    if (!said->seq) {
        enum { DEFAULT_SEQUENCE_LEN = 512 };
        said->seq = DEFAULT_SEQUENCE_LEN;
        import_find(import, FINDING_ASSUMED, NULL, "sequence_len is %d, axolotl's default", said->seq);
    }
    return STATUS_OK;
}

// Values at which its schema stops, whatever they would do.
static void refuse_values(Import *import) {
    for (const ImportLeftOut *row = axolotl_gone; row->path; row++) {
        FIND_IF(import_is_on(import, row->path), import, FINDING_REFUSED, row->path, "%s", row->sentence);
    }
    FIND_IF(import_at(import, "output_dir") && !import_has(import, "output_dir"), import, FINDING_REFUSED, "output_dir",
            "output_dir takes a path; leave the key out for the usual one");
    for (const char *const *list = axolotl_lists; *list; list++) {
        const ConfigNode *node = import_has(import, *list) ? import_at(import, *list) : NULL;
        FIND_IF(node && node->kind != NODE_LIST, import, FINDING_REFUSED, *list, "%s takes a list", *list);
    }
}

static Status refuse_saving(Import *import, Error *error) {
    const char *strategy = "";
    FIND_IF(import_is_on(import, "early_stopping_patience") &&
                !(import_is_on(import, "save_steps") && import_is_on(import, "eval_steps")),
            import, FINDING_REFUSED, "early_stopping_patience",
            "early_stopping_patience requires save_steps and eval_steps to be set");
    TRY(import_word(import, "save_strategy", &strategy, error));
    FIND_IF(strcmp(strategy, "best") == 0 && !import_is_on(import, "metric_for_best_model"), import, FINDING_REFUSED,
            "save_strategy", "save_strategy: 'best' requires metric_for_best_model to be set");
    return STATUS_OK;
}

static Status read_compiler(Import *import, Error *error) {
    const char *backend = NULL;
    import->said.choice[PLAN_FUSED] = import_is_on(import, path_of(AXOLOTL_COMPILE)) ? FUSED_COMPILED : FUSED_EAGER;
    import_known(import, (const char *const[]){path_of(AXOLOTL_COMPILE), NULL});
    return import_word(import, "torch_compile_backend", &backend, error);
}

Status axolotl_read(Import *import, Error *error) {
    import->unknown.kind = import->unknown_below.kind = FINDING_UNKNOWN;
    import->unknown.words = import->unknown_below.words =
        "no key of axolotl's, which drops it; what it sets is not in the prediction";
    import->target = "axolotl";
    import->flavour = "axolotl config, data-parallel replicas (DDP)";
    import->said.choice[PLAN_ZERO] = 0;
    config_rename_keys(import->arena, import_at(import, "fsdp_config"), without_prefix);
    TRY(config_read(import, axolotl_keys, error));
    TRY(config_read(import, axolotl_sync, error));
    import->model_key = path_of(AXOLOTL_MODEL);
    TRY(import_word(import, import->model_key, &import->model, error));
    TRY(read_deepspeed(import, error));
    TRY(read_batch(import, error));
    TRY(read_precision(import, error));
    TRY(read_compiler(import, error));
    TRY(read_mesh(import, error));
    TRY(read_attention(import, error));
    TRY(read_context(import, error));
    TRY(read_recompute(import, error));
    TRY(read_adapters(import, error));
    TRY(read_optimizer(import, error));
    TRY(read_loss(import, error));
    refuse_values(import);
    TRY(refuse_saving(import, error));
    import_leave_out(import, axolotl_left_out);
    know_fsdp(import);
    import_known(import, axolotl_of_no_matter);
    if (has_fsdp(import)) {
        TRY(read_fsdp(import, error));
    }
    return axolotl_read_tiles(import, error);
}
