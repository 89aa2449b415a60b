// The Accelerator that a script makes, with its ParallelismConfig, plugins and constants, as our own module has them
// (accelerate 1.15: accelerator.py, parallelism_config.py, utils/dataclasses.py). What it does not say its launcher
// does, by the environment: a script that says nothing is one of replicas.

#include <ctype.h>
#include <string.h>

#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/import_python.h"
#include "sim/frameworks/peft.h"

#define OF "Accelerator."
#define PLUGIN OF "fsdp_plugin."
#define COMPILER OF "dynamo_plugin."
#define STEPS OF "gradient_accumulation_plugin."

static const ImportKeys keys_of_script = {.mesh = "ParallelismConfig({dp_replicate,dp_shard,cp,tp}_size)",
                                          .micro_batch = "the batch size of your DataLoader",
                                          .reshard = "reshard_after_forward of the FSDP plugin",
                                          .recompute = "activation_checkpointing of the FSDP plugin",
                                          .rotate = "cp_comm_strategy of TorchContextParallelConfig",
                                          .zero = "the FSDP plugin",
                                          .sync = "GradientAccumulationPlugin(sync_each_batch)",
                                          .kernels = "dynamo_plugin=TorchDynamoPlugin(backend=\"inductor\")",
                                          .loss = "the model of your script"};

// ---- shared with arguments of a Trainer

static bool is_of_run(Import *import, const char *path) {
    const ConfigNode *node = import_at(import, path);
    return node && node->of_run;
}

// One size that only the running script knows is what the others leave of the world, rather that of the shards.
static void leave_rest(Import *import, const MeshKey *keys, size_t count) {
    const MeshKey *rest = NULL;
    for (size_t i = 0; i < count; i++) {
        if (is_of_run(import, keys[i].path) && (!rest || keys[i].axis == AXIS_DP_SHARD)) {
            rest = &keys[i];
        }
    }
    if (rest) {
        python_leave(import, rest->path, "it takes the ranks of --world that the other sizes leave");
        import->said.size[rest->axis] = -1;
    }
    for (size_t i = 0; i < count; i++) {
        python_leave(import, keys[i].path, "taken as 1; put a number there if it is another");
    }
}

Status mesh_keys_read(Import *import, const MeshKey *keys, size_t count, Error *error) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        import->said.size[axis] = 1;
    }
    leave_rest(import, keys, count);
    for (size_t i = 0; i < count; i++) {
        TRY(import_int(import, keys[i].path, 1, MESH_MAX_WORLD, &import->said.size[keys[i].axis], error));
    }
    return STATUS_OK;
}

static const char *below(const Import *import, const char *path, const char *key) {
    return arena_format(import->arena, "%s.%s", path, key);
}

Status parallelism_config_read(Import *import, const char *path, Error *error) {
    static const ImportWord strategies[] = {
        {"allgather", CP_ROTATE_ALLGATHER}, {"alltoall", CP_ROTATE_RING}, {NULL, 0}};
    const MeshKey keys[] = {{below(import, path, "dp_replicate_size"), AXIS_DP_REPLICATE},
                            {below(import, path, "dp_shard_size"), AXIS_DP_SHARD},
                            {below(import, path, "cp_size"), AXIS_CP},
                            {below(import, path, "sp_size"), AXIS_SP},
                            {below(import, path, "tp_size"), AXIS_TP}};
    int rotate = CP_ROTATE_ALLGATHER;
    TRY(mesh_keys_read(import, keys, sizeof keys / sizeof keys[0], error));
    TRY(import_choice(import, below(import, path, "cp_handler.cp_comm_strategy"), strategies, &rotate, error));
    import->said.choice[PLAN_CP_ROTATE] = rotate;
    return STATUS_OK;
}

