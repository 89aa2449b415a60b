// Precision and batch, the choices of plans, and what is left open.

#include <string.h>

#include "autotune/predict/target_on_cluster.h"
#include "autotune/request/request.h"
#include "autotune/request/request_internal.h"
#include "autotune/search/batch.h"
#include "autotune/search/space.h"
#include "sim/base/text.h"
#include "sim/cost/compute.h"
#include "sim/frameworks/target_choices.h"

// "bf16, fp32": what the profile has rates for.
static const char *precisions_of(const ClusterProfile *cluster, Arena *arena) {
    const char *text = "";
    for (int dtype = DTYPE_FP32; dtype <= DTYPE_FP8; dtype++) {
        if (cluster->accelerator.gemm[dtype].burst_flop_per_s > 0) {
            text = arena_format(arena, "%s%s%s", text, text[0] ? ", " : "", dtype_name((Dtype)dtype));
        }
    }
    return text;
}

Status choose_precision(Builder *builder, Error *error) {
    Asked *asked = builder->asked;
    TuneRequest *request = builder->request;
    const GemmRate *rates = request->cluster.accelerator.gemm;
    const char *said = asked->choices[PLAN_PRECISION];
    Dtype dtype;
    if (!said) {
        const bool gpu = request->cluster.accelerator.device_class == DEVICE_CLASS_GPU;  // processors are asked for it
        const bool bf16 = gpu && rates[DTYPE_BF16].burst_flop_per_s > 0 && (!builder->defaults->fp32 || asked->on_gpu);
        const bool fp16 = rates[DTYPE_FP16].burst_flop_per_s > 0 && !builder->defaults->fp32;
        dtype = bf16 ? DTYPE_BF16 : fp16 ? DTYPE_FP16 : DTYPE_FP32;
        assume(builder, "precision %s; change it with --precision", dtype_name(dtype));
        assume_default(builder, "precision", dtype_name(dtype));
    } else {
        dtype = (Dtype)plan_field_value(PLAN_PRECISION, said);
    }
    request->asked[PLAN_PRECISION] = (int)dtype;
    FAIL_IF(said && rates[dtype].burst_flop_per_s <= 0, about(asked, ASKED_CHOICE + PLAN_PRECISION, error),
            STATUS_USAGE, "the profile %s has no rate for %s; it has %s", request->cluster.name, dtype_name(dtype),
            precisions_of(&request->cluster, builder->arena));
    return STATUS_OK;
}

static bool has_adapters(const Asked *asked) {
    const char *said = asked->choices[PLAN_FINETUNE];
    return said && plan_field_value(PLAN_FINETUNE, said) != FINETUNE_FULL;
}

void choose_batch(Builder *builder) {
    enum { ADAPTERS_BATCH = 64 };  // sequences per step, as in published adapter recipes
    const Asked *asked = builder->asked;
    TuneRequest *request = builder->request;
    request->global_batch = asked->global_batch;
    request->micro_batch = asked->micro_batch;
    request->grad_accum = asked->grad_accum;
    if (builder->defaults->small_batch && request->global_batch == 0) {
        request->global_batch = request->world;
        assume(builder, "global batch %d, a sequence per rank; change it with --global-batch", request->world);
    }
    if (builder->defaults->single_plan || request->global_batch > 0) {
        return;
    }
    if (has_adapters(asked)) {
        request->global_batch = request->world > ADAPTERS_BATCH ? request->world : ADAPTERS_BATCH;
        assume(builder, "global batch %lld sequences; change it with --global-batch", (long long)request->global_batch);
    } else {
        assume(builder,
               "global batch: about %lld sequences (4M tokens), one that all shapes can make; change it with "
               "--global-batch",
               (long long)batch_default(request->seq));
    }
}

