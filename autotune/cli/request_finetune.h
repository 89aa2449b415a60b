// What --finetune says of a request beside its plan's fields.

#pragma once

#include "autotune/cli/cli.h"

// Sequences of a step where nobody said: 64, as published recipes of adapters have it, or one per rank; 0 where all is
// trained.
int64_t request_finetune_batch(Cli *cli, int world);

// Words that go with adapters only.
Status request_check_finetune(Cli *cli, Error *error);

// "adapters of rank 16 beside all linear layers of each block" in the arena.
const char *request_finetune_text(const TrainPlan *plan, Arena *arena);
