// The environment of a child process.

#pragma once

#include "sim/base/arena.h"

// This process's own, with these settings ("NAME=value", until NULL) replacing those of the same name.
char **environment_with(const char *const *settings, Arena *arena);