static void read_choices(Builder *builder) {
    TuneRequest *request = builder->request;
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        const char *said = builder->asked->choices[id];
        if (id != PLAN_PRECISION) {
            request->asked[id] = said ? plan_field_value(id, said) : plan_field_unsaid(id);
        }
    }
    if (request->asked[PLAN_ATTENTION] == TUNE_ANY && builder->defaults->flash) {
        request->asked[PLAN_ATTENTION] = ATTENTION_FLASH;
    }
    request->target = target_with_kernels(request->target, request, builder->arena);
    if (request->asked[PLAN_MASTER_WEIGHTS] == TUNE_ANY) {
        request->asked[PLAN_MASTER_WEIGHTS] = space_usual_master(request->target, request);
    }
}

// PyTorch's sdp_utils.cpp: FlashAttention wants sm_80, the memory-efficient kernel sm_50. Profiles of older chips have
// a rate of the latter alone.
static bool lacks_flash(const Accelerator *accelerator) {
    return attention_has_row(accelerator, "efficient");
}

// The kernel whose rate one gets that the profile has none of; NULL where it has one, or has but one for all.
static const char *kernel_instead(const TuneRequest *request, AttentionKernel attention) {
    const char *kernel = attention_names[attention == ATTENTION_TRITON ? ATTENTION_FLASH : attention];
    const AttentionRate *rate = attention_rate(&request->cluster.accelerator, kernel, request->model.head_dim);
    const bool named = rate && text_index(attention_names, ATTENTION_COUNT, rate->kernel) >= 0;
    return attention != ATTENTION_EAGER && named && strcmp(rate->kernel, kernel) != 0 ? rate->kernel : NULL;
}

// What the target's own attention rests on, where nothing is said of it; "".
static const char *own_kernel_note(const TuneRequest *request, const TrainPlan *plan) {
    const Target *target = request->target;
    if (target->pack_flavour == PACKS_BY_MASK_ALWAYS && plan->pack == 0) {
        return "; it masks by document there, which is not counted: --pack says how long documents are in the mean";
    }
    const bool newer = target->cudnn_here && target->cudnn_first == CUDNN_FIRST_BY_PYTORCH;
    return request->asked[PLAN_ATTENTION] == TUNE_ANY && newer
               ? "; PyTorch 2.11 and newer picks it on this chip; with an older PyTorch or wheels for CUDA 12 say "
                 "--attention flash"
               : "";
}

// The kernels of the plan are those of the target, and of what was said about them.
static void say_kernels(Builder *builder) {
    const TuneRequest *request = builder->request;
    TrainPlan plan = {0};
    space_job(request, &plan);
    space_take(request, &plan, PLAN_FUSED);
    const bool own = request->asked[PLAN_ATTENTION] == TUNE_ANY && request->asked[PLAN_FUSED] == TUNE_ANY;
    const bool open = request->asked[PLAN_FUSED] == TUNE_ANY && target_has_choice(request->target, PLAN_FUSED);
    const bool searched = open && !builder->defaults->single_plan;
    assume(builder, "attention %s%s%s%s%s", attention_names[plan.attention], searched ? "" : ", other kernels ",
           searched ? "" : fused_names[plan.fused], own ? ": the target's own" : "", own_kernel_note(request, &plan));
    if (plan.attention != ATTENTION_EAGER && lacks_flash(&request->cluster.accelerator)) {
        assume(builder,
               "attention %s stands for PyTorch's memory-efficient kernel: %s is older than the "
               "chips that FlashAttention runs on",
               attention_names[plan.attention], request->cluster.accelerator.name);
    } else if (plan.attention == ATTENTION_CUDNN && attention_lacks_cudnn(&request->cluster.accelerator) &&
               request->target->engine_attention) {
        assume(builder,
               "attention cudnn stands for what Transformer Engine runs on ROCm, CK's and AITER's kernels: %s "
               "has no cuDNN",
               request->cluster.accelerator.name);
    } else if (builder->asked->choices[PLAN_ATTENTION] && kernel_instead(request, plan.attention)) {
        assume(builder, "attention %s is priced as %s: the profile %s has no rate of it",
               attention_names[plan.attention], kernel_instead(request, plan.attention), request->cluster.name);
    }
}

