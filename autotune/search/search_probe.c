// Where to begin. What is clearly slower than the best plan so far is only bounded, so finding a good one early means
// less to price. A few shapes are looked at by one plan each: the smallest micro-batch with the choices that leave
// least in the open, recomputing as little as fits. The best one's is screened like all others, only first. Left out:
// shapes without stages, whose estimates are looked up rather than made.

#include "autotune/search/best.h"
#include "autotune/search/prune.h"
#include "autotune/search/search_internal.h"

// Of the axes that do not cut the batch, those in which the two differ; *by: the larger of the two sizes of the last
// one over the other.
static int axes_apart_of(const Mesh *a, const Mesh *b, double *by) {
    int apart = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const double one = a->size[axis], other = b->size[axis];
        if (!(AXES_BATCH >> axis & 1) && one != other) {
            apart++;
            *by = one > other ? one / other : other / one;
        }
    }
    return apart;
}

// Is it the first of those that differ in their data ranks alone?
static bool is_first(const Space *space, int shape) {
    double by;
    for (int other = 0; other < shape; other++) {
        if (axes_apart_of(&space->meshes[other], &space->meshes[shape], &by) == 0) {
            return false;
        }
    }
    return true;
}

// Many chunks on a stage wait least, and what overlaps is not in the open.
static int promise(const TrainPlan *plan) {
    return 2 * plan_chunks(plan) + plan->tp_overlap;
}

// The shape's most promising plan that recomputes so; NULL.
static const Candidate *find_promising(const Search *search, int shape, Recompute mode, Arena *arena) {
    const Candidate *first = &search->space.candidates[search->first_of_shape[shape]];
    const Candidate *end = &search->space.candidates[search->first_of_shape[shape + 1]], *best = NULL;
    const char *reason;
    for (const Candidate *candidate = first; candidate < end; candidate++) {
        const TrainPlan *plan = &candidate->plan;
        if (plan->micro_batch == first->plan.micro_batch && plan->recompute == mode && !plan_keeps_layers(plan) &&
            (!best || promise(plan) > promise(&best->plan)) && !prune(search->request, plan, NULL, arena, &reason)) {
            best = candidate;
        }
    }
    return best;
}

// Tokens per second of the shape's plan that recomputes least and leaves room; 0 = none does.
static Status probe(const Search *search, SearchWorker *worker, int shape, double *tokens_per_s, Error *error) {
    static const Recompute modes[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL};
    const EstimateLimits limits = {.bytes = best_usable_bytes(search->request)};
    *tokens_per_s = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes && *tokens_per_s == 0; i++) {
        const Candidate *candidate = find_promising(search, shape, modes[i], &worker->arena);
        Estimate estimate;
        if (candidate) {
            TRY(analytic_estimate_within(worker->analytic, &candidate->plan, &limits, &estimate, error));
            const bool fits = !estimate.is_too_large && estimate.reserved_bytes <= limits.bytes;
            *tokens_per_s = fits ? (double)plan_tokens_per_step(&candidate->plan) / estimate.step_s : 0;
        }
    }
    return STATUS_OK;
}

typedef struct Probes {
    const Search *search;
    SearchWorker *worker;
    bool *looked_at;  // by shape
    int best;         // -1 = none fits
    double fastest;
} Probes;

static bool is_open(const Probes *probes, int shape) {
    const Space *space = &probes->search->space;
    const Mesh *mesh = &space->meshes[shape];
    return !probes->looked_at[shape] && mesh_has_stages(mesh) && search_ring_wave(mesh) == 0 && is_first(space, shape);
}

static Status look_at(Probes *probes, int shape, Error *error) {
    double tokens_per_s;
    probes->looked_at[shape] = true;
    TRY(probe(probes->search, probes->worker, shape, &tokens_per_s, error));
    if (tokens_per_s > probes->fastest) {
        probes->fastest = tokens_per_s;
        probes->best = shape;
    }
    return STATUS_OK;
}

// From the first one that fits on to the best of those near, as long as one is better: one axis twice or half as long.
static Status climb(Probes *probes, Error *error) {
    const Space *space = &probes->search->space;
    for (int shape = 0; shape < space->mesh_count && probes->best < 0; shape++) {
        if (is_open(probes, shape)) {
            TRY(look_at(probes, shape, error));
        }
    }
    for (int from = -1; from != probes->best;) {
        from = probes->best;
        for (int shape = 0; shape < space->mesh_count; shape++) {
            double by;
            if (axes_apart_of(&space->meshes[shape], &space->meshes[from], &by) == 1 && by <= 2 &&
                is_open(probes, shape)) {
                TRY(look_at(probes, shape, error));
            }
        }
    }
    return STATUS_OK;
}

Status search_probe(const Search *search, SearchWorker *worker, int *best, Error *error) {
    Probes probes = {.search = search, .worker = worker, .best = -1};
    *best = search_near_shape(search);
    if (!search->near || search->who || search->around) {
        return STATUS_OK;
    }
    probes.looked_at = ARENA_ARRAY(&worker->arena, bool, search->space.mesh_count);
    TRY(climb(&probes, error));
    *best = probes.best;
    return STATUS_OK;
}
