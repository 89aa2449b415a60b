// Megatron-LM's launch settings: the flags of its launch scripts (megatron/training/arguments.py at d98e8a64dd), a
// file of its functional tests, whose MODEL_ARGS are flags too, or what a recipe, a dump or overrides of Megatron-
// Bridge set in its ConfigContainer. Refusals are those of validate_args. A recipe begins as another one, of which the
// file does not tell: what _pretrain_common sets is assumed of it.

#include "sim/frameworks/megatron/megatron_read.h"

#include <string.h>

#include "sim/base/text.h"

// ---- lists

static int word_count(const ConfigNode *node) {
    return !node ? 0 : node->kind == NODE_SCALAR ? node->text[0] != '\0' : (int)node->child_count;
}

static const char *word_at(const ConfigNode *node, int at) {
    if (node->kind == NODE_SCALAR) {
        return node->text;
    }
    const ConfigNode *item = node->first;
    while (at-- > 0) {
        item = item->next;
    }
    return item->kind == NODE_SCALAR ? item->text : "";
}

// ---- the mesh

static Status read_sharding(Import *import, Error *error) {
    static const ImportWord strategies[] = {
        {"no_shard", 0}, {"optim", 1}, {"optim_grads", 2}, {"optim_grads_params", 3}, {NULL, 0}};
    ImportChoices *said = &import->said;
    const char *optimizer = "";
    int sharded = megatron_is_bridge(import), fsdp = 0, stage = 3, instances = 1, torch = 0;
    TRY(megatron_bool(import, M_SHARDED_OPTIMIZER, &sharded, error));
    TRY(megatron_bool(import, M_FSDP, &fsdp, error));
    TRY(megatron_word(import, M_OPTIMIZER, &optimizer, error));
    sharded |= strcmp(optimizer, "dist_muon") == 0;
    TRY(import_choice(import, megatron_key(import, M_STRATEGY), strategies, &stage, error));
    TRY(megatron_int(import, M_INSTANCES, 1, MESH_MAX_WORLD, &instances, error));
    TRY(import_bool(import, "--use-torch-fsdp2", &torch, error));
    IMPORT_REFUSE_IF(torch, import, "--use-torch-fsdp2", "PyTorch's FSDP2 inside Megatron-LM is not modelled");
    said->choice[PLAN_ZERO] = fsdp ? stage : sharded;
    if (said->choice[PLAN_ZERO] == 0) {
        said->size[AXIS_DP_REPLICATE] = -1;
    } else {
        said->size[AXIS_DP_REPLICATE] = instances;
        said->size[AXIS_DP_SHARD] = -1;
    }
    import->target = fsdp ? "megatron@fsdp" : import->target;
    return STATUS_OK;
}

// What a CommOverlapConfig replaces: with a distributed optimizer both overlap unless itself says otherwise
// (_get_optimizer_overlap_cfgs).
static Status read_set_overlap(Import *import, int *reduces, int *gathers, Error *error) {
    static const MegatronKey own[] = {M_OVERLAP_REDUCE, M_OVERLAP_GATHER}, set[] = {M_SET_REDUCE, M_SET_GATHER};
    int *const values[] = {reduces, gathers};
    for (int i = 0; i < 2; i++) {
        int said = true;
        TRY(megatron_bool(import, own[i], &said, error));
        *values[i] = true;
        TRY(megatron_bool(import, set[i], values[i], error));
        FIND_IF(megatron_says(import, own[i]) && said != *values[i], import, FINDING_TRAP, megatron_key(import, own[i]),
                "comm_overlap sets it to %s before training: say it as %s", *values[i] ? "True" : "False",
                megatron_key(import, set[i]));
    }
    return STATUS_OK;
}

