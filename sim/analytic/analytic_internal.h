// Shared by the files of the estimate only.

#pragma once

#include "sim/analytic/analytic.h"
#include "sim/analytic/memo.h"
#include "sim/analytic/overlap.h"
#include "sim/analytic/pipeline.h"

// What was timed of plans whose products take as long: they wait for the slowest of their chips.
typedef struct AnalyticTimes {
    int world;
    double chip_factor;
    Memo meshes, overlaps, contentions;  // in times_arena
    Memo heads;                          // of head and loss
    struct AnalyticTimes *next;
} AnalyticTimes;

// Beside what an arena with a bound holds it keeps a few hundred bytes of each plan that differs in more than its data
// ranks: 24 MB of heads, paces, sizes and curves of DeepSeek-V3 on 1,024 ranks for Megatron, in a process of 418.
struct Analytic {
    ModelSpec model;
    CostModel cost;
    Arena *arena;
    Arena scratch;
    AnalyticTimes *times, *first_times;  // of the plan at hand, of all those seen
    Memo paces;  // of pipelines of as many ranks already estimated: what a layer takes (stage_bound.c)
    Memo memories;
    BlockMemo blocks;  // what overlaps consist of
    FluidMemo fluids;
    Arena times_arena;  // emptied once it exceeds TIMES_BYTES
    bool no_contention;
    Slowdowns slow;
    Analytic *memory_of;  // whose memory curves these are
    LiveTraces own_traces, *traces;
    Memo sizes;
    Analytic *programs_of;  // whose programs it uses
    Memo programs;          // in an arena of their own, which is reset once it exceeds PROGRAMS_BYTES
    Arena programs_arena;
    PipelineOrders orders;
    Memo splits;  // how layers are split over stages
    EstimateLimits limits;
};

enum { TIMES_BYTES = 32 << 20 };

// What pieces are looked up and made of: a stage of a pipeline as if it were alone, or a plan without stages.
typedef struct AlonePlan {
    TrainPlan plan;
    int stage;
    bool stops_host;            // at each of its messages
    const TrainPlan *pipeline;  // whose stage it is; NULL: none's
} AlonePlan;

// Before a time is looked up: which times are of such chips. What was found of meshes and overlaps is forgotten if it
// is too much.
void analytic_see_chips(Analytic *analytic, const TrainPlan *plan);

// All layers recomputed or none.
Status analytic_time_alike(Analytic *analytic, const AlonePlan *of, Estimate *estimate, Error *error);

// As if gathers, reductions and updates took no time: no more than with any number of data ranks.
Status analytic_time_alone(Analytic *analytic, const AlonePlan *of, Estimate *estimate, Error *error);

// How a stage's layers and a transfer slow each other down while both run.
typedef struct BesideLayers {
    double lost;  // of the layers' time, what they stand still
    double rate;  // of the transfer
} BesideLayers;

// Forward and backward, of a stage or plan that was timed.
Status analytic_beside_layers(Analytic *analytic, const AlonePlan *of, const ShareDemand *demand,
                              BesideLayers beside[LAYER_PASSES], Error *error);

// in_flight, drains: of memory_curve_at.
Status analytic_add_bytes(Analytic *analytic, const TrainPlan *plan, int stage, double in_flight, bool drains,
                          Estimate *estimate, Error *error);
bool analytic_bytes_are_known(Analytic *analytic, const TrainPlan *plan, int stage);

// a becomes a + (b - a) share: the time of the step and its terms, but for the bubble.
void analytic_mix_in(Estimate *a, const Estimate *b, double share);
bool analytic_is_hopeless(const Analytic *analytic, double step_s);
bool analytic_wants_bytes(const Analytic *analytic, double step_s);  // of a plan that takes so long
Status analytic_no_bytes(Estimate *estimate);  // for a hopeless plan whose bytes the caller does not need

// Are there replicas, shards, shards of experts? Which operations data ranks have depends on that.
enum { ANALYTIC_DATA_BITS = 3 };
unsigned analytic_data_bits(const TrainPlan *plan);

// Sequence length, micro-batch, the sizes of the inner axes and the choices.
MemoKey analytic_choices_key(const TrainPlan *plan);

// What a layer's time depends on: sequence length, micro-batch, where the ranks are that cut it, the choices but for
// those of `without`.
MemoKey analytic_layer_key(const Analytic *analytic, const TrainPlan *plan, uint64_t without, bool marked);

// Of a pipeline. A stage sends and takes behind its forward and behind its backward, the first and the last one at one
// end only (stage_rounds.c).
HostStops stage_host_stops(const AlonePlan *of);
Status analytic_estimate_stages(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error);
Status analytic_bytes_of_stages(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error);
Status analytic_bytes_of_stage(Analytic *analytic, const TrainPlan *plan, int stage, Estimate *estimate, Error *error);

// Where all layers recompute the same, and where some do.
Status analytic_estimate_whole(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error);
Status analytic_estimate_partly(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error);
