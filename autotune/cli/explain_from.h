// ndtune explain --from: a config file that somebody trains with, predicted, and what to change in it.

#pragma once

#include "autotune/cli/cli.h"

Status explain_from(Cli *cli, Error *error);
