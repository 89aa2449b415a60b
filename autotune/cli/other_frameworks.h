// The best plan as the other frameworks with a config file would run it, each predicted with its own programs.

#pragma once

#include "autotune/cli/cli.h"
#include "reports/html/html.h"

// Texts and arrays in the arena of cli.
Status other_frameworks(Cli *cli, const TuneResult *result, HtmlOther **others, int *count, Error *error);
