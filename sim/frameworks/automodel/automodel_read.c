// NeMo Automodel's YAML read as a plan (0.7: recipes/_dist_utils.py, components/distributed/config.py and
// mesh_utils.py, whose refusals use their wording). Omitted keys take its dataclasses' defaults. Experts are
// sharded over what ep_size leaves of all ranks.

#include <string.h>

#include "sim/frameworks/automodel/automodel_files.h"
#include "sim/frameworks/config_keys.h"

#define DISTRIBUTED(key) "distributed." key

static const ImportWord kernels[] = {{"sdpa", IMPORT_UNSAID},  // PyTorch decides, as by default
                                     {"sdpa", ATTENTION_CUDNN},
                                     {"flash_attention_2", ATTENTION_FLASH},
                                     {"flash_attention_3", ATTENTION_FLASH3},
                                     {"eager", ATTENTION_EAGER},
                                     {NULL, 0}};
static const ImportWord dtypes[] = {{"float32", REDUCE_DTYPE_TARGET},
                                    {"torch.float32", REDUCE_DTYPE_TARGET},
                                    {"bfloat16", REDUCE_DTYPE_BF16},
                                    {"torch.bfloat16", REDUCE_DTYPE_BF16},
                                    {NULL, 0}};
// _normalize_activation_checkpointing; -1 = by operations
static const ImportWord recomputes[] = {
    {"true", RECOMPUTE_FULL},     {"on", RECOMPUTE_FULL},    {"full", RECOMPUTE_FULL}, {"enabled", RECOMPUTE_FULL},
    {"yes", RECOMPUTE_FULL},      {"false", RECOMPUTE_NONE}, {"off", RECOMPUTE_NONE},  {"none", RECOMPUTE_NONE},
    {"disabled", RECOMPUTE_NONE}, {"no", RECOMPUTE_NONE},    {"selective", -1},        {NULL, 0}};

static const ConfigKey keys[] = {
    {.path = "step_scheduler.local_batch_size", .means = KEY_MICRO_BATCH},
    {.path = "step_scheduler.global_batch_size", .means = KEY_BATCH},
    {.path = "dataset.seq_length", .means = KEY_SEQ},
    {.path = "model.attn_implementation", .means = KEY_CHOICE, .id = PLAN_ATTENTION, .words = kernels},
    {.path = DISTRIBUTED("tp_size"), .means = KEY_AXIS, .id = AXIS_TP},
    {.path = DISTRIBUTED("cp_size"), .means = KEY_AXIS, .id = AXIS_CP},
    {.path = DISTRIBUTED("ep_size"), .means = KEY_AXIS, .id = AXIS_EP},
    {.path = DISTRIBUTED("mp_policy.reduce_dtype"), .means = KEY_CHOICE, .id = PLAN_REDUCE_DTYPE, .words = dtypes},
    {DISTRIBUTED("enable_compile"), KEY_SWITCH, PLAN_FUSED, .on = FUSED_COMPILED, .off = FUSED_EAGER},
    {DISTRIBUTED("defer_fsdp_grad_sync"), KEY_SWITCH, PLAN_GRAD_SYNC, .on = GRAD_SYNC_LAST, .off = GRAD_SYNC_EACH},
    {NULL},
};

static const ImportLeftOut left_out[] = {
    {DISTRIBUTED("sequence_parallel"), NULL,
     "activations between blocks are split over tp: your run needs less memory"},
    {DISTRIBUTED("enable_async_tensor_parallel"), NULL, "tp runs beside its products: your run needs less time"},
    {DISTRIBUTED("enable_fsdp2_prefetch"), NULL, "units are gathered further ahead: your run may need more memory"},
    {DISTRIBUTED("autocast_dtype"), NULL, "operations are cast by autocast: a few more bytes moved"},
    {"packed_sequence", NULL, "documents are packed and see themselves only: your run computes less attention"},
    {"model.backend.te_fp8", NULL, "fp8 by Transformer Engine: predicted in bf16"},
    {"model.backend.cuda_graph", NULL, "parts are replayed as CUDA graphs: your run needs less time"},
    {"quantization", NULL, "a quantised base: predicted in bf16"},
    {"fp8", NULL, "fp8: predicted in bf16"},
    {NULL, NULL, NULL}};

