// The environment of a process that is started here.

#pragma once

#include "sim/base/arena.h"

// This process's own, in which these settings ("NAME=value", until NULL) take the place of those of the same name.
char **environment_with(const char *const *settings, Arena *arena);
