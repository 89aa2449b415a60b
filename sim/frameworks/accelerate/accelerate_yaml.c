// The config file of `accelerate launch` (accelerate 1.14: commands/config/config_args.py, commands/launch.py,
// utils/launch.py, FullyShardedDataParallelPlugin). Read: FSDP version 1 and 2, DDP and DeepSpeed. It holds no batch:
// that is in the script. Unknown keys at the top stop accelerate, unknown keys inside a map are dropped. Written: FSDP2
// with a parallelism_config, or MULTI_GPU where only replicas exist. The launcher takes parallelism_config with FSDP
// only, so a mesh of tp without an FSDP group is for accelerate-python.

#include <string.h>

#include "sim/base/text.h"
#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/config_keys.h"
#include "sim/frameworks/peft.h"

static const char *const of_no_matter[] = {
    "main_process_ip main_process_port megatron_lm_config gpu_ids enable_cpu_affinity mpirun_config tpu_name tpu_zone",
    "tpu_use_cluster tpu_use_sudo command_file commands tpu_vm tpu_env", NULL};

// ---- the keys

static const char *distributed_type(const ConfigJob *job) {
    return accelerate_by_deepspeed(job)       ? "DEEPSPEED"
           : export_shards(job)               ? "FSDP"
           : mesh_world(&job->plan->mesh) > 1 ? "MULTI_GPU"
                                              : "\"NO\"";
}

static const char *machines(const ConfigJob *job) {
    return arena_format(job->arena, "%d", job->nodes);
}

static const char *processes(const ConfigJob *job) {
    return arena_format(job->arena, "%d", mesh_world(&job->plan->mesh));
}

static const char *loads_on_one_rank(const ConfigJob *job) {
    return export_bool(export_axis(job, AXIS_TP) == 1);
}

static const ImportWord precisions[] = {{"no", DTYPE_FP32},   {"False", DTYPE_FP32}, {"fp16", DTYPE_FP16},
                                        {"bf16", DTYPE_BF16}, {"fp8", DTYPE_FP8},    {NULL, 0}};
static const ImportWord rotations[] = {{"allgather", CP_ROTATE_ALLGATHER}, {"alltoall", CP_ROTATE_RING}, {NULL, 0}};

enum { ENVIRONMENT, TYPE, PRECISION, MACHINES, PROCESSES, RANK, RDZV, SAME, MAIN, DOWNCAST, CPU, DEBUG, BACKEND, TOPS };
enum { VERSION, WRAP, LAYER, RESHARD, CHECKPOINT, OFFLOAD_INPUTS, OFFLOAD, RAM, STATE_DICT, OF_FSDP };
enum { REPLICATE, SHARD, CONTEXT, TENSOR, ROTATE, OF_MESH };

const ConfigKey accelerate_top[] = {
    [ENVIRONMENT] = {"compute_environment", .literal = "LOCAL_MACHINE"},
    [TYPE] = {"distributed_type", .text = distributed_type},
    [PRECISION] = {"mixed_precision", KEY_CHOICE, PLAN_PRECISION, precisions, .text = export_mixed_precision,
                   .quoted = true},
    [MACHINES] = {"num_machines", .text = machines},
    [PROCESSES] = {"num_processes", .text = processes},
    [RANK] = {"machine_rank", .literal = "0"},
    [RDZV] = {"rdzv_backend", .literal = "static"},
    [SAME] = {"same_network", .literal = "true"},
    [MAIN] = {"main_training_function", .literal = "main"},
    [DOWNCAST] = {"downcast_bf16", .literal = "no", .quoted = true},
    [CPU] = {"use_cpu", .literal = "false"},
    [DEBUG] = {"debug", .literal = "false"},
    [BACKEND] = {"dynamo_config.dynamo_backend", .literal = "INDUCTOR", .when = export_compiles},
    [TOPS] = {NULL},
};

