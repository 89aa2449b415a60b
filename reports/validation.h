// What validate found: the ranking beside what was measured, where the time went, kinds of tasks, agreement.

#pragma once

#include <stdio.h>

#include "autotune/validate/validate.h"

Status table_validation(const Validation *validation, FILE *out, Error *error);
Status json_validation(const Validation *validation, FILE *out, Error *error);  // ndtune.validate/1
Status csv_validation(const Validation *validation, FILE *out, Error *error);   // a line per row

// Every run as a line of a run file; cluster and overrides as its columns want them.
typedef struct ValidationRuns {
    const Validation *validation;
    const char *cluster, *overrides;
} ValidationRuns;

Status csv_validation_runs(const ValidationRuns *runs, FILE *out, Error *error);
