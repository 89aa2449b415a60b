// Runs another program, such as the user's own training framework, and returns what it printed. In every case it is
// asked to exit, and then its whole process group is killed.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/progress.h"

typedef struct CommandSetup {
    char *const *argv;               // NULL-terminated; the first is looked up in PATH
    const char *const *environment;  // "NAME=value", NULL-terminated, added to this process's own
    double timeout_s;                // of the whole command
    const Progress *progress;        // label "seconds"; NULL = none
} CommandSetup;

// *output: standard output and error together, in the arena, their last MOST bytes; also set when the command failed.
enum { COMMAND_OUTPUT_MOST = 16 << 20 };
Status command_run(const CommandSetup *setup, Arena *arena, const char **output, Error *error);
