// Shared by the files of the search only.

#pragma once

#include <pthread.h>

#include "autotune/parallel.h"
#include "autotune/search/search.h"
#include "autotune/search/space.h"
#include "sim/analytic/analytic.h"

// Per-thread state. Its arena joins the caller's when the search ends.
typedef struct SearchWorker {
    Arena arena;
    Predictor predictor;
    Analytic *analytic;
    double best_tokens_per_s[2];    // of what it screened and seems to fit: without headroom, with headroom
    double chosen_tokens_per_s[2];  // by estimate, of the choices of shapes that it settled, as well
    double like_tokens_per_s;       // who->like, by estimate, where it fits; 0 = not yet, or it does not
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
    Estimate **estimates;       // by candidate; NULL = none
    PartialPlan *partial;       // PARTIAL_PER_SHAPE of each shape, as many as partial_count, best first
    int *partial_count;         // by shape
    Candidate **order;          // by shape, most promising first
    int *first_of_shape;        // into space.candidates and into order; mesh_count + 1 entries
    int *shape_order;           // shapes by their best estimate
    double best_estimate;       // tokens per second of the best that seems to fit with headroom, or else to fit
    Analytic *analytic;         // the caller's, for the only worker; NULL = each has its own
    SearchKnown *known;         // receives what the first worker memoised; or NULL
    bool best_only;             // what is clearly slower than the best is bounded, not estimated
    double above_tokens_per_s;  // then only plans faster than this matter; 0 = all do
    bool near;                  // and its bytes are not computed, as they are not reported (search_near.c)
    const SearchNear *who;      // the caller that asks what is near the best; NULL = none
    const Mesh *around;         // shapes near it alone; NULL = all
    bool widened;               // once more, with less left out
    const Mesh *reference;      // a shape that is always evaluated; or NULL
    RingGroup *rings;
    int ring_count;
    size_t ring_capacity;
} Search;

static inline bool search_takes(const TuneRequest *request, SearchShortcut shortcut) {
    return request->effort != EFFORT_EXHAUSTIVE && !(request->without >> shortcut & 1);
}

// All 0 where there is none: most candidates are thrown out before.
static inline const Estimate *search_estimate_of(const Search *search, const Candidate *candidate) {
    static const Estimate none = {0};
    const Estimate *estimate = search->estimates[candidate - search->space.candidates];
    return estimate ? estimate : &none;
}

// Worth a full breakdown, which decides.
bool search_seems_to_fit(const Search *search, const Candidate *candidate);

// Records the estimate of a candidate that fits.
void search_note(const Search *search, SearchWorker *worker, const Candidate *candidate);

// Estimates a candidate whose time was only bounded.
Status search_complete(const Search *search, SearchWorker *worker, Candidate *candidate, Error *error);

// To replace the estimate, a bound must be this much slower than the best plan that fits with headroom: more than what
// a breakdown of memory or an estimate may change.
#define CLEARLY_BEHIND 0.10

// Full recompute repeats forward: a third of forward plus backward without it.
#define FULL_OVER_NONE (4.0 / 3)

// Plus its communication, which may not be overlapped.
#define FULL_OVER_LESS 1.5  // at most

// Share of the step that sharding experts may save through fewer weights per rank: their gradient reductions and
// updates relative to everything else. 8x22B on 64 H100, pp=2, dp_shard=8, tp=4, ep=8: 0.07 with etp=2.
#define CUTS_SAVE 0.2

// A pipeline whose step is longer than this is not estimated; 0 = all are.
double search_hopeless_s(const Search *search, const SearchWorker *worker, const TrainPlan *plan);

// May a plan that recomputes less than this one matter? The time of this one may be bounded.
bool search_less_matters(const Search *search, const SearchWorker *worker, const Candidate *full);

// ---- the search for what is near the best (search_near.c)

// Is the fastest asked for, with nothing that the closed form does not know?
bool search_may_be_bounded(const TuneRequest *request);

bool search_near_is_enough(const TuneRequest *request);

// Of all shapes, where they are many.
bool search_near_of_all(const Search *search);

// Without a SearchNear caller: rejects what was skipped in a shape, and where it has no entry all that is
// far slower, with the fastest one's reason.
void search_near_name(Search *search, int shape, bool has_entry);

