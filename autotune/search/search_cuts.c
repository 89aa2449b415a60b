// Experts sharded over several ranks (etp), where the request does not set the degree. More ranks of ep make their
// share as small and send fewer bytes, so cuts are tried where ep has come to its end, as many ranks as there are
// experts or as can be, and in the first shapes. Of each kind of recompute the fastest choice that fits, or else the
// one that lacks least, is estimated with each number until one is no faster. The plans join the space as those of
// search_partial.c do. Left out: shapes with no estimate because their weights alone are too large.

#include "autotune/search/best.h"
#include "autotune/search/expert_cuts.h"
#include "autotune/search/search_internal.h"

bool search_tries_cuts(const TuneRequest *request) {
    return expert_cuts_open(request);
}

static const double AMONG_FIRST = 0.03;

// No more ranks could hold whole experts in this shape.
static bool ep_is_full(const Search *search, const Mesh *mesh) {
    Mesh more = *mesh;
    more.size[AXIS_EP] *= 2;
    return search->request->model.experts.count % more.size[AXIS_EP] != 0 || !mesh_lends_evenly(&more);
}

static bool may_be_best(const Search *search, const Candidate *candidate) {
    const double behind = ep_is_full(search, &candidate->plan.mesh) ? CUTS_SAVE : AMONG_FIRST;
    return search->request->effort == EFFORT_EXHAUSTIVE ||
           candidate->tokens_per_s >= (1 - behind) * search->best_estimate;
}

static bool fits(const Search *search, double reserved_bytes) {
    return reserved_bytes <= best_usable_bytes(search->request);
}

// What fits comes before what does not, the fast before the slow, the small before the large.
static bool is_better(const Search *search, const Candidate *a, const Candidate *b) {
    const bool first = fits(search, a->reserved_bytes), second = !b || fits(search, b->reserved_bytes);
    return !b || (first != second ? first
                  : first         ? a->tokens_per_s > b->tokens_per_s
                                  : a->reserved_bytes < b->reserved_bytes);
}

// The choice to begin with, of each kind of recompute; NULL = there is none.
static void find_bases(const Search *search, int shape, const Candidate *bases[RECOMPUTE_COUNT]) {
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        const Candidate *candidate = &search->space.candidates[i];
        const Candidate **base = &bases[candidate->plan.recompute];
        if (candidate->state == CANDIDATE_ESTIMATED && !search_estimate_of(search, candidate)->is_bound &&
            may_be_best(search, candidate) && is_better(search, candidate, *base)) {
            *base = candidate;
        }
    }
}

// Adds the fastest number of ranks that cut the experts of this plan, if it fits and is faster than it is.
static Status try_cuts(const Search *search, SearchWorker *worker, const Candidate *base, double least, Error *error) {
    const TuneRequest *request = search->request;
    int cuts[EXPERT_CUTS];
    const char *reason;
    const int count = expert_cuts_find(request, &base->plan, &worker->arena, cuts, &reason);
    TrainPlan best;
    Estimate best_estimate = {.step_s = 0};
    for (int i = 0; i < count; i++) {
        const TrainPlan plan = expert_cuts_plan(request, &base->plan, cuts[i]);
        Estimate estimate;
        TRY(analytic_estimate_bytes(worker->analytic, &plan, &estimate, error));
        if (!fits(search, estimate.reserved_bytes)) {
            continue;
        }
        TRY(analytic_estimate(worker->analytic, &plan, &estimate, error));
        const double slowest = best_estimate.step_s > 0 ? best_estimate.step_s : least;
        if (slowest > 0 && estimate.step_s >= slowest) {
            break;
        }
        best = plan;
        best_estimate = estimate;
    }
    if (best_estimate.step_s > 0) {
        search_partial_add(search, worker, base->shape, &best, &best_estimate);
    }
    return STATUS_OK;
}

Status search_cuts_shape(const Search *search, SearchWorker *worker, int shape, Error *error) {
    const Mesh *mesh = &search->space.meshes[shape];
    const Candidate *bases[RECOMPUTE_COUNT] = {NULL};
    if (mesh->size[AXIS_EP] == 1) {
        return STATUS_OK;
    }
    find_bases(search, shape, bases);
    for (int mode = 0; mode < RECOMPUTE_COUNT; mode++) {
        const Candidate *base = bases[mode];
        if (base) {
            TRY(try_cuts(search, worker, base, fits(search, base->reserved_bytes) ? base->step_s : 0, error));
        }
    }
    return STATUS_OK;
}
