// A recipe of torchtitan after 0.2 in the terms of 0.2's TOML, so that one reader takes both: what moved to another
// place, or is a class now (config/configs.py and trainer.py of 0.3.0, of its main branch of 2026-08). The main branch
// counts tokens where 0.3 has sequences. What the recipe that it begins with sets is not in the file.

#include <string.h>

#include "sim/base/text.h"
#include "sim/frameworks/torchtitan/torchtitan_files.h"

bool torchtitan_is_recipe(const Import *import) {
    const ConfigNode *base = config_child(import->root, "_base_");
    return config_child(import->root, "model_spec") || (base && base->kind == NODE_MAP);
}

static const ConfigNode *at(const Import *import, const char *map, const char *key) {
    const ConfigNode *node = config_child(import->root, map);
    return node && node->kind == NODE_MAP ? config_child(node, key) : NULL;
}

static const char *word_at(const Import *import, const char *map, const char *key) {
    const ConfigNode *node = at(import, map, key);
    return node && node->kind == NODE_SCALAR ? node->text : "";
}

static bool counts_tokens(const Import *import) {
    return at(import, "training", "num_tokens_per_microbatch_per_dp_rank") ||
           at(import, "training", "num_tokens_per_train_step") || at(import, "training", "max_context_length") ||
           at(import, "parallelism", "num_pp_microbatches");
}

// ---- moving

static ConfigNode *map_named(Import *import, const char *name, int line) {
    ConfigNode *map = config_child(import->root, name);
    if (map && map->kind == NODE_SCALAR) {
        map->kind = NODE_MAP;  // None
    } else if (!map) {
        map = config_node(import->arena, NODE_MAP, line);
        map->key = name;
        config_append(import->arena, import->root, map);
    }
    return map;
}

static void put(Import *import, const char *map, const char *key, const char *text, int line) {
    config_append(import->arena, map_named(import, map, line), config_scalar(import->arena, key, text, line));
}

static void move(Import *import, const char *from, const char *key, const char *to, const char *name) {
    const ConfigNode *node = at(import, from, key);
    if (node && node->kind == NODE_SCALAR) {
        import_at(import, arena_format(import->arena, "%s.%s", from, key));
        put(import, to, name, node->text, node->line);
    }
}

// ---- tokens

// "32 * 4096", as our recipes spell a number of sequences; 0: no such product.
static int64_t product_of(const char *text) {
    int64_t product = 1, factor = 0;
    while (*text) {
        char word[24];
        text += strspn(text, " ");
        const size_t length = strspn(text, "0123456789_");
        if (length == 0 || length >= sizeof word) {
            return 0;
        }
        size_t digits = 0;
        for (size_t i = 0; i < length; i++) {
            word[digits] = text[i];
            digits += text[i] != '_';
        }
        word[digits] = '\0';
        if (!text_parse_int(word, &factor) || __builtin_mul_overflow(product, factor, &product)) {
            return 0;
        }
        text += length + strspn(text + length, " ");
        text += *text == '*';
    }
    return product;
}

// Sequences of max_context_length in this many tokens, else an error.
static Status sequences(Import *import, const char *key, int64_t seq, int64_t usual, int64_t *count, Error *error) {
    const ConfigNode *node = at(import, "training", key);
    const int64_t tokens = node && node->kind == NODE_SCALAR ? product_of(node->text) : usual;
    import_at(import, arena_format(import->arena, "training.%s", key));
    *count = tokens > 0 ? tokens / seq : 0;
    IMPORT_REFUSE_IF(tokens > 0 && tokens % seq != 0, import, arena_format(import->arena, "training.%s", key),
                     "%lld tokens are no whole number of sequences of max_context_length %lld: micro-batches of other "
                     "rows are not modelled, use a multiple of it",
                     (long long)tokens, (long long)seq);
    FAIL_IF(node && tokens <= 0 && strcmp(word_at(import, "training", key), "-1") != 0, error, STATUS_USAGE,
            "%s:%d: training.%s takes a number of tokens, not \"%s\"", import->path, node->line, key,
            word_at(import, "training", key));
    return STATUS_OK;
}

static Status take_tokens(Import *import, Error *error) {
    enum { DEFAULT_TOKENS = 16384, DEFAULT_CONTEXT = 2048 };
    int seq = DEFAULT_CONTEXT, stages = 1, micro_steps = 1;
    int64_t micro_batch = 0, batch = 0;
    TRY(import_int(import, "training.max_context_length", 1, 1 << 24, &seq, error));
    TRY(import_int(import, "parallelism.pipeline_parallel_degree", 1, MESH_MAX_WORLD, &stages, error));
    TRY(import_int(import, "parallelism.num_pp_microbatches", 1, 1 << 16, &micro_steps, error));
    TRY(sequences(import, "num_tokens_per_microbatch_per_dp_rank", seq, DEFAULT_TOKENS, &micro_batch, error));
    TRY(sequences(import, "num_tokens_per_train_step", seq, -1, &batch, error));
    const ConfigNode *tokens = at(import, "training", "num_tokens_per_microbatch_per_dp_rank");
    const int line = tokens ? tokens->line : 0;
    micro_batch = micro_batch > 0 ? micro_batch : 1;
    put(import, "training", "seq_len", arena_format(import->arena, "%d", seq), line);
    put(import, "training", "local_batch_size",
        arena_format(import->arena, "%lld", (long long)(micro_batch * (stages > 1 ? micro_steps : 1))), line);
    if (batch > 0) {
        put(import, "training", "global_batch_size", arena_format(import->arena, "%lld", (long long)batch), line);
    }
    if (stages > 1) {
        put(import, "parallelism", "pipeline_parallel_microbatch_size",
            arena_format(import->arena, "%lld", (long long)micro_batch), line);
    }
    return STATUS_OK;
}

