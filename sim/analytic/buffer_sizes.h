// Sizes of buffers in a program and in a neighbour of it: with more ranks that share its units, or a larger
// micro-batch. Buffers of a name have the same two whatever is recomputed or resharded, so one pair of programs that
// were lowered says them for others.

#pragma once

#include "sim/analytic/memo.h"
#include "sim/step/step.h"

// By name, of plans that differ in recompute, reshard and rotation only. A copy of the program's buffers with the sizes
// that they have in the neighbour; NULL where one of them is not known.
Buffer *buffer_sizes_find(const Memo *sizes, const StepProgram *program, Arena *arena);

// Of a program with these buffers and of its neighbour.
void buffer_sizes_add(Memo *sizes, const Buffer *buffers, const StepProgram *neighbour, Arena *arena);
