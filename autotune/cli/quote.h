// Words as a shell would read them back.

#pragma once

#include "sim/base/arena.h"

// The word on one line: itself when it is plain, else in single quotes; line ends and tabs become spaces, other control
// characters visible (the commands that other programs are started with may hold any).
char *quote_word(const char *word, Arena *arena);

// "ndtune --model './my model.json'"
char *quote_line(int argc, char *const *argv, Arena *arena);

// The words that quote_line was given, back. A quote that does not end takes the rest. The last entry is NULL.
char **quote_split(const char *line, int *argc, Arena *arena);