static const ConfigKey of_fsdp[OF_FSDP + 1] = {
    [VERSION] = {"fsdp_config.fsdp_version", .literal = "2"},
    [WRAP] = {"fsdp_config.fsdp_auto_wrap_policy", .literal = "TRANSFORMER_BASED_WRAP"},
    [LAYER] = {"fsdp_config.fsdp_transformer_layer_cls_to_wrap", .text = export_wrapped_layer},
    [RESHARD] = {"fsdp_config.fsdp_reshard_after_forward", KEY_SWITCH, PLAN_RESHARD, .on = RESHARD_ALWAYS,
                 .off = RESHARD_NEVER},
    [CHECKPOINT] = {"fsdp_config.fsdp_activation_checkpointing", .text = export_checkpoints},
    [OFFLOAD_INPUTS] = {"fsdp_config.fsdp_activation_checkpointing_offload", .literal = "true",
                        .when = export_offloads_inputs},
    [OFFLOAD] = {"fsdp_config.fsdp_offload_params", .text = export_offloads_parameters},
    [RAM] = {"fsdp_config.fsdp_cpu_ram_efficient_loading", .text = loads_on_one_rank},
    [STATE_DICT] = {"fsdp_config.fsdp_state_dict_type", .literal = "SHARDED_STATE_DICT"},
};

static const ConfigKey of_mesh[OF_MESH + 1] = {
    [REPLICATE] = {"parallelism_config.parallelism_config_dp_replicate_size", KEY_AXIS, AXIS_DP_REPLICATE},
    [SHARD] = {"parallelism_config.parallelism_config_dp_shard_size", KEY_AXIS, AXIS_DP_SHARD},
    [CONTEXT] = {"parallelism_config.parallelism_config_cp_size", KEY_AXIS, AXIS_CP},
    [TENSOR] = {"parallelism_config.parallelism_config_tp_size", KEY_AXIS, AXIS_TP},
    [ROTATE] = {"parallelism_config.parallelism_config_cp_comm_strategy", KEY_CHOICE, PLAN_CP_ROTATE, rotations,
                .when = export_cuts_sequences},
};

// ---- reading

static void read_precision(Import *import, bool by_deepspeed) {
    if (import->said.choice[PLAN_PRECISION] == IMPORT_UNSAID) {
        import->said.choice[PLAN_PRECISION] = DTYPE_FP32;
        import_find(import, FINDING_ASSUMED, NULL,
                    "no mixed_precision, so the launcher says no: fp32; --precision bf16 where your script's "
                    "Accelerator() says otherwise");
    }
    FIND_IF(!by_deepspeed && import->said.choice[PLAN_PRECISION] == DTYPE_FP32 &&
                import_has(import, accelerate_top[PRECISION].path),
            import, FINDING_ASSUMED, accelerate_top[PRECISION].path,
            "fp32; a model that your script loads in bf16 trains in that: --precision bf16 --master-weights bf16");
    if (import->said.choice[PLAN_PRECISION] == DTYPE_FP8) {
        import->said.choice[PLAN_PRECISION] = DTYPE_BF16;
        import_find(import, FINDING_UNMODELLED, accelerate_top[PRECISION].path,
                    "fp8 under accelerate: predicted in bf16");
        static const char *const fp8[] = {"fp8_config", NULL};
        import_known(import, fp8);
    }
}

static Status read_compiler(Import *import, Error *error) {
    const char *backend = NULL;
    TRY(import_word(import, accelerate_top[BACKEND].path, &backend, error));
    TRY(import_word(import, "dynamo_backend", &backend, error));
    import->said.choice[PLAN_FUSED] = backend && !import_same_word(backend, "no") ? FUSED_COMPILED : FUSED_EAGER;
    import_known(import, (const char *const[]){"dynamo_config.dynamo_use_fullgraph",
                                               "dynamo_config.dynamo_use_regional_compilation", NULL});
    import_at(import, "dynamo_config");
    return STATUS_OK;
}

