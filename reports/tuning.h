// What tune did: a line per run as it goes, the shapes as believed in at the end.

#pragma once

#include <stdio.h>

#include "autotune/tune/tune.h"

// The log of a session: its head, the heading of the lines, then a line per step as it ends.
void table_tuning_begin(const Tuning *tuning, FILE *out);
void table_tuning_step(const Tuning *tuning, const TuneStep *step, FILE *out);

Status table_tuning(const Tuning *tuning, FILE *out, Error *error);  // what came of it
Status json_tuning(const Tuning *tuning, FILE *out, Error *error);   // ndtune.tune/1
Status csv_tuning(const Tuning *tuning, FILE *out, Error *error);    // a line per run
