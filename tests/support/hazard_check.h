// Proof of a memory plan, for tests.

#pragma once

#include "sim/memory/memory.h"

typedef struct HazardReport {
    int64_t instances, accesses, pairs_checked;
} HazardReport;

// Unrolls the program and proves, for the first and the last rank, that conflicting accesses (same bytes, at least one
// write) are ordered by lane order, events and communicators, and that every read finds what was last written through
// its own buffer; with plan NULL each buffer has its own bytes. INTERNAL names both tasks, the buffers, layer and
// micro-step. report may be NULL.
Status hazard_check(const StepProgram *program, const MemoryPlan *plan, Arena *arena, HazardReport *report,
                    Error *error);
