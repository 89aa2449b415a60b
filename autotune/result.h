// A tuning request and its result: the types that search fills, the store keeps and reports read. Plain values; texts
// and arrays live in the caller's arena.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/cluster/cluster.h"
#include "sim/frameworks/target.h"
#include "sim/memory/memory.h"
#include "sim/model/model.h"
#include "sim/plan/plan_fields.h"

enum {
    TUNE_ANY = PLAN_ANY,                    // of what was asked for a field: the search or the target decides
    TUNE_DEFAULT_TOKENS = 4 * 1024 * 1024,  // tokens per step when no global batch is given
    PREDICTION_MAX_WARNINGS = 10,
    TUNE_DEFAULT_SEQ = 4096  // or the model's maximum, whichever is less
};

// Exhaustive: what EFFORT_SIMULATE leaves out by a shortcut is simulated too.
typedef enum { EFFORT_SIMULATE, EFFORT_ESTIMATE, EFFORT_EXHAUSTIVE, EFFORT_COUNT } Effort;

// Shortcuts by which a search skips part of the space; each one's justification is where it is applied.
typedef enum {
    SHORTCUT_SMALLER,     // a smaller micro-batch of the same choices is too large for memory
    SHORTCUT_THRIFTIEST,  // so are, by far, the choices of the shape that need least
    SHORTCUT_NEAREST,     // the plan of the shape that lacks least does not fit
    SHORTCUT_BEHIND,      // enough plans of the shape that the estimate puts before it were simulated
    SHORTCUT_FAR_SHAPES,  // the estimate puts enough shapes before it
    SHORTCUT_SLICE,       // a rule of prune.c: cut finer than an attention tile, also where the search is exhaustive
    SHORTCUT_ROOM,        // the same plan that needs memory in place of time fits with room to spare
    SHORTCUT_OUTDONE,     // another value of a choice is no slower and needs no more memory (target_outdoing)
    SHORTCUT_STAGES,      // rules of prune.c: a pipeline with too few micro-steps, or whose chunks are uneven
    SHORTCUT_RINGS,       // half as many ranks on a sequence are far slower than the best (search_rings.c)
    SHORTCUT_UNPRICED,    // of many shapes, what is clearly slower than the best is bounded (search_near.c)
    SHORTCUT_COUNT
} SearchShortcut;

// The objective of the search. One price holds for all accelerators of a profile, so within one world the order by cost
// is that by throughput.
typedef enum { OBJECTIVE_THROUGHPUT, OBJECTIVE_MEMORY, OBJECTIVE_COST, OBJECTIVE_COUNT } Objective;

extern const char *const objective_names[OBJECTIVE_COUNT];  // "throughput" "memory" "cost"

// What if one rank, or each of a node, were slower than the profile says?
typedef struct Handicap {
    bool of_node;   // index counts nodes, else ranks
    bool of_links;  // its collectives take this many times as long, else its compute
    int index;
    double factor;  // at least 1
} Handicap;

typedef struct TuneRequest {
    const char *command;  // the command line, quoted for a shell
    int world;
    ModelSpec model;
    const char *model_asked;  // what the user typed: "7b"
    ClusterProfile cluster;
    const Target *target;
    const Target *runner;  // who runs the target's program: our executor's row; NULL = the target itself
    int seq;
    int64_t global_batch;         // sequences; 0 = of a search: one that all shapes can make (batch.c); of a plan: any
    bool batch_assumed;           // the search settled on it
    int micro_batch;              // 0 = searched
    int grad_accum;               // of one plan: 0 = what makes the global batch
    Mesh mesh;                    // of one plan
    int asked[PLAN_FIELD_COUNT];  // a value of each other field of the plan, or TUNE_ANY
    const char *refusal;          // why no plan has what was asked, whichever else it has; NULL
    bool any_order;               // of the axes over the ranks: searched among those that the target can run
    AxisOrder order;              // where it is not
    const PpOrder *pp_order;      // of pp_schedule file, which is asked for
    bool serial_lanes;            // our executor on CPUs: lanes one after another, nothing overlaps
    int max_tp;                   // 0 = no bound
    double memory_limit_bytes;
    Effort effort;
    unsigned without;  // shortcuts that are not taken, as bits
    Objective objective;
    double tokens;              // to train on: 0 = not said; changes no ranking
    Mesh baseline;              // a shape to compare with; size[0] = 0: none
    const Handicap *handicaps;  // in the order in which they were said; every time then comes from the engine
    int handicap_count;
    int threads;                     // 0 = as many as there are processors; changes no result
    const char *const *assumptions;  // text: what the request did not specify
    int assumption_count;
    const char *const *defaults;  // the options among them, with the value taken: "--seq 4096"
    int default_count;
} TuneRequest;

