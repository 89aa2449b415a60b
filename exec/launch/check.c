// What this executor can run, switch by switch of the capability table; everything else is refused with a reason.

#include "exec/launch/launch.h"

#include <string.h>

#include "exec/transport/transport.h"
#include "sim/base/text.h"
#include "sim/plan/plan_fields.h"

enum { HEAD_DIM_GRAIN = 8, HEAD_DIM_MOST = 256, EXPERTS_MOST = 1024 };  // kernels.h: KernelAttention, KernelRoute

static bool on_gpu(const char *device) {
    return strcmp(device, "cuda") == 0;
}

// Whether this build's worker has the device, and the machine a GPU, is checked by the worker.
Status exec_check_backend(const RunOptions *options, Error *error) {
    FAIL_IF(!on_gpu(options->device) && strcmp(options->device, "cpu") != 0, error, STATUS_USAGE,
            "no device '%s'; there are cpu and cuda", options->device);
    FAIL_IF(on_gpu(options->device) && options->lanes != LANES_SERIAL, error, STATUS_USAGE,
            "device cuda runs lanes as streams, from one thread: use lanes serial");
    FAIL_IF(on_gpu(options->device) && options->bitwise, error, STATUS_USAGE,
            "bitwise runs on device cpu: the cuda kernels keep no exact sums");
    return transport_check(options->transport, error);
}

// Plan fields that the workers execute, or that the checks below validate; others are refused.
static const uint64_t runs_fields =
    PLAN_BIT(PLAN_SEQ) | PLAN_BIT(PLAN_MICRO_BATCH) | PLAN_BIT(PLAN_GRAD_ACCUM) | PLAN_BIT(PLAN_ZERO) |
    PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_RECOMPUTE) | PLAN_BIT(PLAN_CP_ROTATE) | PLAN_BIT(PLAN_PRECISION) |
    PLAN_BIT(PLAN_ATTENTION) | PLAN_BIT(PLAN_FUSED) | PLAN_BIT(PLAN_TP_OVERLAP) | PLAN_BIT(PLAN_MASTER_WEIGHTS) |
    PLAN_BIT(PLAN_FP8_RECIPE) | PLAN_BIT(PLAN_REDUCE_DTYPE) | PLAN_BIT(PLAN_GRAD_SYNC) | PLAN_BIT(PLAN_LOSS) |
    PLAN_BIT(PLAN_RECOMPUTE_UNIT) | PLAN_BIT(PLAN_RECOMPUTE_LAYERS) | PLAN_BIT(PLAN_RECOMPUTE_EVERY) |
    PLAN_BIT(PLAN_RECOMPUTE_MODULES) | PLAN_BIT(PLAN_REDUCE_OVERLAP) | PLAN_BIT(PLAN_PP_SCHEDULE) |
    PLAN_BIT(PLAN_VIRTUAL_STAGES) | PLAN_BIT(PLAN_PP_SPLIT) | PLAN_BIT(PLAN_PP_FIRST) | PLAN_BIT(PLAN_PP_LAST) |
    PLAN_BIT(PLAN_PP_GROUP) | PLAN_BIT(PLAN_PP_ROUNDS) | PLAN_BIT(PLAN_IMBALANCE) | PLAN_BIT(PLAN_CAPACITY) |
    PLAN_BIT(PLAN_FINETUNE) | PLAN_BIT(PLAN_LORA_RANK) | PLAN_BIT(PLAN_LORA_TARGETS) | PLAN_BIT(PLAN_MLP_TILES);

// What is to run, and where; refusals are in words of the arena.
typedef struct Wanted {
    const ModelSpec *model;
    const TrainPlan *plan;
    const Target *target;
    const char *device;
    Arena *arena;
} Wanted;

typedef const char *(*Refusal)(const Wanted *wanted);  // NULL: none

static const char *target_refusal(const Wanted *wanted) {
    const char *reason = NULL;
    target_check(wanted->target, wanted->model, wanted->plan, wanted->arena, &reason);
    return reason;
}

static const char *world_refusal(const Wanted *wanted) {
    const int world = mesh_world(&wanted->plan->mesh);
    return world > TRANSPORT_MAX_WORLD
               ? arena_format(wanted->arena, "the executor runs up to %d ranks, the mesh has %d", TRANSPORT_MAX_WORLD,
                              world)
               : NULL;
}

