// The config file of `accelerate launch`, of FSDP version 1 and 2, DDP and DeepSpeed (accelerate 1.14:
// commands/config/config_args.py, commands/launch.py, utils/launch.py, FullyShardedDataParallelPlugin). It holds no
// batch: that is in the script. Unknown keys at the top stop accelerate, unknown keys inside a map are dropped.

#include <string.h>

#include "sim/frameworks/accelerate/accelerate_files.h"

static const char *const of_no_matter[] = {"compute_environment",
                                           "machine_rank",
                                           "main_process_ip",
                                           "main_process_port",
                                           "rdzv_backend",
                                           "same_network",
                                           "main_training_function",
                                           "gpu_ids",
                                           "enable_cpu_affinity",
                                           "downcast_bf16",
                                           "use_cpu",
                                           "debug",
                                           "mpirun_config",
                                           "tpu_name",
                                           "tpu_zone",
                                           "tpu_use_cluster",
                                           "tpu_use_sudo",
                                           "command_file",
                                           "commands",
                                           "tpu_vm",
                                           "tpu_env",
                                           "num_machines",
                                           NULL};

static const char *const of_fsdp[] = {"fsdp_config.fsdp_transformer_layer_cls_to_wrap",
                                      "fsdp_config.fsdp_state_dict_type", "fsdp_config.fsdp_cpu_ram_efficient_loading",
                                      "fsdp_config.fsdp_ignored_modules", NULL};

static Status read_precision(Import *import, Error *error) {
    static const ImportWord words[] = {{"no", DTYPE_FP32},   {"False", DTYPE_FP32}, {"fp16", DTYPE_FP16},
                                       {"bf16", DTYPE_BF16}, {"fp8", DTYPE_FP8},    {NULL, 0}};
    TRY(import_choice(import, "mixed_precision", words, &import->said.choice[PLAN_PRECISION], error));
    if (import->said.choice[PLAN_PRECISION] == DTYPE_FP8) {
        import->said.choice[PLAN_PRECISION] = DTYPE_BF16;
        import_find(import, FINDING_UNMODELLED, "mixed_precision", "fp8 under accelerate: predicted in bf16");
        static const char *const fp8[] = {"fp8_config", NULL};
        import_known(import, fp8);
    }
    return STATUS_OK;
}

static Status read_compiler(Import *import, Error *error) {
    const char *backend = NULL;
    TRY(import_word(import, "dynamo_config.dynamo_backend", &backend, error));
    TRY(import_word(import, "dynamo_backend", &backend, error));
    import->said.choice[PLAN_FUSED] = backend && !import_same_word(backend, "no") ? FUSED_COMPILED : FUSED_EAGER;
    static const char *const dynamo[] = {"dynamo_config", NULL};
    import_known(import, dynamo);
    return STATUS_OK;
}

static Status read_wrapping(Import *import, Error *error) {
    const char *policy = "NO_WRAP";
    TRY(import_word(import, "fsdp_config.fsdp_auto_wrap_policy", &policy, error));
    if (import_same_word(policy, "NO_WRAP")) {
        import_find(
            import, FINDING_TRAP, "fsdp_config.fsdp_auto_wrap_policy",
            "without fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP the whole model is one unit, gathered at once; "
            "the prediction has a unit per layer");
    } else if (!import_same_word(policy, "TRANSFORMER_BASED_WRAP")) {
        import_find(import, FINDING_UNMODELLED, "fsdp_config.fsdp_auto_wrap_policy",
                    "units by size: the prediction has a unit per layer");
        import_at(import, "fsdp_config.fsdp_min_num_params");
    } else if (import_at(import, "fsdp_config.fsdp_min_num_params")) {
        import_find(import, FINDING_TRAP, "fsdp_config.fsdp_min_num_params",
                    "fsdp_min_num_params goes with SIZE_BASED_WRAP and does nothing here");
    }
    return STATUS_OK;
}

