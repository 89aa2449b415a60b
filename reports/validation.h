// Results of validate: the ranking against measurements, where the time went, kinds of tasks, agreement.

#pragma once

#include "autotune/validate/validate.h"
#include "reports/answer.h"

extern const Answer answer_validation;  // Validation; ndtune.validate/1, CSV: a line per row

// Every run as a line of a run file; cluster and overrides as its columns want them.
typedef struct ValidationRuns {
    const Validation *validation;
    const char *cluster, *overrides;
} ValidationRuns;

Status csv_validation_runs(const void *runs, FILE *out, Error *error);
