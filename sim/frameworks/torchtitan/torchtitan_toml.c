// The TOML of torchtitan 0.2 (config/job_config.py and config/manager.py of v0.2.2), read and written. Keys that it
// does not have stop it (ConfigManager._dict_to_dataclass). Versions after 0.2 have recipes instead, which are read as
// the same keys (torchtitan_recipe.c). Gradients are always
// reduced in fp32 there.

#include <string.h>

#include "sim/base/text.h"
#include "sim/frameworks/config_keys.h"
#include "sim/frameworks/torchtitan/torchtitan_files.h"
#include "sim/frameworks/torchtitan/torchtitan_models.h"

static const char *const of_no_matter[] = {
    "job profiling metrics optimizer lr_scheduler checkpoint comm memory_estimation fault_tolerance experimental",
    "validation debug model.hf_assets_path model.tokenizer_path model.print_after_conversion training.dataset_path",
    "training.max_norm training.steps training.gc_freq training.gc_debug training.dataloader",
    "parallelism.module_fqns_per_model_part parallelism.pipeline_parallel_schedule_csv",
    "parallelism.pipeline_parallel_expert_parallel_overlap parallelism.expert_tensor_parallel_degree",
    "activation_checkpoint.early_stop activation_checkpoint.memory_budget",
    "activation_checkpoint.visualize_memory_budget_pareto activation_checkpoint.preserve_rng_state",
    "activation_checkpoint.determinism_check activation_checkpoint.debug compile.components compile.backend",
    "quantize.linear.float8.filter_fqns quantize.linear.float8.emulate",
    "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp quantize.linear.mx quantize.grouped_mm",
    NULL};

static const ImportLeftOut left_out[] = {
    {"parallelism.enable_compiled_autograd", NULL, "backward is compiled as a whole"},
    {"parallelism.pipeline_parallel_expert_parallel_overlap", NULL, "no plan here has stages and experts"},
    {"compile.backend", "inductor", "another compiler: predicted as Inductor"},
    {"quantize.linear.float8.emulate", NULL, "fp8 computed in bf16: your run is slower"},
    {"fault_tolerance.enable", NULL, "replicas that may fail: gradients are reduced over them apart"},
    {"memory_estimation.enabled", NULL, "a dry run: nothing is trained"},
    {NULL, NULL, NULL}};

// ---- the keys

static const char *model_folder(const ConfigJob *job) {
    const TitanModel *known = torchtitan_model(job->model);
    return known ? known->folder : "llama3";
}

// Flavors of v0.2.2's models/llama3/__init__.py with attn_mask_type block_causal; those of Qwen 3 have none.
static const char *masked_flavor(const TitanModel *known) {
    return strcmp(known->folder, "llama3") == 0 && strcmp(known->flavor, "8B") == 0 ? "8B_flex" : NULL;
}

static const char *toml_refuse(const ConfigJob *job) {
    const TitanModel *known = torchtitan_model(job->model);
    REFUSE_IF(job->arena, job->plan->pack > 0 && known && !masked_flavor(known),
              "torchtitan 0.2 has no flavor of %s %s that masks by document: use --target torchtitan@0.3 or --pack 0",
              known->folder, known->flavor);
    return torchtitan_refuse(job);
}

static const char *model_flavor(const ConfigJob *job) {
    const TitanModel *known = torchtitan_model(job->model);
    return !known ? job->model->name : job->plan->pack > 0 ? masked_flavor(known) : known->flavor;
}

static bool in_fp8(const ConfigJob *job) {
    return job->plan->precision == DTYPE_FP8;
}

static const char *mode_of(const ConfigJob *job) {
    return plan_keeps_layers(job->plan) ? "selective" : recompute_names[job->plan->recompute];
}

static bool is_selective(const ConfigJob *job) {
    return strcmp(mode_of(job), "selective") == 0;
}

// Operations, or every n-th layer whole.
static const char *selected(const ConfigJob *job) {
    return plan_keeps_layers(job->plan) ? arena_format(job->arena, "%d", job->plan->recompute_every) : "op";
}

static const char *micro_batch(const ConfigJob *job) {
    return arena_format(job->arena, "%d", job->plan->micro_batch);
}

static const char *schedule_word(const ConfigJob *job) {
    return torchtitan_schedule_word(job->plan);
}

