// Words as a shell would read them back.

#pragma once

#include <stddef.h>

#include "sim/base/arena.h"

// The word itself when it is plain, else in single quotes; cut to bytes.
void quote_word(const char *word, char *out, size_t bytes);

// "ndtune --model './my model.json'"
char *quote_line(int argc, char *const *argv, Arena *arena);

// The words that quote_line was given, back. A quote that does not end takes the rest. The last entry is NULL.
char **quote_split(const char *line, int *argc, Arena *arena);
