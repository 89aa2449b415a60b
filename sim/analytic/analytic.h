// The screening estimate: step time and memory of a plan by look-ups and a short run. The plan's own lowered program is
// taken apart once per key and memoised: what sharding costs on a mesh; a micro-step as a list of operations on a few
// clocks, with the delays of the compute between them; how a layer and the collectives overlapping it slow each other;
// memory as planes over micro-batch and sharding. Sharing by sibling groups is inside the collective cost. Checked
// against the engine: tests/property/sim/analytic. A pipeline: its fullest stage and its last one, each as if alone,
// then how the stages wait for each other (pipeline.h).

#pragma once

#include "sim/analytic/once.h"
#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/cost/cost.h"
#include "sim/memory/live_trace.h"
#include "sim/memory/memory.h"

typedef struct Analytic Analytic;  // memo; one per (model, cluster, target); times of one number of ranks at a time

// Memos live in the arena; analytic_free frees the working memory outside it. *cost is copied, what it points to
// is not.
Analytic *analytic_new(const ModelSpec *model, const CostModel *cost, Arena *arena);

// Every task takes its isolated time, as with the engine's no_contention; otherwise tasks that overlap slow each other
// down.
void analytic_ignore_contention(Analytic *analytic);

// Memory is looked up in `known`, and what is missing is added there: same model and target, any profile.
void analytic_share_memory(Analytic *analytic, Analytic *known);

// Lifetimes are looked up in `traces`, which is shared with and freed by the caller.
void analytic_share_traces(Analytic *analytic, LiveTraces *traces);

// Every rank computes and communicates slower by these factors (both at least 1): the step time if all wait for one
// such rank. A bound rather than a value; the engine knows which ranks actually wait.
void analytic_set_slowdowns(Analytic *analytic, double compute_slowdown, double link_slowdown);
void analytic_free(Analytic *analytic);

typedef struct Estimate {
    double step_s;
    double compute_s;
    double exposed_s[AXIS_COUNT];
    double optimizer_s;
    double bubble_s;    // waiting for other stages of a pipeline
    double overhead_s;  // the six terms sum to step_s
    double peak_bytes;
    double reserved_bytes;
    int stage;                                       // pipeline stage that these bytes belong to
    double carried_bytes;                            // carried by each micro-step from its forward to its backward
    double in_flight;                                // micro-steps that do so at a time
    double drained_bytes;                            // the most while the last of them is the only one; 0 = not known
    double growing_bytes;                            // of these, whole gradients, first allocated by the first backward
    double first_growing_bytes, last_growing_bytes;  // of these, the embedding's and the head's
    double early_bytes;                              // of the peak, gathered until the last forward of the embedding
    double forward_lead_s, lead_s;  // by which a stage's host has issued the last forward, and all, before they end
    OnceTimes once;                 // of step_s, of a stage alone
    UpdateTimes update;             // of step_s
    bool is_bound;                  // step_s is a lower bound (analytic_estimate_within)
    bool is_too_large;              // only the bytes are known: they exceed the limit of interest
} Estimate;

// Of a quantity with all layers recomputed and with none: that with the share `kept` of them kept.
static inline double analytic_between(double all, double none, double kept) {
    return all + (none - all) * kept;
}

// The plan must be canonical and legal. Once the unit of its key is memoised: no allocation, no lowering.
Status analytic_estimate(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error);

// Limits beyond which an estimate is of no interest; 0 = no limit.
typedef struct EstimateLimits {
    double step_s;   // a pipeline's longer one is bounded from below, which is cheap
    bool time_only;  // then any plan's bytes are left 0, and the plan counts as bounded
    double bytes;    // a pipeline that reserves more than this is not timed
    bool no_bytes;   // of no plan are they of interest: all are left 0
} EstimateLimits;

Status analytic_estimate_within(Analytic *analytic, const TrainPlan *plan, const EstimateLimits *limits,
                                Estimate *estimate, Error *error);

// Lower bound on a pipeline's step time, and the bubble in it, from the pace of similar layers in pipelines already
// estimated: no lowering, no run over the schedule, no bytes. false = no such pipeline is known.
bool analytic_bound(Analytic *analytic, const TrainPlan *plan, Estimate *bound);

// Programs without times are the other's, which stays as long: one whose targets differ in the pace of their hosts.
void analytic_share_programs(Analytic *analytic, Analytic *known);

// Only its bytes: no lowering either if another micro-batch was estimated before.
Status analytic_estimate_bytes(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error);
