// Every change is predicted as the search predicts, by the engine, with the same global batch: accumulation makes up
// for micro-batch and mesh. Of the meshes only the most promising are tried, by the estimates kept from the search.

#include "autotune/explain/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/search/best.h"
#include "autotune/search/prune.h"
#include "autotune/search/search.h"
#include "autotune/search/space.h"
#include "sim/frameworks/target_choices.h"

typedef struct Adviser {
    Predictor predictor;
    Arena *arena;
    AdviceReport *report;
    const AdviceFilter *filter;
} Adviser;

static bool seen(const AdviceReport *report, const TrainPlan *plan) {
    char text[PLAN_TEXT_BYTES];
    plan_text(plan, text);
    bool found = strcmp(text, plan_text(&report->own.plan, PLAN_BUFFER)) == 0;
    for (int i = 0; i < report->change_count && !found; i++) {
        found = strcmp(text, plan_text(&report->changes[i].prediction.plan, PLAN_BUFFER)) == 0;
    }
    return found;
}

static double gain_over(const Prediction *better, const Prediction *own) {
    return own->tokens_per_s > 0 ? better->tokens_per_s / own->tokens_per_s - 1 : 0;
}

// Predicts a changed plan where it is legal and another one.
static Status try_change(Adviser *adviser, AdviceKind kind, TrainPlan plan, const char *words, Error *error) {
    AdviceReport *report = adviser->report;
    const TuneRequest *request = adviser->predictor.request;
    const char *reason = NULL;
    target_canonical(request->target, &plan);
    const Prediction bare = {.plan = plan};
    if (report->change_count == ADVICE_MAX_CHANGES || seen(report, &plan) ||
        prune(request, &plan, NULL, adviser->arena, &reason) ||
        !adviser->filter->takes(adviser->filter->state, &bare)) {
        return STATUS_OK;
    }
    Advice *advice = &report->changes[report->change_count];
    *advice = (Advice){.kind = kind, .change = words};
    TRY(predict_plan(&adviser->predictor, &plan, false, adviser->arena, &advice->prediction, error));
    prune(request, &plan, &advice->prediction.memory, adviser->arena, &advice->reason);
    advice->gain = gain_over(&advice->prediction, &report->own);
    report->change_count++;
    return STATUS_OK;
}

static Status try_value(Adviser *adviser, AdviceKind kind, PlanFieldId id, int value, Error *error) {
    TrainPlan plan = adviser->report->own.plan;
    plan_set(&plan, id, value);
    if (id == PLAN_RECOMPUTE) {
        plan_all_layers_alike(&plan);
    }
    const char *words =
        arena_format(adviser->arena, "%s %s", plan_fields[id].label, plan_value_text(id, value, VALUE_BUFFER));
    return try_change(adviser, kind, plan, words, error);
}

static Status try_kernels(Adviser *adviser, Error *error) {
    const TuneRequest *request = adviser->predictor.request;
    const bool open = request->asked[PLAN_FUSED] == TUNE_ANY && target_has_choice(request->target, PLAN_FUSED);
    for (int value = 0; open && value < FUSED_COUNT; value++) {
        TrainPlan plan = adviser->report->own.plan;
        plan.fused = (Fused)value;
        if (target_offers(request->target, &plan, PLAN_FUSED, value)) {
            TRY(try_value(adviser, ADVICE_KERNELS, PLAN_FUSED, value, error));
        }
    }
    return STATUS_OK;
}

// The values of a field other than the target's default (its value 0), where the target has a switch for them.
static Status try_switch(Adviser *adviser, AdviceKind kind, PlanFieldId id, Error *error) {
    const TuneRequest *request = adviser->predictor.request;
    const TrainPlan *own = &adviser->report->own.plan;
    const int now = target_told(request->target, own, id);
    for (int value = 1; value <= plan_fields[id].high; value++) {
        const bool can = id != PLAN_TP_OVERLAP || space_tries(request, own, id, value);
        if (value != now && can && plan_field_matters(own, id) && target_has_choice(request->target, id)) {
            TRY(try_value(adviser, kind, id, value, error));
        }
    }
    return STATUS_OK;
}

static Status try_micro_batches(Adviser *adviser, Error *error) {
    const TrainPlan *own = &adviser->report->own.plan;
    const int64_t each = (int64_t)own->micro_batch * own->grad_accum;
    const int sizes[] = {own->micro_batch * 2, own->micro_batch * 4, own->micro_batch / 2};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i] > 0 && each % sizes[i] == 0) {
            TrainPlan plan = *own;
            plan.micro_batch = sizes[i];
            plan.grad_accum = (int)(each / sizes[i]);
            TRY(try_change(
                adviser, ADVICE_MICRO_BATCH, plan,
                arena_format(adviser->arena, "micro-batch %d x accumulation %d", plan.micro_batch, plan.grad_accum),
                error));
        }
    }
    return STATUS_OK;
}