static Status read_overlap(Import *import, Error *error) {
    int reduces = megatron_is_bridge(import), gathers = reduces, tp = 0, experts = 0;
    const int zero = import->said.choice[PLAN_ZERO];
    if (megatron_is_bridge(import) && megatron_sets_overlap(import) && zero == 1) {
        TRY(read_set_overlap(import, &reduces, &gathers, error));
    } else {
        TRY(megatron_bool(import, M_OVERLAP_REDUCE, &reduces, error));
        TRY(megatron_bool(import, M_OVERLAP_GATHER, &gathers, error));
    }
    TRY(megatron_bool(import, M_TP_OVERLAP, &tp, error));
    TRY(megatron_bool(import, M_EP_OVERLAP, &experts, error));
    if (gathers && zero == 0 && megatron_says(import, M_OVERLAP_GATHER)) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_OVERLAP_GATHER),
                    "--overlap-param-gather only supported with distributed optimizer, megatron fsdp, or dist_muon");
    } else if (gathers && !reduces && zero > 0) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_OVERLAP_GATHER),
                    "Must use --overlap-param-gather with --overlap-grad-reduce");
    } else if (reduces && !gathers && zero == 1) {
        import_find(import, FINDING_UNMODELLED, megatron_key(import, M_OVERLAP_REDUCE),
                    "parameters are gathered before forward and not beside it: your run needs more time");
    }
    if (zero < 2) {
        import->said.choice[PLAN_REDUCE_OVERLAP] = reduces ? REDUCE_OVERLAP_ON : REDUCE_OVERLAP_OFF;
    }
    import->said.choice[PLAN_TP_OVERLAP] = tp;
    import->said.choice[PLAN_EP_OVERLAP] = experts;
    return STATUS_OK;
}

static Status read_tensor(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    int split = 0, same_bits = 0;
    TRY(import_bool(import, "--deterministic-mode", &same_bits, error));
    TRY(megatron_int(import, M_TP, 1, MESH_MAX_WORLD, &said->size[AXIS_TP], error));
    TRY(megatron_bool(import, M_SEQUENCE_PARALLEL, &split, error));
    said->choice[PLAN_SEQUENCE_PARALLEL] = split ? SEQUENCE_PARALLEL_ON : SEQUENCE_PARALLEL_OFF;
    if (said->choice[PLAN_TP_OVERLAP] == true && same_bits) {  // determinism.py
        import_find(
            import, FINDING_REFUSED, "--deterministic-mode",
            "--deterministic-mode requires: tp_comm_overlap=False (got True). Adjust these options to continue.");
    }
    FIND_IF(said->choice[PLAN_TP_OVERLAP] == true && !split, import, FINDING_REFUSED,
            megatron_key(import, M_TP_OVERLAP),
            "Tensor parallel communication/GEMM overlap can happen only when sequence parallelism is enabled");
    return STATUS_OK;
}

// a2a is over all of the group (axis sp), a2a+p2p over the first of its hierarchical sizes.
static Status read_context(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    int cp = 1;
    TRY(megatron_int(import, M_CP, 1, MESH_MAX_WORLD, &cp, error));
    const ConfigNode *types = import_at(import, megatron_key(import, M_CP_TYPE));
    const ConfigNode *sizes = import_at(import, megatron_key(import, M_CP_SIZES));
    const char *type = word_count(types) ? word_at(types, 0) : "p2p";
    for (int i = 1; i < word_count(types); i++) {
        if (strcmp(word_at(types, i), type) != 0) {
            import_refuse(import, megatron_key(import, M_CP_TYPE), "layers that attend by other ways of cp each");
            break;
        }
    }
    int64_t inner = strcmp(type, "a2a") == 0 ? cp : 1;
    if (strcmp(type, "a2a+p2p") == 0) {
        if (word_count(sizes) != 2 || !text_parse_int(word_at(sizes, 0), &inner) || inner < 1 || cp % inner != 0) {
            import_find(import, FINDING_REFUSED, megatron_key(import, M_CP_SIZES),
                        "--hierarchical-context-parallel-sizes must be set when a2a+p2p is used in cp comm: two sizes "
                        "whose product is %d",
                        cp);
            inner = 1;
        }
    } else if (strcmp(type, "p2p") != 0 && strcmp(type, "all_gather") != 0 && strcmp(type, "a2a") != 0) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_CP_TYPE),
                    "%s is none of p2p, a2a, allgather, a2a+p2p", type);
    }
    said->size[AXIS_SP] = (int)inner;
    said->size[AXIS_CP] = cp / (int)inner;
    said->choice[PLAN_CP_ROTATE] = strcmp(type, "all_gather") == 0 ? CP_ROTATE_ALLGATHER : CP_ROTATE_RING;
    if (inner > 1) {
        import->target = megatron_is_bridge(import) ? import->target : "megatron@0.19";
    }
    return STATUS_OK;
}

