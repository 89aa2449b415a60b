// One run of a shape by the user's command, its step times read from what it prints.

#pragma once

#include "autotune/measure/validate_runs.h"

typedef struct CommandRuns {
    const Measuring *measuring;
    const UserCommand *command;
    const Validation *validation;
    const char *host;
} CommandRuns;

// By what such a run is known again.
uint64_t command_hash(const CommandRuns *runs, const TrainPlan *plan);

// Fills *record however the run ends. USAGE: the command is wrong, for every row.
Status command_run_row(const CommandRuns *runs, const ValidateRow *row, RunRecord *record, Error *error);
