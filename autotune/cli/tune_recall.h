// The conclusions of the stored tune session for this request; nothing is run.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/tune/tune.h"

// executed: the target whose programs ran. *tuning: in cli's arena; NULL where the store has no such session.
Status tune_recall(Cli *cli, const TuneResult *result, const Target *executed, const Tuning **tuning, Error *error);