static bool updates_in_backward(const ConfigJob *job) {
    return job->plan->update_in_backward;
}

static const char *gathers_fp8(const ConfigJob *job) {
    return export_bool(job->plan->fp8_recipe == FP8_TENSORWISE);
}

static const ImportWord masters[] = {{"bfloat16", true}, {"float32", false}, {NULL, 0}};
static const ImportWord implementations[] = {{"fused", OPTIMIZER_TARGET},
                                             {"foreach", OPTIMIZER_ADAMW_FOREACH},
                                             {"for-loop", OPTIMIZER_ADAMW_FOREACH},
                                             {"fused_opt_states_bf16", OPTIMIZER_ADAMW_BF16},  // of 0.3
                                             {NULL, 0}};
static const ImportWord precisions[] = {
    {"bfloat16", DTYPE_BF16}, {"float32", DTYPE_FP32}, {"bfloat16", DTYPE_FP8}, {NULL, 0}};
static const ImportWord reshards[] = {
    {"always", RESHARD_ALWAYS}, {"default", RESHARD_ALWAYS}, {"never", RESHARD_NEVER}, {NULL, 0}};
static const ImportWord modes[] = {{"none", RECOMPUTE_NONE},
                                   {"full", RECOMPUTE_FULL},
                                   {"selective", RECOMPUTE_SELECTIVE},
                                   {"memory_budget", RECOMPUTE_SELECTIVE},
                                   {NULL, 0}};
static const ImportWord backends[] = {
    {"standard", DISPATCH_TARGET}, {"deepep", DISPATCH_DEEPEP}, {"hybridep", DISPATCH_HYBRIDEP}, {NULL, 0}};
static const ImportWord recipes[] = {
    {"tensorwise", FP8_TENSORWISE}, {"rowwise", FP8_ROWWISE}, {"rowwise_with_gw_hp", FP8_ROWWISE_BF16}, {NULL, 0}};

enum {
    MODEL_NAME,
    MODEL_FLAVOR,
    CONVERTERS,
    LOCAL_BATCH,
    GLOBAL_BATCH,
    SEQ_LEN,
    MASTER,
    PARAM,
    REDUCE,
    CPU_OFFLOAD,
    DATASET,
    REPLICATE,
    SHARD,
    CONTEXT,
    TENSOR,
    EXPERT,
    BACKEND,
    PIPELINE,
    PP_SCHEDULE,
    PP_ORDER,
    PP_MICRO_BATCH,
    PP_FIRST,
    PP_LAST,
    PP_LAYERS,
    PP_MODULES,
    RESHARD,
    ROTATE,
    ASYNC,
    MODE,
    OPTION,
    COMPILE,
    RECIPE,
    FP8_GATHER,
    IMPLEMENTATION,
    IN_BACKWARD,
    KEYS
};