// validate_args defaults it to tp.
static Status read_cut(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    const int tp = said->size[AXIS_TP], usual = said->size[AXIS_EP] > 1 ? 1 : tp;
    int cut = tp;
    TRY(megatron_int(import, M_ETP, 1, MESH_MAX_WORLD, &cut, error));
    if (cut != usual) {
        said->choice[PLAN_ETP] = cut;
        FIND_IF(!megatron_says(import, M_ETP), import, FINDING_ASSUMED, megatron_key(import, M_TP),
                "each expert is cut over %d ranks: %s is as tp unless said", cut, megatron_key(import, M_ETP));
    }
    return STATUS_OK;
}

// Rows that an expert takes, a factor of their mean; below none, without a limit (transformer_config.py).
static Status read_capacity(Import *import, Error *error) {
    static const double PER_CENT = 100;
    double factor = 0;
    int pads = 0;
    TRY(megatron_number(import, M_CAPACITY, -1e6, 1e6, &factor, error));
    TRY(megatron_bool(import, M_PAD, &pads, error));
    if (factor > 0) {
        const double most = plan_fields[PLAN_EXPERT_CAPACITY].high;
        const double percent = factor * PER_CENT + 0.5;
        import->said.choice[PLAN_EXPERT_CAPACITY] = (int)(percent < most ? percent : most);
        import->said.choice[PLAN_PAD_EXPERTS] = pads;
    } else if (pads) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_PAD),
                    "moe_expert_capacity_factor must be set to use moe_pad_expert_input_to_capacity");
    }
    return STATUS_OK;
}

// Switches that its arguments leave off and that plans have on.
static Status read_expert_kernels(Import *import, Error *error) {
    static const struct {
        const char *flag, *without;
    } switches[] = {{"--moe-grouped-gemm", "each expert is an MLP of modules of its own"},
                    {"--moe-permute-fusion", "tokens are put in the order of experts by operations of PyTorch"},
                    {"--moe-router-fusion", "the router is operations of PyTorch"}};
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        int on = 0;
        TRY(import_bool(import, switches[i].flag, &on, error));
        FIND_IF(!on, import, FINDING_UNMODELLED, megatron_key(import, M_EXPERTS),
                "without %s %s: predicted with it, your run takes longer", switches[i].flag, switches[i].without);
    }
    return STATUS_OK;
}

static Status read_experts(Import *import, Error *error) {
    static const ImportWord types[] = {
        {"allgather", DISPATCH_ALLGATHER}, {"alltoall", DISPATCH_ALLTOALL}, {"flex", DISPATCH_DEEPEP}, {NULL, 0}};
    static const ImportWord backends[] = {{"deepep", DISPATCH_DEEPEP}, {"hybridep", DISPATCH_HYBRIDEP}, {NULL, 0}};
    ImportChoices *said = &import->said;
    const bool bridge = megatron_is_bridge(import);
    int experts = 0, type = bridge ? DISPATCH_ALLTOALL : DISPATCH_ALLGATHER, backend = DISPATCH_DEEPEP;
    TRY(megatron_int(import, M_EP, 1, MESH_MAX_WORLD, &said->size[AXIS_EP], error));
    TRY(megatron_int(import, M_EXPERTS, 0, 1 << 20, &experts, error));
    TRY(import_choice(import, megatron_key(import, M_DISPATCHER), types, &type, error));
    TRY(import_choice(import, megatron_key(import, M_BACKEND), backends, &backend, error));
    const int ep = said->size[AXIS_EP];
    if (ep > 1 && experts == 0 && !bridge) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_EP),
                    "num_experts must be non None to use expert model parallelism");
    } else if (ep > 1 && experts % ep != 0) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_EP),
                    "Number of experts should be a multiple of expert model parallel_size.");
    }
    if (ep > 1) {
        said->choice[PLAN_DISPATCH] = type == DISPATCH_DEEPEP ? backend : type;
    }
    if (ep > 1 && said->choice[PLAN_ZERO] == 0) {  // whole replicas, which lend their ranks
        said->size[AXIS_DP_REPLICATE] = 1;
        said->size[AXIS_DP_SHARD] = -1;
    }
    if (experts > 0 && !bridge) {
        TRY(read_expert_kernels(import, error));
    }
    if (experts > 0 || bridge) {  // whose model is another file's
        TRY(read_capacity(import, error));
        TRY(read_cut(import, error));
    }
    return STATUS_OK;
}

