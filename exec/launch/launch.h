// Runs a plan for real, on this machine or on several hosts: starts one worker process per rank (by itself, or through
// mpirun, srun or torchrun), watches them and returns what they measured. In every case (a worker dies, hangs, SIGINT),
// every worker is ended and reaped, and no file or shared memory is left behind.

#pragma once

#include <jansson.h>

#include "exec/protocol/request.h"
#include "exec/protocol/result.h"
#include "sim/base/progress.h"

// Who starts the ranks, and where. Strings belong to the caller.
typedef struct LaunchOptions {
    const char *launcher;  // "auto" "local" "mpirun" "srun" "torchrun"; NULL = auto
    const char *hosts;     // "node1:2,node2:2" as the launcher takes them; NULL = none
    const char *hostfile;  // for mpirun; NULL = none
} LaunchOptions;

typedef struct ExecOptions {
    const char *worker_path;   // NULL = $NDTUNE_WORKER, else ndtune-worker next to the running executable
    const Progress *progress;  // label "step", may cancel; NULL = none
    LaunchOptions launch;
} ExecOptions;

// "0.1.0+3fa94c21d0b7": measurements from a different version were made with different code.
const char *executor_version(void);

// NULL when the executor can run this plan on the device; else the reason, arena text.
const char *exec_check(const ModelSpec *model, const TrainPlan *plan, const Target *target, const char *device,
                       Arena *arena);

// Likewise for the additional requirements of a bitwise or deterministic run.
const char *exec_check_options(const ModelSpec *model, const TrainPlan *plan, const RunOptions *options);

// ENVIRONMENT for a transport that this build lacks, USAGE for an unknown device or transport, and for options the
// device does not support.
Status exec_check_backend(const RunOptions *options, Error *error);

// Who would start the ranks, and why; an error that says why the requested launcher cannot.
Status exec_check_launch(const LaunchOptions *options, const char *transport, Arena *arena, const char **launcher,
                         const char **because, Error *error);

// Receives what rank 0 returned.
typedef Status ExecReader(const json_t *root, const StepPrograms *programs, Arena *arena, void *result, Error *error);

// Any job; `read` receives its result. Otherwise as exec_run.
Status exec_job(const RunRequest *request, const ExecOptions *options, ExecReader *read, Arena *arena, void *result,
                Error *error);

// Needs model, plan, target and options of the request and fills in the rest. Totals and spans refer to the tasks of
// step_lower for the same model, plan and target.
Status exec_run(const RunRequest *request, const ExecOptions *options, Arena *arena, RunResult *result, Error *error);