static const ConfigKey keys[KEYS + 1] = {
    [MODEL_NAME] = {"model.name", .text = model_folder, .quoted = true},
    [MODEL_FLAVOR] = {"model.flavor", .text = model_flavor, .quoted = true},
    [CONVERTERS] = {"model.converters", .literal = "[\"quantize.linear.float8\"]", .when = in_fp8},
    [LOCAL_BATCH] = {"training.local_batch_size", KEY_MICRO_BATCH, .text = torchtitan_local_batch},
    [GLOBAL_BATCH] = {"training.global_batch_size", KEY_BATCH, .least = -1},  // -1: no accumulation
    [SEQ_LEN] = {"training.seq_len", KEY_SEQ},
    [MASTER] = {"training.dtype", KEY_CHOICE, PLAN_MASTER_WEIGHTS, masters, .quoted = true},
    [PARAM] = {"training.mixed_precision_param", KEY_CHOICE, PLAN_PRECISION, precisions, .quoted = true},
    [REDUCE] = {"training.mixed_precision_reduce", .literal = "float32", .quoted = true},
    [CPU_OFFLOAD] = {"training.enable_cpu_offload", .literal = "true", .when = export_offloads},
    [DATASET] = {"training.dataset", .literal = "\"c4\"  # yours"},
    [REPLICATE] = {"parallelism.data_parallel_replicate_degree", KEY_AXIS, AXIS_DP_REPLICATE},
    [SHARD] = {"parallelism.data_parallel_shard_degree", KEY_AXIS, AXIS_DP_SHARD, .least = -1},
    [CONTEXT] = {"parallelism.context_parallel_degree", KEY_AXIS, AXIS_CP},
    [TENSOR] = {"parallelism.tensor_parallel_degree", KEY_AXIS, AXIS_TP},
    [EXPERT] = {"parallelism.expert_parallel_degree", KEY_AXIS, AXIS_EP, .when = export_spreads_experts},
    [BACKEND] = {"parallelism.expert_parallel_comm_backend", KEY_CHOICE, PLAN_DISPATCH, backends, .quoted = true,
                 .when = torchtitan_other_dispatcher},
    [PIPELINE] = {"parallelism.pipeline_parallel_degree", KEY_AXIS, AXIS_PP},
    [PP_SCHEDULE] = {"parallelism.pipeline_parallel_schedule", KEY_CHOICE, PLAN_PP_SCHEDULE, torchtitan_schedules,
                     .text = schedule_word, .quoted = true, .when = torchtitan_has_stages},
    [PP_ORDER] = {"parallelism.pipeline_parallel_schedule_csv", .text = torchtitan_order, .quoted = true,
                  .when = torchtitan_has_order},
    [PP_MICRO_BATCH] = {"parallelism.pipeline_parallel_microbatch_size", .text = micro_batch,
                        .when = torchtitan_has_stages},
    [PP_FIRST] = {"parallelism.pipeline_parallel_first_stage_less_layers", .text = torchtitan_first_less,
                  .when = torchtitan_counts_layers},
    [PP_LAST] = {"parallelism.pipeline_parallel_last_stage_less_layers", .text = torchtitan_last_less,
                 .when = torchtitan_counts_layers},
    [PP_LAYERS] = {"parallelism.pipeline_parallel_layers_per_stage", .text = torchtitan_stage_layers,
                   .when = torchtitan_says_layers},
    [PP_MODULES] = {"parallelism.module_fqns_per_model_part", .text = torchtitan_modules,
                    .when = torchtitan_names_modules},
    [RESHARD] = {"parallelism.fsdp_reshard_after_forward", KEY_CHOICE, PLAN_RESHARD, reshards,
                 .text = torchtitan_reshard, .quoted = true},
    [ROTATE] = {"parallelism.context_parallel_rotate_method", .literal = "allgather", .quoted = true},
    [ASYNC] = {"parallelism.enable_async_tensor_parallel", KEY_SWITCH, PLAN_TP_OVERLAP, .on = true, .off = false},
    [MODE] = {"activation_checkpoint.mode", KEY_CHOICE, PLAN_RECOMPUTE, modes, .text = mode_of, .quoted = true},
    [OPTION] = {"activation_checkpoint.selective_ac_option", .text = selected, .quoted = true, .when = is_selective},
    [COMPILE] = {"compile.enable", KEY_SWITCH, PLAN_FUSED, .on = FUSED_COMPILED, .off = FUSED_EAGER},
    [RECIPE] = {"quantize.linear.float8.recipe_name", KEY_CHOICE, PLAN_FP8_RECIPE, recipes, .quoted = true,
                .when = in_fp8},
    [FP8_GATHER] = {"quantize.linear.float8.enable_fsdp_float8_all_gather", .text = gathers_fp8, .when = in_fp8},
    [IMPLEMENTATION] = {"optimizer.implementation", KEY_CHOICE, PLAN_OPTIMIZER, implementations, .quoted = true,
                        .when = export_other_optimizer},
    [IN_BACKWARD] = {"optimizer.early_step_in_backward", KEY_SWITCH, PLAN_UPDATE_IN_BACKWARD, .on = true,
                     .when = updates_in_backward},
};

// ---- reading

static Status read_training(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    int offload = 0;
    TRY(import_bool(import, keys[CPU_OFFLOAD].path, &offload, error));
    said->global_batch = said->global_batch > 0 ? said->global_batch : 0;
    said->grad_accum = said->global_batch > 0 ? 0 : 1;
    import_switch_offload(import, offload, keys[CPU_OFFLOAD].path, OFFLOAD_PARAMETERS);
    static const int defaulted[] = {LOCAL_BATCH, SEQ_LEN};
    for (int i = 0; i < 2; i++) {
        const char *path = keys[defaulted[i]].path;
        FIND_IF(!import_has(import, path), import, FINDING_ASSUMED, NULL, "%s is %d, torchtitan's default", path,
                i == 0 ? said->micro_batch : said->seq);
    }
    return STATUS_OK;
}

