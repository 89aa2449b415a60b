// What several claims of a program look at, computed once: the first claim that asks has it made, the others, each in a
// process of its own, read its bytes (no pointers) from a file that is open in the process that starts them all and has
// no name: nothing stays behind. Where the claims run side by side, one makes it and the others wait.

#pragma once

#include <stddef.h>

enum { KEPT_NAME_BYTES = 504 };

// Fills the value, of so many bytes: with `make`, or with what it made under this name.
void kept(const char *name, void *value, size_t bytes, void (*make)(void *value));
