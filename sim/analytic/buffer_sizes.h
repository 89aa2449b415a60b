// Sizes of buffers in a program and in a neighbour of it: with more ranks that share its units, or a larger
// micro-batch. Buffers of a name have the same two whatever is recomputed or resharded, so one pair of programs that
// were lowered says them for others.

#pragma once

#include "sim/step/step.h"

enum { BUFFER_SIZE_BUCKETS = 64 };

// Of plans that differ in recompute, reshard and rotation only; "BufferSizes s = {0}" knows none.
typedef struct BufferSizes {
    struct BufferSize *bucket[BUFFER_SIZE_BUCKETS];
} BufferSizes;

// A copy of the program's buffers with the sizes that they have in the neighbour; NULL where one of them is not known.
Buffer *buffer_sizes_find(const BufferSizes *sizes, const StepProgram *program, Arena *arena);

// Of a program with these buffers and of its neighbour.
void buffer_sizes_add(BufferSizes *sizes, const Buffer *buffers, const StepProgram *neighbour, Arena *arena);