Status attention_read(Import *import, const char *path, Error *error) {
    static const ImportWord kernels[] = {{"sdpa", IMPORT_UNSAID},  // PyTorch decides, as by default
                                         {"flash_attention_2", ATTENTION_FLASH},
                                         {"flash_attention_3", ATTENTION_FLASH3},
                                         {"eager", ATTENTION_EAGER},
                                         {NULL, 0}};
    const char *kernel = NULL;
    python_leave_choice(import, path, PLAN_ATTENTION);
    TRY(import_word(import, path, &kernel, error));
    for (int i = 0; kernel && kernels[i].word; i++) {
        if (strcmp(kernel, kernels[i].word) == 0) {
            import->said.choice[PLAN_ATTENTION] = kernels[i].value;
            return STATUS_OK;
        }
    }
    FIND_IF(kernel, import, FINDING_UNMODELLED, path, "attention by %s: predicted with flash", kernel);
    return STATUS_OK;
}

// ---- the environment

static const char by_deepspeed[] = "ACCELERATE_USE_DEEPSPEED", by_precision[] = "ACCELERATE_MIXED_PRECISION";

void mesh_refuse_unasked(Import *import, const char *path, const char *sharder) {
    IMPORT_REFUSE_IF(import->said.size[AXIS_DP_SHARD] != 1, import, path,
                     "ranks that shard without %s: what the environment asks of accelerate (" BY_FSDP ") is not read",
                     sharder);
}

void environment_name_unread(Import *import) {
    const ConfigNode *environment = import_at(import, ENVIRON);
    for (const ConfigNode *child = environment ? environment->first : NULL; child; child = child->next) {
        const char *path = below(import, ENVIRON, child->key);
        FIND_IF(strncmp(child->key, ENVIRON_UNREAD, strlen(ENVIRON_UNREAD)) == 0, import, FINDING_UNMODELLED, path,
                "the environment is set from %s, which is known only when the script runs: if that sets " BY_FSDP
                ", write it as a literal dict so that FSDP is seen",
                child->text);
        if (strncmp(child->key, "ACCELERATE_", strlen("ACCELERATE_")) != 0 || strcmp(child->key, BY_FSDP) == 0 ||
            !import_is_on(import, path)) {
            continue;
        }
        IMPORT_REFUSE_IF(strcmp(child->key, by_deepspeed) == 0, import, path,
                         "this trains with DeepSpeed: give its JSON file to --from, with --world, --micro-batch, "
                         "--grad-accum and --seq");
        FIND_IF(strcmp(child->key, by_deepspeed) != 0, import, FINDING_UNMODELLED, path,
                "%s of the environment is not read: say it by an argument", child->key);
    }
}

// The Accelerator's own argument comes first.
static void take_environment(Import *import) {
    static const char switch_on[] = ENVIRON "." BY_FSDP;
    ConfigNode *environment = import_at(import, ENVIRON);
    ConfigNode *precision = environment ? config_child(environment, by_precision) : NULL;
    IMPORT_REFUSE_IF(import_is_on(import, switch_on) && !import_is_on(import, OF "fsdp_plugin"), import, switch_on,
                     "ranks that shard by " BY_FSDP ", without an fsdp_plugin, are not read: put a "
                     "FullyShardedDataParallelPlugin there, or give the file of accelerate launch to --from");
    if (precision) {
        if (!import_has(import, OF "mixed_precision")) {
            ConfigNode *copy = config_copy(precision, import->arena);
            copy->key = "mixed_precision";
            config_append(import->arena, import_at(import, "Accelerator"), copy);
        }
        python_forget(precision);
    }
    environment_name_unread(import);
}

// ---- values of Python

// A member of an enumeration is its last word: ShardingStrategy.FULL_SHARD, torch.bfloat16; that of args is no word.
static void take_last_word(Import *import, const char *path) {
    ConfigNode *node = import_at(import, path);
    const char *dot = node && node->kind == NODE_SCALAR ? strrchr(node->text, '.') : NULL;
    const char *of = dot ? dot : "";
    while (dot && of > node->text && of[-1] != '.') {
        of--;
    }
    if (isupper((unsigned char)of[0]) || strncmp(of, "torch.", strlen("torch.")) == 0) {
        node->text = dot + 1;
        node->of_run = false;
    }
}