static Status read_wrapping(Import *import, Error *error) {
    const char *policy = "NO_WRAP";
    TRY(import_word(import, of_fsdp[WRAP].path, &policy, error));
    if (import_same_word(policy, "NO_WRAP")) {
        import_find(
            import, FINDING_TRAP, of_fsdp[WRAP].path,
            "without fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP the whole model is one unit, gathered at once; the "
            "prediction has a unit per layer");
    } else if (!import_same_word(policy, "TRANSFORMER_BASED_WRAP")) {
        import_find(import, FINDING_UNMODELLED, of_fsdp[WRAP].path,
                    "units by size: the prediction has a unit per layer");
        import_at(import, "fsdp_config.fsdp_min_num_params");
    } else if (import_at(import, "fsdp_config.fsdp_min_num_params")) {
        import_find(import, FINDING_TRAP, "fsdp_config.fsdp_min_num_params",
                    "fsdp_min_num_params goes with SIZE_BASED_WRAP and does nothing here");
    }
    return STATUS_OK;
}

static Status read_common_fsdp(Import *import, Error *error) {
    int checkpoints = 0, offload = 0, inputs = 0;
    TRY(read_wrapping(import, error));
    TRY(import_bool(import, of_fsdp[CHECKPOINT].path, &checkpoints, error));
    TRY(import_bool(import, of_fsdp[OFFLOAD].path, &offload, error));
    TRY(import_bool(import, of_fsdp[OFFLOAD_INPUTS].path, &inputs, error));
    if (checkpoints) {
        import->said.choice[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    } else {
        import_find(import, FINDING_ASSUMED, of_fsdp[CHECKPOINT].path,
                    "no activation is recomputed; --recompute full where your script calls "
                    "gradient_checkpointing_enable()");
    }
    import_switch_offload(import, offload, of_fsdp[OFFLOAD].path, OFFLOAD_PARAMETERS);
    if (inputs && offload) {
        import_find(import, FINDING_UNMODELLED, of_fsdp[OFFLOAD_INPUTS].path,
                    "inputs of recomputed layers wait on the host too: your run needs less memory and more time");
    } else if (inputs) {
        import_take_offload(import, of_fsdp[OFFLOAD_INPUTS].path, OFFLOAD_ACTIVATIONS, "cpu");
    }
    FIND_IF(inputs && !checkpoints, import, FINDING_REFUSED, of_fsdp[OFFLOAD_INPUTS].path,
            "`activation_checkpointing_offload=True` requires `activation_checkpointing=True`");
    import_known(import, (const char *const[]){of_fsdp[LAYER].path, of_fsdp[STATE_DICT].path, of_fsdp[RAM].path,
                                               "fsdp_config.fsdp_ignored_modules", NULL});
    return STATUS_OK;
}

// The keys of the other version that this one does not look at.
static void say_other_version(Import *import, const char *const *keys, const char *words) {
    for (; *keys; keys++) {
        const char *path = arena_format(import->arena, "fsdp_config.%s", *keys);
        FIND_IF(import_has(import, path), import, FINDING_TRAP, path, "%s %s", *keys, words);
    }
}

static const ImportKeys keys_of_version1 = {
    .mesh = "fsdp_sharding_strategy: HYBRID_SHARD has a replica on each machine",
    .micro_batch = "the batch size of your DataLoader",
    .reshard = "fsdp_sharding_strategy: SHARD_GRAD_OP keeps gathered parameters",
    .recompute = "fsdp_activation_checkpointing",
    .rotate = "none",
    .zero = "fsdp_sharding_strategy",
    .sync = "GradientAccumulationPlugin(sync_each_batch) of your script",
    .kernels = "dynamo_config.dynamo_backend",
    .loss = "the model of your script"};

Status accelerate_read_strategy(Import *import, const char *path, int machines, Error *error) {
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
    int strategy = FULL;
    TRY(import_choice(import, path, strategies, &strategy, error));
    const bool hybrid = strategy == HYBRID || strategy == HYBRID_GRAD_OP;
    IMPORT_REFUSE_IF(hybrid && machines == 0, import, path,
                     "a replica on each machine, and a script does not say how many there are: give the launcher's "
                     "file, which has num_machines");
    import->said.size[strategy == NO_SHARD ? AXIS_DP_REPLICATE : AXIS_DP_SHARD] = -1;
    if (hybrid) {
        import->said.size[AXIS_DP_REPLICATE] = machines;
    }
    import->said.choice[PLAN_ZERO] = strategy == NO_SHARD ? 0 : 3;
    import->said.choice[PLAN_RESHARD] =
        strategy == GRAD_OP || strategy == HYBRID_GRAD_OP ? RESHARD_NEVER : RESHARD_ALWAYS;
    import->target = "accelerate@1.0";
    import->successor = "accelerate";
    return STATUS_OK;
}

static Status read_version1(Import *import, Error *error) {
    static const char *const known[] = {"backward_prefetch forward_prefetch use_orig_params sync_module_states", NULL};
    static const char *const later[] = {"fsdp_reshard_after_forward", NULL};
    int machines = 1;
    const char *prefetch = NULL;  // NO_PREFETCH is accelerate's default, too
    TRY(import_word(import, "fsdp_config.fsdp_backward_prefetch", &prefetch, error));
    FIND_IF(prefetch && !import_same_word(prefetch, "BACKWARD_PRE"), import, FINDING_UNMODELLED,
            "fsdp_config.fsdp_backward_prefetch",
            "%s: the prediction gathers the next unit before its turn in backward, as BACKWARD_PRE does", prefetch);
    TRY(import_int(import, accelerate_top[MACHINES].path, 1, MESH_MAX_WORLD, &machines, error));
    TRY(accelerate_read_strategy(import, "fsdp_config.fsdp_sharding_strategy", machines, error));
    import_known_below(import, "fsdp_config.fsdp_", known);
    say_other_version(import, later, "is read by FSDP version 2; version 1 takes fsdp_sharding_strategy instead");
    import->keys = &keys_of_version1;
    import->flavour = "accelerate config, FSDP version 1";
    return STATUS_OK;
}

Status accelerate_read_sizes(Import *import, Error *error) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const char *word = axis_names[axis];
        import->said.size[axis] = 1;
        if (!(AXES_FIRST & AXIS_BIT(axis))) {
            continue;
        }
        const char *brief = arena_format(import->arena, "parallelism_config.%s_size", word);
        FIND_IF(import_has(import, brief), import, FINDING_TRAP, brief,
                "%s is dropped without a word: in the file the key is parallelism_config_%s_size", brief, word);
    }
    import->said.choice[PLAN_CP_ROTATE] = CP_ROTATE_ALLGATHER;
    TRY(config_read(import, of_mesh, error));
    static const char *const known[] = {
        "cp_backend sp_backend sp_seq_length sp_seq_length_is_variable sp_attn_implementation", NULL};
    import_known_below(import, "parallelism_config.parallelism_config_", known);
    return import_int(import, "parallelism_config.parallelism_config_sp_size", 1, MESH_MAX_WORLD,
                      &import->said.size[AXIS_SP], error);
}

