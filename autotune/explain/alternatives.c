// One search by estimate per question. A batch near the one asked is a multiple of the world size; of worlds with many
// shapes, those near the best alone are tried with it. Where a rank or link is slow none is suggested, because the
// closed form assumes that all are equally fast.

#include "autotune/explain/alternatives.h"

#include "autotune/predict/predict.h"
#include "autotune/search/batch.h"
#include "autotune/search/best.h"
#include "autotune/search/prune.h"
#include "sim/base/text.h"
#include "sim/frameworks/target_choices.h"

static const double WORTH_SAYING = 0.02;  // of the tokens per second

// By how much a plan is slower than the best and what it saves, by the closed form: the engine takes as long for a
// pipeline as for dozens of other shapes, and of the same pipeline the form errs alike.
static Status compare_estimates(const TuneRequest *request, const Prediction *best, const TrainPlan *plan, Arena *arena,
                                FormatAlternative *format, Error *error) {
    const CostModel cost = {.profile = &request->cluster, .target = request->target};
    Analytic *analytic = analytic_new(&request->model, &cost, arena);
    Estimate of_best, of_plan;
    Status status = analytic_estimate(analytic, &best->plan, &of_best, error);
    if (status == STATUS_OK) {
        status = analytic_estimate(analytic, plan, &of_plan, error);
    }
    analytic_free(analytic);
    TRY(status);
    format->step = of_plan.step_s / of_best.step_s - 1;
    format->saved_bytes = of_best.reserved_bytes - of_plan.reserved_bytes;
    return STATUS_OK;
}

// The best plan with another number format, where that is legal and another plan.
static Status try_format(const TuneResult *result, PlanFieldId id, int value, Arena *arena, FormatAlternative *format,
                         bool *found, Error *error) {
    const Prediction *best = &result->entries[0];
    TuneRequest request = *result->request;
    TrainPlan plan = best->plan;
    Prediction prediction;
    const char *reason = NULL;
    *found = false;
    request.asked[id] = value;
    plan_set(&plan, id, value);
    plan.fp8_recipe = target_default_fp8(request.target);
    target_canonical(request.target, &plan);
    const bool runs = plan.precision != DTYPE_FP8 || cost_supports(&request.cluster.accelerator, DTYPE_FP8);
    if (plan_get(&best->plan, id) == value || !runs || prune(&request, &plan, NULL, arena, &reason)) {
        return STATUS_OK;
    }
    *found = true;
    if (plan_has_stages(&plan)) {
        return compare_estimates(&request, best, &plan, arena, format, error);
    }
    TRY(predict_once(&request, NULL, &plan, arena, &prediction, error));
    format->step = prediction.step_s / best->step_s - 1;
    format->saved_bytes = best->memory.reserved_bytes - prediction.memory.reserved_bytes;
    return STATUS_OK;
}

// States of adapters are next to nothing, and who named an optimizer has decided.
static bool may_narrow_states(const TrainPlan *plan) {
    return plan->optimizer == OPTIMIZER_TARGET && !plan_has_adapters(plan);
}

Status alternative_formats(const TuneResult *result, Arena *arena, FormatAlternative formats[ALTERNATIVE_FORMATS],
                           int *count, Error *error) {
    static const struct {
        PlanFieldId id;
        int value;
        const char *words, *option;
    } tried[ALTERNATIVE_FORMATS] = {
        {PLAN_MASTER_WEIGHTS, true, "bf16 weights and states", "--master-weights bf16"},
        {PLAN_OPTIMIZER, OPTIMIZER_ADAMW_BF16, "bf16 states", "--optimizer adamw-bf16"},
        {PLAN_OPTIMIZER, OPTIMIZER_ADAMW_8BIT_TORCHAO, "8-bit states", "--optimizer adamw-8bit-torchao"},
        {PLAN_PRECISION, DTYPE_FP8, "fp8", "--precision fp8"},
    };
    *count = 0;
    if (result->entry_count == 0 || result->entries[0].plan.precision != DTYPE_BF16) {
        return STATUS_OK;
    }
    bool found = false;
    for (int i = 0; i < ALTERNATIVE_FORMATS; i++) {
        const bool of_states = tried[i].id == PLAN_OPTIMIZER;
        if (of_states &&
            (!may_narrow_states(&result->entries[0].plan) || (found && tried[i - 1].id == PLAN_OPTIMIZER))) {
            continue;  // one of them is enough
        }
        FormatAlternative *format = &formats[*count];
        *format = (FormatAlternative){.words = tried[i].words, .option = tried[i].option};
        TRY(try_format(result, tried[i].id, tried[i].value, arena, format, &found, error));
        *count += found;
    }
    return STATUS_OK;
}

