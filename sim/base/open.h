// Opens a file that somebody named, to read it.

#pragma once

#include <stdio.h>

// NULL, and *why as words that follow "cannot be read: ". A pipe is read as a file is; one that nobody writes to would
// be waited for for ever, and is refused.
FILE *open_to_read(const char *path, const char **why);
