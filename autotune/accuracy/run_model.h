// The model of a measured run.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "sim/model/model.h"

// NULL when *model is filled, else the reason why this version cannot build it.
const char *run_model(Arena *arena, const RunRow *row, ModelSpec *model);