// Of every type but DeepSpeed's, which sp needs (parallelism_config.py makes no mesh with it).
static Status read_sizes(Import *import, Error *error) {
    TRY(accelerate_read_sizes(import, error));
    IMPORT_REFUSE_IF(import->said.size[AXIS_SP] > 1, import, "parallelism_config.parallelism_config_sp_size",
                     "sequence parallelism by heads (sp) is DeepSpeed's there: distributed_type: DEEPSPEED");
    return STATUS_OK;
}

static Status read_version2(Import *import, Error *error) {
    static const char *const earlier[] = {"fsdp_backward_prefetch", "fsdp_use_orig_params", "fsdp_sync_module_states",
                                          NULL};
    int prefetches = 0;
    const char *strategy = "FULL_SHARD";
    import->said.choice[PLAN_RESHARD] = RESHARD_ALWAYS;
    TRY(config_read(import, of_fsdp, error));
    TRY(import_bool(import, "fsdp_config.fsdp_forward_prefetch", &prefetches, error));
    TRY(import_word(import, "fsdp_config.fsdp_sharding_strategy", &strategy, error));
    say_other_version(import, earlier, "belongs to FSDP version 1; version 2 does not look at it");
    FIND_IF(prefetches, import, FINDING_REFUSED, "fsdp_config.fsdp_forward_prefetch",
            "FSDP version 2 refuses fsdp_forward_prefetch: true");
    FIND_IF(!import_same_word(strategy, "FULL_SHARD"), import, FINDING_TRAP, "fsdp_config.fsdp_sharding_strategy",
            "version 2 does not look at fsdp_sharding_strategy: %s is fsdp_reshard_after_forward and "
            "parallelism_config_dp_replicate_size there",
            strategy);
    import->said.choice[PLAN_ZERO] = 3;
    import->target = "accelerate";
    import->flavour = "accelerate config, FSDP version 2";
    if (import_is_on(import, "parallelism_config")) {
        return read_sizes(import, error);
    }
    import->said.size[AXIS_DP_SHARD] = -1;
    return STATUS_OK;
}

