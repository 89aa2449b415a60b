// Pages generated from the option table.

#pragma once

#include <stdio.h>

#include "autotune/cli/cli.h"

Status manual_page(FILE *out, const char *version, Error *error);  // troff, man(7)
Status completion_script(int shell, FILE *out, Error *error);      // shell: index among the words of --completion
Status option_markdown(FILE *out, Error *error);                   // the table of the README
