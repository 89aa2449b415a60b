// The TOML of torchtitan 0.2 (config/job_config.py and config/manager.py of v0.2.2). Keys that it does not have stop
// it (ConfigManager._dict_to_dataclass). Versions after 0.2 have no TOML.

#include <string.h>

#include "sim/frameworks/torchtitan/torchtitan_files.h"

static const char *const of_no_matter[] = {"job",
                                           "profiling",
                                           "metrics",
                                           "optimizer",
                                           "lr_scheduler",
                                           "checkpoint",
                                           "comm",
                                           "memory_estimation",
                                           "fault_tolerance",
                                           "experimental",
                                           "validation",
                                           "debug",
                                           "model.name",
                                           "model.hf_assets_path",
                                           "model.tokenizer_path",
                                           "model.print_after_conversion",
                                           "training.dataset",
                                           "training.dataset_path",
                                           "training.max_norm",
                                           "training.steps",
                                           "training.gc_freq",
                                           "training.gc_debug",
                                           "training.dataloader",
                                           "training.mixed_precision_reduce",
                                           "parallelism.module_fqns_per_model_part",
                                           "parallelism.pipeline_parallel_first_stage_less_layers",
                                           "parallelism.pipeline_parallel_last_stage_less_layers",
                                           "parallelism.pipeline_parallel_layers_per_stage",
                                           "parallelism.pipeline_parallel_schedule",
                                           "parallelism.pipeline_parallel_schedule_csv",
                                           "parallelism.pipeline_parallel_microbatch_size",
                                           "parallelism.pipeline_parallel_expert_parallel_overlap",
                                           "parallelism.expert_tensor_parallel_degree",
                                           "parallelism.expert_parallel_comm_backend",
                                           "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
                                           "activation_checkpoint.early_stop",
                                           "activation_checkpoint.memory_budget",
                                           "activation_checkpoint.visualize_memory_budget_pareto",
                                           "activation_checkpoint.preserve_rng_state",
                                           "activation_checkpoint.determinism_check",
                                           "activation_checkpoint.debug",
                                           "compile.components",
                                           "compile.backend",
                                           "quantize.linear.float8.filter_fqns",
                                           "quantize.linear.float8.emulate",
                                           "quantize.linear.float8.enable_fsdp_float8_all_gather",
                                           "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp",
                                           "quantize.linear.mx",
                                           "quantize.grouped_mm",
                                           NULL};

static Status read_training(Import *import, Error *error) {
    static const ImportWord dtypes[] = {{"bfloat16", DTYPE_BF16}, {"float32", DTYPE_FP32}, {NULL, 0}};
    ImportChoices *said = &import->said;
    int master = DTYPE_FP32, offload = 0;
    int64_t batch = -1;
    said->micro_batch = 8;
    said->seq = 2048;
    said->choice[PLAN_PRECISION] = DTYPE_BF16;
    TRY(import_int(import, "training.local_batch_size", 1, 1 << 20, &said->micro_batch, error));
    TRY(import_int(import, "training.seq_len", 1, 1 << 24, &said->seq, error));
    TRY(import_big(import, "training.global_batch_size", -1, 1000000000, &batch, error));
    TRY(import_choice(import, "training.mixed_precision_param", dtypes, &said->choice[PLAN_PRECISION], error));
    TRY(import_choice(import, "training.dtype", dtypes, &master, error));
    TRY(import_bool(import, "training.enable_cpu_offload", &offload, error));
    said->global_batch = batch > 0 ? batch : 0;
    said->grad_accum = batch > 0 ? 0 : 1;
    said->choice[PLAN_MASTER_WEIGHTS] = master == DTYPE_BF16;
    if (offload) {
        import_say_offload(import, "training.enable_cpu_offload", "the CPU");
    }
    static const char *const defaulted[] = {"training.local_batch_size", "training.seq_len"};
    for (int i = 0; i < 2; i++) {
        if (!import_has(import, defaulted[i])) {
            import_find(import, FINDING_ASSUMED, NULL, "%s is %d, torchtitan's default", defaulted[i],
                        i == 0 ? said->micro_batch : said->seq);
        }
    }
    return STATUS_OK;
}