// ---- what is kept, what is computed

static unsigned module_of(const ConfigNode *node, int at) {
    const char *text = word_at(node, at);
    for (unsigned bit = 1; bit < RECOMPUTE_MODULE_SETS; bit <<= 1) {
        if (text_same_word(text, recompute_module_names[bit])) {
            return bit;
        }
    }
    return 0;
}

static void read_modules(Import *import) {
    const ConfigNode *node = import_at(import, megatron_key(import, M_MODULES));
    unsigned modules = 0;
    for (int i = 0; i < word_count(node); i++) {
        const unsigned one = module_of(node, i);
        FIND_IF(!one, import, FINDING_UNMODELLED, megatron_key(import, M_MODULES),
                "%s is made again too: predicted as kept, your run needs less memory", word_at(node, i));
        modules |= one;
    }
    import->said.choice[PLAN_RECOMPUTE_MODULES] = modules ? (int)modules : RECOMPUTE_CORE_ATTENTION;
}

static Status read_recompute(Import *import, Error *error) {
    static const ImportWord kinds[] = {{"full", RECOMPUTE_FULL}, {"selective", RECOMPUTE_SELECTIVE}, {NULL, 0}};
    ImportChoices *said = &import->said;
    int kind = RECOMPUTE_NONE, layers = 1, selective = 0;
    const char *method = NULL;
    TRY(import_choice(import, megatron_key(import, M_GRANULARITY), kinds, &kind, error));
    TRY(import_bool(import, "--recompute-activations", &selective, error));
    TRY(megatron_word(import, M_METHOD, &method, error));
    TRY(megatron_int(import, M_LAYERS_AGAIN, 0, 1 << 16, &layers, error));
    kind = selective ? RECOMPUTE_SELECTIVE : kind;
    if (kind == RECOMPUTE_SELECTIVE && method) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_METHOD),
                    "recompute method is not yet supported for selective recomputing granularity");
    } else if (kind == RECOMPUTE_FULL && !method) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_GRANULARITY),
                    "Using recompute_granularity: full so recompute_method must be one of \"block\" or \"uniform\"");
    } else if (kind == RECOMPUTE_FULL && strcmp(method, "block") == 0) {
        said->choice[PLAN_RECOMPUTE_LAYERS] = layers;
    } else if (kind == RECOMPUTE_FULL && layers > 1) {
        import_find(import, FINDING_UNMODELLED, megatron_key(import, M_LAYERS_AGAIN),
                    "%d layers between two kept inputs: predicted with one, your run needs less memory for inputs and "
                    "more for what is made again",
                    layers);
    }
    said->choice[PLAN_RECOMPUTE] = kind;
    if (kind == RECOMPUTE_SELECTIVE) {
        read_modules(import);
    }
    import_known(import, (const char *const[]){megatron_key(import, M_MODULES), NULL});
    return STATUS_OK;
}

static Status read_attention(Import *import, Error *error) {
    static const ImportWord kernels[] = {{"flash", ATTENTION_FLASH},   {"fused", ATTENTION_CUDNN},
                                         {"unfused", ATTENTION_EAGER}, {"local", ATTENTION_EAGER},
                                         {"auto", IMPORT_UNSAID},      {NULL, 0}};
    const char *word = NULL;
    TRY(megatron_word(import, M_ATTENTION, &word, error));
    const char *dot = word ? strrchr(word, '.') : NULL;  // AttnBackend.fused
    if (dot) {
        import_at(import, megatron_key(import, M_ATTENTION))->text = dot + 1;
    }
    return import_choice(import, megatron_key(import, M_ATTENTION), kernels, &import->said.choice[PLAN_ATTENTION],
                         error);
}