// Model types whose router takes the largest logits and weights by a softmax, or by sigmoids.
static bool runs_router(const char *type) {
    static const char *const types[] = {"mixtral", "qwen3_moe",   "olmoe",  "qwen2_moe",
                                        "gpt_oss", "deepseek_v3", "kimi_k2"};
    return type && text_index(types, sizeof types / sizeof types[0], type) >= 0;
}

static const char *experts_refusal(const Wanted *wanted) {
    const ModelSpec *model = wanted->model;
    const TrainPlan *plan = wanted->plan;
    const Target *target = wanted->target;
    Arena *arena = wanted->arena;
    if (model->experts.count == 0) {
        return NULL;
    }
    if (!runs_router(model->type)) {
        return arena_format(arena,
                            "the executor runs routers that weigh by a softmax (mixtral, qwen2_moe, qwen3_moe, "
                            "olmoe, gpt_oss) or by sigmoids (deepseek_v3, kimi_k2), and %s is of type %s",
                            model->name, model->type ? model->type : "llama");
    }
    if (model->run_count > 1 && plan_has_adapters(plan)) {
        return arena_format(arena,
                            "the executor runs no adapters where dense layers are among those of experts, as in %s: "
                            "use finetune full",
                            model->name);
    }
    if (model->experts.balance > 0 && plan->mesh.size[AXIS_EP] > 1 && plan->mesh.size[AXIS_TP] > 1) {
        return "the executor's loss that spreads tokens is of parts of sequences that cp cuts, not of those of tp "
               "beside ep: "
               "use tp=1, or output_router_logits false";
    }
    if (model->experts.count > EXPERTS_MOST) {
        return arena_format(arena, "the kernels take up to %d experts, %s has %d", EXPERTS_MOST, model->name,
                            model->experts.count);
    }
    if (!target->own_kernels) {
        return arena_format(arena,
                            "the executor runs layers of experts of its own program only, not as %s has them: use "
                            "target ndtune",
                            target->name);
    }
    if (plan->recompute == RECOMPUTE_SELECTIVE) {
        return "the executor does not run layers of experts with recompute selective: use full or none";
    }
    return NULL;
}

static const char *caps_refusal(const Wanted *wanted) {
    const ModelSpec *model = wanted->model;
    return on_gpu(wanted->device) && (model->attention_cap > 0 || model->logit_cap > 0)
               ? arena_format(wanted->arena,
                              "the executor's cuda device has no soft caps of scores and logits, which %s has: use "
                              "device cpu",
                              model->name)
               : NULL;
}

static const char *scale_refusal(const Wanted *wanted) {
    const ModelSpec *model = wanted->model;
    return model->score_scalar > 0
               ? arena_format(wanted->arena,
                              "the executor's kernels take scores over the root of head_dim %d, not of the %d of %s: "
                              "predictions do not depend on it",
                              model->head_dim, model->score_scalar, model->name)
               : NULL;
}

static bool heads_fit(const ModelSpec *model) {
    const int value = model->latent.value;
    return model->head_dim % HEAD_DIM_GRAIN == 0 && model->head_dim <= HEAD_DIM_MOST && value % HEAD_DIM_GRAIN == 0 &&
           value <= HEAD_DIM_MOST;
}

static const char *adapters_refusal(const Wanted *wanted) {
    if (!plan_has_adapters(wanted->plan)) {
        return NULL;
    }
    if (!wanted->target->adapter_units) {
        return arena_format(wanted->arena,
                            "the executor runs adapters of its own program only, not as %s has them: use target "
                            "ndtune",
                            wanted->target->name);
    }
    return on_gpu(wanted->device) ? "the executor runs adapters on processors: its cuda kernels of norms make the "
                                    "gradients of frozen weights too; use device cpu"
                                  : NULL;
}

static const char *attention_refusal(const Wanted *wanted) {
    return wanted->plan->attention == ATTENTION_EAGER
               ? "the executor never stores attention's probabilities, which attention eager does: use attention flash"
               : NULL;
}

static const char *overlap_refusal(const Wanted *wanted) {
    return wanted->plan->tp_overlap
               ? "the executor does not run tp collectives beside the GEMMs that they feed: use tp_overlap off"
               : NULL;
}