static Status read_fsdp(Import *import, Error *error) {
    int version = 1;
    import_known(import, (const char *const[]){"deepspeed_config", NULL});
    TRY(import_int(import, of_fsdp[VERSION].path, 1, 2, &version, error));
    FIND_IF(!import_has(import, of_fsdp[VERSION].path), import, FINDING_TRAP, "fsdp_config",
            "fsdp_config has no fsdp_version: accelerate takes version 1, FSDP2 is fsdp_version: 2");
    TRY(read_common_fsdp(import, error));
    if (version == 2) {
        return read_version2(import, error);
    }
    TRY(read_version1(import, error));
    if (import_is_on(import, "parallelism_config")) {
        import_find(import, FINDING_REFUSED, "parallelism_config",
                    "ParallelismConfig is only compatible with FSDP version 2, or with no FSDP at all");
        TRY(read_sizes(import, error));
        import->said.choice[PLAN_ZERO] = import->said.choice[PLAN_RESHARD] = IMPORT_UNSAID;
        import->keys = &import->format->keys;
        import->target = "accelerate";
        import->successor = NULL;
    }
    return STATUS_OK;
}

// A map of another kind of training: it counts for nothing here, and most say nothing.
static void say_idle(Import *import, const char *map, const char *words) {
    FIND_IF(import_is_on(import, map), import, FINDING_TRAP, map, "%s", words);
    import_known(import, (const char *const[]){map, NULL});
}

// Replicas, or what parallelism_config cuts them into: the launcher hands it on, whatever the type. One process where
// the type is NO.
static Status read_replicas(Import *import, bool several, Error *error) {
    import->target = "accelerate";
    import->flavour = several ? "accelerate config, data-parallel replicas (DDP)" : "accelerate config, one process";
    import->said.size[AXIS_DP_REPLICATE] = several ? -1 : 1;
    import->said.choice[PLAN_ZERO] = 0;
    if (!several) {
        import->said.world = 1;
    }
    if (import_is_on(import, "parallelism_config")) {
        TRY(read_sizes(import, error));
    }
    say_idle(import, "fsdp_config",
             "fsdp_config counts with distributed_type: FSDP only; this trains whole replicas on every rank");
    say_idle(import, "deepspeed_config", "deepspeed_config counts with distributed_type: DEEPSPEED only");
    return STATUS_OK;
}

// DistributedType of accelerate: replicas on one kind of device or another are replicas.
static Status read_device(Import *import, const char *type, Error *error) {
    static const char *const replicas[] = {"MULTI_GPU",  "MULTI_CPU",  "MULTI_XPU", "MULTI_NPU",   "MULTI_MLU",
                                           "MULTI_SDAA", "MULTI_MUSA", "MULTI_HPU", "MULTI_NEURON"};
    static const char *const others[] = {"MEGATRON_LM", "XLA", "TPU"};
    for (size_t i = 0; i < sizeof replicas / sizeof replicas[0]; i++) {
        if (strcmp(type, replicas[i]) == 0) {
            FIND_IF(i > 0, import, FINDING_UNMODELLED, accelerate_top[TYPE].path,
                    "%s: what the devices are is --cluster's to say, and the costs of this package on them are "
                    "not known",
                    type);
            return read_replicas(import, true, error);
        }
    }
    if (text_index(others, sizeof others / sizeof others[0], type) >= 0) {
        import_refuse(import, accelerate_top[TYPE].path, "distributed_type %s is not modelled", type);
        return STATUS_OK;
    }
    if (import_same_word(type, "no") || import_same_word(type, "false")) {  // YAML's bare NO
        return read_replicas(import, false, error);
    }
    return error_set(error, STATUS_USAGE,
                     "%s:%d: distributed_type %s is none of accelerate's: FSDP, DEEPSPEED, MULTI_GPU, \"NO\", ...",
                     import->path, import_at(import, accelerate_top[TYPE].path)->line, type);
}

