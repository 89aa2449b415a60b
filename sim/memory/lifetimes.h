// When each slot of each buffer holds something that is still needed, in issue order.

#pragma once

#include "sim/memory/slot_cells.h"
#include "sim/step/step.h"

// From the write that defines the content to its last use, both included; instance numbers.
typedef struct SlotLifetime {
    int32_t buffer, slot;
    int32_t first, last;
} SlotLifetime;

typedef struct Lifetimes {
    SlotLifetime *rows;  // of one slot in falling order
    int32_t count;
} Lifetimes;

// As lifetimes_find, with the cells of the program's operands (slot_cells.h).
void lifetimes_of_cells(const StepProgram *program, const OperandCells *cells, const StepInstance *instances,
                        int32_t count, Arena *arena, Lifetimes *lifetimes);

// Persistent buffers have none. Instances: the program's, in issue order.
Status lifetimes_find(const StepProgram *program, const StepInstance *instances, int32_t count, Arena *arena,
                      Lifetimes *lifetimes, Error *error);