// ---- its objects

typedef struct ScriptObject {
    const char *path, *class;  // the class's first words
    bool may_be_word;
} ScriptObject;

// Each is a call that stands there, with names to its arguments: else nobody knows what it holds.
static void refuse_unread(Import *import, const ScriptObject *object) {
    ConfigNode *node = import_at(import, object->path);
    if (!import_has(import, object->path)) {
        return;
    }
    const ConfigNode *unnamed = node->kind == NODE_MAP ? config_child(node, "_args_") : NULL;
    if (!object->may_be_word && !python_is_made_by(node, object->class)) {
        import_refuse(import, object->path, "%s is not read: put the call of %s, with its arguments, there",
                      python_written(import, node), object->class);
    } else if (unnamed && unnamed->first) {
        import_refuse(import, object->path, "%s in %s has no name: give it that of its argument",
                      python_written(import, unnamed->first), python_written(import, node));
    }
}

static void refuse_unread_objects(Import *import) {
    static const ScriptObject objects[] = {{PLUGIN "mixed_precision_policy", NULL, true},
                                           {PLUGIN "cpu_offload", NULL, true},
                                           {OF "fsdp_plugin", "FullyShardedDataParallelPlugin", false},
                                           {OF "parallelism_config.cp_handler", "TorchContextParallelConfig", false},
                                           {OF "parallelism_config", "ParallelismConfig", false},
                                           {OF "dynamo_plugin", "TorchDynamoPlugin", false},
                                           {OF "gradient_accumulation_plugin", "GradientAccumulationPlugin", false}};
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        refuse_unread(import, &objects[i]);
    }
}

// ---- the Accelerator

static Status read_batch(Import *import, Error *error) {
    static const char *const places[] = {OF "gradient_accumulation_steps", STEPS "num_steps"};
    int each = 0;
    python_leave_to(import, "MICRO_BATCH", "micro-batch");
    TRY(import_int(import, "MICRO_BATCH", 1, 1 << 20, &import->said.micro_batch, error));
    python_leave_to(import, "SEQUENCE_LENGTH", "seq");
    TRY(import_int(import, "SEQUENCE_LENGTH", 1, 1 << 30, &import->said.seq, error));
    const bool steps = import_has(import, places[0]), plugin = import_is_on(import, OF "gradient_accumulation_plugin");
    FIND_IF(steps && plugin, import, FINDING_REFUSED, places[0],
            "You can only pass one of `gradient_accumulation_steps` and `gradient_accumulation_plugin`");
    if (!steps && !plugin) {
        import->said.grad_accum = 1;
        import_find(import, FINDING_ASSUMED, NULL,
                    "gradient_accumulation_steps is 1, its default, unless the launcher says another");
    }
    for (int i = 0; i < 2; i++) {
        python_leave_to(import, places[i], "grad-accum");
        TRY(import_int(import, places[i], 1, 1 << 20, &import->said.grad_accum, error));
    }
    TRY(import_bool(import, STEPS "sync_each_batch", &each, error));
    import->said.choice[PLAN_GRAD_SYNC] = each ? GRAD_SYNC_EACH : GRAD_SYNC_LAST;
    return STATUS_OK;
}

static Status read_numbers(Import *import, Error *error) {
    static const ImportWord precisions[] = {
        {"no", DTYPE_FP32}, {"fp16", DTYPE_FP16}, {"bf16", DTYPE_BF16}, {"fp8", DTYPE_FP8}, {NULL, 0}};
    static const char path[] = OF "mixed_precision";
    int *said = &import->said.choice[PLAN_PRECISION];
    const char *word = NULL;
    if (python_leave(import, path, "bf16, unless --precision says it")) {
        *said = DTYPE_BF16;
        return STATUS_OK;
    }
    TRY(import_word(import, path, &word, error));
    TRY(import_choice(import, path, precisions, said, error));
    *said = word ? *said : DTYPE_FP32;
    if (*said == DTYPE_FP8) {
        import_find(import, FINDING_UNMODELLED, path, "fp8 under accelerate: predicted in bf16");
        *said = DTYPE_BF16;
    }
    return STATUS_OK;
}

