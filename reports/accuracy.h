// What `ndtune accuracy` prints.

#pragma once

#include <jansson.h>
#include <stdio.h>

#include "autotune/accuracy/accuracy.h"
#include "reports/csv_lines.h"

Status table_accuracy(const Accuracy *accuracy, FILE *out, Error *error);
Status json_accuracy(const Accuracy *accuracy, FILE *out, Error *error);  // ndtune.accuracy/1
Status csv_accuracy(const Accuracy *accuracy, FILE *out, Error *error);   // a line per score

// A line per row of the run file and of the failures.
Status csv_accuracy_rows(const Accuracy *accuracy, FILE *out, Error *error);

// Parts of them: what was fitted, with each source left out of the fit; nothing where that was not asked.
Status table_left_out(const Accuracy *accuracy, FILE *out, Error *error);
json_t *json_left_out(const LeftOut *left_out);
void csv_left_out(const Accuracy *accuracy, Csv *csv);

json_t *json_baseline(const ErrorScore *score);