// ---- classes

// FullAC.Config(), SelectiveAC.Config() by operation, None, whatever module the class is named by; SelectiveAC where it
// says none (Trainer.Config).
static const char *checkpoint_mode(const ConfigNode *node) {
    static const struct {
        const char *class, *mode;
    } classes[] = {
        {"FullAC.Config", "full"}, {"SelectiveAC.Config", "selective"}, {"MemoryBudgetAC.Config", "memory_budget"}};
    if (!node || (node->kind == NODE_MAP && !config_child(node, "_target_"))) {
        return "selective";
    }
    if (node->kind != NODE_MAP) {
        return node->kind == NODE_SCALAR && !node->text[0] ? "none" : NULL;
    }
    const char *class = config_child(node, "_target_")->text;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        const size_t length = strlen(class), tail = strlen(classes[i].class);
        if (length >= tail && strcmp(class + length - tail, classes[i].class) == 0 &&
            (length == tail || class[length - tail - 1] == '.')) {
            return classes[i].mode;
        }
    }
    return NULL;
}

static void take_checkpoint(Import *import) {
    ConfigNode *node = config_child(import->root, "activation_checkpoint");
    const char *mode = checkpoint_mode(node);
    const int line = node ? node->line : 0;
    if (!mode) {
        const char *word =
            node->kind == NODE_SCALAR ? node->text : word_at(import, "activation_checkpoint", "_target_");
        import_find(import, FINDING_UNMODELLED, "activation_checkpoint",
                    "the activation checkpointing %s: predicted as SelectiveAC", word[0] ? word : "in a list");
        mode = "selective";
    }
    if (node && node->kind == NODE_LIST) {
        *node = (ConfigNode){
            .kind = NODE_MAP, .key = node->key, .text = "", .line = line, .used = true, .next = node->next};
    }
    put(import, "activation_checkpoint", "mode", mode, line);
    put(import, "activation_checkpoint", "selective_ac_option", "op", line);
}

// model_registry("8B") of the folder that the base is of, "llama3" of llama3_debugmodel; else the base's own, "8B" of
// llama3_8b.
static void take_model(Import *import) {
    const char *base = word_at(import, "_base_", "_target_"), *under = strrchr(base, '_');
    const ConfigNode *arguments = at(import, "model_spec", "_args_");
    const ConfigNode *first = arguments ? arguments->first : NULL;
    const bool known = first && first->kind == NODE_SCALAR;
    char *flavor = arena_text(import->arena, known ? first->text : under ? under + 1 : "");
    const size_t length = strlen(flavor);
    if (!known && length > 0 && flavor[length - 1] == 'b') {
        flavor[length - 1] = 'B';
    }
    const int line = known ? first->line : 0;
    put(import, "model", "name", under ? arena_format(import->arena, "%.*s", (int)(under - base), base) : "llama3",
        line);
    put(import, "model", "flavor", flavor, line);
}

static void take_backend(Import *import) {
    static const char *const known[] = {"standard", "deepep", "hybridep"};
    const char *backend = word_at(import, "model_spec", "moe_comm_backend");
    if (backend[0] && text_index(known, sizeof known / sizeof known[0], backend) < 0) {
        import_find(import, FINDING_UNMODELLED, "model_spec.moe_comm_backend",
                    "the dispatcher %s: predicted as standard", backend);
        return;
    }
    move(import, "model_spec", "moe_comm_backend", "parallelism", "expert_parallel_comm_backend");
}

Status torchtitan_recipe_moves(Import *import, Error *error) {
    const bool tokens = counts_tokens(import);
    import->target = tokens ? "torchtitan@head" : "torchtitan@0.3";
    import->flavour = tokens ? "recipe of torchtitan's main branch" : "torchtitan 0.3 recipe";
    import->unknown.words = import->unknown_below.words =
        tokens ? "no field of torchtitan's configurations, which refuse it"
               : "no field of torchtitan 0.3's configurations, which refuse it";
    import_find(import, FINDING_ASSUMED, NULL,
                "what the recipe does not set is as torchtitan's configurations have it, and not as %s has it",
                config_child(import->root, "_base_") ? word_at(import, "_base_", "_target_") : "another recipe");
    take_checkpoint(import);
    take_model(import);
    move(import, "compile", "enable_async_tensor_parallel", "parallelism", "enable_async_tensor_parallel");
    take_backend(import);
    return tokens ? take_tokens(import, error) : STATUS_OK;
}

