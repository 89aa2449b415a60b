// What was fitted on published runs, as numbers that a row's request holds: each can be changed for one row, and has a
// value that one would take without any run.

#pragma once

#include "autotune/accuracy/run_case.h"

enum { MOST_PARAMETERS = 16 };

typedef struct Parameter {
    const char *name;
    double without, sd;  // factor on what ships: without any run, and how sure one would be of it
    // Applies a factor; false where the row does not depend on it.
    bool (*apply)(double factor, RunCase *run, Target *target);
} Parameter;

extern const Parameter leave_out_parameters[];
extern const int leave_out_parameter_count;
