// What `ndtune accuracy` prints.

#pragma once

#include <jansson.h>

#include "autotune/accuracy/accuracy.h"
#include "reports/answer.h"
#include "reports/csv_lines.h"

extern const Answer answer_accuracy;  // Accuracy; ndtune.accuracy/1, CSV: a line per score

// For an Accuracy: one line per row of the run file and of the failures.
Status csv_accuracy_rows(const void *accuracy, FILE *out, Error *error);

// Parts of it: what was fitted, with each source left out of the fit; empty where that was not requested.
Status table_left_out(const Accuracy *accuracy, FILE *out, Error *error);
json_t *json_left_out(const LeftOut *left_out);
void csv_left_out(const Accuracy *accuracy, Csv *csv);
