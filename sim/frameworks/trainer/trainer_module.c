// What a module of a script says in addition to its TrainingArguments or SFTConfig, as our own does: the mesh of a
// ParallelismConfig or DistributedConfig, what the model is loaded with, adapters (transformers 5.23, accelerate 1.15,
// peft's LoraConfig).

#include <ctype.h>
#include <string.h>

#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/import_python.h"
#include "sim/frameworks/peft.h"
#include "sim/frameworks/trainer/trainer_files.h"

#define MODEL "model_arguments."
#define MODEL_OF_TRAINER "model_init_kwargs"  // that a trainer loads by itself
#define SHARDS MODEL "distributed_config."

// FSDP itself is asked for by fsdp.
static Status read_mesh(Import *import, Error *error) {
    TRY(parallelism_config_read(import, "parallelism_config", error));
    if (import->said.choice[PLAN_ZERO] == 0) {
        mesh_refuse_unasked(import, "parallelism_config.dp_shard_size", "fsdp");
    }
    return STATUS_OK;
}

// distributed/configuration_utils.py: the model is sharded as it is loaded.
static Status read_shards(Import *import, Error *error) {
    static const MeshKey keys[] = {{SHARDS "dp_replicate_size", AXIS_DP_REPLICATE},
                                   {SHARDS "fsdp_size", AXIS_DP_SHARD},
                                   {SHARDS "tp_size", AXIS_TP},
                                   {SHARDS "ep_size", AXIS_EP}};
    int offload = 0;
    TRY(mesh_keys_read(import, keys, sizeof keys / sizeof keys[0], error));
    python_leave_choice(import, SHARDS "fsdp_cpu_offload", PLAN_OFFLOAD);
    TRY(import_bool(import, SHARDS "fsdp_cpu_offload", &offload, error));
    import->said.choice[PLAN_ZERO] = import->said.size[AXIS_DP_SHARD] != 1 ? 3 : 0;
    import->flavour = arena_format(import->arena, "%s with DistributedConfig",
                                   import_has(import, "SFTConfig") ? "SFTConfig" : "TrainingArguments");
    import_switch_offload(import, offload, SHARDS "fsdp_cpu_offload", OFFLOAD_PARAMETERS);
    return STATUS_OK;
}

// ---- FSDP by the environment

static const char switch_on[] = ENVIRON "." BY_FSDP, fsdp_variable[] = "FSDP_";

// The key of fsdp_config that says the same.
static const char *key_of_variable(const char *name, Arena *arena) {
    static const char *const others[][2] = {{"OFFLOAD_PARAMS", "cpu_offload"},
                                            {"TRANSFORMER_CLS_TO_WRAP", "transformer_layer_cls_to_wrap"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(name, others[i][0]) == 0) {
            return others[i][1];
        }
    }
    char *key = arena_text(arena, name);
    for (char *at = key; *at; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    return key;
}

// str_to_bool() of transformers takes these for on.
static void refuse_unknown_switch(Import *import) {
    static const char *const on[] = {"true", "1", "yes", "on", "t", "y"};
    bool is_known = !import_is_on(import, switch_on);
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++) {
        is_known = is_known || import_same_word(import_at(import, switch_on)->text, on[i]);
    }
    IMPORT_REFUSE_IF(!is_known, import, switch_on, "%s is known when the script runs: put \"true\" or \"false\" there",
                     import_at(import, switch_on)->text);
}