// What was said of fields that have no sentence of their own.
static void say_others(Builder *builder) {
    static const bool told[PLAN_FIELD_COUNT] = {
        [PLAN_PRECISION] = true,   [PLAN_MASTER_WEIGHTS] = true,  [PLAN_FP8_RECIPE] = true,   [PLAN_ATTENTION] = true,
        [PLAN_FUSED] = true,       [PLAN_TP_OVERLAP] = true,      [PLAN_REDUCE_DTYPE] = true, [PLAN_IMBALANCE] = true,
        [PLAN_PAD_EXPERTS] = true, [PLAN_EXPERT_CAPACITY] = true,
    };
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const int asked = builder->request->asked[i];
        if (plan_fields[i].scope == PLAN_OF_JOB && !told[i] && asked != TUNE_ANY && asked != plan_fields[i].usual) {
            assume(builder, "%s %s", plan_fields[i].label, plan_value_text((PlanFieldId)i, asked, VALUE_BUFFER));
        }
    }
}

// What was said of a plan that has no place for it.
void say_without_effect(Builder *builder) {
    const char *words = "";
    TrainPlan plan;
    request_plan(builder->request, &builder->request->mesh, &plan);
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        const int asked = builder->request->asked[id];
        const bool other = asked != TUNE_ANY && asked != plan_get(&plan, id);
        if (builder->asked->choices[id] && other && !plan_field_matters(&plan, id)) {
            words = arena_format(builder->arena, "%s%s--%s %s", words, words[0] ? ", " : "",
                                 plan_fields[id].option.name, plan_value_text(id, asked, VALUE_BUFFER));
        }
    }
    if (words[0]) {
        assume(builder, "without effect in this plan: %s", words);
    }
}

static void add_open(Builder *builder, const char **open, const char *name, const char *taken) {
    const char *value = builder->defaults->single_plan && taken ? taken : "";
    const char *comma = (*open)[0] ? ", " : "", *space = value[0] ? " " : "";
    *open = arena_format(builder->arena, "%s%s%s%s%s", *open, comma, name, space, value);
}

// Else the line of the target's own stage says it.
static bool tries_stages(const Builder *builder) {
    return !builder->defaults->single_plan && target_has_choice(builder->request->target, PLAN_ZERO);
}

// The names of what is left open; of a single plan with what is taken, but for what is left to the target anyway.
static const char *open_choices(Builder *builder) {
    static const PlanFieldId first[] = {PLAN_RECOMPUTE, PLAN_RESHARD};
    const TuneRequest *request = builder->request;
    const int said = request->asked[PLAN_ZERO], any = tries_stages(builder) ? 1 : request->target->max_zero;
    PlanFieldId order[PLAN_FIELD_COUNT];
    const char *open = "";
    plan_fields_from(first, sizeof first / sizeof first[0], order);
    if (request->micro_batch == 0) {
        add_open(builder, &open, plan_fields[PLAN_MICRO_BATCH].label, "1");
    }
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanField *field = &plan_fields[order[i]];
        const bool alone = builder->defaults->single_plan, apart = order[i] == PLAN_ZERO || order[i] == PLAN_FUSED;
        const bool fitted = space_fits(request, order[i]) && !alone;
        const bool told = !alone || (field->printed == PLAN_PRINTED_ALWAYS && !apart);
        const bool searched = field->searched && request->asked[order[i]] == TUNE_ANY && told &&
                              target_searches(request->target, said == TUNE_ANY ? any : said, order[i]);
        if (fitted || searched) {
            add_open(builder, &open, field->label,
                     target_decides(order[i]) ? "of the target"
                                              : plan_value_text(order[i], field->usual, VALUE_BUFFER));
        }
    }
    if (request->any_order && request->target->rank_order_rule != RANK_ORDER_FIXED) {
        add_open(builder, &open, "rank order", NULL);
    }
    return open;
}

