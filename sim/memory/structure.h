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

// What was found of programs, by their structure; "ByStructure b = {0}" is empty. All of it lives in the arena.
typedef struct ByStructure {
    Arena arena;
    struct KnownStructure *known;
    size_t count, capacity;
} ByStructure;

// NULL = nothing.
const void *by_structure_find(const ByStructure *by, const Structure *structure);
// Forgets everything once it exceeds so many bytes: called before what is to be kept is made in the arena.
void by_structure_make_room(ByStructure *by, size_t most_bytes);
void by_structure_keep(ByStructure *by, const Structure *structure, const void *found);