// The launcher puts what is missing in front of the keys of these maps.
static const char *with_fsdp(const char *key, Arena *arena) {
    return strncmp(key, "fsdp", 4) == 0 ? NULL : arena_format(arena, "fsdp_%s", key);
}

static const char *with_dynamo(const char *key, Arena *arena) {
    return strncmp(key, "dynamo_", 7) == 0 ? NULL : arena_format(arena, "dynamo_%s", key);
}

// What no plan holds. The launcher has no option for gradients that are reduced on every micro-step.
static const ImportLeftOut left_out[] = {
    {"fsdp_config.fsdp_forward_prefetch", NULL, "the next unit is gathered in forward: another unit is in memory"},
    {"dynamo_config.dynamo_mode", "default", "another mode of torch.compile: the figures are of the default"},
    {"dynamo_config.dynamo_use_dynamic", NULL, "shapes that vary: the figures are of fixed ones"},
    {NULL, NULL, NULL}};

static Status accelerate_read(Import *import, Error *error) {
    const char *type = NULL;
    if (import_has(import, "Accelerator")) {
        return accelerate_read_module(import, error);
    }
    import->unknown.kind = FINDING_REFUSED;
    import->unknown.words = "no key of accelerate, which refuses a file with an unknown key";
    import->unknown_below.kind = FINDING_UNKNOWN;
    import->unknown_below.words = "no key that accelerate takes there: it is dropped without a word";
    TRY(import_word(import, accelerate_top[TYPE].path, &type, error));
    const char *environment = "LOCAL_MACHINE";
    TRY(import_word(import, accelerate_top[ENVIRONMENT].path, &environment, error));
    FAIL_IF(!import_same_word(environment, "LOCAL_MACHINE"), error, STATUS_USAGE,
            "%s:%d: compute_environment %s starts no ranks here: LOCAL_MACHINE is read", import->path,
            import_at(import, accelerate_top[ENVIRONMENT].path)->line, environment);
    FAIL_IF(!type, error, STATUS_USAGE, "%s: distributed_type is missing; accelerate asks for FSDP, MULTI_GPU, ...",
            import->path);
    int processes = 0;
    TRY(import_int(import, accelerate_top[PROCESSES].path, -1, MESH_MAX_WORLD, &processes, error));
    import->said.world = processes > 0 ? processes : 0;
    import_known(import, of_no_matter);
    config_rename_keys(import->arena, import_at(import, "fsdp_config"), with_fsdp);
    config_rename_keys(import->arena, import_at(import, "dynamo_config"), with_dynamo);
    import_leave_out(import, left_out);
    TRY(config_read(import, accelerate_top, error));
    read_precision(import, strcmp(type, "DEEPSPEED") == 0);
    TRY(read_compiler(import, error));
    if (strcmp(type, "FSDP") == 0) {
        return read_fsdp(import, error);
    }
    if (strcmp(type, "DEEPSPEED") == 0) {
        return accelerate_read_deepspeed(import, error);
    }
    return read_device(import, type, error);
}

const ImportFormat import_accelerate = {
    .name = "accelerate",
    .marks = "compute_environment distributed_type machine_rank num_processes fsdp_config parallelism_config "
             "main_training_function mixed_precision downcast_bf16 use_cpu same_network dynamo_config fp8_config "
             "Accelerator",
    .keys = {.mesh = "parallelism_config_{dp_replicate,dp_shard,cp,tp}_size",
             .micro_batch = "the batch size of your DataLoader",
             .reshard = "fsdp_reshard_after_forward",
             .recompute = "fsdp_activation_checkpointing",
             .rotate = "parallelism_config_cp_comm_strategy",
             .zero = "zero_stage",
             .sync = "GradientAccumulationPlugin(sync_each_batch) of your script",
             .kernels = "dynamo_config.dynamo_backend",
             .loss = "the model of your script"},
    .read = accelerate_read,
};

