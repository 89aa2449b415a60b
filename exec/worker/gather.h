// After the last step: collects every rank's measurements on all ranks; rank 0 writes them.

#pragma once

#include "exec/worker/session.h"

typedef struct StepSeries {
    double *loss, *grad_norm, *step_time_s;
    int steps;
} StepSeries;

// All ranks' bytes, by rank, on every rank.
Status gather(Session *session, const void *part, void *whole, int64_t bytes, Error *error);

Status gather_and_save(Session *session, const StepSeries *series, Arena *arena, Error *error);
