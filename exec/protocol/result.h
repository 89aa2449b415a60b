// The result of a run (schema ndtune.run-result/1), which rank 0 returns to the launcher; and the failure file.

#pragma once

#include <jansson.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/step/chip_price.h"
#include "sim/step/expert_load.h"
#include "sim/step/stages.h"
#include "sim/step/timeline.h"

// What the ranks of a stage measured, by task of its program.
typedef struct StageResult {
    TaskTotal *totals;  // by task: per step after warm-up, mean over steps and ranks
    int32_t task_count;
    Timeline timeline;  // of the recorded step; span_count 0 unless options.spans
    int64_t peak_bytes, planned_peak_bytes;
} StageResult;

typedef struct RunResult {
    int world, steps;
    double *loss;                // mean over the step's global tokens; NAN if the run diverged
    double *grad_norm;           // global L2 norm before clipping
    double *step_time_s;         // slowest rank
    int64_t peak_bytes;          // highest byte of the arena that a task addressed, over all ranks
    int64_t planned_peak_bytes;  // of the stage that needs most
    // Of stage 0, the only stage if there is no pipeline.
    TaskTotal *totals;
    int32_t task_count;
    Timeline timeline;
    StageResult *stages;  // by stage
    int stage_count;
    const char *state;      // "ok", "diverged"
    const char *core_type;  // for which rank 0's BLAS ran its kernels ("SkylakeX"); NULL = a device with own kernels
    // For a device with its own chip: its name, the memory used by the largest rank, and what rank 0's work costs
    // there.
    const char *chip;  // NULL = none
    int64_t device_bytes;
    const ChipPrice *prices;
    int price_count;
    ExpertLoad expert_load;
} RunResult;

// What rank 0 writes: gathered over the ranks.
typedef struct WorkerRecord {
    RunResult result;               // its timelines are read from the spans
    int span_step;                  // -1 = no spans
    int64_t spans_per_rank;         // of the stage that has the most
    const double *start_s, *end_s;  // [world][spans_per_rank], issue order
} WorkerRecord;

json_t *run_result_json(const WorkerRecord *record);  // NULL: cannot be written
Status run_result_take(const json_t *root, const StepPrograms *programs, Arena *arena, RunResult *result, Error *error);

// The first rank that fails writes the reason; a later one finds the file and writes nothing.
void run_failure_save(const char *path, int rank, const Error *error);

// False when there is no such file. The message starts with the rank.
bool run_failure_load(const char *path, Error *error);

// The same as text: sent by ranks this program did not start.
json_t *run_failure_json(int rank, const Error *error);
Status run_failure_parse(const char *text, Error *error);  // always an error: the rank's