// The throughput that a plan must reach to be evaluated further.
double search_near_tokens_per_s(const Search *search, const TrainPlan *plan);

// Its time was bounded, its bytes were not asked for.
bool search_is_passed_over(const Search *search, const Candidate *candidate);

// Does it make the choices of who->like, on any shape?
bool search_is_like(const Search *search, const TrainPlan *plan);

bool search_can_be_had(const Search *search, const TrainPlan *plan);

// Clearly slower than the best of all that were screened.
bool search_is_far(const Search *search, const Candidate *candidate);

// The shape to begin with; -1 = any.
int search_near_shape(const Search *search);

// The same, or where all are searched and many are bounded a promising one (search_probe.c).
Status search_probe(const Search *search, SearchWorker *worker, int *best, Error *error);

// Records an estimate that fits.
void search_near_note(const Search *search, SearchWorker *worker, const Candidate *candidate);

// Is the best as good as the reference that the others were compared with?
bool search_near_holds(const Search *search);

// The same, of a search around a shape.
bool search_around_holds(const Search *search, const SearchBest *best);

// Makes it a full search, or one around a shape that leaves out less; known times and bytes stay in the closed form's
// cache.
void search_near_widen(Search *search);

// Clears the times of candidates that were only bounded, so that bounds are not taken for times.
void search_near_forget(Search *search);

// ---- the parts of every search

// Prunes and estimates every candidate.
Status search_screen(Search *search, Error *error);                                               // search_waves.c
Status search_screen_shape(const Search *search, SearchWorker *worker, int shape, Error *error);  // search_screen.c

// Why a shape is not screened: a shorter ring is far slower; or NULL. For a wave that is screened before the next.
const char *search_ring_outdone(const Search *search, SearchWorker *worker, int shape);
int search_ring_wave(const Mesh *mesh);
bool search_ring_speaks(const Mesh *mesh);
void search_note_ring(Search *search, int shape);

// Finds the plans of a screened shape that recompute the fewest layers that fit; joins all of them to the space.
Status search_partial_shape(const Search *search, SearchWorker *worker, int shape, Error *error);
void search_partial_join(Search *search);

// The estimated candidate of a shape that is `like` but for its recompute and micro-batch, which are these; NULL.
const Candidate *search_find_alike(const Search *search, int shape, const TrainPlan *like, Recompute mode,
                                   int micro_batch);

// Is the number of layers that are recomputed searched?
bool search_partial_is_open(const TuneRequest *request);

// Adds a plan with its estimate to those of its shape that join the space, if it is among the best of them.
void search_partial_add(const Search *search, SearchWorker *worker, int shape, const TrainPlan *plan,
                        const Estimate *estimate);

// Tries sets of recomputed modules in a screened shape whose candidates need more memory than those would.
Status search_modules_shape(const Search *search, SearchWorker *worker, int shape, Error *error);
bool search_tries_modules(const TuneRequest *request);

// Tries other expert sharding degrees (etp) in a screened shape.
Status search_cuts_shape(const Search *search, SearchWorker *worker, int shape, Error *error);
bool search_tries_cuts(const TuneRequest *request);

// Keeps at least one layer in `part` fewer; false where none is kept.
bool search_partial_less(const TuneRequest *request, TrainPlan *plan, int part);

// Most promising first, within each shape and among the shapes.
void search_order(Search *search);

// The result of the full breakdown, or the engine, for a candidate.
void search_reject(const Search *search, SearchWorker *worker, Candidate *candidate, const MemoryBreakdown *memory);
void search_take_simulated(SearchWorker *worker, Candidate *candidate, const Prediction *prediction);

// The best choice of a shape that fits, or NULL; simulates up to this many, 0 = use the estimate's times.
Status search_settle_shape(const Search *search, SearchWorker *worker, int shape, int simulated, Prediction **best,
                           Error *error);

// Simulates the pipelines among the best of each shape (by place in shape_order) that may be the best of all.
Status search_simulate_pipelines(Search *search, Prediction **best, Error *error);

// The exact best of each shape: fills result->entries and result->rejected.
Status search_settle(Search *search, Error *error);

void search_warn_of_batch(const Search *search, Prediction *entry);

// Settles shapes by estimate, most promising first, until none of the rest can be the best; and the reference shape.
Status search_settle_best(Search *search, SearchBest *best, Error *error);
