// The framework part of memory_breakdown with a choice of how far loops are cut, so that a test can hold cut against
// whole.

#pragma once

#include "sim/memory/memory.h"
#include "sim/memory/program_cut.h"

Status memory_breakdown_cut(const StepProgram *program, const CutOptions *options, MemoryBreakdown *breakdown,
                            Error *error);
