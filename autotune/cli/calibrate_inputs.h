// The measured runs that a calibration is asked to learn from.

#pragma once

#include "autotune/calibrate/samples.h"
#include "autotune/cli/cli.h"

// Those of --runs and --log, else of the store (opened before), of the framework of --target.
Status calibrate_inputs(Cli *cli, SampleList *list, Error *error);
