// Recomputing some layers and keeping the rest, where the target can: of micro-batches for which recomputing all layers
// fits and recomputing none does not, the fewest layers that fit. Memory is linear in the number of layers kept, so
// that number follows from the two ends and no other is tried. The few most promising plans are appended to the space
// after those of their shape. Left out: other counts where the request sets the recompute mode.

#include <string.h>

#include "autotune/search/best.h"
#include "autotune/search/search_internal.h"
#include "autotune/search/space.h"
#include "sim/frameworks/target_choices.h"

static PlanFieldId counted_field(const Target *target) {
    return target_fits(target, PLAN_RECOMPUTE_LAYERS) ? PLAN_RECOMPUTE_LAYERS : PLAN_RECOMPUTE_EVERY;
}

bool search_partial_is_open(const TuneRequest *request) {
    return space_fits(request, counted_field(request->target));
}

const Candidate *search_find_alike(const Search *search, int shape, const TrainPlan *like, Recompute mode,
                                   int micro_batch) {
    const PlanKey choices = plan_key(like, PLAN_RECOMPUTE_CHOICES);
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        const Candidate *candidate = &search->space.candidates[i];
        const TrainPlan *plan = &candidate->plan;
        if (candidate->state != CANDIDATE_ESTIMATED || plan->recompute != mode || plan->micro_batch != micro_batch ||
            (plan->grad_accum > 1) != (like->grad_accum > 1) ||
            memcmp(&plan->mesh.order, &like->mesh.order, sizeof like->mesh.order) != 0) {
            continue;
        }
        const PlanKey others = plan_key(plan, PLAN_RECOMPUTE_CHOICES);
        if (plan_keys_equal(&others, &choices)) {
            return candidate;
        }
    }
    return NULL;
}

static Status complete(const Search *search, SearchWorker *worker, const Candidate *candidate, Error *error) {
    return search_complete(search, worker, &search->space.candidates[candidate - search->space.candidates], error);
}

static TrainPlan without_recomputing(const TrainPlan *full) {
    TrainPlan plan = *full;
    plan.recompute = RECOMPUTE_NONE;
    plan_canonical(&plan);
    return plan;
}

// Of the step with all layers recomputed, the share with none: at this micro-batch, or the nearest smaller one that was
// estimated both ways; where none was, as choices that save memory where it lacks, what an estimate says.
static Status step_share(const Search *search, SearchWorker *worker, const Candidate *full, double *share,
                         Error *error) {
    for (int micro_batch = full->plan.micro_batch; micro_batch > 0; micro_batch--) {
        const Candidate *none = search_find_alike(search, full->shape, &full->plan, RECOMPUTE_NONE, micro_batch);
        const Candidate *all =
            none ? search_find_alike(search, full->shape, &full->plan, RECOMPUTE_FULL, micro_batch) : NULL;
        if (all) {
            TRY(complete(search, worker, none, error));
            TRY(complete(search, worker, all, error));
            *share = none->step_s / all->step_s;
            return STATUS_OK;
        }
    }
    const TrainPlan plan = without_recomputing(&full->plan);
    Estimate none;
    TRY(analytic_estimate(worker->analytic, &plan, &none, error));
    TRY(complete(search, worker, full, error));
    *share = none.step_s / full->step_s;
    return STATUS_OK;
}

// Sets how many layers are recomputed so that at most `most` are kept; the number that are.
static int keep_layers(const TuneRequest *request, int most, TrainPlan *plan) {
    const Target *target = request->target;
    const PlanFieldId id = counted_field(target);
    const int layers = request->model.layers / mesh_stages(&plan->mesh);  // of a stage: each keeps as many
    int kept = 0;
    for (int value = 1; value <= plan_fields[id].high && value < layers; value++) {
        TrainPlan tried = *plan;
        plan_set(&tried, id, value);
        plan_canonical(&tried);
        const int keeps = plan_keeps_layers(&tried) ? layers - target_recomputed_layers(target, &tried, layers) : 0;
        if (keeps > kept && keeps <= most) {
            kept = keeps;
            *plan = tried;
        }
    }
    return kept;
}

bool search_partial_less(const TuneRequest *request, TrainPlan *plan, int part) {
    if (!plan_keeps_layers(plan)) {
        return false;
    }
    const int layers = request->model.layers / mesh_stages(&plan->mesh);
    const int kept = layers - target_recomputed_layers(request->target, plan, layers);
    plan_all_layers_alike(plan);
    keep_layers(request, kept - 1 - layers / part, plan);
    return true;
}

static Candidate make_candidate(const SearchWorker *worker, int shape, const TrainPlan *plan,
                                const Estimate *estimate) {
    return (Candidate){.plan = *plan,
                       .shape = shape,
                       .state = CANDIDATE_ESTIMATED,
                       .step_s = estimate->step_s,
                       .tokens_per_s = (double)plan_tokens_per_step(plan) / estimate->step_s,
                       .peak_bytes = estimate->peak_bytes,
                       .reserved_bytes = estimate->reserved_bytes,
                       .content_hash = predictor_content_hash(&worker->predictor, plan)};
}

