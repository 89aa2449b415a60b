// After the last step: what every rank measured, brought together on all ranks and written by rank 0.

#pragma once

#include "exec/worker/session.h"

typedef struct StepSeries {
    double *loss, *grad_norm, *step_time_s;
    int steps;
} StepSeries;

Status gather_and_save(Session *session, const StepSeries *series, Arena *arena, Error *error);