static const char *heads_refusal(const Wanted *wanted) {
    const ModelSpec *model = wanted->model;
    const char *values =
        model->latent.value > 0 ? arena_format(wanted->arena, " and values of %d", model->latent.value) : "";
    return heads_fit(model) ? NULL
                            : arena_format(wanted->arena,
                                           "the kernels take head_dim in multiples of %d up to %d, the model has %d%s",
                                           HEAD_DIM_GRAIN, HEAD_DIM_MOST, model->head_dim, values);
}

static const char *schedule_refusal(const Wanted *wanted) {
    return plan_has_stages(wanted->plan) && wanted->plan->pp_schedule == PP_DUALPIPEV
               ? "the executor does not run forward of one chunk beside backward of another, as dualpipev does: use "
                 "pp_schedule zbv"
               : NULL;
}

static const char *vocab_refusal(const Wanted *wanted) {
    const int tp = wanted->plan->mesh.size[AXIS_TP];
    return wanted->target->vocab_uneven && wanted->model->vocab % tp != 0
               ? arena_format(wanted->arena,
                              "the executor splits a vocabulary evenly, and tp=%d does not divide %d entries", tp,
                              wanted->model->vocab)
               : NULL;
}

// The worker checks whether its processor computes in bf16.
static const char *precision_refusal(const Wanted *wanted) {
    const Dtype precision = wanted->plan->precision;
    return precision != DTYPE_FP32 && precision != DTYPE_BF16
               ? arena_format(wanted->arena, "the executor computes in fp32 and bf16, not in %s", dtype_name(precision))
               : NULL;
}

static const char *fields_refusal(const Wanted *wanted) {
    return plan_refuse_others(wanted->plan, runs_fields, "the executor does not run", wanted->arena);
}

// The first one that refuses is shown.
static const Refusal refusals[] = {target_refusal, world_refusal,    experts_refusal,   caps_refusal,
                                   scale_refusal,  adapters_refusal, attention_refusal, overlap_refusal,
                                   heads_refusal,  schedule_refusal, vocab_refusal,     precision_refusal,
                                   fields_refusal};

const char *exec_check(const ModelSpec *model, const TrainPlan *plan, const Target *target, const char *device,
                       Arena *arena) {
    const Wanted wanted = {model, plan, target, device, arena};
    const char *reason = NULL;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals && !reason; i++) {
        reason = refusals[i](&wanted);
    }
    return reason;
}

// Other parts have no exact sums.
static const char *bitwise_refusal(const ModelSpec *model, const TrainPlan *plan) {
    const bool biased = model->qkv_bias || model->out_bias || model->mlp_bias || model->norm_bias;
    if (model->norm != NORM_RMS || model->mlp != MLP_GATED || model->position != POSITION_ROTARY ||
        model_norms_behind(model) || model->qk_norm != QK_NORM_NONE || biased) {
        return "bitwise runs models of the Llama type: RMS norms, norms in front, a gated feed-forward, rotary "
               "positions, no norm of queries and keys, no biases; such as tiny or llama-3.2-1b";
    }
    if (model->experts.count > 0) {
        return "bitwise runs no layers of experts, whose sums it does not keep: use a dense model";
    }
    if (plan->precision != DTYPE_FP32) {
        return "bitwise sums fp32 exactly, nothing in bf16: use precision fp32";
    }
    if (plan_has_adapters(plan)) {
        return "bitwise runs no adapters, whose products are scaled: use finetune full";
    }
    if (plan->zero > 0 && plan->reduce_dtype == REDUCE_DTYPE_BF16) {
        return "bitwise reduces gradients exactly, not in bf16: use reduce_dtype fp32";
    }
    return NULL;
}

const char *exec_check_options(const ModelSpec *model, const TrainPlan *plan, const RunOptions *options) {
    if (options->deterministic && on_gpu(options->device) && plan->attention == ATTENTION_CUDNN) {
        return "cuDNN adds attention's gradients in no fixed order: use attention flash with deterministic";
    }
    const bool judged = options->bitwise && !on_gpu(options->device);  // a GPU is refused as such
    return judged ? bitwise_refusal(model, plan) : NULL;
}