static const char *const of_no_matter[] = {
    "recipe seed rng dist_env checkpoint lr_scheduler wandb mlflow comet logger ci dataloader validation_dataset",
    "validation_dataloader tokenizer benchmark auto_resume run_dir clip_grad_norm loss_fn optimizer compile",
    "freeze_config dataset step_scheduler model._target_ model.torch_dtype model.trust_remote_code",
    "model.use_liger_kernel model.backend", NULL};
static const char *const of_distributed[] = {
    "mp_policy offload_policy _target_ pipeline moe timeout_minutes activation_checkpointing_scope",
    "fsdp2_backward_prefetch_depth fsdp2_forward_prefetch_depth patch_is_packed_sequence multimodal", NULL};

// _create_fsdp2_device_mesh: dp_size is replicas and shards together, by default all remaining ranks.
static Status read_mesh(Import *import, Error *error) {
    int *size = import->said.size, dp = 0, replicas = 1, stages = 1;
    TRY(import_int(import, DISTRIBUTED("dp_size"), 0, MESH_MAX_WORLD, &dp, error));
    TRY(import_int(import, DISTRIBUTED("dp_replicate_size"), 1, MESH_MAX_WORLD, &replicas, error));
    TRY(import_int(import, DISTRIBUTED("pp_size"), 1, MESH_MAX_WORLD, &stages, error));
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        size[axis] = size[axis] == 0 ? 1 : size[axis];
    }
    IMPORT_REFUSE_IF(stages > 1, import, DISTRIBUTED("pp_size"), "pipelines of Automodel (pp_size=%d) are not modelled",
                     stages);
    size[AXIS_DP_REPLICATE] = replicas;
    size[AXIS_DP_SHARD] = dp > 0 ? dp / replicas : -1;
    if (dp > 0 && dp % replicas != 0) {
        import_find(import, FINDING_REFUSED, DISTRIBUTED("dp_replicate_size"),
                    "dp_size must be a multiple of dp_replicate_size");
        size[AXIS_DP_SHARD] = -1;
    } else if (dp > 0 && replicas > 1 && replicas >= dp) {
        import_find(import, FINDING_REFUSED, DISTRIBUTED("dp_replicate_size"),
                    "dp_replicate_size=%d must be less than dp_size=%d since DDP usecase is not supported by FSDP2",
                    replicas, dp);
    }
    const int64_t ranks = (int64_t)dp * size[AXIS_CP] * size[AXIS_TP];
    FIND_IF(ranks % size[AXIS_EP] != 0, import, FINDING_REFUSED, DISTRIBUTED("ep_size"),
            "non_pp_size=%lld must be a multiple of ep_size=%d", (long long)ranks, size[AXIS_EP]);
    if (size[AXIS_CP] > 1) {
        import->said.choice[PLAN_CP_ROTATE] = CP_ROTATE_ALLGATHER;
    }
    return STATUS_OK;
}

static Status read_strategy(Import *import, Error *error) {
    const char *strategy = "fsdp2";
    TRY(import_word(import, DISTRIBUTED("strategy"), &strategy, error));
    if (import_same_word(strategy, "fsdp2")) {
        import->said.choice[PLAN_ZERO] = 3;
    } else {
        import_refuse(import, DISTRIBUTED("strategy"), "Automodel's %s is not modelled: fsdp2 is", strategy);
    }
    return STATUS_OK;
}

// Of layers of experts its own default keeps what was gathered (MoEParallelizerConfig); else all layers but the last
// hand it back.
static Status read_memory(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    int again = RECOMPUTE_NONE, reshards = said->size[AXIS_EP] == 1;
    const char *policy = NULL, *dtype = "";
    TRY(import_choice(import, DISTRIBUTED("activation_checkpointing"), recomputes, &again, error));
    IMPORT_REFUSE_IF(again < 0, import, DISTRIBUTED("activation_checkpointing"),
                     "selective checkpointing is not modelled");
    said->choice[PLAN_RECOMPUTE] = again < 0 ? RECOMPUTE_NONE : again;
    TRY(import_bool(import, DISTRIBUTED("moe.reshard_after_forward"), &reshards, error));
    TRY(import_bool(import, DISTRIBUTED("reshard_after_forward"), &reshards, error));
    said->choice[PLAN_RESHARD] = reshards ? RESHARD_ALWAYS : RESHARD_NEVER;
    TRY(import_word(import, DISTRIBUTED("offload_policy._target_"), &policy, error));
    import_switch_offload(import, policy, DISTRIBUTED("offload_policy"), OFFLOAD_PARAMETERS);
    TRY(import_word(import, "model.torch_dtype", &dtype, error));
    FIND_IF(strstr(dtype, "bfloat16"), import, FINDING_UNMODELLED, "model.torch_dtype",
            "weights and states in bf16: predicted with fp32 masters, your run needs less memory");
    said->choice[PLAN_PRECISION] = DTYPE_BF16;
    return STATUS_OK;
}

