// After the last step: what every rank measured, brought together on all ranks and written by rank 0.

#pragma once

#include "exec/worker/session.h"

typedef struct StepSeries {
    double *loss, *grad_norm, *step_time_s;
    int steps;
} StepSeries;

// Every rank's bytes, by rank, on every rank.
Status gather(Session *session, const void *part, void *whole, int64_t bytes, Error *error);

Status gather_and_save(Session *session, const StepSeries *series, Arena *arena, Error *error);