// The wheel in which they are read, unless a newer row is meant anyway.
static void take_newer(Import *import) {
    import->target = strcmp(import->target, "megatron@core") == 0 ? "megatron@0.19" : import->target;
}

// Megatron-FSDP has masters of its own (main_weight_buffer), so that none are remainders.
static void take_states(Import *import, Optimizer optimizer) {
    const bool own = import->said.choice[PLAN_ZERO] == 3 && optimizer == OPTIMIZER_ADAMW_REMAINDERS;
    import->said.choice[PLAN_OPTIMIZER] = (int)(own ? OPTIMIZER_TARGET : optimizer);
    take_newer(import);
}

static Status read_optimizer(Import *import, Error *error) {
    const char *name = "adam", *average = "fp32", *square = "fp32";
    int aware = 0, offload = 0;
    TRY(megatron_word(import, M_OPTIMIZER, &name, error));
    TRY(megatron_bool(import, M_PRECISION_AWARE, &aware, error));
    TRY(megatron_word(import, M_AVERAGE_TYPE, &average, error));
    TRY(megatron_word(import, M_SQUARE_TYPE, &square, error));
    TRY(megatron_bool(import, M_OFFLOAD, &offload, error));
    aware = megatron_are_state_types(import, average, square) && aware;
    const MegatronStates *states = aware ? megatron_states_of(average, square) : NULL;
    if (strcmp(name, "sgd") == 0) {
        import->said.choice[PLAN_OPTIMIZER] = OPTIMIZER_SGD_MOMENTUM;
        take_newer(import);
    } else if (strcmp(name, "muon") == 0 || strcmp(name, "dist_muon") == 0) {
        import->said.choice[PLAN_OPTIMIZER] = OPTIMIZER_MUON;
        TRY(megatron_read_muon(import, error));
    } else if (strcmp(name, "adam") != 0 && import->said.choice[PLAN_ZERO] > 0) {
        import_refuse(import, megatron_key(import, M_OPTIMIZER),
                      "%s keeps the states of whole layers on some ranks each, which no plan of ndtune holds", name);
    } else if (strcmp(name, "adam") != 0) {
        import_find(import, FINDING_UNMODELLED, megatron_key(import, M_OPTIMIZER),
                    "optimizer %s: the prediction has fused AdamW with two states", name);
    } else if (states && !offload) {
        take_states(import, states->optimizer);
    } else if (aware && !(states && states->optimizer == OPTIMIZER_ADAMW_REMAINDERS)) {
        const bool of_average = !strstr(average, "32");
        import_find(import, FINDING_UNMODELLED, megatron_key(import, of_average ? M_AVERAGE_TYPE : M_SQUARE_TYPE),
                    "states in %s and %s: predicted in fp32, your run needs less memory", average, square);
    }
    double share = 1;
    TRY(megatron_number(import, M_OFFLOADED, 0, 1, &share, error));
    import_switch_offload(import, offload, megatron_key(import, M_OFFLOAD), OFFLOAD_OPTIMIZER);
    FIND_IF(offload && share < 1, import, FINDING_UNMODELLED, megatron_key(import, M_OFFLOADED),
            "%g of the states are on the host: predicted with all of them there", share);
    return STATUS_OK;
}

