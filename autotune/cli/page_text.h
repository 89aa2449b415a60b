// Texts of pages/ with what they leave to the program.

#pragma once

#include "sim/base/arena.h"

// {{word}} becomes what it stands for. In the arena.
const char *page_text(const char *page, Arena *arena);