// A request of that many ranks, on racks that are alike for them (cluster_make_racks_alike, whose result it returns).
int request_set_world(TuneRequest *request, int world, Arena *arena);

// What the request says of slow ranks, nodes and links; nothing when it says nothing.
void handicap_hash(const TuneRequest *request, Hash *hash);

typedef enum { ORIGIN_ESTIMATE, ORIGIN_ENGINE, ORIGIN_COUNT } PredictionOrigin;

typedef struct Prediction {
    TrainPlan plan;
    PredictionOrigin origin;  // who gave the times: the closed form or the engine
    double step_s, step_low_s, step_high_s;
    double compute_s, exposed_s[AXIS_COUNT], optimizer_s, bubble_s, overhead_s;  // sum to step_s
    double tokens_per_s, model_flop_per_s_per_gpu, mfu, hfu;
    double recomputed_flop_per_token;  // that recomputation adds, in the convention of the model FLOPs
    MemoryBreakdown memory;
    bool fits;              // memory.reserved_bytes <= limit
    uint64_t content_hash;  // of everything that the numbers depend on
    bool cached;            // the numbers came from the store
    bool pareto;            // among the entries none is as fast with less memory, or faster with as little
    const char *data_wait;  // of the warnings, that steps wait for data; NULL = they do not
    const char *warnings[PREDICTION_MAX_WARNINGS];
    int warning_count;
} Prediction;

#define RULE_BEHIND "behind"  // of shapes that are clearly slower than the best: they may run, but are not priced

// A shape with nothing to run, or a candidate that a rule rejected.
typedef struct Rejection {
    TrainPlan plan;      // the choice that came closest
    const char *rule;    // name of the prune rule
    const char *reason;  // one sentence
} Rejection;

// The outcome of one choice of one shape.
typedef enum { CANDIDATE_REJECTED, CANDIDATE_ESTIMATED, CANDIDATE_SIMULATED, CANDIDATE_STATE_COUNT } CandidateState;

typedef struct Candidate {
    TrainPlan plan;
    int shape;  // index into the enumeration of the world
    CandidateState state;
    const char *rule, *reason;    // CANDIDATE_REJECTED
    double step_s, tokens_per_s;  // estimated, or simulated where state says so; 0 = rejected before any estimate
    double peak_bytes, reserved_bytes;
    uint64_t content_hash;         // of its prediction; 0 until the search begins
    const Prediction *prediction;  // CANDIDATE_SIMULATED: in full; else NULL
} Candidate;

typedef struct SearchCounts {
    int shapes, candidates, pruned, estimated, simulated, cached;
    double elapsed_s;
} SearchCounts;

// What a change that lets something fit leaves as it is: the training and the accelerators, the training, neither.
typedef enum { CURE_PLAN, CURE_WORLD, CURE_TRAINING, CURE_ADAPTERS } CureKind;

// A change of a request under which nothing fits (cures.h), and the best plan with it.
typedef struct Cure {
    CureKind kind;
    const char *option;  // "--offload parameters,optimizer"
    int world;
    Mesh mesh;
    double step_s, tokens_per_s, reserved_bytes;
    double slower;  // tokens per second of an accelerator: 1 - theirs over those if memory had no limit
} Cure;

typedef struct TuneResult {
    const TuneRequest *request;
    Prediction *entries;  // best choice of each shape that fits, ranked
    int entry_count;
    Rejection *rejected;  // one per other shape; entries + rejected = every shape of the world
    int rejected_count;
    Candidate *candidates;  // every choice of every shape
    int candidate_count;
    double chosen_tokens_per_s;  // of what a search by estimate alone would take; 0 = nothing fits
    const char *best_reason;     // why entries[0] is the best, one sentence; NULL = nothing fits
    const Prediction
        *fastest_if_it_fits;  // a plan faster than the best that leaves too little memory free; NULL = none
    const Cure *cures;        // what would let something fit, the nearest first; none unless asked for
    int cure_count;
    const char *if_allowed;  // what other number formats would come to on the best, one line; NULL = not asked
    SearchCounts search;
} TuneResult;

// One line that says what the numbers of a prediction depend on besides the inputs: the code of sim/ and of the search.
const char *tune_engine_version(void);  // "0.1.0+3fa94c21d0b7"
