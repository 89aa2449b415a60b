// Which candidates get how much attention. Every candidate is screened with the closed form (within about 3 % of the
// engine where nothing contends). Simulated are the best few of each shape and all whose estimate lies within a
// margin of the best one, so that the winner is the engine's; memory verdicts of shapes always come from the full
// breakdown. Worlds with more than SIMULATED_MAX shapes keep the closed form's times below that rank.

#include "autotune/search.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "autotune/prune.h"
#include "autotune/rank.h"
#include "autotune/space.h"
#include "sim/base/text.h"

enum { BEST_PER_SHAPE = 2, SIMULATED_MAX = 200, SCREENED_PER_UPDATE = 256 };
static const double MARGIN = 0.06;  // twice the closed form's error of 3 %: two candidates err against each other
static const double MEMORY_MARGIN =
    0.02;  // the closed form's memory was seen within 1.2 % of the breakdown (7b, world 32)

typedef struct Search {
    const TuneRequest *request;
    const Progress *progress;
    Arena *arena;
    TuneResult *result;
    Predictor predictor;
    Analytic *analytic;
    Space space;
    Estimate *estimates;   // one per candidate
    Candidate **order;     // by shape, most promising first
    int *first_of_shape;   // into order; mesh_count + 1 entries
    int *shape_order;      // shapes by their best estimate
    double best_estimate;  // tokens per second of the best that seems to fit
    int attempts;          // exact predictions made
} Search;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Worth a full breakdown, which decides.
static bool seems_to_fit(const Search *search, const Candidate *candidate) {
    return candidate->reserved_bytes <= (1 + MEMORY_MARGIN) * search->request->memory_limit_bytes;
}

static bool is_over_limit(const Search *search, const Candidate *candidate) {
    return candidate->reserved_bytes > search->request->memory_limit_bytes;
}

// ---- screening

// The smallest micro-batch that was too large for memory, by the other choices of a shape.
typedef struct TooLarge {
    int shape;
    const Candidate *of[RECOMPUTE_COUNT][RESHARD_COUNT][CP_ROTATE_COUNT];
} TooLarge;

static const Candidate **too_large_place(TooLarge *too_large, const Candidate *candidate) {
    if (too_large->shape != candidate->shape) {
        *too_large = (TooLarge){.shape = candidate->shape};
    }
    const TrainPlan *plan = &candidate->plan;
    return &too_large->of[plan->recompute][plan->reshard][plan->cp_rotate];
}

static void reject_larger(Search *search, Candidate *candidate, const Candidate *smaller) {
    char needs[TEXT_UNIT_BYTES];
    candidate->rule = "memory";
    candidate->reason = arena_format(search->arena, "micro-batch %d already needs %s", smaller->plan.micro_batch,
                                     text_bytes(needs, smaller->reserved_bytes));
    search->result->search.pruned++;
}

static Status estimate_candidate(Search *search, Candidate *candidate, Error *error) {
    Estimate *estimate = &search->estimates[candidate - search->space.candidates];
    TRY(analytic_estimate(search->analytic, &candidate->plan, estimate, error));
    search->result->search.estimated++;
    candidate->state = CANDIDATE_ESTIMATED;
    candidate->step_s = estimate->step_s;
    candidate->tokens_per_s = (double)plan_tokens_per_step(&candidate->plan) / estimate->step_s;
    candidate->peak_bytes = estimate->peak_bytes;
    candidate->reserved_bytes = estimate->reserved_bytes;
    if (!is_over_limit(search, candidate)) {
        search->best_estimate = fmax(search->best_estimate, candidate->tokens_per_s);
    }
    return STATUS_OK;
}

// Micro-batches of a shape come in rising order and memory rises with them, so what follows one that is too large is
// not even estimated.
static Status screen(Search *search, Error *error) {
    const int count = search->space.candidate_count;
    TooLarge too_large = {.shape = -1};
    for (int i = 0; i < count; i++) {
        if (i % SCREENED_PER_UPDATE == 0 && !progress_update(search->progress, "screening choices", i, count)) {
            return error_set(error, STATUS_ENVIRONMENT, "interrupted while screening");
        }
        Candidate *candidate = &search->space.candidates[i];
        candidate->content_hash = predictor_content_hash(&search->predictor, &candidate->plan);
        const PruneRule *rule = prune(search->request, &candidate->plan, NULL, search->arena, &candidate->reason);
        if (rule) {
            candidate->rule = rule->name;
            search->result->search.pruned++;
            continue;
        }
        const Candidate **smaller = too_large_place(&too_large, candidate);
        if (*smaller) {
            reject_larger(search, candidate, *smaller);
            continue;
        }
        TRY(estimate_candidate(search, candidate, error));
        if (!seems_to_fit(search, candidate)) {
            *smaller = candidate;
        }
    }
    return STATUS_OK;
}