static Status read_common_fsdp(Import *import, Error *error) {
    int checkpoints = 0, offload = 0;
    TRY(read_wrapping(import, error));
    TRY(import_bool(import, "fsdp_config.fsdp_activation_checkpointing", &checkpoints, error));
    TRY(import_bool(import, "fsdp_config.fsdp_offload_params", &offload, error));
    if (checkpoints) {
        import->said.choice[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    } else {
        import_find(import, FINDING_ASSUMED, "fsdp_config.fsdp_activation_checkpointing",
                    "no activation is recomputed; --recompute full where your script calls "
                    "gradient_checkpointing_enable()");
    }
    if (offload) {
        import_say_offload(import, "fsdp_config.fsdp_offload_params", "the CPU");
    }
    import_known(import, of_fsdp);
    return STATUS_OK;
}

// The keys of the other version that this one does not look at.
static void say_other_version(Import *import, const char *const *keys, const char *words) {
    for (; *keys; keys++) {
        const char *path = arena_format(import->arena, "fsdp_config.%s", *keys);
        if (import_has(import, path)) {
            import_find(import, FINDING_TRAP, path, "%s %s", *keys, words);
        }
    }
}

static const ImportKeys keys_of_version1 = {
    .mesh = "fsdp_sharding_strategy: HYBRID_SHARD has a replica on each machine",
    .micro_batch = "the batch size of your DataLoader",
    .reshard = "fsdp_sharding_strategy: SHARD_GRAD_OP keeps gathered parameters",
    .recompute = "fsdp_activation_checkpointing",
    .rotate = "none",
    .zero = "fsdp_sharding_strategy"};

static Status read_version1(Import *import, Error *error) {
    enum { FULL, GRAD_OP, NO_SHARD, HYBRID, HYBRID_GRAD_OP };
    static const ImportWord strategies[] = {{"FULL_SHARD", FULL},
                                            {"SHARD_GRAD_OP", GRAD_OP},
                                            {"NO_SHARD", NO_SHARD},
                                            {"HYBRID_SHARD", HYBRID},
                                            {"HYBRID_SHARD_ZERO2", HYBRID_GRAD_OP},
                                            {"1", FULL},
                                            {"2", GRAD_OP},
                                            {"3", NO_SHARD},
                                            {"4", HYBRID},
                                            {"5", HYBRID_GRAD_OP},
                                            {NULL, 0}};
    static const char *const known[] = {"fsdp_config.fsdp_backward_prefetch", "fsdp_config.fsdp_forward_prefetch",
                                        "fsdp_config.fsdp_use_orig_params", "fsdp_config.fsdp_sync_module_states",
                                        NULL};
    static const char *const later[] = {"fsdp_reshard_after_forward", NULL};
    int strategy = FULL, machines = 1;
    TRY(import_choice(import, "fsdp_config.fsdp_sharding_strategy", strategies, &strategy, error));
    TRY(import_int(import, "num_machines", 1, MESH_MAX_WORLD, &machines, error));
    import_known(import, known);
    say_other_version(import, later, "is read by FSDP version 2; version 1 takes fsdp_sharding_strategy instead");
    const bool hybrid = strategy == HYBRID || strategy == HYBRID_GRAD_OP;
    import->said.size[strategy == NO_SHARD ? AXIS_DP_REPLICATE : AXIS_DP_SHARD] = -1;
    if (hybrid) {
        import->said.size[AXIS_DP_REPLICATE] = machines;
    }
    import->said.choice[PLAN_ZERO] = strategy == NO_SHARD ? 0 : 3;
    import->said.choice[PLAN_RESHARD] =
        strategy == GRAD_OP || strategy == HYBRID_GRAD_OP ? RESHARD_NEVER : RESHARD_ALWAYS;
    import->keys = &keys_of_version1;
    import->target = "accelerate@1.0";
    import->successor = "accelerate";
    import->flavour = "accelerate config, FSDP version 1";
    return STATUS_OK;
}

static Status read_sizes(Import *import, Error *error) {
    static const ImportWord rotations[] = {{"allgather", CP_ROTATE_ALLGATHER}, {"alltoall", CP_ROTATE_RING}, {NULL, 0}};
    int ulysses = 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const char *word = axis_names[axis];
        import->said.size[axis] = 1;
        if (!(AXES_FIRST & AXIS_BIT(axis))) {
            continue;
        }
        TRY(import_int(import, arena_format(import->arena, "parallelism_config.parallelism_config_%s_size", word), 1,
                       MESH_MAX_WORLD, &import->said.size[axis], error));
        const char *brief = arena_format(import->arena, "parallelism_config.%s_size", word);
        if (import_has(import, brief)) {
            import_find(import, FINDING_TRAP, brief,
                        "%s is dropped without a word: in the file the key is parallelism_config_%s_size", brief, word);
        }
    }
    import->said.choice[PLAN_CP_ROTATE] = CP_ROTATE_ALLGATHER;
    TRY(import_choice(import, "parallelism_config.parallelism_config_cp_comm_strategy", rotations,
                      &import->said.choice[PLAN_CP_ROTATE], error));
    TRY(import_int(import, "parallelism_config.parallelism_config_sp_size", 1, MESH_MAX_WORLD, &ulysses, error));
    static const char *const known[] = {"parallelism_config.parallelism_config_cp_backend",
                                        "parallelism_config.parallelism_config_sp_backend",
                                        "parallelism_config.parallelism_config_sp_seq_length",
                                        "parallelism_config.parallelism_config_sp_seq_length_is_variable",
                                        "parallelism_config.parallelism_config_sp_attn_implementation",
                                        NULL};
    import_known(import, known);
    if (ulysses > 1) {
        import->refusal = "sequence parallelism by heads (sp) is no axis that ndtune has";
        import_find(import, FINDING_UNMODELLED, "parallelism_config.parallelism_config_sp_size", "%s", import->refusal);
    }
    return STATUS_OK;
}

