// Full prediction of one plan: memory from the program's buffer lifetimes, times from the engine or the closed form.

#pragma once

#include "autotune/result.h"
#include "sim/analytic/analytic.h"
#include "sim/base/arena.h"
#include "sim/cost/cost.h"
#include "sim/memory/live_trace.h"

// A cache of finished predictions; the store is one. A NULL member is skipped.
typedef struct PredictionCache {
    // Fills *prediction (numbers and memory; its texts in the arena) and returns true on a hit.
    bool (*find)(void *state, uint64_t content_hash, Arena *arena, Prediction *prediction);
    // Saves a new engine result, so that a killed search resumes from there.
    void (*keep)(void *state, const TuneRequest *request, const Prediction *prediction);
    void *state;
} PredictionCache;

typedef struct Predictor {
    const TuneRequest *request;
    CostModel cost;
    PredictionCache cache;
    Arena scratch;                               // programs and timelines; reset for every plan
    LiveTraces traces;                           // of the programs so far
    Arena lasting;                               // what follows, as long as the predictor
    const float *rank_slowdown, *link_slowdown;  // per rank, from the request's handicaps; NULL = all 1
    Hash identity;  // engine version, model, profile, target, handicaps: the part of the content hash that plans share
} Predictor;

void predictor_init(Predictor *predictor, const TuneRequest *request, const PredictionCache *cache);  // both outlive it
void predictor_free(Predictor *predictor);

uint64_t predictor_content_hash(const Predictor *predictor, const TrainPlan *plan);  // of all that its numbers rest on

// The plan must be canonical and legal. A plan that does not fit gets no times when only_if_fits is set.
Status predict_plan(Predictor *predictor, const TrainPlan *plan, bool only_if_fits, Arena *arena,
                    Prediction *prediction, Error *error);

// Full prediction of a single plan; cache may be NULL.
Status predict_once(const TuneRequest *request, const PredictionCache *cache, const TrainPlan *plan, Arena *arena,
                    Prediction *prediction, Error *error);

// Memory in full, times from an estimate.
Status predict_from_estimate(Predictor *predictor, const TrainPlan *plan, const Estimate *estimate, Arena *arena,
                             Prediction *prediction, Error *error);

// Memory of one pipeline stage, regardless of the others.
Status predict_memory_of_stage(Predictor *predictor, const TrainPlan *plan, int stage, Arena *arena,
                               MemoryBreakdown *memory, Error *error);

// What recomputation adds to the model FLOPs of a token: the program's GEMMs and attention that run a second time, the
// attention at the full square that the model FLOPs count (programs count its causal half).
double predict_recomputed_flop_per_token(const StepProgram *program);
