// Which bytes of its slot an operand touches, as a set of up to 64 cells per buffer, so that liveness is a few bit
// operations.

#pragma once

#include "sim/step/step.h"

typedef struct OperandCells {
    uint64_t touched;  // cells with at least one byte of the operand
    uint64_t covered;  // cells that the operand touches byte by byte: what a write defines
} OperandCells;

// One row per operand of the program, for rank 0 (ranks differ by a permutation of equal chunks). Operands of absent
// buffers get nothing. INTERNAL when an operand leaves its slot.
Status slot_cells_find(const StepProgram *program, Arena *arena, const OperandCells **cells, Error *error);