static bool batch_was_in_the_way(const TuneResult *result) {
    return TEXT_FIND(result->rejected, result->rejected_count, rule, "batch");
}

// Near the best what is slower is not looked at, so that what leaves no room would be taken for want of another.
static bool is_as_roomy(const TuneResult *result, const Prediction *other, bool near) {
    return !near || best_leaves_room(result->request, other->memory.reserved_bytes) ||
           !best_leaves_room(result->request, result->entries[0].memory.reserved_bytes);
}

// The fastest with a batch around the one asked for, where that is faster.
static Status try_batches(const TuneResult *result, Analytic *analytic, Arena *arena, BatchAlternative *alternative,
                          Error *error) {
    const TuneRequest *asked = result->request;
    const double as_asked = result->chosen_tokens_per_s;
    const bool is_large = result->entry_count > 0 && result->search.shapes > SEARCH_MANY_SHAPES;
    const Mesh *near = is_large ? &result->entries[0].plan.mesh : NULL;
    double fastest = (1 + WORTH_SAYING) * as_asked;
    int64_t around[BATCHES_AROUND];
    const int count = batches_around(asked->global_batch, asked->world, around);
    for (int i = 0; i < count; i++) {
        TuneRequest request = *asked;
        SearchBest best;
        request.global_batch = around[i];
        TRY(search_best_above(&request, analytic, fastest, near, arena, &best, error));
        if (best.feasible && best.best.tokens_per_s > fastest && is_as_roomy(result, &best.best, near != NULL)) {
            fastest = best.best.tokens_per_s;
            *alternative = (BatchAlternative){.global_batch = request.global_batch,
                                              .mesh = best.best.plan.mesh,
                                              .gain = as_asked > 0 ? best.best.tokens_per_s / as_asked - 1 : 0,
                                              .shapes_near = near ? best.shapes : 0};
        }
    }
    return STATUS_OK;
}

Status alternative_batch(const TuneResult *result, const SearchKnown *known, Arena *arena,
                         BatchAlternative *alternative, Error *error) {
    const TuneRequest *asked = result->request;
    *alternative = (BatchAlternative){0};
    if (asked->batch_assumed || asked->global_batch == 0 || asked->handicap_count > 0 ||
        !batch_was_in_the_way(result)) {
        return STATUS_OK;
    }
    if (known && known->analytic) {  // most pieces are the same with any batch
        return try_batches(result, known->analytic, arena, alternative, error);
    }
    const CostModel cost = {.profile = &asked->cluster, .target = asked->target};
    Analytic *analytic = analytic_new(&asked->model, &cost, arena);
    const Status status = try_batches(result, analytic, arena, alternative, error);
    analytic_free(analytic);
    return status;
}

Status alternative_idle(const TuneResult *result, Arena *arena, IdleAlternative *alternative, Error *error) {
    const TuneRequest *asked = result->request;
    const int idle = asked->world % asked->cluster.node.accelerators;
    *alternative = (IdleAlternative){0};
    if (idle == 0 || idle == asked->world || asked->handicap_count > 0 || asked->objective == OBJECTIVE_MEMORY) {
        return STATUS_OK;
    }
    TuneRequest request = *asked;
    SearchBest best;
    request_set_world(&request, asked->world - idle, arena);
    TRY(search_best_alone(&request, arena, &best, error));
    const double now = result->entry_count > 0 ? result->entries[0].tokens_per_s : 0;
    if (best.feasible && best.best.tokens_per_s > (1 + WORTH_SAYING) * now) {
        *alternative = (IdleAlternative){
            .idle = idle, .mesh = best.best.plan.mesh, .gain = now > 0 ? best.best.tokens_per_s / now - 1 : 0};
    }
    return STATUS_OK;
}
