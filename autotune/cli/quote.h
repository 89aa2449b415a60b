// Shell quoting.

#pragma once

#include "sim/base/arena.h"

// The word on one line: unchanged when plain, else in single quotes; line ends and tabs become spaces, other control
// characters are made visible (commands of other programs may contain any).
char *quote_word(const char *word, Arena *arena);

// "ndtune --model './my model.json'"
char *quote_line(int argc, char *const *argv, Arena *arena);

// The inverse of quote_line. An unterminated quote takes the rest. The last entry is NULL.
char **quote_split(const char *line, int *argc, Arena *arena);