static Status read_optimizer(Import *import, Error *error) {
    const char *implementation = "fused", *name = "AdamW";
    TRY(import_word(import, keys[IMPLEMENTATION].path, &implementation, error));
    TRY(import_word(import, "optimizer.name", &name, error));
    FIND_IF(strcmp(implementation, "for-loop") == 0, import, FINDING_UNMODELLED, keys[IMPLEMENTATION].path,
            "one tensor after the other: predicted as foreach, which the host issues faster");
    FIND_IF(strcmp(name, "AdamW") != 0 && strcmp(name, "Adam") != 0, import, FINDING_REFUSED, "optimizer.name",
            "Optimizer %s not added.", name);
    return STATUS_OK;
}

// The recipe counts where the converter is named.
static void read_float8(Import *import) {
    ImportChoices *said = &import->said;
    const int recipe = said->choice[PLAN_FP8_RECIPE];
    said->choice[PLAN_FP8_RECIPE] = IMPORT_UNSAID;
    const ConfigNode *converters = import_at(import, keys[CONVERTERS].path);
    for (const ConfigNode *item = converters ? converters->first : NULL; item; item = item->next) {
        const char *name = item->kind == NODE_SCALAR ? item->text : "";
        if (strcmp(name, "quantize.linear.float8") == 0) {
            said->choice[PLAN_PRECISION] = DTYPE_FP8;
            said->choice[PLAN_FP8_RECIPE] = recipe;
        } else if (strcmp(name, "quantize.linear.mx") == 0 || strncmp(name, "quantize.grouped_mm.", 20) == 0) {
            import_find(import, FINDING_UNMODELLED, keys[CONVERTERS].path, "the converter %s: predicted without it",
                        name);
        } else {
            import_find(import, FINDING_REFUSED, keys[CONVERTERS].path,
                        "torchtitan 0.2 has no converter %s and stops with a KeyError: quantize.linear.float8, "
                        "quantize.linear.mx, quantize.grouped_mm.float8, quantize.grouped_mm.mx",
                        name);
        }
    }
    FIND_IF(import_has(import, "quantize.linear.float8") && said->choice[PLAN_PRECISION] != DTYPE_FP8, import,
            FINDING_TRAP, "quantize.linear.float8",
            "the table sets nothing while model.converters has no \"quantize.linear.float8\"");
}

// Which is off by default.
static Status read_gather(Import *import, Error *error) {
    const ImportChoices *said = &import->said;
    int gathers = 0;
    TRY(import_bool(import, keys[FP8_GATHER].path, &gathers, error));
    FIND_IF(!gathers && said->choice[PLAN_PRECISION] == DTYPE_FP8 && said->choice[PLAN_FP8_RECIPE] == FP8_TENSORWISE,
            import, FINDING_UNMODELLED, keys[FP8_GATHER].path,
            "off: predicted with weights gathered in fp8, your run moves twice the bytes");
    return STATUS_OK;
}

static Status read_model(Import *import, Error *error) {
    const char *folder = "llama3", *flavor = "debugmodel";
    TRY(import_word(import, keys[MODEL_NAME].path, &folder, error));
    TRY(import_word(import, keys[MODEL_FLAVOR].path, &flavor, error));
    const char *other = torchtitan_other_model(folder, flavor);
    const TitanModel *model = torchtitan_model_named(folder, flavor);
    import->model_key = keys[MODEL_FLAVOR].path;
    import->model = import_has(import, keys[MODEL_FLAVOR].path) ? flavor : NULL;
    import->preset = model ? model->preset : NULL;
    IMPORT_REFUSE_IF(other && !model, import, keys[MODEL_NAME].path, "%s %s is %s, which is not modelled yet", folder,
                     flavor, other);
    if (strstr(flavor, "flex")) {
        import_find(
            import, FINDING_UNMODELLED, keys[MODEL_FLAVOR].path,
            "attention by flex, with a mask of documents: predicted with flash over whole sequences (--pack says "
            "how long documents are in the mean)");
    } else if (strstr(flavor, "varlen")) {
        import_find(
            import, FINDING_UNMODELLED, keys[MODEL_FLAVOR].path,
            "attention of documents that see themselves only: predicted over whole sequences (--pack says how long "
            "they are in the mean)");
    }
    return STATUS_OK;
}

