// Where a buffer's slots lie among themselves. A buffer has a slot for every micro-step and layer that could be in
// flight at once; where a stage holds several chunks of layers, some chunks have fewer in flight than others: slots
// whose uses happens-before keeps apart take turns at one place.

#pragma once

#include "sim/memory/part_spans.h"
#include "sim/memory/program_cut.h"

typedef struct SlotPlaces {
    int32_t **of;    // by buffer: the place of each slot; NULL = slot i is at place i
    int32_t *count;  // by buffer, where slots have places: how many
} SlotPlaces;

// What is returned comes from arena. Nothing has places where layers were cut out of the program: what its
// slots say would not hold for those.
SlotPlaces slot_places_find(const ProgramCut *cut, const HappensBefore *order, const Lifetimes *lifetimes, Arena *arena,
                            Arena *scratch);

// A program with as many slots as places.
StepProgram slot_places_placed(const StepProgram *program, const SlotPlaces *places, Arena *arena);