// Of several schedules each fills and drains: one with all micro-steps does so once.
static Status try_one_schedule(Adviser *adviser, Error *error) {
    const TrainPlan *own = &adviser->report->own.plan;
    TrainPlan plan = *own;
    plan.pp_rounds = 1;
    if (plan_rounds(own) == 1) {
        return STATUS_OK;
    }
    return try_change(adviser, ADVICE_MICRO_BATCH, plan,
                      arena_format(adviser->arena, "one schedule of %d micro-steps, not %d of %d", own->grad_accum,
                                   plan_rounds(own), plan_round_steps(own)),
                      error);
}

static Status try_choices(Adviser *adviser, Error *error) {
    static const struct {
        AdviceKind kind;
        PlanFieldId id;
    } rows[] = {{ADVICE_RESHARD, PLAN_RESHARD},
                {ADVICE_RECOMPUTE, PLAN_RECOMPUTE},
                {ADVICE_ROTATE, PLAN_CP_ROTATE},
                {ADVICE_ZERO, PLAN_ZERO}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int value = 0; value <= plan_fields[rows[i].id].high; value++) {
            TRY(try_value(adviser, rows[i].kind, rows[i].id, value, error));
        }
    }
    return STATUS_OK;
}

// The same choices on another shape.
static bool is_other_shape(const Adviser *adviser, const Candidate *candidate) {
    const TrainPlan *own = &adviser->report->own.plan;
    TrainPlan moved = *own;
    moved.mesh = candidate->plan.mesh;
    moved.grad_accum = candidate->plan.grad_accum;
    moved.zero = candidate->plan.zero;
    target_canonical(adviser->predictor.request->target, &moved);
    return candidate->state != CANDIDATE_REJECTED && candidate->tokens_per_s > 0 &&
           !mesh_same_shape(&own->mesh, &candidate->plan.mesh) &&
           strcmp(plan_text(&moved, PLAN_BUFFER), plan_text(&candidate->plan, PLAN_BUFFER)) == 0;
}

static const char *mesh_change(const Adviser *adviser, const TrainPlan *plan) {
    const char *text =
        arena_format(adviser->arena, "mesh %s, accumulation %d", mesh_text(&plan->mesh, MESH_BUFFER), plan->grad_accum);
    return plan->zero == adviser->report->own.plan.zero ? text
                                                        : arena_format(adviser->arena, "%s, zero %d", text, plan->zero);
}

static Status try_meshes(Adviser *adviser, Error *error) {
    const TuneResult *result = adviser->report->result;
    double below = HUGE_VAL;
    for (int rank = 0; rank < ADVICE_MESHES; rank++) {
        const Candidate *next = NULL;
        for (int i = 0; i < result->candidate_count; i++) {
            const Candidate *candidate = &result->candidates[i];
            const bool better =
                candidate->tokens_per_s < below && (!next || candidate->tokens_per_s > next->tokens_per_s);
            const Prediction bare = {.plan = candidate->plan};
            if (better && is_other_shape(adviser, candidate) && adviser->filter->takes(adviser->filter->state, &bare)) {
                next = candidate;
            }
        }
        if (!next) {
            return STATUS_OK;
        }
        below = next->tokens_per_s;
        TRY(try_change(adviser, ADVICE_MESH, next->plan, mesh_change(adviser, &next->plan), error));
    }
    return STATUS_OK;
}

static int compare_changes(const void *a, const void *b) {
    const Advice *x = a, *y = b;
    if (!x->reason != !y->reason) {
        return x->reason ? 1 : -1;
    }
    const double difference = y->prediction.tokens_per_s - x->prediction.tokens_per_s;
    return difference > 0 ? 1 : difference < 0 ? -1 : strcmp(x->change, y->change);
}

static Status predict_own(Adviser *adviser, Error *error) {
    AdviceReport *report = adviser->report;
    const TuneRequest *request = adviser->predictor.request;
    const TrainPlan plan = report->own.plan;
    report->legal = !prune_given(request, &plan, NULL, adviser->arena, &report->reason);
    if (!report->legal) {
        return STATUS_OK;
    }
    TRY(predict_plan(&adviser->predictor, &plan, false, adviser->arena, &report->own, error));
    prune_given(request, &plan, &report->own.memory, adviser->arena, &report->reason);
    return STATUS_OK;
}

// The search simulates what its estimate finds promising; a single change may come out above that.
static void take_better(AdviceReport *report, Arena *arena) {
    const Advice *first = &report->changes[0];
    if (report->change_count == 0 || first->reason ||
        (report->best && !best_prefers(report->result->request, &first->prediction, report->best))) {
        return;
    }
    Prediction *best = ARENA_NEW(arena, Prediction);
    *best = first->prediction;
    report->best = best;
}

