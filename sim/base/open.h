// Opens a user-named file for reading.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/base/arena.h"

// NULL, and *why as words that follow "cannot be read: ". A pipe is read as a file is; one without a writer would block
// forever, and is refused.
FILE *open_to_read(const char *path, const char **why);

// Reads a file to its end, or one byte beyond `most`, which says that it is larger; appends a zero byte and closes it.
// Returns why it could not be read, or NULL.
const char *read_and_close(FILE *file, size_t most, Arena *arena, char **bytes, size_t *count);

// The next line of a text file, or as much of it as there is room for. False at the end, where the file is closed; one
// that could not be opened (NULL) has none.
bool line_next(FILE *file, char *line, size_t bytes);
