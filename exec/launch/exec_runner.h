// The executor as a StepRunner: runs a few real steps and gives back the spans of a typical one.

#pragma once

#include "exec/launch/launch.h"
#include "sim/step/step_runner.h"

typedef struct ExecRunner {
    RunOptions options;       // spans are switched on; steps at least 3
    const char *worker_path;  // as in ExecOptions
    RunResult last;           // of the latest run; lives in that run's arena
} ExecRunner;

// runner->state is the ExecRunner, which must outlive it.
StepRunner exec_runner(ExecRunner *state);
