// The private directory of one run: request, result, failure and each worker's words. Private to exec/launch.
// It is locked while its launcher lives; a launcher that was killed leaves it, and the next run of this user removes
// it.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"

typedef struct RunDirectory {
    const char *path;  // NULL before it is made
    int lock_fd;
} RunDirectory;

// Under $TMPDIR, else /tmp. Sweeps the leftovers of dead launchers first.
Status run_directory_make(Arena *arena, RunDirectory *directory, Error *error);
void run_directory_remove(RunDirectory *directory);
