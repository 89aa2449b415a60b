// The names of the settings that plans hold, of Megatron-LM (megatron/training/arguments.py at d98e8a64dd) and of
// Megatron-Bridge (0.6.2, training/config.py), and of those that change time or memory and are in no plan.

#include <string.h>

#include "sim/frameworks/megatron/argument_words.h"
#include "sim/frameworks/megatron/megatron_read.h"

// A CommOverlapConfig sets what it has in the model before training (training/comm_overlap.py, setup); without one the
// model's own attributes count.
#define COMM_OVERLAP "comm_overlap"

typedef struct Names {
    const char *flag;
    const char *bridge;  // NULL: the flag's words in the map of the model
} Names;

static const Names names[M_KEY_COUNT] = {
    [M_TP] = {"--tensor-model-parallel-size", NULL},
    [M_CP] = {"--context-parallel-size", NULL},
    [M_PP] = {"--pipeline-model-parallel-size", NULL},
    [M_EP] = {"--expert-model-parallel-size", NULL},
    [M_ETP] = {"--expert-tensor-parallel-size", NULL},
    [M_SEQUENCE_PARALLEL] = {"--sequence-parallel", NULL},
    [M_TP_OVERLAP] = {"--tp-comm-overlap", "comm_overlap.tp_comm_overlap"},
    [M_CP_TYPE] = {"--cp-comm-type", NULL},
    [M_CP_SIZES] = {"--hierarchical-context-parallel-sizes", NULL},
    [M_STRATEGY] = {"--data-parallel-sharding-strategy", "ddp.data_parallel_sharding_strategy"},
    [M_FSDP] = {"--use-megatron-fsdp", "ddp.use_megatron_fsdp"},
    [M_SHARDED_OPTIMIZER] = {"--use-distributed-optimizer", "ddp.use_distributed_optimizer"},
    [M_INSTANCES] = {"--num-distributed-optimizer-instances", "ddp.num_distributed_optimizer_instances"},
    [M_OVERLAP_REDUCE] = {"--overlap-grad-reduce", "ddp.overlap_grad_reduce"},
    [M_OVERLAP_GATHER] = {"--overlap-param-gather", "ddp.overlap_param_gather"},
    [M_SET_REDUCE] = {"", "comm_overlap.overlap_grad_reduce"},
    [M_SET_GATHER] = {"", "comm_overlap.overlap_param_gather"},
    [M_SEQ] = {"--seq-length", NULL},
    [M_MICRO_BATCH] = {"--micro-batch-size", "train.micro_batch_size"},
    [M_BATCH] = {"--global-batch-size", "train.global_batch_size"},
    [M_ATTENTION] = {"--attention-backend", NULL},
    [M_GRANULARITY] = {"--recompute-granularity", NULL},
    [M_METHOD] = {"--recompute-method", NULL},
    [M_LAYERS_AGAIN] = {"--recompute-num-layers", NULL},
    [M_MODULES] = {"--recompute-modules", NULL},
    [M_OPTIMIZER] = {"--optimizer", "optimizer.optimizer"},
    [M_PRECISION_AWARE] = {"--use-precision-aware-optimizer", "optimizer.use_precision_aware_optimizer"},
    [M_AVERAGE_TYPE] = {"--exp-avg-dtype", "optimizer.exp_avg_dtype"},
    [M_SQUARE_TYPE] = {"--exp-avg-sq-dtype", "optimizer.exp_avg_sq_dtype"},
    [M_OFFLOAD] = {"--optimizer-cpu-offload", "optimizer.optimizer_cpu_offload"},
    [M_OFFLOADED] = {"--optimizer-offload-fraction", "optimizer.optimizer_offload_fraction"},
    [M_SAVED] = {"", "model.cpu_offloading"},
    [M_SAVED_LAYERS] = {"--cpu-offloading-num-layers", "model.cpu_offloading_num_layers"},
    [M_SAVED_WEIGHTS] = {"", "model.cpu_offloading_weights"},
    [M_FP8_ACTIVATION] = {"", "model.activation_func_fp8_input_store"},
    [M_QKV_ROPE] = {"", "model.fused_single_qkv_rope"},
    [M_OP_FUSER] = {"--use-transformer-engine-op-fuser", NULL},
    [M_GRAPHS] = {"--cuda-graph-impl", NULL},
    [M_LOSS_KERNEL] = {"--cross-entropy-loss-fusion", NULL},
    [M_LOSS_OF] = {"--cross-entropy-fusion-impl", NULL},
    [M_GRAPHED] = {"--cuda-graph-modules", NULL},
    [M_GRAPHED_BEFORE] = {"--cuda-graph-scope", NULL},  // its name until 2026-05
    [M_GRAPHS_LOCAL] = {"--enable-cuda-graph", NULL},   // --cuda-graph-impl local and transformer_engine, once
    [M_GRAPHS_EXTERNAL] = {"--external-cuda-graph", NULL},
    [M_EXPERTS] = {"--num-experts", "model.num_moe_experts"},
    [M_DISPATCHER] = {"--moe-token-dispatcher-type", NULL},
    [M_BACKEND] = {"--moe-flex-dispatcher-backend", NULL},
    [M_EP_OVERLAP] = {"--overlap-moe-expert-parallel-comm", "comm_overlap.overlap_moe_expert_parallel_comm"},
    [M_CAPACITY] = {"--moe-expert-capacity-factor", NULL},
    [M_PAD] = {"--moe-pad-expert-input-to-capacity", NULL},
    [M_MTP] = {"--mtp-num-layers", NULL},
    [M_LAYERS] = {"--num-layers", NULL},
    [M_LAYOUT] = {"--pipeline-model-parallel-layout", NULL},
    [M_FIRST] = {"--decoder-first-pipeline-num-layers", "model.num_layers_in_first_pipeline_stage"},
    [M_LAST] = {"--decoder-last-pipeline-num-layers", "model.num_layers_in_last_pipeline_stage"},
    [M_VIRTUAL] = {"--num-virtual-stages-per-pipeline-rank", "model.virtual_pipeline_model_parallel_size"},
    [M_PER_VIRTUAL] = {"--num-layers-per-virtual-pipeline-stage", ""},
    [M_GROUP] = {"--microbatch-group-size-per-virtual-pipeline-stage", "model.microbatch_group_size_per_vp_stage"},
    [M_P2P_WAITS] = {"--no-overlap-p2p-communication", ""},
    [M_P2P_OVERLAP] = {"", "comm_overlap.overlap_p2p_comm"},
    [M_P2P_BATCH] = {"", "comm_overlap.batch_p2p_comm"},
    [M_COUNT_EMBEDDING] = {"--account-for-embedding-in-pipeline-split", NULL},
    [M_COUNT_LOSS] = {"--account-for-loss-in-pipeline-split", NULL},
    [M_HIDDEN] = {"--hidden-size", NULL},
    [M_FFN] = {"--ffn-hidden-size", NULL},
    [M_HEADS] = {"--num-attention-heads", NULL},
    [M_ROTARY_BASE] = {"--rotary-base", NULL},
};

