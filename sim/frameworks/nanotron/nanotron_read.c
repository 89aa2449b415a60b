// nanotron's YAML read as a plan (src/nanotron/config, its main branch of 2026-04). Its dataclasses refuse unknown
// keys. Without pp_engine in the file all forwards come first, and tp_mode is ALL_REDUCE.

#include "sim/frameworks/config_keys.h"
#include "sim/frameworks/nanotron/nanotron_files.h"

static const ImportWord engines[] = {{"1f1b", PP_1F1B}, {"afab", PP_GPIPE}, {NULL, 0}};
static const ImportWord dtypes[] = {
    {"bfloat16", DTYPE_BF16}, {"float32", DTYPE_FP32}, {"float16", DTYPE_FP16}, {"double", DTYPE_FP32}, {NULL, 0}};

static const ConfigKey keys[] = {
    {.path = "parallelism.tp", .means = KEY_AXIS, .id = AXIS_TP},
    {.path = "parallelism.pp", .means = KEY_AXIS, .id = AXIS_PP},
    {.path = "parallelism.pp_engine", .means = KEY_CHOICE, .id = PLAN_PP_SCHEDULE, .words = engines},
    {"parallelism.recompute_layer", KEY_SWITCH, PLAN_RECOMPUTE, .on = RECOMPUTE_FULL, .off = RECOMPUTE_NONE},
    {.path = "tokens.sequence_length", .means = KEY_SEQ},
    {.path = "tokens.micro_batch_size", .means = KEY_MICRO_BATCH},
    {.path = "tokens.batch_accumulation_per_replica", .means = KEY_ACCUMULATION},
    {.path = "model.dtype", .means = KEY_CHOICE, .id = PLAN_PRECISION, .words = dtypes},
    {NULL},
};

static const char *const of_no_matter[] = {
    "general checkpoints data_stages logging metrics_logging tokenizer profiler lighteval s3_upload tokens.train_steps",
    "tokens.val_check_interval tokens.limit_val_batches tokens.limit_test_batches model.model_config model.init_method",
    "model.make_vocab_size_divisible_by optimizer.weight_decay optimizer.weight_decay_exclude_named_params",
    "optimizer.clip_grad optimizer.learning_rate_scheduler optimizer.optimizer_factory", NULL};

static const ImportLeftOut left_out[] = {
    {"model.ddp_bucket_cap_mb", "25", "another size of the buckets of gradients: latency and overlap differ"},
    {NULL, NULL, NULL}};

// One data-parallel dimension: stage 1 shards over all of it.
static Status read_data(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    int dp = 1, zero = 0;
    TRY(import_int(import, "parallelism.dp", 1, MESH_MAX_WORLD, &dp, error));
    TRY(import_int(import, "optimizer.zero_stage", 0, 1, &zero, error));
    said->choice[PLAN_ZERO] = zero;
    said->size[AXIS_DP_REPLICATE] = zero > 0 ? 1 : dp;
    said->size[AXIS_DP_SHARD] = zero > 0 ? dp : 1;
    return STATUS_OK;
}