// BackendConfig, which has deepep where it is installed.
static Status read_dispatcher(Import *import, Error *error) {
    static const ImportWord words[] = {{"deepep", DISPATCH_DEEPEP},
                                       {"hybridep", DISPATCH_HYBRIDEP},
                                       {"torch", -1},
                                       {"uccl_ep", -1},
                                       {"mok", -1},
                                       {NULL, 0}};
    int dispatch = DISPATCH_DEEPEP;
    TRY(import_choice(import, "model.backend.dispatcher", words, &dispatch, error));
    if (import->said.size[AXIS_EP] > 1 && dispatch < 0) {
        import_refuse(import, "model.backend.dispatcher",
                      "this dispatcher is not modelled (torch gathers all tokens and sums results by an all-reduce): "
                      "deepep and hybridep are");
    } else if (import->said.size[AXIS_EP] > 1) {
        import->said.choice[PLAN_DISPATCH] = dispatch;
    }
    return STATUS_OK;
}

// none is null to it (components/config/loader.py), where YAML has a word.
static void take_none(ConfigNode *node) {
    if (node->kind == NODE_SCALAR && (strcmp(node->text, "none") == 0 || strcmp(node->text, "None") == 0)) {
        node->text = "";
    }
    for (ConfigNode *child = node->first; child; child = child->next) {
        take_none(child);
    }
}

static Status automodel_read(Import *import, Error *error) {
    const char *optimizer = "Adam";
    import->unknown.kind = import->unknown_below.kind = FINDING_UNKNOWN;
    import->unknown.words = import->unknown_below.words = "no key that is looked at there";
    import->target = "automodel";
    take_none(import->root);
    import->flavour = "recipe of NeMo Automodel";
    import->said.choice[PLAN_FUSED] = FUSED_EAGER;
    import->said.choice[PLAN_GRAD_SYNC] = GRAD_SYNC_LAST;
    TRY(config_read(import, keys, error));
    import->model_key = "model.pretrained_model_name_or_path";
    TRY(import_word(import, import->model_key, &import->model, error));
    TRY(read_mesh(import, error));
    TRY(read_strategy(import, error));
    TRY(read_memory(import, error));
    TRY(read_dispatcher(import, error));
    TRY(import_word(import, "optimizer._target_", &optimizer, error));
    FIND_IF(!strstr(optimizer, "Adam"), import, FINDING_UNMODELLED, "optimizer._target_", "%s: predicted as AdamW",
            optimizer);
    if (import_has(import, "peft")) {
        import_refuse(import, "peft", "Automodel's own adapters are not modelled");
        import_known(import, (const char *const[]){"peft", NULL});
    }
    import_leave_out(import, left_out);
    import_known(import, of_no_matter);
    import_known_below(import, DISTRIBUTED(""), of_distributed);
    return STATUS_OK;
}

const ImportFormat import_automodel = {
    .name = "automodel",
    .marks = "step_scheduler distributed.strategy distributed.dp_size distributed.tp_size distributed.ep_size "
             "model._target_ recipe",
    .keys = {.mesh = "distributed.{dp_size,dp_replicate_size,tp_size,cp_size,ep_size}",
             .micro_batch = "step_scheduler.local_batch_size",
             .reshard = "distributed.reshard_after_forward",
             .recompute = "distributed.activation_checkpointing",
             .rotate = "no key of Automodel's",
             .zero = "distributed.strategy",
             .sync = "distributed.defer_fsdp_grad_sync",
             .kernels = "distributed.enable_compile",
             .overlap = "no key of Automodel's",
             .loss = "loss_fn"},
    .read = automodel_read,
};