// Maps of a configuration; flags have none.
bool megatron_is_bridge(const Import *import) {
    static const char *const maps[] = {"model", "train", "ddp", "optimizer", "mixed_precision", "comm_overlap"};
    bool any = false;
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        const ConfigNode *node = config_child(import->root, maps[i]);
        any |= node && node->kind == NODE_MAP;
    }
    return any;
}

static const char *underscored(Arena *arena, const char *flag) {
    char *word = arena_format(arena, "model.%s", flag + strlen("--"));
    for (char *at = word; (at = strchr(at, '-'));) {
        *at = '_';
    }
    return word;
}

bool megatron_sets_overlap(const Import *import) {
    const ConfigNode *node = config_child(import->root, COMM_OVERLAP);
    return node && (node->kind != NODE_SCALAR || node->text[0] != '\0');
}

const char *megatron_key(const Import *import, MegatronKey key) {
    const Names *row = &names[key];
    if (!megatron_is_bridge(import)) {
        return row->flag;
    }
    const bool moves = row->bridge && strncmp(row->bridge, COMM_OVERLAP ".", strlen(COMM_OVERLAP ".")) == 0;
    if (moves && !megatron_sets_overlap(import)) {
        return arena_format(import->arena, "model.%s", row->bridge + strlen(COMM_OVERLAP "."));
    }
    return row->bridge ? row->bridge : underscored(import->arena, row->flag);
}

