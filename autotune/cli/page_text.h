// Texts of pages/, with placeholders filled in by the program.

#pragma once

#include "sim/base/arena.h"

// Replaces {{word}} by its value. In the arena.
const char *page_text(const char *page, Arena *arena);