static Status read_compiler(Import *import, Error *error) {
    static const ImportLeftOut left_out[] = {
        {COMPILER "mode", "default", "another mode of torch.compile: the figures are of the default"},
        {COMPILER "dynamic", NULL, "shapes that vary: the figures are of fixed ones"},
        {NULL, NULL, NULL}};
    const char *backend = NULL;
    take_last_word(import, OF "dynamo_backend");
    take_last_word(import, COMPILER "backend");
    TRY(import_word(import, OF "dynamo_backend", &backend, error));
    TRY(import_word(import, COMPILER "backend", &backend, error));
    import->said.choice[PLAN_FUSED] = backend && !import_same_word(backend, "no") ? FUSED_COMPILED : FUSED_EAGER;
    import_leave_out(import, left_out);
    return STATUS_OK;
}

// ---- the FSDP plugin

static Status read_wrapping(Import *import, Error *error) {
    static const char path[] = PLUGIN "auto_wrap_policy";
    const ConfigNode *node = import_at(import, path);
    const char *policy = "NO_WRAP";
    if (node && node->kind != NODE_SCALAR) {  // functools.partial(transformer_auto_wrap_policy, ...)
        import_known(import, (const char *const[]){path, NULL});
        return STATUS_OK;
    }
    TRY(import_word(import, path, &policy, error));
    FIND_IF(import_same_word(policy, "NO_WRAP"), import, FINDING_TRAP, node ? path : OF "fsdp_plugin",
            "without auto_wrap_policy=\"transformer_based_wrap\" the whole model is one unit, gathered at once; the "
            "prediction has a unit per layer");
    FIND_IF(import_same_word(policy, "SIZE_BASED_WRAP"), import, FINDING_UNMODELLED, path,
            "units by size: the prediction has a unit per layer");
    return STATUS_OK;
}

// True, CPUOffloadPolicy() and CPUOffload(offload_params=True).
static Status read_offload(Import *import, bool recomputes, Error *error) {
    static const char path[] = PLUGIN "cpu_offload", inputs[] = PLUGIN "activation_checkpointing_offload";
    const ConfigNode *node = import_at(import, path);
    int parameters = 0, activations = 0;
    if (node && node->kind == NODE_MAP) {
        parameters = python_is_made_by(node, "CPUOffloadPolicy");
        python_leave_choice(import, PLUGIN "cpu_offload.offload_params", PLAN_OFFLOAD);
        TRY(import_bool(import, PLUGIN "cpu_offload.offload_params", &parameters, error));
        import_known(import, (const char *const[]){PLUGIN "cpu_offload.pin_memory", NULL});
    } else {
        python_leave_choice(import, path, PLAN_OFFLOAD);
        TRY(import_bool(import, path, &parameters, error));
    }
    python_leave_choice(import, inputs, PLAN_OFFLOAD);
    TRY(import_bool(import, inputs, &activations, error));
    import_switch_offload(import, activations && !parameters, inputs, OFFLOAD_ACTIVATIONS);
    import_switch_offload(import, parameters, path, OFFLOAD_PARAMETERS);
    FIND_IF(activations && parameters, import, FINDING_UNMODELLED, inputs,
            "inputs of recomputed layers wait on the host too: your run needs less memory and more time");
    FIND_IF(activations && !recomputes, import, FINDING_REFUSED, inputs,
            "`activation_checkpointing_offload=True` requires `activation_checkpointing=True`");
    return STATUS_OK;
}

static Status read_policy(Import *import, Error *error) {
    static const ImportWord reduced[] = {{"float32", REDUCE_DTYPE_FP32}, {"bfloat16", REDUCE_DTYPE_BF16}, {NULL, 0}};
    static const char path[] = PLUGIN "mixed_precision_policy.reduce_dtype";
    take_last_word(import, path);
    if (import_has(import, path)) {
        TRY(import_choice(import, path, reduced, &import->said.choice[PLAN_REDUCE_DTYPE], error));
    }
    import_known_below(
        import, PLUGIN "mixed_precision_policy.",
        (const char *const[]){"param_dtype output_dtype buffer_dtype cast_forward_inputs keep_low_precision_grads "
                              "cast_root_forward_inputs",
                              NULL});
    return STATUS_OK;
}

