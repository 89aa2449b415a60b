// Where a row's figures were read.

#pragma once

#include "autotune/accuracy/run_file.h"

bool row_cites(const RunRow *row, const char *part);              // of its source_locator
bool row_cites_any(const RunRow *row, const char *const *parts);  // of which the last is NULL