Status megatron_int(Import *import, MegatronKey key, int64_t low, int64_t high, int *value, Error *error) {
    return import_int(import, megatron_key(import, key), low, high, value, error);
}

Status megatron_number(Import *import, MegatronKey key, double low, double high, double *value, Error *error) {
    return import_number(import, megatron_key(import, key), low, high, value, error);
}

Status megatron_bool(Import *import, MegatronKey key, int *value, Error *error) {
    return import_bool(import, megatron_key(import, key), value, error);
}

Status megatron_word(Import *import, MegatronKey key, const char **value, Error *error) {
    return import_word(import, megatron_key(import, key), value, error);
}

bool megatron_says(Import *import, MegatronKey key) {
    return import_has(import, megatron_key(import, key));
}

#define LEFT_OUT(flag, attribute, quiet, sentence) {flag, quiet, sentence},
#define LEFT_OUT_OF_BRIDGE(flag, attribute, quiet, sentence) {attribute, quiet, sentence},
#define ALL_LEFT_OUT(ROW)                                                                                              \
    ROW("--overlap-param-gather-with-optimizer-step", "comm_overlap.overlap_param_gather_with_optimizer_step", NULL,   \
        "parameters are gathered beside the optimizer's step: your run needs a little less time")                      \
    ROW("--delay-wgrad-compute", "comm_overlap.delay_wgrad_compute", NULL,                                             \
        "gradients of weights are computed later, beside exchanges of experts: your run may need less time")           \
    ROW("--defer-embedding-wgrad-compute", "comm_overlap.defer_embedding_wgrad_compute", NULL,                         \
        "the embedding's gradient is computed in the bubble at the end: your run may need less time")                  \
    ROW("--moe-shared-expert-overlap", "model.moe_shared_expert_overlap", NULL,                                        \
        "the shared expert runs beside the exchange of tokens: your run may need less time")                           \
    ROW("--mtp-use-repeated-layer", "model.mtp_use_repeated_layer", NULL,                                              \
        "one layer predicts all further tokens: of several your run needs less memory")                                \
    ROW("--mtp-hsm", "model.mtp_hsm", NULL, "states are mixed before further tokens: your run needs more time")        \
    ROW("--fine-grained-activation-offloading", "model.fine_grained_activation_offloading", NULL,                      \
        "inputs of modules wait on the host: your run needs less memory")                                              \
    ROW("--distribute-saved-activations", "model.distribute_saved_activations", NULL,                                  \
        "kept inputs are split over tp: your run needs less memory")                                                   \
    ROW("--empty-unused-memory-level", "train.empty_unused_memory_level", NULL,                                        \
        "the allocator's cache is emptied every step: your run is slower")                                             \
    ROW("--main-grads-dtype", "optimizer.main_grads_dtype", "fp32", "gradients in another dtype: memory differs")      \
    ROW("--main-params-dtype", "optimizer.main_params_dtype", "fp32", "masters in another dtype: memory differs")      \
    ROW("--megatron-fsdp-version", "ddp.megatron_fsdp_version", "1", "another version of its FSDP")                    \
    ROW("--fsdp-double-buffer", "ddp.fsdp_double_buffer", NULL,                                                        \
        "two fixed buffers for gathered units: memory differs")                                                        \
    ROW("--use-nccl-ub", "ddp.nccl_ub", NULL, "user buffers for collectives: your run may need less time")             \
    ROW("--rampup-batch-size", "train.rampup_batch_size", NULL,                                                        \
        "the batch grows while training: the figures are of the last one")                                             \
    ROW("--step-batch-size-schedule", "train.step_batch_size_schedule", NULL,                                          \
        "the batch grows while training: say the one to predict with --global-batch")                                  \
    ROW("--window-size", "model.window_size", NULL,                                                                    \
        "attention looks back so far: the prediction has the window of --model")                                       \
    ROW("--freeze-LM", "model.freeze_language_model", NULL, "parts of the model are not trained")