// ---- converters, loss, graphs: after the rest

// Of fuse_qkv, whose q, k and v have one adapter; without names all linear layers (components/lora.py).
static Status take_adapters(Import *import, const ConfigNode *converter, Error *error) {
    enum { DEFAULT_RANK = 8 };
    static const char *const of_mlp[] = {"w1", "w2", "w3"};
    static const char *const of_attention[] = {"wqkv", "wo"};
    const ConfigNode *rank = config_child(converter, "rank"), *modules = config_child(converter, "target_modules");
    int64_t number = DEFAULT_RANK;
    int targets = modules && modules->kind == NODE_LIST ? LORA_QUERY_VALUE : LORA_ALL;
    FIND_IF(modules && modules->kind == NODE_SCALAR && modules->text[0], import, FINDING_UNMODELLED, "model_spec",
            "target_modules takes a list of names, not %s: predicted with adapters of all", modules->text);
    for (const ConfigNode *item = modules ? modules->first : NULL; item; item = item->next) {
        if (text_index(of_mlp, 3, item->text) >= 0) {
            targets = LORA_ALL;
        } else if (text_index(of_attention, 2, item->text) < 0) {
            import_find(import, FINDING_UNMODELLED, "model_spec", "adapters of %s: predicted without", item->text);
        } else if (targets == LORA_QUERY_VALUE && strcmp(item->text, "wo") == 0) {
            targets = LORA_ATTENTION;
        }
    }
    FAIL_IF(rank && (!text_parse_int(rank->text, &number) || number < 1 || number > plan_fields[PLAN_LORA_RANK].high),
            error, STATUS_USAGE, "%s:%d: rank takes a whole number from 1 to %d, not \"%s\"", import->path, rank->line,
            (int)plan_fields[PLAN_LORA_RANK].high, rank->text);
    import->said.choice[PLAN_FINETUNE] = FINETUNE_LORA;
    import->said.choice[PLAN_LORA_RANK] = (int)number;
    import->said.choice[PLAN_LORA_TARGETS] = targets;
    return STATUS_OK;
}

static void take_format(Import *import, const ConfigNode *converter, Fp8Recipe recipe) {
    const ConfigNode *name = config_child(converter, "recipe_name");
    const bool kept = name && name->kind == NODE_SCALAR && strcmp(name->text, "rowwise_with_gw_hp") == 0;
    const ConfigNode *emulated = config_child(converter, "emulate");
    import->said.choice[PLAN_PRECISION] = DTYPE_FP8;
    import->said.choice[PLAN_FP8_RECIPE] = kept ? FP8_ROWWISE_BF16 : (int)recipe;
    FIND_IF(emulated && strcmp(emulated->text, "True") == 0, import, FINDING_UNMODELLED, "model_spec",
            "fp8 computed in bf16: your run is slower");
}

static Status take_converters(Import *import, Error *error) {
    static const struct {
        const char *class;
        Fp8Recipe recipe;
    } formats[] = {{"Float8LinearConverter.Config", FP8_ROWWISE},
                   {"MXFP8LinearConverter.Config", FP8_MX},
                   {"NVFP4LinearConverter.Config", FP8_NVFP4}};
    const ConfigNode *list = at(import, "model_spec", "converters");
    for (const ConfigNode *item = list ? list->first : NULL; item; item = item->next) {
        const ConfigNode *target = item->kind == NODE_MAP ? config_child(item, "_target_") : NULL;
        const char *class = target ? target->text : "an expression";
        bool known = strcmp(class, "LoRAConverter.Config") == 0;
        TRY(known ? take_adapters(import, item, error) : STATUS_OK);
        for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
            if (strcmp(class, formats[i].class) == 0) {
                take_format(import, item, formats[i].recipe);
                known = true;
            }
        }
        FIND_IF(!known, import, FINDING_UNMODELLED, "model_spec", "the converter %s: predicted without it", class);
    }
    return STATUS_OK;
}

Status torchtitan_recipe_reads(Import *import, Error *error) {
    static const char *const known[] = {
        "_base_ model_spec loss hf_assets_path profiler tokenizer dataloader validator override dump_folder",
        "parallelism.spmd_backend parallelism.enable_sequence_parallel parallelism.num_pp_microbatches", NULL};
    int off = 0;
    TRY(take_converters(import, error));
    TRY(import_bool(import, "training.disable_cuda_graphs", &off, error));
    if (off && import->said.size[AXIS_PP] <= 1) {  // it refuses them with stages
        import->said.choice[PLAN_CUDA_GRAPHS] = CUDA_GRAPHS_OFF;
    }
    if (strcmp(word_at(import, "loss", "_target_"), "CrossEntropyLoss.Config") == 0) {
        import->said.choice[PLAN_LOSS] = LOSS_WHOLE;
    }
    import_known(import, known);
    return STATUS_OK;
}
