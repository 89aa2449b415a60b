// Where a row's figures were read.

#pragma once

#include "autotune/accuracy/run_file.h"

bool row_cites(const RunRow *row, const char *part);              // of its source_locator
bool row_cites_any(const RunRow *row, const char *const *parts);  // of which the last is NULL
// The transformer of a course at ETH, Large-Scale AI Engineering of 2025, on Alps: three projects have the same file.
bool row_is_of_course(const RunRow *row);
