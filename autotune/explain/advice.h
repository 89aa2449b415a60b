// What to change in an existing plan, and what each change gains: compared with the best of a search with the same
// batch, and one change at a time.

#pragma once

#include "autotune/predict/predict.h"
#include "autotune/result.h"

// What a single change touches.
typedef enum {
    ADVICE_MESH,
    ADVICE_MICRO_BATCH,
    ADVICE_RESHARD,
    ADVICE_RECOMPUTE,
    ADVICE_ROTATE,
    ADVICE_ZERO,
    ADVICE_SYNC,
    ADVICE_KERNELS,
    ADVICE_OVERLAP,
    ADVICE_LOSS,
    ADVICE_TP_OVERLAP,
    ADVICE_KIND_COUNT
} AdviceKind;

enum { ADVICE_MESHES = 3, ADVICE_MAX_CHANGES = 16 };

typedef struct Advice {
    AdviceKind kind;
    const char *change;  // "micro-batch 2 x accumulation 4"
    Prediction prediction;
    const char *reason;  // why it does not fit; NULL
    double gain;         // tokens/s over the plan's own, minus one; 0 = the plan has none
} Advice;

typedef struct AdviceReport {
    const TuneResult *result;  // of a request with the plan's batch and kernels
    bool legal;                // the plan is, for the target
    const char *reason;        // why it is not, or does not fit; NULL
    Prediction own;            // of a plan that is not legal: only the plan
    const Prediction *best;    // NULL = there is none, and why:
    const char *no_best;
    double gain;                         // of the best over the plan; 0 = the plan has no time
    Advice changes[ADVICE_MAX_CHANGES];  // legal ones, fitting ones first, best first
    int change_count;
    const Prediction *successor;  // the same plan in the newer version; NULL
    const Target *newer;
} AdviceReport;

// Can a plan be used? A config file cannot express everything that a search finds.
typedef struct AdviceFilter {
    bool (*takes)(const void *state, const Prediction *prediction);
    const char *(*lacks)(const void *state, const Prediction *prediction);  // why not, of one that it does not take
    const void *state;
} AdviceFilter;

// The best is the first entry of the result that the filter takes, or a single change that is faster still. The plan
// must be canonical; NULL = there is none, and no change to it. Texts in the arena.
typedef struct AdviceQuestion {
    const TuneResult *result;
    const TrainPlan *plan;
    AdviceFilter filter;
    const char *successor;  // a newer version of the target, to predict the plan in; NULL
    const PredictionCache *cache;
} AdviceQuestion;

// Predicts the plan (NULL: none was read) and single changes of it, sorted by what they gain; texts in the arena.
Status advise(const AdviceQuestion *question, Arena *arena, AdviceReport *report, Error *error);