// Within a shape: what seems to fit by speed, then the rest by how little it lacks; pruned candidates last.
typedef struct Promise {
    Candidate *candidate;
    int class;  // 0 seems to fit, 1 does not, 2 pruned
} Promise;

static int promise_compare(const void *a, const void *b) {
    const Promise *left = a, *right = b;
    const Candidate *l = left->candidate, *r = right->candidate;
    if (l->shape != r->shape) {
        return l->shape - r->shape;
    }
    if (left->class != right->class) {
        return left->class - right->class;
    }
    const double gain = left->class == 0 ? r->tokens_per_s - l->tokens_per_s : l->reserved_bytes - r->reserved_bytes;
    if (gain != 0) {
        return gain > 0 ? 1 : -1;
    }
    return l < r ? -1 : l > r;  // the space's own order
}

typedef struct ShapePromise {
    double tokens_per_s;
    int shape;
} ShapePromise;

static int shape_compare(const void *a, const void *b) {
    const ShapePromise *left = a, *right = b;
    if (left->tokens_per_s != right->tokens_per_s) {
        return left->tokens_per_s > right->tokens_per_s ? -1 : 1;
    }
    return left->shape - right->shape;
}

static void order_candidates(Search *search) {
    const int count = search->space.candidate_count, shapes = search->space.mesh_count;
    Promise *promises = ARENA_ARRAY(search->arena, Promise, count);
    for (int i = 0; i < count; i++) {
        Candidate *candidate = &search->space.candidates[i];
        const int class = candidate->state == CANDIDATE_REJECTED ? 2 : seems_to_fit(search, candidate) ? 0 : 1;
        promises[i] = (Promise){candidate, class};
    }
    qsort(promises, (size_t)count, sizeof *promises, promise_compare);
    search->order = ARENA_ARRAY(search->arena, Candidate *, count);
    search->first_of_shape = ARENA_ARRAY(search->arena, int, shapes + 1);
    ShapePromise *by_speed = ARENA_ARRAY(search->arena, ShapePromise, shapes);
    int shape = -1;
    for (int i = 0; i < count; i++) {
        search->order[i] = promises[i].candidate;
        while (shape < promises[i].candidate->shape) {
            search->first_of_shape[++shape] = i;
            by_speed[shape] = (ShapePromise){promises[i].class == 0 ? promises[i].candidate->tokens_per_s : 0, shape};
        }
    }
    search->first_of_shape[shapes] = count;
    qsort(by_speed, (size_t)shapes, sizeof *by_speed, shape_compare);
    search->shape_order = ARENA_ARRAY(search->arena, int, shapes);
    for (int i = 0; i < shapes; i++) {
        search->shape_order[i] = by_speed[i].shape;
    }
}

// ---- exact predictions

static void reject(Search *search, Candidate *candidate, const MemoryBreakdown *memory) {
    const PruneRule *rule = prune(search->request, &candidate->plan, memory, search->arena, &candidate->reason);
    candidate->state = CANDIDATE_REJECTED;
    candidate->rule = rule ? rule->name : "memory";
    search->result->search.pruned++;
}

static Status predict_candidate(Search *search, Candidate *candidate, bool with_engine, Prediction *prediction,
                                Error *error) {
    Predictor *predictor = &search->predictor;
    if (with_engine) {
        TRY(predict_plan(predictor, &candidate->plan, true, search->arena, prediction, error));
    } else {
        const Estimate *estimate = &search->estimates[candidate - search->space.candidates];
        TRY(predict_from_estimate(predictor, &candidate->plan, estimate, search->arena, prediction, error));
    }
    candidate->peak_bytes = prediction->memory.peak_bytes;
    candidate->reserved_bytes = prediction->memory.reserved_bytes;
    if (!prediction->fits) {
        reject(search, candidate, &prediction->memory);
        return STATUS_OK;
    }
    if (with_engine) {
        candidate->state = CANDIDATE_SIMULATED;
        candidate->step_s = prediction->step_s;
        candidate->tokens_per_s = prediction->tokens_per_s;
        candidate->prediction = prediction;
        search->result->search.cached += prediction->cached;
        search->result->search.simulated += !prediction->cached;
    }
    return STATUS_OK;
}

// The best choice of a shape that fits, or the reason why there is none. tried counts what fits.
static Status settle_shape(Search *search, int shape, bool with_engine, Prediction **best, Error *error) {
    const int first = search->first_of_shape[shape], end = search->first_of_shape[shape + 1];
    int fitting = 0;
    for (int i = first; i < end; i++) {
        Candidate *candidate = search->order[i];
        if (candidate->state != CANDIDATE_ESTIMATED) {
            break;
        }
        const bool hopeful = seems_to_fit(search, candidate);
        const bool close = hopeful && candidate->tokens_per_s >= (1 - MARGIN) * search->best_estimate;
        const int enough = with_engine ? BEST_PER_SHAPE : 1;
        if (fitting >= enough && !(close && with_engine)) {
            break;
        }
        Prediction *prediction = ARENA_NEW(search->arena, Prediction);
        TRY(predict_candidate(search, candidate, with_engine, prediction, error));
        if (prediction->fits) {
            fitting++;
            if (!*best || rank_compare(prediction, *best) < 0) {
                *best = prediction;
            }
        } else if (!hopeful) {
            break;  // the one that lacks least does not fit: none of the rest will
        }
    }
    return STATUS_OK;
}

