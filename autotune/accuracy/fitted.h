// What was fitted on published runs, as numbers that a row's request holds: each can be changed for one row, and has a
// value that one would take without any run. What is not a number of a profile or target (forms, counts, who waits for
// whom) is not here: tests/accuracy/runs/RESULTS.md lists it.

#pragma once

#include "autotune/accuracy/run_case.h"

enum { MOST_FITTED = 16 };

typedef struct Fitted {
    const char *name;
    double without, sd;  // factor on what ships: without any run, and how sure one would be of it
    const char *basis;   // of `without`
    // Applies a factor; false where the row does not depend on it.
    bool (*apply)(double factor, RunCase *run, Target *target);
} Fitted;

extern const Fitted fitted_numbers[];
extern const int fitted_count;