static Status read_version2(Import *import, Error *error) {
    static const char *const earlier[] = {"fsdp_backward_prefetch", "fsdp_use_orig_params", "fsdp_sync_module_states",
                                          NULL};
    int reshards = 1, prefetches = 0;
    const char *strategy = "FULL_SHARD";
    TRY(import_bool(import, "fsdp_config.fsdp_reshard_after_forward", &reshards, error));
    TRY(import_bool(import, "fsdp_config.fsdp_forward_prefetch", &prefetches, error));
    TRY(import_word(import, "fsdp_config.fsdp_sharding_strategy", &strategy, error));
    say_other_version(import, earlier, "belongs to FSDP version 1; version 2 does not look at it");
    if (prefetches) {
        import_find(import, FINDING_REFUSED, "fsdp_config.fsdp_forward_prefetch",
                    "FSDP version 2 refuses fsdp_forward_prefetch: true");
    }
    if (!import_same_word(strategy, "FULL_SHARD")) {
        import_find(import, FINDING_TRAP, "fsdp_config.fsdp_sharding_strategy",
                    "version 2 does not look at fsdp_sharding_strategy: %s is "
                    "fsdp_reshard_after_forward and parallelism_config_dp_replicate_size there",
                    strategy);
    }
    import->said.choice[PLAN_RESHARD] = reshards ? RESHARD_ALWAYS : RESHARD_NEVER;
    import->said.choice[PLAN_ZERO] = 3;
    import->target = "accelerate";
    import->flavour = "accelerate config, FSDP version 2";
    if (import_has(import, "parallelism_config")) {
        return read_sizes(import, error);
    }
    import->said.size[AXIS_DP_SHARD] = -1;
    return STATUS_OK;
}

static Status read_fsdp(Import *import, Error *error) {
    int version = 1;
    TRY(import_int(import, "fsdp_config.fsdp_version", 1, 2, &version, error));
    if (!import_has(import, "fsdp_config.fsdp_version")) {
        import_find(import, FINDING_TRAP, "fsdp_config",
                    "fsdp_config has no fsdp_version: accelerate takes version 1, FSDP2 is fsdp_version: 2");
    }
    TRY(read_common_fsdp(import, error));
    if (version == 2) {
        return read_version2(import, error);
    }
    TRY(read_version1(import, error));
    if (import_has(import, "parallelism_config")) {
        import_find(import, FINDING_REFUSED, "parallelism_config",
                    "accelerate launch takes parallelism_config with fsdp_version: 2 only");
        TRY(read_sizes(import, error));
        import->said.choice[PLAN_ZERO] = import->said.choice[PLAN_RESHARD] = IMPORT_UNSAID;
        import->keys = &import->format->keys;
        import->target = "accelerate";
        import->successor = NULL;
    }
    return STATUS_OK;
}

