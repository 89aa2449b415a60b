// The shapes of a validation run for real: by our executor, or by a command of the user's own. Every run is stored as
// it ends, so that an interrupted validation goes on where it stopped.

#pragma once

#include "autotune/measure/measuring.h"
#include "autotune/validate/validate.h"

// A training script and what it is told of a shape. In its words {dp_shard} and the like stand for the shape's numbers;
// its environment has the same as NDTUNE_DP_SHARD. {config} is a file that `configure` writes.
typedef struct UserCommand {
    char *const *words;
    int word_count;
    const char *line;  // the words, quoted for a shell
    double timeout_s;  // of a run
    Status (*configure)(const Validation *validation, const TrainPlan *plan, const char *path, Error *error);
} UserCommand;

// Fills the validation's runs and sums them up. command: NULL = by our executor.
Status validate_with_runs(const Measuring *measuring, const UserCommand *command, Validation *validation, Error *error);
