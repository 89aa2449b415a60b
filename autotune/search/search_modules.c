// Selective recompute of other modules than the target's own: between recomputing little and recomputing all, where the
// target lets one name the modules of a layer. Tried for those micro-batches for which recomputing all layers fits and
// the target's own selective recompute does not, the cheapest sets first until one fits, and only where a step that
// recomputes nothing could be the best. The plans join the space as those of search_partial.c do.

#include <math.h>

#include "autotune/search/best.h"
#include "autotune/search/prune.h"
#include "autotune/search/search_internal.h"
#include "sim/frameworks/target_choices.h"

// A set costs at least as much time as those before it and saves more. Norms are read once more; an activation is one
// pass; an MLP is two products of three.
static const RecomputeModules dense_sets[] = {RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS,
                                              RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS | RECOMPUTE_MLP};
static const RecomputeModules expert_sets[] = {
    RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS | RECOMPUTE_EXPERT_ACTIVATION,
    RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS | RECOMPUTE_EXPERT_ACTIVATION | RECOMPUTE_LATENT_UP,
    RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS | RECOMPUTE_EXPERTS | RECOMPUTE_LATENT_UP};
enum { DENSE_SETS = sizeof dense_sets / sizeof *dense_sets, EXPERT_SETS = sizeof expert_sets / sizeof *expert_sets };

bool search_tries_modules(const TuneRequest *request) {
    return request->target->recompute_modules != 0 && request->target->selective_flavour == SELECTIVE_CORE &&
           request->asked[PLAN_RECOMPUTE] == TUNE_ANY && request->asked[PLAN_RECOMPUTE_MODULES] == TUNE_ANY;
}

static RecomputeModules modules_of(const ModelSpec *model, int set) {
    if (model->experts.count == 0) {
        return dense_sets[set];
    }
    return model->latent.kv_rank > 0 ? expert_sets[set] : expert_sets[set] & ~(unsigned)RECOMPUTE_LATENT_UP;
}

// Does the target's own selective recompute, or none, fit the same micro-batch? Memory falls from one to the other.
static bool fits_with_less(const Search *search, const Candidate *full) {
    const Candidate *less =
        search_find_alike(search, full->shape, &full->plan, RECOMPUTE_SELECTIVE, full->plan.micro_batch);
    return less && less->reserved_bytes <= best_usable_bytes(search->request);
}

static bool may_be_best(const Search *search, const Candidate *full) {
    const double known = fmax(search->best_estimate, search->above_tokens_per_s);
    return search->request->effort == EFFORT_EXHAUSTIVE || full->tokens_per_s * FULL_OVER_NONE >= known;
}

static Status try_sets(const Search *search, SearchWorker *worker, const Candidate *full, Error *error) {
    const TuneRequest *request = search->request;
    const int sets = request->model.experts.count > 0 ? EXPERT_SETS : DENSE_SETS;
    for (int set = 0; set < sets; set++) {
        TrainPlan plan = full->plan;
        plan.recompute = RECOMPUTE_SELECTIVE;
        plan.recompute_modules = (int)modules_of(&request->model, set);
        target_canonical(request->target, &plan);
        const char *reason = NULL;
        if (prune(request, &plan, NULL, &worker->arena, &reason)) {
            continue;
        }
        Estimate estimate;
        const EstimateLimits limits = {.step_s = search_hopeless_s(search, worker, &plan),
                                       .time_only = true,
                                       .bytes = search->near ? best_usable_bytes(request) : 0};
        TRY(analytic_estimate_within(worker->analytic, &plan, &limits, &estimate, error));
        if (estimate.is_bound) {
            break;  // more modules take longer
        }
        if (!estimate.is_too_large && estimate.reserved_bytes <= best_usable_bytes(request)) {
            search_partial_add(search, worker, full->shape, &plan, &estimate);
            break;
        }
    }
    return STATUS_OK;
}

Status search_modules_shape(const Search *search, SearchWorker *worker, int shape, Error *error) {
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        const Candidate *full = &search->space.candidates[i];
        if (full->state == CANDIDATE_ESTIMATED && full->plan.recompute == RECOMPUTE_FULL &&
            !plan_keeps_layers(&full->plan) && !search_is_passed_over(search, full) && may_be_best(search, full) &&
            !fits_with_less(search, full)) {
            TRY(try_sets(search, worker, full, error));
        }
    }
    return STATUS_OK;
}