// The shape's reason: memory of the choice that lacks least, else what its first choice was told.
static void add_rejection(Search *search, int shape) {
    const Candidate *nearest = NULL;
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        const Candidate *candidate = search->order[i];
        if (candidate->state != CANDIDATE_REJECTED) {
            continue;
        }
        const bool first_of_all = !nearest;
        const bool lacks_memory = candidate->reserved_bytes > 0;
        if (first_of_all ||
            (lacks_memory && (nearest->reserved_bytes <= 0 || candidate->reserved_bytes < nearest->reserved_bytes))) {
            nearest = candidate;
        }
    }
    ASSERT(nearest);
    TuneResult *result = search->result;
    result->rejected[result->rejected_count++] = (Rejection){nearest->plan, nearest->rule, nearest->reason};
}

// Candidates that were left because they need more memory than there is: said in the words of the estimate.
static void reject_the_rest(Search *search) {
    for (int i = 0; i < search->space.candidate_count; i++) {
        Candidate *candidate = &search->space.candidates[i];
        if (candidate->state == CANDIDATE_ESTIMATED && is_over_limit(search, candidate)) {
            char needs[TEXT_UNIT_BYTES], limit[TEXT_UNIT_BYTES];
            text_bytes(needs, candidate->reserved_bytes);
            text_bytes(limit, search->request->memory_limit_bytes);
            candidate->state = CANDIDATE_REJECTED;
            candidate->rule = "memory";
            candidate->reason = arena_format(search->arena, "needs %s of %s (estimated)", needs, limit);
            search->result->search.pruned++;
        }
    }
}

// The default batch is a wish: with many data ranks one sequence each is more.
static void warn_of_batch(const Search *search, Prediction *entry) {
    const int64_t wanted = space_default_batch(search->request->seq);
    const int64_t batch = plan_global_batch(&entry->plan);
    if (search->request->global_batch > 0 || 2 * batch <= 3 * wanted) {
        return;
    }
    ASSERT(entry->warning_count < PREDICTION_MAX_WARNINGS);
    entry->warnings[entry->warning_count++] =
        arena_format(search->arena, "a step takes %lld sequences, %.1f times the %lld assumed: give --global-batch",
                     (long long)batch, (double)batch / (double)wanted, (long long)wanted);
}

static Status settle_shapes(Search *search, Error *error) {
    TuneResult *result = search->result;
    const int shapes = search->space.mesh_count;
    result->entries = ARENA_ARRAY(search->arena, Prediction, shapes);
    result->rejected = ARENA_ARRAY(search->arena, Rejection, shapes);
    for (int i = 0; i < shapes; i++) {
        const int shape = search->shape_order[i];
        if (!progress_update(search->progress, "simulating shapes", i, shapes)) {
            return error_set(error, STATUS_ENVIRONMENT, "interrupted while simulating shape %d of %d", i + 1, shapes);
        }
        const bool with_engine = search->request->effort == EFFORT_SIMULATE && i < SIMULATED_MAX;
        Prediction *best = NULL;
        TRY(settle_shape(search, shape, with_engine, &best, error));
        if (best) {
            warn_of_batch(search, best);
            result->entries[result->entry_count++] = *best;
        } else {
            add_rejection(search, shape);
        }
    }
    progress_update(search->progress, "simulating shapes", shapes, shapes);
    return STATUS_OK;
}

Status search_run(const TuneRequest *request, const PredictionCache *cache, const Progress *progress, Arena *arena,
                  TuneResult *result, Error *error) {
    const double start_s = now_s();
    *result = (TuneResult){.request = request};
    Search search = {.request = request, .progress = progress, .arena = arena, .result = result};
    predictor_init(&search.predictor, request, cache);
    space_enumerate(request, arena, &search.space);
    search.estimates = ARENA_ARRAY(arena, Estimate, search.space.candidate_count);
    search.analytic = analytic_new(&request->model, &search.predictor.cost, arena);
    result->candidates = search.space.candidates;
    result->candidate_count = search.space.candidate_count;
    result->search.shapes = search.space.mesh_count;
    result->search.candidates = search.space.candidate_count;
    Status status = screen(&search, error);
    if (status == STATUS_OK) {
        order_candidates(&search);
        status = settle_shapes(&search, error);
    }
    if (status == STATUS_OK) {
        reject_the_rest(&search);
        rank_entries(result->entries, result->entry_count);
    }
    result->search.elapsed_s = now_s() - start_s;
    analytic_free(search.analytic);
    predictor_free(&search.predictor);
    return status;
}