static void say_formats(Builder *builder) {
    const TuneRequest *request = builder->request;
    TrainPlan plan = {.seq = request->seq};
    space_job(request, &plan);
    if (request->asked[PLAN_PRECISION] == DTYPE_FP8) {
        assume(builder, "fp8 with %s scales%s", fp8_recipe_names[plan.fp8_recipe],
               request->asked[PLAN_FP8_RECIPE] == TUNE_ANY ? ": the target's own" : "");
    }
    plan.bf16_master = request->asked[PLAN_MASTER_WEIGHTS];
    say_training(builder, &plan);
    say_experts(builder, &plan);
}

static void say_sharding(Builder *builder) {
    const TuneRequest *request = builder->request;
    const Target *target = request->target;
    const bool beside = builder->defaults->single_plan && mesh_has_stages(&request->mesh);
    const bool bounded = beside && target->stages_max_zero > 0;
    assume(builder, "sharding stage of the target (%d where there is something to shard%s)",
           bounded ? target->stages_max_zero : target->max_zero, bounded ? ", beside stages" : "");
}

void choose_search(Builder *builder) {
    const TuneRequest *request = builder->request;
    read_choices(builder);
    const char *open = open_choices(builder);
    if (open[0]) {
        const char *what = builder->defaults->single_plan ? "not said, so taken" : "searched for each shape";
        assume(builder, "%s: %s", what, open);
    }
    if (request->asked[PLAN_ZERO] == TUNE_ANY && !tries_stages(builder)) {
        say_sharding(builder);
    }
    say_formats(builder);
    say_kernels(builder);
    if (request->asked[PLAN_TP_OVERLAP] == true) {
        assume(builder, "tensor-parallel collectives run beside the GEMMs that they feed");
    }
    say_others(builder);
}

// Of what was said, not of plans: in them what has no effect is as if it was not said.
void refuse_choices(Builder *builder) {
    TuneRequest *request = builder->request;
    for (int i = 0; i < PLAN_FIELD_COUNT && !request->refusal; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        const bool said = builder->asked->choices[id] && request->asked[id] != TUNE_ANY;
        request->refusal = said ? target_refuses(request->target, id, request->asked[id], builder->arena) : NULL;
    }
    if (!request->refusal && request->asked[PLAN_OP_FUSER] == true) {
        request->refusal =
            target_refuses_fused(request->target, &request->model, request->asked[PLAN_FP8_RECIPE], builder->arena);
    }
}

// Was a choice said that goes with another one, which was not?
static Status check_alone(Asked *asked, const PlanFieldId *ids, size_t count, const char *why, Error *error) {
    for (size_t i = 0; i < count; i++) {
        FAIL_IF(asked->choices[ids[i]], about(asked, ASKED_CHOICE + (int)ids[i], error), STATUS_USAGE, "--%s %s",
                plan_fields[ids[i]].option.name, why);
    }
    return STATUS_OK;
}

#define COUNT_OF(array) (sizeof array / sizeof array[0])

// Members that the option knows, but not side by side: off+attn.
static Status check_sets(Asked *asked, const TuneRequest *request, Error *error) {
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        const char *said = asked->choices[id];
        FAIL_IF(plan_fields[id].is_set && said && request->asked[id] == TUNE_ANY && strpbrk(said, "+,"),
                about(asked, ASKED_CHOICE + id, error), STATUS_USAGE, "--%s takes %s, of which some stand alone: %s",
                plan_fields[id].option.name, plan_fields[id].option.value, said);
    }
    return STATUS_OK;
}

// A single plan takes what was not said; else that is TUNE_ANY, to be searched.
static int taken(const Builder *builder, PlanFieldId id) {
    const TuneRequest *request = builder->request;
    if (request->asked[id] != TUNE_ANY || !builder->defaults->single_plan) {
        return request->asked[id];
    }
    TrainPlan plan;
    request_plan(request, &request->mesh, &plan);
    return plan_get(&plan, id);
}

