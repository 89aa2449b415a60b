// Two programs have one structure when everything that decides lifetimes is equal: loops, guards, which slots and cells
// each operand touches and how. That is written down as words and compared whole; its hash only finds candidates.

#pragma once

#include "sim/memory/program_cut.h"
#include "sim/memory/slot_cells.h"

typedef struct Structure {
    uint64_t *words;
    size_t count;
    uint64_t hash;
} Structure;

// Of a program that is to be cut by the options. ordered: with lanes and events, which decide happens-before.
Structure structure_of(const StepProgram *program, const CutOptions *options, const OperandCells *cells, bool ordered,
                       Arena *arena);
bool structure_equal(const Structure *a, const Structure *b);
Structure structure_copy(const Structure *structure, Arena *arena);
