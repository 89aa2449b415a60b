// What labels set of a target.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "sim/frameworks/target.h"

// The target as this run had it, in the arena.
const Target *label_rows_apply(const RunRow *row, const Target *target, Arena *arena);
