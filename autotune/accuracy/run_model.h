// The model of a measured run.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "sim/model/model.h"

// The reason why there is none in this version, or NULL when *model is filled.
const char *run_model(Arena *arena, const RunRow *row, ModelSpec *model);
