// Results of tune: a line per run as it goes, the shapes as estimated at the end.

#pragma once

#include "autotune/tune/tune.h"
#include "reports/answer.h"

// The log of a session: its head, the heading of the lines, then a line per step as it ends.
void table_tuning_begin(const Tuning *tuning, FILE *out);
void table_tuning_step(const Tuning *tuning, const TuneStep *step, FILE *out);

extern const Answer answer_tuning;  // Tuning, what came of it; ndtune.tune/1, CSV: a line per run
