// Shared by the files of the search only.

#pragma once

#include <pthread.h>

#include "autotune/parallel.h"
#include "autotune/search/search.h"
#include "autotune/search/space.h"
#include "sim/analytic/analytic.h"

// What one thread needs to itself. Its arena joins the caller's when the search ends.
typedef struct SearchWorker {
    Arena arena;
    Predictor predictor;
    Analytic *analytic;
    double best_tokens_per_s[2];    // of what it screened and seems to fit: without room to spare, with it
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
    Estimate *estimates;        // one per candidate
    PartialPlan *partial;       // PARTIAL_PER_SHAPE of each shape, as many as partial_count, best first
    int *partial_count;         // by shape
    Candidate **order;          // by shape, most promising first
    int *first_of_shape;        // into space.candidates and into order; mesh_count + 1 entries
    int *shape_order;           // shapes by their best estimate
    double best_estimate;       // tokens per second of the best that seems to fit with room, or else to fit
    Analytic *analytic;         // the caller's, for the only worker; NULL = each has its own
    SearchKnown *known;         // takes what the first worker learns; or NULL
    bool best_only;             // what is clearly behind the best is bounded, not estimated
    double above_tokens_per_s;  // then: only whether something is faster matters; 0 = all does
    bool near;                  // and its bytes are not asked for: nobody reads of it (search_near.c)
    const SearchNear *who;      // asks what is near the best; NULL = nobody
    const Mesh *around;         // shapes near it alone; NULL = all
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

// A bound must be so far behind the best that fits with room to stand for the estimate: more than what a breakdown of
// memory or an estimate may change.
#define CLEARLY_BEHIND 0.10

// Recomputing all repeats forward, a third of what forward and backward are without.
#define FULL_OVER_NONE (4.0 / 3)

// And what it sends, which may not be hidden.
#define FULL_OVER_LESS 1.5  // at most

// Of the step, what fewer weights on each rank may save by cuts of experts: their gradients' sums and updates beside
// everything else. 8x22B on 64 H100, pp=2, dp_shard=8, tp=4, ep=8: 0.07 with etp=2.
#define CUTS_SAVE 0.2

// A pipeline's step that is longer need not be estimated; 0 = each is.
double search_hopeless_s(const Search *search, const SearchWorker *worker, const TrainPlan *plan);

// May a plan that recomputes less than this one matter? The time of this one may be bounded.
bool search_less_matters(const Search *search, const SearchWorker *worker, const Candidate *full);

// ---- the search for what is near the best (search_near.c)

// Is the fastest asked for, with nothing that the closed form does not know?
bool search_may_be_bounded(const TuneRequest *request);

bool search_near_is_enough(const TuneRequest *request);

// Of all shapes, where they are many.
bool search_near_of_all(const Search *search);

// Where nobody asks but the user: throws out what was passed over in a shape, and where it has no entry all that is far
// behind, with the words of the fastest.
void search_near_name(Search *search, int shape, bool has_entry);

// What a plan must reach to be looked at further.
double search_near_tokens_per_s(const Search *search, const TrainPlan *plan);

// Its time was bounded, its bytes were not asked for.
bool search_is_passed_over(const Search *search, const Candidate *candidate);

// Does it make the choices of who->like, on any shape?
bool search_is_like(const Search *search, const TrainPlan *plan);

bool search_can_be_had(const Search *search, const TrainPlan *plan);

// Clearly behind the best of all that were screened.
bool search_is_far(const Search *search, const Candidate *candidate);

// The shape to begin with; -1 = any.
int search_near_shape(const Search *search);

// The same, or where all are searched and many are bounded a promising one (search_probe.c).
Status search_probe(const Search *search, SearchWorker *worker, int *best, Error *error);

// Takes note of an estimate that fits.
void search_near_note(const Search *search, SearchWorker *worker, const Candidate *candidate);

// Is the best as good as what the others were measured against?
bool search_near_holds(const Search *search);

// Makes it a search of all; what is known of times and bytes stays with the closed form.
void search_near_widen(Search *search);

// Of those that were only bounded nobody shall take the times for theirs.
void search_near_forget(Search *search);

// ---- the parts of every search

// Prunes and estimates every candidate.
Status search_screen(Search *search, Error *error);

// Why a shape is not screened: a shorter ring is far behind; or NULL. Of a wave that is screened before the next one.
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
