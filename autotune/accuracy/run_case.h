// A measured run as the tuner would describe it: model, cluster, target and plan, or the reason why this version
// cannot.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "autotune/result.h"

typedef struct RunCase {
    const RunRow *row;
    TuneRequest request;
    TrainPlan plan;          // canonical and legal
    double measured_step_s;  // of the plan's tokens; 0 = not measured
    const char *skipped;     // why it is not predicted; NULL
    uint64_t not_expressed;  // bit i: row i of run_case_losses holds
    Prediction prediction;
    MemoryBreakdown logged;  // of the stage that the framework's log speaks of; nothing = of the fullest one
    bool logs_reserved;      // a figure of no kind is what the allocator holds: so the framework's log has it
    double cached_bytes;     // what the target's allocator holds, where memory was measured; 0 = the target has none
} RunCase;

// What a row says and no plan of this version can: it is predicted without.
typedef struct RunLoss {
    const char *column;
    const char *what;
    bool (*holds)(const RunCase *run);
} RunLoss;

const RunLoss *run_case_losses(int *count);

// Remembers clusters, so that a profile is read once.
typedef struct RunMapper RunMapper;
RunMapper *run_mapper_new(Arena *arena);

// Rows whose cluster has this name get this profile; both outlive the mapper.
void run_mapper_give(RunMapper *mapper, const char *name, const ClusterProfile *profile);

// Fills *run; what it holds lives in the mapper's arena.
void run_case_build(RunMapper *mapper, const RunRow *row, RunCase *run);