// What the first layers save; Bridge has a switch for it (transformer_config.py, cpu_offloading).
static Status read_saved(Import *import, Error *error) {
    const bool bridge = megatron_is_bridge(import);
    int layers = 0, on = !bridge, weights = 0;
    TRY(megatron_int(import, M_SAVED_LAYERS, 0, plan_fields[PLAN_OFFLOAD_LAYERS].high, &layers, error));
    if (bridge) {
        TRY(megatron_bool(import, M_SAVED, &on, error));
        TRY(megatron_bool(import, M_SAVED_WEIGHTS, &weights, error));
    }
    if (layers > 0 && !on) {
        import_find(import, FINDING_TRAP, megatron_key(import, M_SAVED_LAYERS),
                    "does nothing while model.cpu_offloading is not True");
    } else if (layers > 0 && import->said.choice[PLAN_OFFLOAD] == OFFLOAD_OPTIMIZER) {
        import_find(import, FINDING_UNMODELLED, megatron_key(import, M_SAVED_LAYERS),
                    "activations of layers wait on the host, as states do: predicted with those alone, your run needs "
                    "less memory");
    } else if (layers > 0) {
        import_take_offload(import, megatron_key(import, M_SAVED_LAYERS), OFFLOAD_ACTIVATIONS, "cpu");
        import->said.choice[PLAN_OFFLOAD_LAYERS] = layers;
    }
    FIND_IF(weights && on && layers > 0, import, FINDING_UNMODELLED, megatron_key(import, M_SAVED_WEIGHTS),
            "weights of layers wait on the host too: your run needs less memory");
    return STATUS_OK;
}

// Which parts of layers are captured, or, as its files once said it, whole micro-steps (cuda_graph_config.py,
// transformer_config.py); none: whole layers.
static GraphUse graphed(Import *import, MegatronKey key) {
    static const char *const words[] = {"attn", "mlp", "moe_router", "moe_preprocess"};
    static const unsigned parts_of[] = {GRAPHED_ATTENTION, GRAPHED_MLP, GRAPHED_ROUTER, GRAPHED_ROUTER};
    const ConfigNode *node = import_at(import, megatron_key(import, key));
    unsigned parts = 0;
    for (int i = 0; i < word_count(node); i++) {
        const char *word = word_at(node, i);
        const int at = text_index(words, sizeof words / sizeof words[0], word);
        if (strcmp(word, "full_iteration") == 0 || strcmp(word, "full") == 0) {
            return word[4] == '_' ? CUDA_GRAPHS_ON : CUDA_GRAPHS_LAYERS;
        }
        FIND_IF(at < 0, import, FINDING_UNMODELLED, megatron_key(import, key),
                "%s is captured too: predicted without, your run needs less time where the host is slow", word);
        parts |= at < 0 ? 0 : parts_of[at];
    }
    return parts > 0 || word_count(node) == 0 ? (GraphUse)(CUDA_GRAPHS_LAYERS + parts) : CUDA_GRAPHS_TARGET;
}

static Status read_graphs(Import *import, Error *error) {
    const char *how = "none";
    int local = 0, external = 0;
    TRY(megatron_word(import, M_GRAPHS, &how, error));
    TRY(megatron_bool(import, M_GRAPHS_LOCAL, &local, error));
    TRY(megatron_bool(import, M_GRAPHS_EXTERNAL, &external, error));
    const bool before = megatron_says(import, M_GRAPHED_BEFORE);
    if (strcmp(how, "none") == 0 && !local && !external) {
        return STATUS_OK;
    }
    const bool whole = strcmp(how, "full_iteration") == 0;
    const GraphUse use = whole ? CUDA_GRAPHS_ON : graphed(import, before ? M_GRAPHED_BEFORE : M_GRAPHED);
    static const char unchecked[] = "--no-check-for-nan-in-loss-and-grad";
    FIND_IF(whole && !megatron_is_bridge(import) && !import_is_on(import, unchecked), import, FINDING_REFUSED,
            unchecked, "%s should be set with --cuda-graph-impl=full_iteration for training.", unchecked);
    import->said.choice[PLAN_CUDA_GRAPHS] = (int)use;
    import->target = megatron_is_bridge(import) ? import->target : "megatron@0.19";
    return STATUS_OK;
}

// Transformer Engine's kernel needs the switch, which Bridge's providers have on (models/gpt_provider.py). Megatron-LM
// alone refuses the kernel, since 168cb15d70.
static Status read_loss(Import *import, Error *error) {
    const bool bridge = megatron_is_bridge(import);
    const char *whose = "native";
    int kernel = bridge;
    TRY(megatron_bool(import, M_LOSS_KERNEL, &kernel, error));
    TRY(megatron_word(import, M_LOSS_OF, &whose, error));
    const bool in_place = kernel && strcmp(whose, "te") == 0;
    if (in_place || !kernel) {
        import->said.choice[PLAN_LOSS] = in_place ? LOSS_IN_PLACE : LOSS_ONE_COPY;
    }
    FIND_IF(
        in_place && !bridge, import, FINDING_REFUSED, megatron_key(import, M_LOSS_OF),
        "Megatron-LM since 2026-06 stops: Transformer Engine cross entropy loss fusion is disabled due to stability "
        "issues");
    return STATUS_OK;
}

