// Runs a plan for real, on this machine or on hosts: starts one worker process per rank (by itself, or by mpirun, srun
// or torchrun), watches them, brings back what they measured. Whatever happens (a worker dies, hangs, SIGINT), every
// worker is ended and reaped and no file or shared memory stays behind.

#pragma once

#include <jansson.h>

#include "exec/launch/request.h"
#include "sim/base/progress.h"
#include "sim/memory/memory.h"
#include "sim/step/expert_load.h"
#include "sim/step/stages.h"
#include "sim/step/timeline.h"

// Who starts the ranks, and where. Texts are the caller's.
typedef struct LaunchOptions {
    const char *launcher;  // "auto" "local" "mpirun" "srun" "torchrun"; NULL = auto
    const char *hosts;     // "node1:2,node2:2" as the launcher takes them; NULL = none
    const char *hostfile;  // of mpirun; NULL = none
} LaunchOptions;

typedef struct ExecOptions {
    const char *worker_path;   // NULL = $NDTUNE_WORKER, else ndtune-worker beside the running executable
    const Progress *progress;  // label "step", may cancel; NULL = none
    LaunchOptions launch;
} ExecOptions;

// What the ranks of a stage measured, in terms of the tasks of its program.
typedef struct StageResult {
    TaskTotal *totals;  // by task: of one step after warm-up, mean over steps and ranks
    int32_t task_count;
    Timeline timeline;  // of the recorded step; span_count 0 unless options.spans
    int64_t peak_bytes, planned_peak_bytes;
} StageResult;

typedef struct RunResult {
    int world, steps;
    double *loss;                // mean over the step's global tokens; NAN where the run diverged
    double *grad_norm;           // global L2 norm before clipping
    double *step_time_s;         // slowest rank
    int64_t peak_bytes;          // highest byte of the arena that a task addressed, over all ranks
    int64_t planned_peak_bytes;  // of the stage that needs most
    // Of stage 0, the only one without a pipeline.
    TaskTotal *totals;
    int32_t task_count;
    Timeline timeline;
    StageResult *stages;  // of all, by stage
    int stage_count;
    const char *state;      // "ok", "diverged"
    const char *core_type;  // that rank 0's BLAS ran its kernels for ("SkylakeX"); NULL = of a device with its own
    // Of a device with a chip of its own: what it is, the memory that the largest rank took of it, what rank 0's work
    // costs there.
    const char *chip;  // NULL = none
    int64_t device_bytes;
    const ChipPrice *prices;
    int price_count;
    ExpertLoad expert_load;
} RunResult;

// "0.1.0+3fa94c21d0b7": what was measured under another version was measured with other code.
const char *executor_version(void);

// NULL when the executor runs this plan on the device; else the reason in words, arena text.
const char *exec_check(const ModelSpec *model, const TrainPlan *plan, const Target *target, const char *device,
                       Arena *arena);

// The same for what a bitwise or deterministic run needs on top.
const char *exec_check_options(const ModelSpec *model, const TrainPlan *plan, const RunOptions *options);

// ENVIRONMENT for a transport that this build does not have, USAGE for a device or transport that nobody has, and for
// options that the device does not go with.
Status exec_check_backend(const RunOptions *options, Error *error);

// Who would start the ranks, and why; in words why the wanted one cannot.
Status exec_check_launch(const LaunchOptions *options, const char *transport, Arena *arena, const char **launcher,
                         const char **because, Error *error);

// Takes what rank 0 brought.
typedef Status ExecReader(const json_t *root, const StepPrograms *programs, Arena *arena, void *result, Error *error);

// Any job, its result taken by `read`. Otherwise as exec_run.
Status exec_job(const RunRequest *request, const ExecOptions *options, ExecReader *read, Arena *arena, void *result,
                Error *error);

// Needs model, plan, target and options of the request and fills in the rest. Totals and spans refer to the tasks of
// step_lower of the same model, plan and target.
Status exec_run(const RunRequest *request, const ExecOptions *options, Arena *arena, RunResult *result, Error *error);
