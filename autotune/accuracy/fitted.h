// Constants fitted on published runs that are numbers in a row's request: each can be changed for one row, and has a
// prior value that could be chosen without any run. What is not a number of a profile or target (functional forms,
// counts, which rank waits for which) is not here: tests/accuracy/runs/RESULTS.md lists it.

#pragma once

#include "autotune/accuracy/run_case.h"

enum { MOST_FITTED = 16 };

// A row with a number changed; always the same object, since the predictor's memos point to it.
typedef struct MovedRun {
    RunCase run;
    Target target;  // its request's
} MovedRun;

typedef struct Fitted {
    const char *name;
    double without, sd;  // factor on the shipped value: the prior without any run, and its uncertainty
    const char *basis;   // of `without`
    // Applies a factor; false where the row does not depend on it.
    bool (*apply)(double factor, MovedRun *moved);
} Fitted;

extern const Fitted fitted_numbers[];
extern const int fitted_count;
