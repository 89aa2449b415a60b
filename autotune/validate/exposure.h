// Breakdown of a measured step, in the terms of a prediction.

#pragma once

#include "autotune/run_record.h"

// The mean over the ranks of a complete timeline; the terms sum to its step_s. All zero when it has no spans.
void exposure_of(const StepProgram *program, const Timeline *timeline, Arena *arena, StepParts *parts);