bool trainer_takes_environment(Import *import) {
    const ConfigNode *environment = import_at(import, ENVIRON);
    import_known(import, (const char *const[]){ENVIRON, NULL});
    refuse_unknown_switch(import);
    environment_name_unread(import);
    if (!environment || !import_is_on(import, switch_on) || import_is_on(import, "fsdp")) {
        return false;
    }
    Arena *arena = import->arena;
    ConfigNode *config = config_node(arena, NODE_MAP, environment->line);
    config->key = "fsdp_config";
    for (const ConfigNode *child = environment->first; child; child = child->next) {
        if (strncmp(child->key, fsdp_variable, strlen(fsdp_variable)) == 0) {
            ConfigNode *copy = config_copy(child, arena);
            copy->key = key_of_variable(child->key + strlen(fsdp_variable), arena);
            config_append(arena, config, copy);
        }
    }
    if (!config_child(config, "version")) {
        config_append(arena, config, config_scalar(arena, "version", "1", environment->line));  // accelerate's default
    }
    config_append(arena, import->root, config);
    config_append(arena, import->root, config_scalar(arena, "fsdp", "true", import_at(import, switch_on)->line));
    return true;
}

void trainer_is_of_environment(Import *import) {
    static const ImportKeys keys = {.mesh = "parallelism_config of your script",
                                    .micro_batch = "per_device_train_batch_size",
                                    .reshard = "FSDP_RESHARD_AFTER_FORWARD",
                                    .recompute = "FSDP_ACTIVATION_CHECKPOINTING",
                                    .rotate = "parallelism_config of your script",
                                    .zero = BY_FSDP,
                                    .sync = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch",
                                    .kernels = "torch_compile",
                                    .overlap = BY_FSDP,
                                    .loss = "use_liger_kernel"};
    import->keys = &keys;
    import->writes = "hf-trainer";
    if (!import->successor) {  // version 2
        import->target = "accelerate";
    }
}

Loaded trainer_model_is(Import *import) {
    static const char module[] = "model_arguments", *const of_file[] = {"dtype", "torch_dtype"};
    if (import_has(import, module)) {  // an environment with FSDP is of transformers 4
        const bool stored = !import_has(import, switch_on) && !import_has(import, MODEL_OF_TRAINER);
        return loaded_read(import, MODEL "dtype", stored ? LOADED_AS_STORED : LOADED_FP32);
    }
    Loaded loaded = LOADED_UNREAD;
    for (size_t i = 0; i < sizeof of_file / sizeof of_file[0]; i++) {
        loaded = loaded_read(import, of_file[i], loaded);
    }
    return loaded;
}

static const char *without_torch(const char *key, Arena *arena) {
    (void)arena;
    return strcmp(key, "torch_dtype") == 0 ? "dtype" : NULL;
}

void trainer_take_init_kwargs(Import *import) {
    const ConfigNode *given = import_at(import, MODEL_OF_TRAINER);
    if (given && given->kind == NODE_MAP && !import_has(import, "model_arguments")) {
        ConfigNode *copy = config_copy(given, import->arena);
        copy->key = "model_arguments";
        config_rename_keys(import->arena, copy, without_torch);
        config_append(import->arena, import->root, copy);
    }
    import_known(import, (const char *const[]){MODEL_OF_TRAINER, "model_arguments", NULL});
}

Status trainer_read_module(Import *import, Error *error) {
    static const char *const known[] = {
        "TrainingArguments Seq2SeqTrainingArguments SFTConfig parallelism_config model_arguments",
        "MICRO_BATCH",  // beside them
        NULL};
    static const char *const classes[] = {"TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig"};
    bool is_module = false;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        is_module |= import_has(import, classes[i]);
    }
    if (!is_module) {
        return STATUS_OK;
    }
    if (!import->model) {
        import->model_key = "MODEL";
        TRY(import_word(import, "MODEL", &import->model, error));
    }
    int seq = 0;
    python_leave_to(import, "SEQUENCE_LENGTH", "seq");
    TRY(import_int(import, "SEQUENCE_LENGTH", 1, 1 << 30, &seq, error));
    import->said.seq = import->said.seq ? import->said.seq : seq;
    if (import_has(import, "parallelism_config")) {
        TRY(read_mesh(import, error));
    } else if (import_has(import, MODEL "distributed_config")) {
        TRY(read_shards(import, error));
    }
    bool adapters = false;
    TRY(peft_read_script(import, &adapters, error));
    import_known(import, known);
    return STATUS_OK;
}
