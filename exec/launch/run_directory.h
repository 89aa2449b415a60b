// The private directory of one run: request, result, failure and each worker's stderr. Private to exec/launch. It is
// locked while its launcher lives; a launcher that is killed leaves it behind, and the next run by this user removes
// it.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"

typedef struct RunDirectory {
    const char *path;  // NULL before it is created
    int lock_fd;
} RunDirectory;

// Under $TMPDIR, else /tmp. First removes the leftovers of dead launchers.
Status run_directory_make(Arena *arena, RunDirectory *directory, Error *error);
void run_directory_remove(RunDirectory *directory);
