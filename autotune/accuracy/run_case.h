// A measured run as the tuner would describe it: model, cluster, target and plan, or the reason why this version
// cannot.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "autotune/result.h"

typedef struct RunCase {
    const RunRow *row;
    TuneRequest request;
    TrainPlan plan;          // canonical and legal
    double measured_step_s;  // for the plan's tokens; 0 = not measured
    bool computed;           // by its source's simulator, whatever that calls it: no measurement
    const char *skipped;     // why it is not predicted; NULL
    uint64_t not_expressed;  // bit i: entry i of run_case_losses applies
    Prediction prediction;
    MemoryBreakdown logged;  // of the stage that the framework's log reports; zero = of the fullest one
    bool logs_reserved;      // a memory figure of unknown kind is reserved memory, as the framework logs it
    bool may_keep_fp8;       // layers of experts in fp8 alone, as its recipe has them: where they do not fit otherwise
    double recorded_bytes;   // freed tensors of tp's collectives that the allocator cannot hand out again yet
} RunCase;

// What a row states and no plan of this version can express: the row is predicted without it.
typedef struct RunLoss {
    const char *column;
    const char *what;
    bool (*holds)(const RunCase *run);
} RunLoss;

const RunLoss *run_case_losses(int *count);

// Caches clusters, so that each profile is read once.
typedef struct RunMapper RunMapper;
RunMapper *run_mapper_new(Arena *arena);

// Rows whose cluster has this name use this profile; both must outlive the mapper.
void run_mapper_give(RunMapper *mapper, const char *name, const ClusterProfile *profile);

// Fills *run; its contents live in the mapper's arena.
void run_case_build(RunMapper *mapper, const RunRow *row, RunCase *run);