// A choice that has no effect beside what another one is: --recompute-layers beside --recompute none.
static Status check_idle(Builder *builder, Error *error) {
    static const struct {
        PlanFieldId id, other;
        int value;
        const char *goes_with;
    } rows[] = {{PLAN_OFFLOAD_LAYERS, PLAN_OFFLOAD, OFFLOAD_ACTIVATIONS, "--offload activations"},
                {PLAN_RECOMPUTE_LAYERS, PLAN_RECOMPUTE, RECOMPUTE_FULL, "--recompute full"},
                {PLAN_RECOMPUTE_EVERY, PLAN_RECOMPUTE, RECOMPUTE_FULL, "--recompute full"},
                {PLAN_RECOMPUTE_UNIT, PLAN_RECOMPUTE, RECOMPUTE_FULL, "--recompute full"},
                {PLAN_RECOMPUTE_MODULES, PLAN_RECOMPUTE, RECOMPUTE_SELECTIVE, "--recompute selective"}};
    Asked *asked = builder->asked;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const int own = builder->request->asked[rows[i].id], other = taken(builder, rows[i].other);
        const bool idle = other != TUNE_ANY && other != rows[i].value && own != TUNE_ANY && own != 0;
        FAIL_IF(asked->choices[rows[i].id] && idle, about(asked, ASKED_CHOICE + (int)rows[i].id, error), STATUS_USAGE,
                "--%s goes with %s", plan_fields[rows[i].id].option.name, rows[i].goes_with);
    }
    return STATUS_OK;
}

Status check_choices(Builder *builder, Error *error) {
    static const PlanFieldId of_adapters[] = {PLAN_LORA_RANK, PLAN_LORA_TARGETS};
    static const PlanFieldId of_experts[] = {PLAN_IMBALANCE, PLAN_DISPATCH,        PLAN_EP_OVERLAP, PLAN_CAPACITY,
                                             PLAN_ETP,       PLAN_EXPERT_CAPACITY, PLAN_PAD_EXPERTS};
    Asked *asked = builder->asked;
    const TuneRequest *request = builder->request;
    const char *precision = dtype_name((Dtype)request->asked[PLAN_PRECISION]);
    FAIL_IF(asked->choices[PLAN_FP8_RECIPE] && request->asked[PLAN_PRECISION] != DTYPE_FP8,
            about(asked, ASKED_CHOICE + PLAN_FP8_RECIPE, error), STATUS_USAGE,
            "--fp8-recipe goes with --precision fp8, not %s", precision);
    FAIL_IF(request->asked[PLAN_MASTER_WEIGHTS] && request->asked[PLAN_PRECISION] == DTYPE_FP32,
            about(asked, ASKED_CHOICE + PLAN_MASTER_WEIGHTS, error), STATUS_USAGE,
            "--master-weights bf16 goes with --precision bf16 or fp8, not %s", precision);
    TRY(check_sets(asked, request, error));
    TRY(check_idle(builder, error));
    if (!has_adapters(asked)) {
        TRY(check_alone(asked, of_adapters, COUNT_OF(of_adapters),
                        "goes with --finetune lora, qlora or lora-int8; without it all is trained", error));
    }
    FAIL_IF(asked->choices[PLAN_LORA_RANK] && request->asked[PLAN_LORA_RANK] == 0,
            about(asked, ASKED_CHOICE + PLAN_LORA_RANK, error), STATUS_USAGE,
            "--lora-rank takes a whole number from 1 to %d, not 0", plan_fields[PLAN_LORA_RANK].high);
    return request->model.experts.count > 0
               ? STATUS_OK
               : check_alone(asked, of_experts, COUNT_OF(of_experts),
                             arena_format(builder->arena, "is of experts, and %s has none", request->model.name),
                             error);
}
