// The search: enumerate, prune with reasons, screen with the closed form, simulate the promising, rank.

#pragma once

#include "autotune/predict/predict.h"
#include "autotune/result.h"
#include "sim/base/progress.h"

// Results memoised by the closed form in one search, for later estimate-only searches with the same model, cluster and
// target: "SearchKnown known = {0}" is empty. It stays where it is.
typedef struct SearchKnown {
    Arena arena;
    Analytic *analytic;  // the first thread's, which screens alone where shapes are many; NULL = nothing is known
    LiveTraces traces;   // its
} SearchKnown;

// Fills *result (in the arena); *known (empty) is kept, NULL = nothing. A request that nothing satisfies is STATUS_OK
// with no entries. The cache may be NULL.
Status search_run_keeping(const TuneRequest *request, const PredictionCache *cache, const Progress *progress,
                          SearchKnown *known, Arena *arena, TuneResult *result, Error *error);
void search_known_free(SearchKnown *known);

// The caller that asks how much slower a plan is than the best.
typedef struct SearchNear {
    const TrainPlan *like;                                           // the plan; NULL = it cannot run
    bool (*takes)(const void *state, const Prediction *prediction);  // can it be had?
    const void *state;
} SearchNear;

#define SEARCH_NOT_HAD "not had"  // the rule of plans that cannot

// The best available plan for that caller: what is clearly slower is not evaluated further, so entries are those near
// it and other shapes are not reported. Candidates with the choices of near->like on another shape that are not clearly
// slower than it are the same as in a full search.
Status search_near(const TuneRequest *request, const SearchNear *near, const PredictionCache *cache,
                   const Progress *progress, Arena *arena, TuneResult *result, Error *error);

// The answer to a question about a changed request.
typedef struct SearchBest {
    bool feasible;
    Prediction best;
    double reference_tokens_per_s;  // throughput of the reference shape; 0 = it cannot run
    int shapes;                     // that were evaluated
} SearchBest;

// The best plan alone and the reference shape (NULL = none), by estimate where nothing is slow. The closed form's
// memory is the caller's, for the request's model, cluster and target, so that searches can share it; one thread. The
// texts of best->best live in the arena.
Status search_best(const TuneRequest *request, Analytic *analytic, const Mesh *reference, Arena *arena,
                   SearchBest *best, Error *error);

enum { SEARCH_MANY_SHAPES = 256 };  // above this, what is far from the best is not evaluated closely

// The same without a reference shape, for callers that only ask whether something is faster than that: what cannot be
// is not looked at closely, so the best may be another one where nothing is. Shapes near a mesh alone, or all: NULL.
Status search_best_above(const TuneRequest *request, Analytic *analytic, double tokens_per_s, const Mesh *mesh,
                         Arena *arena, SearchBest *best, Error *error);

// The best with a closed form of its own, and no reference shape.
Status search_best_alone(const TuneRequest *request, Arena *arena, SearchBest *best, Error *error);
