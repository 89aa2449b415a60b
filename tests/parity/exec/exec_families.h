// Every model type at the sizes of a test's own model: only the family's choices differ.

#pragma once

#include "sim/model/model.h"

enum { EXEC_FAMILIES = 10 };

extern const char *const exec_families[EXEC_FAMILIES];

// The sizes of `base` with the choices of the type, those of its sizes that the type fixes (no grouped queries in
// gpt2), and an odd head_dim where the type has one of its own.
ModelSpec exec_family(ModelSpec base, const char *type);
