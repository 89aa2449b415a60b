// Runs a plan for real, on this machine or on hosts: starts one worker process per rank (by itself, or by mpirun, srun
// or torchrun), watches them, brings back what they measured. Whatever happens (a worker dies, hangs, SIGINT), every
// worker is ended and reaped and no file or shared memory stays behind.

#pragma once

#include <jansson.h>

#include "exec/protocol/request.h"
#include "exec/protocol/result.h"
#include "sim/base/progress.h"

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