static Status run(Adviser *adviser, Error *error) {
    AdviceReport *report = adviser->report;
    TRY(predict_own(adviser, error));
    if (report->legal) {
        TRY(try_choices(adviser, error));
        TRY(try_kernels(adviser, error));
        TRY(try_switch(adviser, ADVICE_SYNC, PLAN_GRAD_SYNC, error));
        TRY(try_switch(adviser, ADVICE_OVERLAP, PLAN_REDUCE_OVERLAP, error));
        TRY(try_switch(adviser, ADVICE_LOSS, PLAN_LOSS, error));
        TRY(try_switch(adviser, ADVICE_TP_OVERLAP, PLAN_TP_OVERLAP, error));
        TRY(try_micro_batches(adviser, error));
        TRY(try_one_schedule(adviser, error));
        TRY(try_meshes(adviser, error));
    }
    qsort(report->changes, (size_t)report->change_count, sizeof report->changes[0], compare_changes);
    take_better(report, adviser->arena);
    report->gain = report->best ? gain_over(report->best, &report->own) : 0;
    return STATUS_OK;
}

static const Prediction *first_taken(const TuneResult *result, const AdviceFilter *filter) {
    for (int i = 0; i < result->entry_count; i++) {
        if (filter->takes(filter->state, &result->entries[i])) {
            return &result->entries[i];
        }
    }
    return NULL;
}

// Where no plan's memory was looked at, the first rejected one; NULL.
static const Candidate *never_taken(const TuneResult *result) {
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        if (candidate->state != CANDIDATE_REJECTED || candidate->reserved_bytes > 0) {
            return NULL;
        }
    }
    return result->candidate_count > 0 ? &result->candidates[0] : NULL;
}

// One that the filter does not take, of the plan's own shape where there is one; NULL.
static const Candidate *not_had(const TuneResult *result, const TrainPlan *plan) {
    const Candidate *found = NULL;
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        if (candidate->rule && strcmp(candidate->rule, SEARCH_NOT_HAD) == 0) {
            found = found ? found : candidate;
            if (plan && mesh_same_shape(&candidate->plan.mesh, &plan->mesh)) {
                return candidate;
            }
        }
    }
    return found;
}

// A search that came to no candidates says of each shape what excluded it, if it had any.
static const char *why_no_candidates(const TuneResult *result, Arena *arena) {
    const int shapes = result->search.shapes, world = result->request->world;
    if (result->rejected_count > 0) {
        const Rejection *first = &result->rejected[0];
        return arena_format(arena, "none of the %d shapes of %d ranks has a plan to try, %s: %s", shapes, world,
                            first->rule, first->reason);
    }
    return arena_format(arena, "%d ranks make no shape to try", world);
}

static const char *why_no_best(const AdviceQuestion *question, Arena *arena) {
    const TuneResult *result = question->result;
    const Candidate *lacking = not_had(result, question->plan), *never = never_taken(result);
    const int shapes = result->search.shapes, world = result->request->world;
    if (lacking) {
        const Prediction bare = {.plan = lacking->plan};
        const char *lacks = question->filter.lacks(question->filter.state, &bare);
        return never ? arena_text(arena, lacks)
                     : arena_format(arena, "of the %d shapes of %d ranks some do not fit, and of the others: %s",
                                    shapes, world, lacks);
    }
    if (result->candidate_count == 0) {
        return why_no_candidates(result, arena);
    }
    return never ? arena_format(arena, "none of the %d shapes of %d ranks can run: %s", shapes, world, never->reason)
                 : arena_format(arena, "none of the %d shapes of %d ranks fits", shapes, world);
}

// What a newer version of the target does with the same plan.
static Status predict_successor(const AdviceQuestion *question, Arena *arena, AdviceReport *report, Error *error) {
    const TuneRequest *request = question->result->request;
    TuneRequest *newer = ARENA_NEW(arena, TuneRequest);
    *newer = *request;
    TRY(target_find(question->successor, &newer->target, error));
    const char *reason = NULL;
    TrainPlan plan = report->own.plan;
    newer->asked[PLAN_MASTER_WEIGHTS] = space_master_of_other(request, newer->target);
    plan.bf16_master = newer->asked[PLAN_MASTER_WEIGHTS];
    if (prune(newer, &plan, NULL, arena, &reason)) {
        return STATUS_OK;
    }
    Prediction *prediction = ARENA_NEW(arena, Prediction);
    report->successor = prediction;
    report->newer = newer->target;
    return predict_once(newer, NULL, &plan, arena, prediction, error);
}

static Status advise_plan(const AdviceQuestion *question, Arena *arena, AdviceReport *report, Error *error) {
    report->own.plan = *question->plan;
    Adviser adviser = {.arena = arena, .report = report, .filter = &question->filter};
    predictor_init(&adviser.predictor, question->result->request, question->cache);
    const Status status = run(&adviser, error);
    predictor_free(&adviser.predictor);
    TRY(status);
    return question->successor && report->legal ? predict_successor(question, arena, report, error) : STATUS_OK;
}

Status advise(const AdviceQuestion *question, Arena *arena, AdviceReport *report, Error *error) {
    *report = (AdviceReport){.result = question->result, .best = first_taken(question->result, &question->filter)};
    TRY(question->plan ? advise_plan(question, arena, report, error) : STATUS_OK);
    report->no_best = report->best ? NULL : why_no_best(question, arena);
    return STATUS_OK;
}
