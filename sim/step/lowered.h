// A step whose lists are finished, before it is a program. Private to sim/step.

#pragma once

#include "sim/step/op_list.h"
#include "sim/step/schedules/micro_loops.h"

// One finished stretch of the step: a list that runs over the layers (or once).
typedef struct Stretch {
    Section section;
    OpList list;
    int32_t first_task[LAYER_KIND_COUNT];  // index in the program, for each layer kind; -1 = not placed yet
} Stretch;

// The stretches of one kind of micro-step, or of the optimizer; empty where the step has no such micro-step.
typedef struct Variant {
    Stretch stretches[SECTION_NORM];
    int stretch_count;
} Variant;

enum { VARIANT_OPTIMIZER = MICRO_KINDS, VARIANT_COUNT };

// What a chunk of layers receives from the stage before it and sends to the one after it, and the gradients of both.
typedef enum { MESSAGE_IN, MESSAGE_OUT, MESSAGE_GRADIENT_IN, MESSAGE_GRADIENT_OUT, MESSAGE_COUNT } Message;

// Per chunk, by Message; empty where it has no such neighbour.
typedef struct ChunkMessages {
    Stretch of[MESSAGE_COUNT];
} ChunkMessages;

// The finished step, as lists.
typedef struct LoweredStep {
    Variant variants[VARIANT_COUNT];
    ChunkMessages *messages;
    MicroLoops loops;
} LoweredStep;