// The variant of `full` that keeps as many layers as fit; false where none or all do.
static Status fit_layers(const Search *search, SearchWorker *worker, const Candidate *full, PartialPlan *made,
                         bool *found, Error *error) {
    const TuneRequest *request = search->request;
    const double usable = best_usable_bytes(request);
    const int layers = request->model.layers / mesh_stages(&full->plan.mesh);
    *found = false;
    if (full->reserved_bytes >= usable ||
        !target_offers(request->target, &full->plan, PLAN_RECOMPUTE, RECOMPUTE_NONE)) {
        return STATUS_OK;
    }
    TrainPlan plan = without_recomputing(&full->plan);
    Estimate none;
    TRY(analytic_estimate_bytes(worker->analytic, &plan, &none, error));
    if (none.reserved_bytes <= request->memory_limit_bytes) {
        return STATUS_OK;
    }
    const double per_layer = (none.reserved_bytes - full->reserved_bytes) / layers;
    plan = full->plan;
    const double kept =
        keep_layers(request, (int)((usable - full->reserved_bytes) / per_layer), &plan) / (double)layers;
    if (kept == 0) {
        return STATUS_OK;
    }
    double share;
    TRY(step_share(search, worker, full, &share, error));
    TRY(complete(search, worker, full, error));
    made->estimate = *search_estimate_of(search, full);
    const double saved_s = (1 - share) * kept * full->step_s;
    made->estimate.step_s -= saved_s;
    made->estimate.compute_s -= saved_s;
    made->estimate.peak_bytes = analytic_between(full->peak_bytes, none.peak_bytes, kept);
    made->estimate.reserved_bytes = analytic_between(full->reserved_bytes, none.reserved_bytes, kept);
    made->candidate = make_candidate(worker, full->shape, &plan, &made->estimate);
    *found = true;
    return STATUS_OK;
}

static void keep_best(PartialPlan *best, int *count, PartialPlan made) {
    for (int at = 0; at < PARTIAL_PER_SHAPE; at++) {
        if (at == *count) {
            best[(*count)++] = made;
            return;
        }
        if (made.candidate.tokens_per_s > best[at].candidate.tokens_per_s) {
            const PartialPlan next = best[at];
            best[at] = made;
            made = next;
        }
    }
}

static void add(const Search *search, SearchWorker *worker, PartialPlan made) {
    const int shape = made.candidate.shape;
    worker->counts.estimated++;
    if (!search_can_be_had(search, &made.candidate.plan)) {
        return;
    }
    search_note(search, worker, &made.candidate);
    keep_best(&search->partial[shape * PARTIAL_PER_SHAPE], &search->partial_count[shape], made);
}

void search_partial_add(const Search *search, SearchWorker *worker, int shape, const TrainPlan *plan,
                        const Estimate *estimate) {
    add(search, worker,
        (PartialPlan){.candidate = make_candidate(worker, shape, plan, estimate), .estimate = *estimate});
}

Status search_partial_shape(const Search *search, SearchWorker *worker, int shape, Error *error) {
    if (!search_partial_is_open(search->request)) {
        return STATUS_OK;
    }
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        const Candidate *candidate = &search->space.candidates[i];
        PartialPlan made;
        bool found = false;
        if (candidate->state == CANDIDATE_ESTIMATED && candidate->plan.recompute == RECOMPUTE_FULL &&
            search_less_matters(search, worker, candidate)) {
            TRY(fit_layers(search, worker, candidate, &made, &found, error));
        }
        if (found) {
            add(search, worker, made);
        }
    }
    return STATUS_OK;
}

static void make_room(Search *search, int extra) {
    Space *space = &search->space;
    const size_t count = (size_t)space->candidate_count, all = count + (size_t)extra;
    space->candidates = search->result->candidates =
        arena_resize(search->arena, space->candidates, count, all, sizeof *space->candidates);
    search->estimates = arena_resize(search->arena, search->estimates, count, all, sizeof *search->estimates);
}

// A shape's candidates, by so many that are made for those before it, and its own ones behind them.
static void move_shape(Search *search, int shape, int before) {
    const int first = search->first_of_shape[shape], end = search->first_of_shape[shape + 1];
    Candidate *candidates = search->space.candidates + before;
    Estimate **estimates = search->estimates + before;
    memmove(candidates + first, candidates + first - before, (size_t)(end - first) * sizeof *candidates);
    memmove(estimates + first, estimates + first - before, (size_t)(end - first) * sizeof *estimates);
    for (int i = 0; i < search->partial_count[shape]; i++) {
        PartialPlan *made = &search->partial[shape * PARTIAL_PER_SHAPE + i];
        candidates[end + i] = made->candidate;
        estimates[end + i] = &made->estimate;
    }
}

// From the last shape to the first, so that none moves over another.
void search_partial_join(Search *search) {
    Space *space = &search->space;
    int extra = 0;
    for (int shape = 0; shape < space->mesh_count; shape++) {
        extra += search->partial_count[shape];
    }
    if (extra == 0) {
        return;
    }
    make_room(search, extra);
    for (int shape = space->mesh_count - 1, before = extra; shape >= 0; shape--) {
        const int made = search->partial_count[shape];
        before -= made;
        move_shape(search, shape, before);
        search->first_of_shape[shape + 1] += before + made;
    }
    space->candidate_count = search->result->candidate_count = search->result->search.candidates =
        search->first_of_shape[space->mesh_count];
}
