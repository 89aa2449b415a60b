// The discrete-event engine: StepProgram + costs -> Timeline. Time is an integer count of picoseconds, so that a
// repeated segment is exactly the unrolled one; ties are broken by (time, task id). Tasks that run at the same time
// share links max-min and slow each other (sim/cost's use[] and the profile's interference terms). Host issue is a
// lane of its own: a task cannot start before the host has issued it, and the host issues in order.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/cost/cost.h"
#include "sim/step/stages.h"
#include "sim/step/timeline.h"

typedef struct EngineOptions {
    bool all_ranks;      // simulate every rank instead of one per equivalence class
    bool unroll;         // never repeat a segment by recurrence
    bool no_contention;  // every task takes its isolated time
    bool keep_spans;     // fill the timeline's spans; else totals only
    // World entries >= 1, NULL = all 1: what a rank computes takes this times longer; so does every collective that it
    // is a member of, which goes at the rate of its slowest member.
    const float *rank_slowdown, *link_slowdown;
} EngineOptions;

typedef struct EngineResult {
    double step_s;
    // Critical-path attribution on the representative rank, summing to step_s:
    double compute_s;              // compute lane busy, forward to backward
    double exposed_s[AXIS_COUNT];  // compute lane idle because of a collective of that axis (shard group -> dp_shard)
    double optimizer_s;
    double bubble_s;     // compute lane idle because other stages had not sent yet what it waits for
    double overhead_s;   // host-bound gaps, step edges, the remainder
    int64_t events;      // task instances simulated, over all simulated ranks
    int64_t instances;   // task instances represented, repeats included
    int classes;         // ranks simulated
    int representative;  // the rank that attribution and totals refer to: the first of the slowest
    TaskTotal *totals;   // per task of the program, repeats included, on the representative rank
    Timeline timeline;
    Timeline *stages;  // for one rank of each stage, if there are several and spans are kept; else NULL
} EngineResult;

// A step takes no less than its data do; engine_run and engine_run_stages have it.
void engine_wait_for_data(const CostModel *cost, const TrainPlan *plan, EngineResult *result);

// The engine's inputs from sim/cost; given by hand in tests and what-if questions.
typedef struct EngineCosts {
    const TaskCost *tasks;  // program->task_count rows
    Interference interference;
    double step_fixed_s;  // charged once per step, as overhead
} EngineCosts;

Status engine_run_costs(const StepProgram *program, const EngineCosts *costs, const EngineOptions *options,
                        Arena *arena, EngineResult *result, Error *error);

Status engine_run(const StepProgram *program, const CostModel *cost, const EngineOptions *options, Arena *arena,
                  EngineResult *result, Error *error);

// All stages, which synchronise through messages and collectives over stages; *program is that of the busiest, of which
// the result is.
Status engine_run_stages_costs(const StepPrograms *programs, const EngineCosts *costs, const EngineOptions *options,
                               Arena *arena, const StepProgram **program, EngineResult *result, Error *error);
Status engine_run_stages(const StepPrograms *programs, const CostModel *cost, const EngineOptions *options,
                         Arena *arena, const StepProgram **program, EngineResult *result, Error *error);