static Status read_float8(Import *import, Error *error) {
    static const ImportWord recipes[] = {
        {"tensorwise", FP8_TENSORWISE}, {"rowwise", FP8_ROWWISE}, {"rowwise_with_gw_hp", FP8_ROWWISE}, {NULL, 0}};
    int recipe = FP8_TENSORWISE;
    const ConfigNode *converters = import_at(import, "model.converters");
    TRY(import_choice(import, "quantize.linear.float8.recipe_name", recipes, &recipe, error));
    for (const ConfigNode *item = converters ? converters->first : NULL; item; item = item->next) {
        if (strcmp(item->text, "quantize.linear.float8") == 0 || strcmp(item->text, "float8") == 0) {
            import->said.choice[PLAN_PRECISION] = DTYPE_FP8;
            import->said.choice[PLAN_FP8_RECIPE] = recipe;
        } else {
            import_find(import, FINDING_UNMODELLED, "model.converters", "the converter %s", item->text);
        }
    }
    if (import_has(import, "quantize.linear.float8") && import->said.choice[PLAN_PRECISION] != DTYPE_FP8) {
        import_find(import, FINDING_TRAP, "quantize.linear.float8",
                    "the table sets nothing while model.converters has no \"quantize.linear.float8\"");
    }
    return STATUS_OK;
}

// What cuts the model in ways that ndtune has no axis for.
static Status read_other_axes(Import *import, Error *error) {
    static const char *const others[] = {"parallelism.pipeline_parallel_degree", "parallelism.expert_parallel_degree"};
    for (int i = 0; i < 2; i++) {
        int degree = 1;
        TRY(import_int(import, others[i], 1, MESH_MAX_WORLD, &degree, error));
        if (degree > 1) {
            import->refusal = i == 0 ? "pipeline parallelism is no axis that ndtune has"
                                     : "expert parallelism is no axis that ndtune has";
            import_find(import, FINDING_UNMODELLED, others[i], "%s", import->refusal);
        }
    }
    return STATUS_OK;
}

static Status read_parallelism(Import *import, Error *error) {
    static const char *const names[AXIS_COUNT] = {[AXIS_DP_REPLICATE] = "parallelism.data_parallel_replicate_degree",
                                                  [AXIS_DP_SHARD] = "parallelism.data_parallel_shard_degree",
                                                  [AXIS_CP] = "parallelism.context_parallel_degree",
                                                  [AXIS_TP] = "parallelism.tensor_parallel_degree"};
    static const ImportWord reshards[] = {
        {"default", RESHARD_ALWAYS}, {"always", RESHARD_ALWAYS}, {"never", RESHARD_NEVER}, {NULL, 0}};
    ImportChoices *said = &import->said;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        said->size[axis] = axis == AXIS_DP_SHARD ? -1 : 1;
        if (!names[axis]) {
            continue;
        }
        TRY(import_int(import, names[axis], axis == AXIS_DP_SHARD ? -1 : 1, MESH_MAX_WORLD, &said->size[axis], error));
        if (said->size[axis] == 0) {
            return error_set(error, STATUS_USAGE, "%s:%d: %s takes -1 or a size, not 0", import->path,
                             import_at(import, names[axis])->line, names[axis]);
        }
    }
    said->choice[PLAN_RESHARD] = RESHARD_ALWAYS;
    TRY(import_choice(import, "parallelism.fsdp_reshard_after_forward", reshards, &said->choice[PLAN_RESHARD], error));
    return read_other_axes(import, error);
}