static Status read_version(Import *import, Error *error) {
    int version = 1, reshards = 1;
    TRY(import_int(import, PLUGIN "fsdp_version", 1, 2, &version, error));
    FIND_IF(!import_has(import, PLUGIN "fsdp_version"), import, FINDING_TRAP, OF "fsdp_plugin",
            "the plugin has no fsdp_version: accelerate takes version 1, FSDP2 is fsdp_version=2");
    import->flavour = arena_format(import->arena, "Accelerator, FSDP version %d", version);
    if (version == 1) {
        const char *path = import_has(import, PLUGIN "reshard_after_forward") ? PLUGIN "reshard_after_forward"
                                                                              : PLUGIN "sharding_strategy";
        take_last_word(import, path);
        python_leave_choice(import, path, PLAN_RESHARD);
        return accelerate_read_strategy(import, path, 0, error);
    }
    FIND_IF(import_has(import, PLUGIN "forward_prefetch"), import, FINDING_REFUSED, PLUGIN "forward_prefetch",
            "forward_prefetch is not yet implemented in FSDP2");
    python_leave_choice(import, PLUGIN "reshard_after_forward", PLAN_RESHARD);
    TRY(import_bool(import, PLUGIN "reshard_after_forward", &reshards, error));
    import->said.choice[PLAN_ZERO] = 3;
    import->said.choice[PLAN_RESHARD] = reshards ? RESHARD_ALWAYS : RESHARD_NEVER;
    import->said.size[AXIS_DP_SHARD] = -1;
    return STATUS_OK;
}