static Status read_replicas(Import *import, Error *error) {
    import->target = "accelerate";
    import->flavour = "accelerate config, data-parallel replicas (DDP)";
    import->said.size[AXIS_DP_REPLICATE] = -1;
    import->said.choice[PLAN_ZERO] = 0;
    if (import_has(import, "parallelism_config")) {
        import_find(
            import, FINDING_REFUSED, "parallelism_config",
            "accelerate launch takes parallelism_config beside distributed_type: FSDP with fsdp_version: 2 only");
        TRY(read_sizes(import, error));
    }
    if (import_has(import, "fsdp_config")) {
        static const char *const fsdp[] = {"fsdp_config", NULL};
        import_find(import, FINDING_TRAP, "fsdp_config",
                    "fsdp_config counts with distributed_type: FSDP only; this trains whole replicas on every rank");
        import_known(import, fsdp);
    }
    return STATUS_OK;
}

static Status read_deepspeed(Import *import, Error *error) {
    static const char *const known[] = {"deepspeed_config", NULL};
    const char *file = NULL, *offload[2] = {"none", "none"};
    TRY(import_word(import, "deepspeed_config.deepspeed_config_file", &file, error));
    if (file) {
        return error_set(error, STATUS_USAGE, "%s:%d: the plan is in %s: give that file to --from, with --world",
                         import->path, import_at(import, "deepspeed_config.deepspeed_config_file")->line, file);
    }
    import->said.choice[PLAN_ZERO] = 2;  // accelerate's DeepSpeedPlugin
    TRY(import_int(import, "deepspeed_config.zero_stage", 0, 3, &import->said.choice[PLAN_ZERO], error));
    TRY(import_int(import, "deepspeed_config.gradient_accumulation_steps", 1, 1 << 20, &import->said.grad_accum,
                   error));
    TRY(import_word(import, "deepspeed_config.offload_optimizer_device", &offload[0], error));
    TRY(import_word(import, "deepspeed_config.offload_param_device", &offload[1], error));
    for (int i = 0; i < 2; i++) {
        if (!import_same_word(offload[i], "none")) {
            import_say_offload(
                import, i == 0 ? "deepspeed_config.offload_optimizer_device" : "deepspeed_config.offload_param_device",
                NULL);
        }
    }
    import_known(import, known);
    import->said.size[import->said.choice[PLAN_ZERO] > 0 ? AXIS_DP_SHARD : AXIS_DP_REPLICATE] = -1;
    import->target = "deepspeed";
    import->flavour = "accelerate config, DeepSpeed";
    return STATUS_OK;
}

static Status accelerate_read(Import *import, Error *error) {
    const char *type = NULL;
    import->unknown.kind = FINDING_REFUSED;
    import->unknown.words = "no key of accelerate 1.14, which refuses a file with an unknown key";
    import->unknown_below.kind = FINDING_UNKNOWN;
    import->unknown_below.words = "no key that accelerate takes there: it is dropped without a word";
    TRY(import_word(import, "distributed_type", &type, error));
    if (!type) {
        return error_set(error, STATUS_USAGE,
                         "%s: distributed_type is missing; accelerate asks for FSDP, MULTI_GPU, ...", import->path);
    }
    int processes = 0;
    TRY(import_int(import, "num_processes", -1, MESH_MAX_WORLD, &processes, error));
    import->said.world = processes > 0 ? processes : 0;
    import_known(import, of_no_matter);
    TRY(read_precision(import, error));
    TRY(read_compiler(import, error));
    if (strcmp(type, "FSDP") == 0) {
        return read_fsdp(import, error);
    }
    if (strcmp(type, "DEEPSPEED") == 0) {
        return read_deepspeed(import, error);
    }
    if (strcmp(type, "MULTI_GPU") == 0 || import_same_word(type, "no")) {
        return read_replicas(import, error);
    }
    return error_set(error, STATUS_USAGE,
                     "%s:%d: distributed_type %s is none that ndtune reads: FSDP, DEEPSPEED, "
                     "MULTI_GPU or \"NO\"",
                     import->path, import_at(import, "distributed_type")->line, type);
}

static const char *const marks[] = {
    "compute_environment", "distributed_type",   "machine_rank",           "num_processes",
    "fsdp_config",         "parallelism_config", "main_training_function", NULL};

const ImportFormat import_accelerate = {
    .name = "accelerate",
    .marks = marks,
    .keys = {.mesh = "parallelism_config_{dp_replicate,dp_shard,cp,tp}_size",
             .micro_batch = "the batch size of your DataLoader",
             .reshard = "fsdp_reshard_after_forward",
             .recompute = "fsdp_activation_checkpointing",
             .rotate = "parallelism_config_cp_comm_strategy",
             .zero = "zero_stage"},
    .read = accelerate_read,
};
