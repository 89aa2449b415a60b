// Every rank, group and machine that a plan needs, checked by the executor before a long run.

#pragma once

#include "autotune/measure/measured_run.h"
#include "exec/launch/preflight.h"

typedef struct Preflight {
    MeasuredRun run;         // prepared by the caller
    PreflightResult result;  // compared with what the profile promises
    StoredPreflight stored;  // what is said and stored of it; its mesh is the caller's
} Preflight;

Status preflight_run(Preflight *preflight, const Progress *progress, Error *error);

// STATUS_ENVIRONMENT with the first finding that would stop the run.
Status preflight_verdict(const Preflight *preflight, Error *error);