// ---- writing

static const char *accelerate_yaml_refuse(const ConfigJob *job) {
    REFUSE_IF(job->arena, export_axis(job, AXIS_TP) > 1 && !export_shards(job),
              "accelerate launch takes tp=%d beside FSDP only, and dp_shard x cp is 1: use --as accelerate-python",
              export_axis(job, AXIS_TP));
    return accelerate_python_refuse(job);
}

void accelerate_notes(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    fprintf(out, "Your script: DataLoader batch size %d, ", plan->micro_batch);
    PRINT_IF(!export_syncs_each(job), out, "Accelerator(gradient_accumulation_steps=%d), ", plan->grad_accum);
    const bool made_fp32 = export_shards(job) && export_mixes(job);  // whatever it is loaded in
    fprintf(out, "model loaded with attn_implementation=\"%s\"", export_attention(job));
    PRINT_IF(!made_fp32 && !plan_has_adapters(plan), out, ", dtype=\"%s\"", export_loaded_dtype(job));
    fputs(".\n", out);
    PRINT_IF(export_syncs_each(job), out,
             "  Its Accelerator: gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=%d, "
             "sync_each_batch=True):\n"
             "  gradients are reduced on every micro-step, and none is kept whole.\n",
             plan->grad_accum);
    PRINT_IF(job->plan->pack > 0, out,
             "  Its batches: DataCollatorWithFlattening(), documents of %d tokens in the mean.\n", job->plan->pack);
    PRINT_IF(export_other_optimizer(job), out, "  Its optimizer: %s; the file has no place for it.\n",
             optimizer_names[job->plan->optimizer]);
    PRINT_IF(export_fuses_loss(job), out,
             "  Its model, before prepare(): liger_kernel.transformers._apply_liger_kernel_to_instance(model=model, "
             "fused_linear_cross_entropy=True, cross_entropy=False, rope=False, rms_norm=False, swiglu=False, "
             "geglu=False): no logits are kept.\n");
    PRINT_IF(export_axis(job, AXIS_TP) > 1, out,
             "  Its model: from_pretrained(..., tp_plan=\"auto\", device_mesh=accelerator.torch_device_mesh)%s.\n",
             export_shards(job) ? ", by transformers 4.56 to 5.0: newer ones lack the ReplicateParallel that "
                                  "accelerate imports for tp beside FSDP"
                                : "");
    PRINT_IF(export_axis(job, AXIS_CP) > 1, out,
             "  Its step: inside accelerator.maybe_context_parallel(...), with labels that are shifted already.\n");
    PRINT_IF(plan->recompute == RECOMPUTE_FULL && !export_shards(job), out,
             "  Its model: model.gradient_checkpointing_enable(), as there is no FSDP to do it.\n");
}

static void yaml_notes(const ConfigJob *job, FILE *out) {
    accelerate_notes(job, out);
    peft_write_note(job, out);
}

static void accelerate_yaml_write(const ConfigJob *job, FILE *out) {
    config_write(job, accelerate_top, CONFIG_YAML, out);
    if (export_shards(job)) {
        config_write(job, of_fsdp, CONFIG_YAML, out);
        config_write(job, of_mesh, CONFIG_YAML, out);
    }
}

void accelerate_launch(const ConfigJob *job, const char *program, FILE *out) {
    fputs("accelerate launch", out);
    PRINT_IF(job->nodes > 1, out,
             " --machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --main_process_port 29500");
    fputs(" --config_file ", out);
    fputs(program, out);
}

const ExportFormat export_accelerate_yaml = {
    .name = "accelerate-yaml",
    .target = "accelerate@1.15",
    .also = "1.14 1.13",
    EXPORT_OF_ACCELERATE,
    .file_name = "accelerate.yaml",
    .versions = "accelerate >= 1.12 (checked with 1.15); torch >= 2.6",
    .takes = PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_LOSS) |
             PLAN_BIT(PLAN_FINETUNE) | PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_PACK),
    .refuse = accelerate_yaml_refuse,
    .notes = yaml_notes,
    .write = accelerate_yaml_write,
    .launch = accelerate_launch,
    .program = "%s train.py",
};
