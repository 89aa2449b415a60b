// accuracy_run, its rows predicted once for all claims of a program (kept.h); who reads them has no warnings and no
// memory by stage.

#pragma once

#include "autotune/accuracy/accuracy.h"

// Its first run file names the rows: options that differ in something else only are not told apart.
Status accuracy_run_once(const AccuracyOptions *options, Arena *arena, Accuracy *accuracy, Error *error);