static Status read_parallelism(Import *import, Error *error) {
    for (const ConfigKey *key = keys; key->path; key++) {
        FAIL_IF(key->means == KEY_AXIS && import->said.size[key->id] == 0, error, STATUS_USAGE,
                "%s:%d: %s takes -1 or a size, not 0", import->path, import_at(import, key->path)->line, key->path);
    }
    return torchtitan_read_stages(import, error);
}

static Status read_overlap(Import *import, Error *error) {
    int whole_loss = 0;
    const char *rotate = "allgather", *balance = "headtail";
    TRY(import_bool(import, "parallelism.disable_loss_parallel", &whole_loss, error));
    TRY(import_word(import, keys[ROTATE].path, &rotate, error));
    TRY(import_word(import, "parallelism.context_parallel_load_balancer", &balance, error));
    import->said.choice[PLAN_CP_ROTATE] = CP_ROTATE_ALLGATHER;
    const int cp = import->said.size[AXIS_CP], tp = import->said.size[AXIS_TP];
    FIND_IF(import->said.choice[PLAN_TP_OVERLAP] && import->said.choice[PLAN_FUSED] != FUSED_COMPILED, import,
            FINDING_REFUSED, keys[ASYNC].path, "asynchronous tensor parallelism needs compile.enable = true");
    FIND_IF(cp > 1 && strcmp(rotate, "allgather") != 0, import, FINDING_TRAP, keys[ROTATE].path,
            "torchtitan 0.2 reads the rotation in validation only: training gathers keys and values");
    FIND_IF(cp > 1 && strcmp(balance, "headtail") != 0, import, FINDING_UNMODELLED,
            "parallelism.context_parallel_load_balancer", "the balancer %s: predicted with headtail", balance);
    FIND_IF(tp > 1 && whole_loss, import, FINDING_UNMODELLED, "parallelism.disable_loss_parallel",
            "logits gathered for the loss: the prediction splits them, so it needs less memory than your run");
    return STATUS_OK;
}

// "2" recomputes every second layer whole; "1", and 0, all of them (_apply_layer_sac).
static Status read_every(Import *import, const char *option, Error *error) {
    int64_t every = 0;
    FAIL_IF(!text_parse_int(option, &every) || every < 0 || every > plan_fields[PLAN_RECOMPUTE_EVERY].high, error,
            STATUS_USAGE, "%s:%d: %s takes \"op\" or a number of layers from 0 to %d, not \"%s\"", import->path,
            import_at(import, keys[OPTION].path)->line, keys[OPTION].path, plan_fields[PLAN_RECOMPUTE_EVERY].high,
            option);
    import->said.choice[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    import->said.choice[PLAN_RECOMPUTE_EVERY] = every > 1 ? (int)every : 0;
    FIND_IF(!import_has(import, keys[OPTION].path), import, FINDING_ASSUMED, NULL,
            "%s is 2, torchtitan's default: every second layer recomputed", keys[OPTION].path);
    return STATUS_OK;
}

// Products of the shapes of these layers are never kept (_apply_op_sac). Routers are its default, too small to matter.
static void read_forced(Import *import, bool by_operation) {
    static const char *const path[] = {"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns", NULL};
    const ConfigNode *names = import_at(import, path[0]);
    import_known(import, path);
    for (const ConfigNode *name = names ? names->first : NULL; name && by_operation; name = name->next) {
        if (strcmp(name->text, "moe.router.gate") != 0) {
            import_find(import, FINDING_UNMODELLED, path[0],
                        "products of the shape of %s are made again in backward: the prediction keeps every second "
                        "product of any shape, so your run needs other time and memory",
                        name->text);
            return;
        }
    }
}

static Status read_checkpoint(Import *import, Error *error) {
    const char *mode = "selective", *option = "2";
    TRY(import_word(import, keys[MODE].path, &mode, error));
    TRY(import_word(import, keys[OPTION].path, &option, error));
    read_forced(import, strcmp(mode, "selective") == 0 && strcmp(option, "op") == 0);
    if (strcmp(mode, "memory_budget") == 0) {
        import_find(import, FINDING_UNMODELLED, keys[MODE].path, "memory_budget: predicted as selective by operation");
    } else if (strcmp(mode, "selective") == 0 && strcmp(option, "op") != 0) {
        return read_every(import, option, error);
    }
    return STATUS_OK;
}

// What it takes where the file says nothing.
static void say_defaults(ImportChoices *said) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        said->size[axis] = axis == AXIS_DP_SHARD ? -1 : 1;
    }
    said->micro_batch = 8;
    said->seq = 2048;
    said->choice[PLAN_PRECISION] = DTYPE_BF16;
    said->choice[PLAN_MASTER_WEIGHTS] = false;
    said->choice[PLAN_FP8_RECIPE] = FP8_TENSORWISE;
    said->choice[PLAN_RESHARD] = RESHARD_ALWAYS;
    said->choice[PLAN_RECOMPUTE] = RECOMPUTE_SELECTIVE;
    said->choice[PLAN_FUSED] = FUSED_EAGER;
    said->choice[PLAN_TP_OVERLAP] = false;
    said->choice[PLAN_ZERO] = 3;  // 0 where there is nothing to shard over
}

