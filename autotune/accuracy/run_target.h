// The version of a target that a run had.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "sim/frameworks/target.h"

// The row of the table; returns why there is none, NULL when *target is set.
const char *run_target_find(Arena *arena, const RunRow *row, const Target **target);
