// Shared by the files of the search only.

#pragma once

#include <pthread.h>

#include "autotune/parallel.h"
#include "autotune/search.h"
#include "autotune/space.h"
#include "sim/analytic/analytic.h"

// What one thread needs to itself. Its arena joins the caller's when the search ends.
typedef struct SearchWorker {
    Arena arena;
    Predictor predictor;
    Analytic *analytic;
    double best_tokens_per_s[2];    // of what it screened and seems to fit: without room to spare, with it
    double chosen_tokens_per_s[2];  // by estimate, of the choices of shapes that it settled, as well
    SearchCounts counts;
} SearchWorker;

// The caller's cache, asked by one thread at a time.
typedef struct LockedCache {
    PredictionCache cache;
    pthread_mutex_t lock;
} LockedCache;

// A plan that recomputes some layers and keeps the rest.
typedef struct PartialPlan {
    Candidate candidate;
    Estimate estimate;
} PartialPlan;

// The choices of what is recomputed.
#define RECOMPUTE_CHOICES                                                                                              \
    (PLAN_BIT(PLAN_RECOMPUTE) | PLAN_BIT(PLAN_RECOMPUTE_UNIT) | PLAN_BIT(PLAN_RECOMPUTE_LAYERS) |                      \
     PLAN_BIT(PLAN_RECOMPUTE_EVERY) | PLAN_BIT(PLAN_RECOMPUTE_MODULES))

typedef struct RingGroup RingGroup;  // search_rings.c

enum { PARTIAL_PER_SHAPE = 2 };  // as many as are simulated of a shape in any case (search_settle.c)

typedef struct Search {
    const TuneRequest *request;
    const Progress *progress;
    Arena *arena;
    TuneResult *result;
    LockedCache cache;
    SearchWorker workers[PARALLEL_MAX_WORKERS];
    int worker_count;
    Space space;
    Estimate *estimates;        // one per candidate
    PartialPlan *partial;       // PARTIAL_PER_SHAPE of each shape, as many as partial_count, best first
    int *partial_count;         // by shape
    Candidate **order;          // by shape, most promising first
    int *first_of_shape;        // into space.candidates and into order; mesh_count + 1 entries
    int *shape_order;           // shapes by their best estimate
    double best_estimate;       // tokens per second of the best that seems to fit with room, or else to fit
    Analytic *analytic;         // the caller's, for the only worker; NULL = each has its own
    bool best_only;             // what is clearly behind the best is bounded, not estimated
    double above_tokens_per_s;  // then: only whether something is faster matters; 0 = all does
    const Mesh *reference;      // a shape that is asked for whatever the others are; or NULL
    RingGroup *rings;
    int ring_count;
    size_t ring_capacity;
} Search;

static inline bool search_takes(const TuneRequest *request, SearchShortcut shortcut) {
    return request->effort != EFFORT_EXHAUSTIVE && !(request->without >> shortcut & 1);
}

// Worth a full breakdown, which decides.
bool search_seems_to_fit(const Search *search, const Candidate *candidate);

// Takes note of the estimate of a candidate that fits.
void search_note(const Search *search, SearchWorker *worker, const Candidate *candidate);

// Estimates a candidate whose time was only bounded.
Status search_complete(const Search *search, SearchWorker *worker, Candidate *candidate, Error *error);

// A pipeline's step that is longer need not be estimated; 0 = each is.
double search_hopeless_s(const Search *search, const SearchWorker *worker, const TrainPlan *plan);

// May a plan that recomputes less than this one matter? The time of this one may be bounded.
bool search_less_matters(const Search *search, const SearchWorker *worker, const Candidate *full);

// Prunes and estimates every candidate.
Status search_screen(Search *search, Error *error);

// Why a shape is not screened: a shorter ring is far behind; or NULL. Of a wave that is screened before the next one.
const char *search_ring_outdone(const Search *search, SearchWorker *worker, int shape);
int search_ring_wave(const Mesh *mesh);
void search_note_ring(Search *search, int shape);

// Finds the plans of a screened shape that recompute the fewest layers that fit; joins all of them to the space.
Status search_partial_shape(const Search *search, SearchWorker *worker, int shape, Error *error);
void search_partial_join(Search *search);

// The estimated candidate of a shape that is `like` but for its recompute and micro-batch, which are these; NULL.
const Candidate *search_find_alike(const Search *search, int shape, const TrainPlan *like, Recompute mode,
                                   int micro_batch);

// Adds a plan with its estimate to those of its shape that join the space, if it is among the best of them.
void search_partial_add(const Search *search, SearchWorker *worker, int shape, const TrainPlan *plan,
                        const Estimate *estimate);

// Tries sets of recomputed modules in a screened shape whose candidates need more memory than those would.
Status search_modules_shape(const Search *search, SearchWorker *worker, int shape, Error *error);
bool search_tries_modules(const TuneRequest *request);

// Tries other numbers of ranks that cut each expert in a screened shape.
Status search_cuts_shape(const Search *search, SearchWorker *worker, int shape, Error *error);
bool search_tries_cuts(const TuneRequest *request);

// Keeps at least one layer in `part` fewer; false where none is kept.
bool search_partial_less(const TuneRequest *request, TrainPlan *plan, int part);

// Most promising first, within each shape and among the shapes.
void search_order(Search *search);

// What the full breakdown, or the engine, says of a candidate.
void search_reject(const Search *search, SearchWorker *worker, Candidate *candidate, const MemoryBreakdown *memory);
void search_take_simulated(SearchWorker *worker, Candidate *candidate, const Prediction *prediction);

// The best choice of a shape that fits, or NULL; so many are simulated, 0 = the estimate's times are taken.
Status search_settle_shape(const Search *search, SearchWorker *worker, int shape, int simulated, Prediction **best,
                           Error *error);

// Simulates the pipelines among the best of each shape (by place in shape_order) that may be the best of all.
Status search_simulate_pipelines(Search *search, Prediction **best, Error *error);

// The exact best of each shape: fills result->entries and result->rejected.
Status search_settle(Search *search, Error *error);

void search_warn_of_batch(const Search *search, Prediction *entry);

// Settles shapes by estimate, most promising first, until none of the rest can be the best; and the reference shape.
Status search_settle_best(Search *search, SearchBest *best, Error *error);
