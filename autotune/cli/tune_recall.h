// What the stored session of tune for this request came to believe; nothing is run.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/tune/tune.h"

// executed: whose programs ran. *tuning: in the arena of cli; NULL where the store has no such session.
Status tune_recall(Cli *cli, const TuneResult *result, const Target *executed, const Tuning **tuning, Error *error);