static Status torchtitan_read(Import *import, Error *error) {
    import->unknown.kind = import->unknown_below.kind = FINDING_REFUSED;
    import->unknown.words = import->unknown_below.words =
        "no key of torchtitan 0.2, which refuses a file with such a key";
    import->target = "torchtitan@0.2";
    import->flavour = "torchtitan 0.2 config";
    say_defaults(&import->said);
    const bool recipe = torchtitan_is_recipe(import);
    TRY(recipe ? torchtitan_recipe_moves(import, error) : STATUS_OK);
    import_leave_out(import, left_out);
    import_known(import, of_no_matter);
    TRY(config_read(import, keys, error));
    import_known(import, (const char *const[]){keys[FP8_GATHER].path, NULL});
    TRY(read_model(import, error));
    TRY(read_training(import, error));
    TRY(read_optimizer(import, error));
    read_float8(import);
    TRY(read_gather(import, error));
    TRY(read_parallelism(import, error));
    TRY(read_overlap(import, error));
    TRY(read_checkpoint(import, error));
    return recipe ? torchtitan_recipe_reads(import, error) : STATUS_OK;
}

// ---- the rows

const ImportFormat import_torchtitan = {
    .name = "torchtitan",
    .marks = "parallelism training job model activation_checkpoint metrics model_spec",
    .keys = {.mesh =
                 "parallelism.{data_parallel_replicate,data_parallel_shard,context_parallel,tensor_parallel}_degree",
             .micro_batch = "training.local_batch_size",
             .reshard = "parallelism.fsdp_reshard_after_forward",
             .recompute = "activation_checkpoint.mode",
             .rotate = "parallelism.context_parallel_rotate_method",
             .zero = "parallelism.data_parallel_shard_degree",
             .tp_overlap = "parallelism.enable_async_tensor_parallel"},
    .read = torchtitan_read,
};

static void torchtitan_toml_write(const ConfigJob *job, FILE *out) {
    config_write(job, keys, CONFIG_TOML, out);
}

const ExportFormat export_torchtitan_toml = {
    .name = "torchtitan-toml",
    .target = "torchtitan@0.2",
    .file_name = "torchtitan.toml",
    .versions = "torchtitan 0.2 (checked with 0.2.2)",
    .comment = "# ",
    EXPORT_HAS(EXPORT_BF16 | EXPORT_FP32 | EXPORT_FP8, EXPORT_NONE | EXPORT_FULL | EXPORT_SELECTIVE, EXPORT_SDPA,
               EXPORT_EAGER | EXPORT_COMPILED),
    .takes = PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_TP_OVERLAP) |
             PLAN_BIT(PLAN_RECOMPUTE_EVERY) | PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_UPDATE_IN_BACKWARD) |
             PLAN_BIT(PLAN_DISPATCH) | PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_PACK),
    .stages = true,
    .refuse = toml_refuse,
    .notes = torchtitan_notes,
    .write = torchtitan_toml_write,
    .launch = launch_torchrun,
    .program = "-m torchtitan.train --job.config_file %s",
};