static Status read_others(Import *import, Error *error) {
    const char *mode = "ALL_REDUCE", *optimizer = "adamW";
    int experts = 1, context = 1, beside = 0, again = 1, in_fp32 = 1;
    TRY(import_int(import, "parallelism.expert_parallel_size", 1, MESH_MAX_WORLD, &experts, error));
    TRY(import_int(import, "parallelism.context_parallel_size", 1, MESH_MAX_WORLD, &context, error));
    TRY(import_word(import, "parallelism.tp_mode", &mode, error));
    TRY(import_bool(import, "parallelism.tp_linear_async_communication", &beside, error));
    TRY(import_bool(import, "parallelism.tp_recompute_allgather", &again, error));
    TRY(import_bool(import, "optimizer.accumulate_grad_in_fp32", &in_fp32, error));
    TRY(import_word(import, "optimizer.optimizer_factory.name", &optimizer, error));
    IMPORT_REFUSE_IF(experts > 1 || context > 1, import,
                     experts > 1 ? "parallelism.expert_parallel_size" : "parallelism.context_parallel_size",
                     "nanotron's %s are not modelled", experts > 1 ? "experts" : "rings of attention");
    const bool splits = import->said.size[AXIS_TP] > 1;
    if (splits && !import_same_word(mode, "REDUCE_SCATTER")) {
        import_find(import, FINDING_UNMODELLED, "parallelism.tp_mode",
                    "%s: each rank holds all tokens between blocks; predicted as REDUCE_SCATTER, your run needs more "
                    "memory",
                    mode);
    } else if (splits && !beside) {
        import_find(import, FINDING_UNMODELLED, "parallelism.tp_linear_async_communication",
                    "off: products wait for the tokens of other ranks; predicted as on, your run is slower");
    }
    const bool stages = import->said.size[AXIS_PP] > 1;
    FIND_IF(splits && import_has(import, "parallelism.tp_recompute_allgather") && (again != 0) != stages, import,
            FINDING_UNMODELLED, "parallelism.tp_recompute_allgather",
            "%s: predicted as %s, as published runs with%s stages were", again ? "true" : "false",
            stages ? "true" : "false", stages ? "" : "out");
    FIND_IF(!in_fp32, import, FINDING_UNMODELLED, "optimizer.accumulate_grad_in_fp32",
            "off: predicted with gradients summed in fp32, your run needs less memory");
    FIND_IF(import_same_word(optimizer, "sgd"), import, FINDING_UNMODELLED, "optimizer.optimizer_factory.name",
            "optimizer sgd: the prediction has fused AdamW with two states");
    return STATUS_OK;
}

static Status read_sizes(Import *import, Error *error) {
    int layers = 0, hidden = 0, ffn = 0, heads = 0;
    double theta = 0;
    TRY(import_int(import, "model.model_config.num_hidden_layers", 1, 1 << 16, &layers, error));
    TRY(import_int(import, "model.model_config.hidden_size", 1, 1 << 20, &hidden, error));
    TRY(import_int(import, "model.model_config.intermediate_size", 1, 1 << 22, &ffn, error));
    TRY(import_int(import, "model.model_config.num_attention_heads", 1, 1 << 16, &heads, error));
    TRY(import_number(import, "model.model_config.rope_theta", 1, 1e12, &theta, error));
    import_name_model(import, &(ImportSizes){layers, hidden, ffn, heads, .rope_theta = theta});
    IMPORT_REFUSE_IF(import_is_on(import, "model.model_config.is_mamba_config"), import,
                     "model.model_config.is_mamba_config", "layers of state spaces, which no model of ndtune has");
    return STATUS_OK;
}

static Status nanotron_read(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    import->unknown.kind = import->unknown_below.kind = FINDING_REFUSED;
    import->unknown.words = import->unknown_below.words = "no key of nanotron, which refuses a file with such a key";
    import->target = "nanotron";
    import->flavour = "nanotron config";
    said->choice[PLAN_PP_SCHEDULE] = PP_GPIPE;
    said->choice[PLAN_RECOMPUTE] = RECOMPUTE_NONE;
    said->choice[PLAN_PRECISION] = DTYPE_BF16;
    TRY(config_read(import, keys, error));
    if (said->size[AXIS_PP] <= 1) {
        said->choice[PLAN_PP_SCHEDULE] = IMPORT_UNSAID;
    }
    TRY(read_data(import, error));
    TRY(read_others(import, error));
    TRY(read_sizes(import, error));
    import_leave_out(import, left_out);
    import_known(import, of_no_matter);
    return STATUS_OK;
}

const ImportFormat import_nanotron = {
    .name = "nanotron",
    .marks = "parallelism.pp_engine parallelism.dp parallelism.tp_mode tokens model.model_config data_stages "
             "checkpoints",
    .keys = {.mesh = "parallelism.{dp,tp,pp}",
             .micro_batch = "tokens.micro_batch_size",
             .reshard = "no key of nanotron's",
             .recompute = "parallelism.recompute_layer",
             .rotate = "no key of nanotron's",
             .zero = "optimizer.zero_stage",
             .sync = "no key of nanotron's",
             .kernels = "no key of nanotron's",
             .overlap = "parallelism.tp_linear_async_communication",
             .loss = "no key of nanotron's"},
    .read = nanotron_read,
};