static Status read_plugin(Import *import, Error *error) {
    static const char *const known[] = {
        "transformer_cls_names_to_wrap state_dict_type state_dict_config optim_state_dict_config limit_all_gathers",
        "use_orig_params param_init_fn sync_module_states forward_prefetch cpu_ram_efficient_loading min_num_params",
        "ignored_modules backward_prefetch sharding_strategy", NULL};
    int checkpoints = 0;
    TRY(read_version(import, error));
    TRY(read_wrapping(import, error));
    TRY(read_policy(import, error));
    python_leave_choice(import, PLUGIN "activation_checkpointing", PLAN_RECOMPUTE);
    TRY(import_bool(import, PLUGIN "activation_checkpointing", &checkpoints, error));
    TRY(read_offload(import, checkpoints, error));
    if (checkpoints) {
        import->said.choice[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    } else {
        import_find(import, FINDING_ASSUMED, NULL,
                    "no activation is recomputed; --recompute full where your script calls "
                    "gradient_checkpointing_enable()");
    }
    import_known_below(import, PLUGIN, known);
    return STATUS_OK;
}

static Status read_sharding(Import *import, Error *error) {
    const bool shards = import_is_on(import, OF "fsdp_plugin");
    static const char mesh[] = OF "parallelism_config";
    import->said.choice[PLAN_ZERO] = 0;
    import->said.size[AXIS_DP_REPLICATE] = -1;
    if (shards) {
        import->said.size[AXIS_DP_REPLICATE] = 0;
        TRY(read_plugin(import, error));
    }
    if (import_is_on(import, mesh)) {
        FIND_IF(import->successor, import, FINDING_REFUSED, mesh,
                "ParallelismConfig is only compatible with FSDP version 2, or with no FSDP at all");
        TRY(parallelism_config_read(import, mesh, error));
        if (!shards) {
            mesh_refuse_unasked(import, mesh, "an fsdp_plugin");
        }
    }
    FIND_IF(!shards && !import_is_on(import, mesh), import, FINDING_ASSUMED, NULL,
            "no fsdp_plugin: every rank is a replica, unless the script's launcher shards; give the file of accelerate "
            "launch to --from then");
    return STATUS_OK;
}

// FSDP version 1 is of transformers 4.
static Status read_model(Import *import, Error *error) {
    bool adapters = false;
    TRY(peft_read_script(import, &adapters, error));
    const Loaded unsaid = !import_has(import, "model_arguments") ? LOADED_UNREAD
                          : import->successor                    ? LOADED_FP32
                                                                 : LOADED_AS_STORED;
    const Loaded loaded = loaded_read(import, "model_arguments.dtype", unsaid);
    FIND_IF(import->said.choice[PLAN_PRECISION] == DTYPE_FP32 && !import_has(import, OF "mixed_precision"), import,
            FINDING_ASSUMED, NULL, "no mixed_precision: %s; --precision bf16 where the launcher's file says so",
            loaded_is_half(loaded) ? "bf16, as the model is loaded" : "fp32");
    loaded_take(import, loaded, true);
    return STATUS_OK;
}

// Other keys of the script are not this package's.
static void pass_others(Import *import) {
    for (ConfigNode *node = import->root->first; node; node = node->next) {
        if (node->key && strcmp(node->key, "Accelerator") != 0) {
            import_known(import, (const char *const[]){node->key, NULL});
        }
    }
}

Status accelerate_read_module(Import *import, Error *error) {
    static const char *const known[] = {
        "device_placement split_batches cpu dataloader_config torch_tp_plugin rng_types log_with project_dir",
        "project_config step_scheduler_with_optimizer kwargs_handlers parallelism_config.cp_handler",
        "parallelism_config.cp_backend parallelism_config.sp_backend parallelism_config.sp_handler "
        "parallelism_config.tp_handler",
        "dynamo_plugin.fullgraph dynamo_plugin.options dynamo_plugin.disable dynamo_plugin.use_regional_compilation",
        "gradient_accumulation_plugin.adjust_scheduler gradient_accumulation_plugin.sync_with_dataloader",
        "deepspeed_plugin megatron_lm_plugin",
        NULL};
    static const char *const maps[] = {"Accelerator",
                                       OF "fsdp_plugin",
                                       OF "parallelism_config",
                                       OF "dynamo_plugin",
                                       OF "gradient_accumulation_plugin",
                                       PLUGIN "mixed_precision_policy"};
    import->unknown.kind = import->unknown_below.kind = FINDING_REFUSED;
    import->unknown.words = import->unknown_below.words = "no argument that it takes: Python stops there";
    import->keys = &keys_of_script;
    import->target = "accelerate";
    import->writes = "accelerate-python";
    import->flavour = "Accelerator, data-parallel replicas (DDP)";
    import->model_key = "MODEL";
    TRY(import_word(import, "MODEL", &import->model, error));
    take_environment(import);
    python_leave(import, OF PYTHON_MORE, "what it holds is not read");
    TRY(read_batch(import, error));
    TRY(read_numbers(import, error));
    refuse_unread_objects(import);
    if (import->refusal) {
        import->said.size[AXIS_DP_REPLICATE] = -1;
        import_known(import, (const char *const[]){"Accelerator", NULL});
        pass_others(import);
        return STATUS_OK;
    }
    TRY(read_compiler(import, error));
    TRY(read_sharding(import, error));
    TRY(attention_read(import, "model_arguments.attn_implementation", error));
    TRY(read_model(import, error));
    IMPORT_REFUSE_IF(import_is_on(import, OF "deepspeed_plugin"), import, OF "deepspeed_plugin",
                     "this trains with DeepSpeed: give its JSON file to --from, with --world, --micro-batch, "
                     "--grad-accum and --seq");
    IMPORT_REFUSE_IF(import_is_on(import, OF "megatron_lm_plugin"), import, OF "megatron_lm_plugin",
                     "Megatron under accelerate is not modelled");
    import_known_below(import, OF, known);
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        import_at(import, maps[i]);
    }
    pass_others(import);
    return STATUS_OK;
}