// ---- the file

// Several values of a flag stand in one text there.
static void split_values(Import *import, ConfigNode *node) {
    static const char *const several[] = {"--recompute-modules", "--cp-comm-type", "--cuda-graph-modules",
                                          "--cuda-graph-scope", "--hierarchical-context-parallel-sizes"};
    for (size_t i = 0; i < sizeof several / sizeof several[0] && node->kind == NODE_SCALAR; i++) {
        if (strcmp(node->key, several[i]) != 0 || !strchr(node->text, ' ')) {
            continue;
        }
        node->kind = NODE_LIST;
        for (const char *at = node->text; *at;) {
            const size_t blank = strspn(at, " "), length = strcspn(at + blank, " ");
            if (length > 0) {
                ConfigNode *item = config_node(import->arena, NODE_SCALAR, node->line);
                item->text = arena_format(import->arena, "%.*s", (int)length, at + blank);
                config_append(import->arena, node, item);
            }
            at += blank + length;
        }
    }
}

// MODEL_ARGS of a functional test are flags: they come up.
static void lift_arguments(Import *import) {
    ConfigNode *arguments = import_at(import, "MODEL_ARGS");
    if (!arguments || arguments->kind != NODE_MAP) {
        return;
    }
    static const char *const beside[] = {
        "ENV_VARS TEST_TYPE TEST_EVALUATION LAUNCHER MODE METRICS THROUGHPUT_TEST_PARAMS SKIP_PYTEST BEFORE_SCRIPT",
        "AFTER_SCRIPT", NULL};
    import_known(import, beside);
    ConfigNode *child = arguments->first;
    arguments->first = arguments->last = NULL;
    for (ConfigNode *next; child; child = next) {
        next = child->next;
        child->next = NULL;
        split_values(import, child);
        config_append(import->arena, import->root, child);
    }
}

static void refuse_other_models(Import *import) {
    static const ImportLeftOut rows[] = {
        {"--hybrid-layer-pattern", NULL, "layers of state spaces, which no model of ndtune has"},
        {"--hybrid-override-pattern", NULL, "layers of state spaces, which no model of ndtune has"},
        {"--experimental-attention-variant", NULL, "another attention, which no model of ndtune has"},
        {"--encoder-num-layers", NULL, "an encoder beside the decoder, which no model of ndtune has"},
        {"--perform-rl-step", NULL, "training on what the model itself samples"},
        {"model.hybrid_layer_pattern", NULL, "layers of state spaces, which no model of ndtune has"},
        {NULL, NULL, NULL}};
    for (int i = 0; rows[i].path; i++) {
        IMPORT_REFUSE_IF(import_is_on(import, rows[i].path), import, rows[i].path, "%s", rows[i].sentence);
    }
}

static void say_other_runtime(Import *import) {
    static const ImportLeftOut rows[] = {
        {"--deepspeed_config", NULL,
         "Megatron-DeepSpeed's, whose pipelines and shards are DeepSpeed's: read as Megatron-LM's; ndtune predict "
         "--target megatron@bigscience, bigscience-bf16 in bf16, prices a shape of it"},
        {"--zero-stage", "0", "DeepSpeed's, not read: --zero says it to ndtune predict"},
        {NULL, NULL, NULL}};
    import_leave_out(import, rows);
}

// A script whose command is in a loop is not read: that is no plan of one rank's defaults.
static bool says_anything(Import *import) {
    static const MegatronKey any[] = {M_TP, M_PP, M_CP, M_EP, M_MICRO_BATCH, M_BATCH, M_SEQ, M_LAYERS};
    bool says = megatron_is_bridge(import) || import_has(import, "_base_") || import_has(import, "mixed_precision");
    for (size_t i = 0; i < sizeof any / sizeof any[0]; i++) {
        says |= megatron_says(import, any[i]);
    }
    return says;
}