const ImportLeftOut megatron_left_out[] = {ALL_LEFT_OUT(LEFT_OUT){NULL, NULL, NULL}};
const ImportLeftOut megatron_bridge_left_out[] = {ALL_LEFT_OUT(LEFT_OUT_OF_BRIDGE){NULL, NULL, NULL}};

// ---- keys without effect

static const char *const bridge_sections[] = {
    "train validation scheduler dataset logger tokenizer checkpoint rng dist profiling ft straggler nvrx_straggler",
    "rerun_state_machine tensor_inspect env_vars inprocess_restart optimizer ddp mixed_precision comm_overlap peft",
    "_base_ _target_ model._target_ --recipe launcher optimizer_config_override_provider", NULL};

// Of a model's provider, and no argument of Megatron-LM's.
static const char *const of_provider[] = {
    "pipeline_dtype params_dtype autocast_dtype moe_router_padding_for_fp8 vocab_size",
    "should_pad_vocab gradient_accumulation_fusion transformer_impl apply_rope_fusion num_query_groups",
    "bias_activation_fusion bias_dropout_fusion masked_softmax_fusion use_te_rng_tracker init_method_std",
    "moe_permute_fusion moe_grouped_gemm high_priority_stream_groups",
    "moe_router_force_load_balancing moe_hybridep_num_sms moe_a2a_overlap context_parallel_size",
    "freeze_vision_model freeze_vision_projection batch_p2p_comm tp_only_amax_red",
    "moe_flex_dispatcher_num_sms overlap_p2p_comm",
    NULL};

// An argument has other strokes than its attribute.
static bool is_listed(const char *attribute, const char *const *rows) {
    const size_t length = strlen(attribute);
    for (const char *const *row = rows; *row; row++) {
        for (const char *at = *row; *at; at += strcspn(at, " \n"), at += *at != '\0') {
            size_t same = 0;
            while (same < length && (at[same] == attribute[same] || (at[same] == '-' && attribute[same] == '_'))) {
                same++;
            }
            if (same == length && strchr(" \n", at[same])) {
                return true;
            }
        }
    }
    return false;
}

// Every argument of Megatron-LM's parser (add_megatron_arguments of megatron/training/arguments.py at d98e8a64dd), as
// its own parser lists them: any other argument stops it. Its models' scripts may add some (extra_args_provider).
static const char *const megatron_arguments[] = {argument_words, NULL};

void megatron_mark_known(Import *import) {
    if (!megatron_is_bridge(import)) {
        import_known_below(import, "--", megatron_arguments);  // asked for, so that each can be what was meant
        import_known(import, (const char *const[]){"launcher", NULL});
        return;
    }
    import_known(import, bridge_sections);
    for (ConfigNode *node = import->root->first; node; node = node->next) {
        node->used |= node->key && strncmp(node->key, "--", 2) == 0;  // of the script that takes the overrides
    }
    ConfigNode *model = import_at(import, "model");
    for (ConfigNode *node = model ? model->first : NULL; node; node = node->next) {
        node->used |= node->key && (is_listed(node->key, of_provider) || is_listed(node->key, megatron_arguments));
    }
}