static Status read_overlap(Import *import, Error *error) {
    int async = 0, compiles = 0, whole_loss = 0;
    const char *rotate = "allgather", *balance = "headtail";
    TRY(import_bool(import, "compile.enable", &compiles, error));
    TRY(import_bool(import, "parallelism.enable_async_tensor_parallel", &async, error));
    TRY(import_bool(import, "parallelism.disable_loss_parallel", &whole_loss, error));
    TRY(import_word(import, "parallelism.context_parallel_rotate_method", &rotate, error));
    TRY(import_word(import, "parallelism.context_parallel_load_balancer", &balance, error));
    import->said.choice[PLAN_FUSED] = compiles ? FUSED_COMPILED : FUSED_EAGER;
    import->said.choice[PLAN_TP_OVERLAP] = async;
    import->said.choice[PLAN_CP_ROTATE] = CP_ROTATE_ALLGATHER;
    const int cp = import->said.size[AXIS_CP], tp = import->said.size[AXIS_TP];
    if (async && !compiles) {
        import_find(import, FINDING_REFUSED, "parallelism.enable_async_tensor_parallel",
                    "asynchronous tensor parallelism needs compile.enable = true");
    }
    if (cp > 1 && strcmp(rotate, "allgather") != 0) {
        import_find(import, FINDING_TRAP, "parallelism.context_parallel_rotate_method",
                    "torchtitan 0.2 reads the rotation in validation only: training gathers keys and values");
    }
    if (cp > 1 && strcmp(balance, "headtail") != 0) {
        import_find(import, FINDING_UNMODELLED, "parallelism.context_parallel_load_balancer",
                    "the balancer %s: predicted with headtail", balance);
    }
    if (tp > 1 && whole_loss) {
        import_find(import, FINDING_UNMODELLED, "parallelism.disable_loss_parallel",
                    "logits gathered for the loss: the prediction splits them, so it needs less memory than your run");
    }
    return STATUS_OK;
}

static Status read_checkpoint(Import *import, Error *error) {
    static const ImportWord modes[] = {{"none", RECOMPUTE_NONE},
                                       {"full", RECOMPUTE_FULL},
                                       {"selective", RECOMPUTE_SELECTIVE},
                                       {"memory_budget", RECOMPUTE_SELECTIVE},
                                       {NULL, 0}};
    const char *mode = "selective", *option = "2";
    import->said.choice[PLAN_RECOMPUTE] = RECOMPUTE_SELECTIVE;
    TRY(import_choice(import, "activation_checkpoint.mode", modes, &import->said.choice[PLAN_RECOMPUTE], error));
    TRY(import_word(import, "activation_checkpoint.mode", &mode, error));
    TRY(import_word(import, "activation_checkpoint.selective_ac_option", &option, error));
    if (strcmp(mode, "memory_budget") == 0) {
        import_find(import, FINDING_UNMODELLED, "activation_checkpoint.mode",
                    "memory_budget: predicted as selective by operation");
    } else if (strcmp(mode, "selective") == 0 && strcmp(option, "op") != 0) {
        import_find(import, FINDING_UNMODELLED, "activation_checkpoint.selective_ac_option",
                    "every %s-th layer recomputed whole%s: predicted as selective by operation", option,
                    import_has(import, "activation_checkpoint.selective_ac_option") ? "" : ", torchtitan's default");
    }
    return STATUS_OK;
}

static Status torchtitan_read(Import *import, Error *error) {
    import->unknown.kind = import->unknown_below.kind = FINDING_REFUSED;
    import->unknown.words = import->unknown_below.words =
        "no key of torchtitan 0.2, which refuses a file with such a key";
    import->target = "torchtitan@0.2";
    import->flavour = "torchtitan 0.2 config";
    import->said.choice[PLAN_ZERO] = 3;  // 0 where there is nothing to shard over
    import_known(import, of_no_matter);
    import->model_key = "model.flavor";
    TRY(import_word(import, import->model_key, &import->model, error));
    TRY(read_training(import, error));
    TRY(read_float8(import, error));
    TRY(read_parallelism(import, error));
    TRY(read_overlap(import, error));
    return read_checkpoint(import, error);
}

static const char *const marks[] = {"parallelism",           "training", "job", "model",
                                    "activation_checkpoint", "metrics",  NULL};

const ImportFormat import_torchtitan = {
    .name = "torchtitan",
    .marks = marks,
    .keys = {.mesh =
                 "parallelism.{data_parallel_replicate,data_parallel_shard,context_parallel,tensor_parallel}_degree",
             .micro_batch = "training.local_batch_size",
             .reshard = "parallelism.fsdp_reshard_after_forward",
             .recompute = "activation_checkpoint.mode",
             .rotate = "parallelism.context_parallel_rotate_method",
             .zero = "parallelism.data_parallel_shard_degree"},
    .read = torchtitan_read,
};