static Status megatron_read(Import *import, Error *error) {
    lift_arguments(import);
    const bool bridge = megatron_is_bridge(import);
    FAIL_IF(!says_anything(import), error, STATUS_USAGE,
            "%s gives no command outside of loops an argument of Megatron-LM or a key of Megatron-Bridge",
            import->path);
    import->unknown.kind = bridge ? FINDING_UNKNOWN : FINDING_REFUSED;
    import->unknown.words = bridge ? "no section of Megatron-Bridge's configuration"
                                   : "no argument of Megatron-LM, which stops: error: unrecognized arguments";
    import->unknown_below.kind = FINDING_UNKNOWN;
    import->unknown_below.words = "no key that is looked at there";
    import->target = bridge ? "megatron@bridge-0.6" : "megatron@core";
    import->flavour = bridge ? "configuration of Megatron-Bridge" : "arguments of Megatron-LM";
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        import->said.size[axis] = 1;
    }
    refuse_other_models(import);
    say_other_runtime(import);
    TRY(read_sharding(import, error));
    TRY(read_context(import, error));
    TRY(megatron_int(import, M_PP, 1, MESH_MAX_WORLD, &import->said.size[AXIS_PP], error));
    TRY(read_overlap(import, error));
    TRY(read_tensor(import, error));
    TRY(read_experts(import, error));
    if (megatron_says(import, M_MTP)) {
        TRY(megatron_int(import, M_MTP, 0, plan_fields[PLAN_MTP].high, &import->said.choice[PLAN_MTP], error));
    }
    TRY(megatron_read_stages(import, error));
    TRY(megatron_read_batch(import, error));
    TRY(megatron_read_precision(import, error));
    TRY(read_attention(import, error));
    TRY(read_recompute(import, error));
    TRY(read_optimizer(import, error));
    TRY(read_saved(import, error));
    TRY(read_graphs(import, error));
    TRY(read_loss(import, error));
    TRY(megatron_read_adapters(import, error));
    TRY(megatron_read_model(import, error));
    import_leave_out(import, bridge ? megatron_bridge_left_out : megatron_left_out);
    if (bridge) {
        const char *base = "the recipe that it is given to";
        TRY(import_word(import, "--recipe", &base, error));
        TRY(import_word(import, "_base_._target_", &base, error));
        import_find(
            import, FINDING_ASSUMED, NULL,
            "what the file does not set is as _pretrain_common has it (bf16, distributed optimizer, overlapped), "
            "and not as %s may have it",
            base);
    }
    megatron_mark_known(import);
    return STATUS_OK;
}

const ImportFormat import_megatron = {
    .name = "megatron",
    .marks = "--tensor-model-parallel-size --pipeline-model-parallel-size --num-layers --micro-batch-size "
             "--seq-length MODEL_ARGS model.tensor_model_parallel_size model.pipeline_model_parallel_size "
             "model.context_parallel_size model.sequence_parallel train.global_batch_size "
             "train.micro_batch_size ddp.use_distributed_optimizer mixed_precision comm_overlap",
    .keys = {.mesh = "--{tensor-model,pipeline-model,context,expert-model}-parallel-size, "
                     "{tensor_model,pipeline_model,context,expert_model}_parallel_size",
             .micro_batch = "--micro-batch-size, micro_batch_size",
             .reshard = "--data-parallel-sharding-strategy",
             .recompute = "--recompute-granularity, recompute_granularity",
             .rotate = "--cp-comm-type, cp_comm_type",
             .zero = "--use-distributed-optimizer, use_distributed_optimizer",
             .sync = "no key of Megatron's",
             .kernels = "--attention-backend, attention_backend",
             .overlap = "--overlap-grad-reduce, overlap_grad_reduce",
             .loss = "--cross-entropy-fusion-impl, cross_entropy_fusion_impl",
             .tp_overlap = "--tp-comm-overlap, tp_comm_overlap"},
    .read = megatron_read,
    .others = (const ImportOther[]){{" megatron ", "ms-swift"}, {NULL, NULL}},
};
