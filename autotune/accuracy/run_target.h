// The target that a run had, and what its code did otherwise.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "sim/frameworks/target.h"

// The row of the table; returns why there is none, NULL when *target is set.
const char *run_target_find(Arena *arena, const RunRow *row, const Target **target);

// That target with what labels set of this run, in the arena; the target itself where none does.
const Target *run_target_label(const RunRow *row, const Target *target, Arena *arena);
