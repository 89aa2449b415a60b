// The best plan on the other frameworks with a config file, each predicted with its own programs.

#pragma once

#include "autotune/cli/cli.h"
#include "reports/html/html.h"

// Texts and arrays in cli's arena.
Status other_frameworks(Cli *cli, const TuneResult *result, HtmlOther **others, int *count, Error *error);
