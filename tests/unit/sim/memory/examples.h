// Small correct programs, each with switches that plant one fault.

#pragma once

#include "tests/support/program_builder.h"

enum { EXAMPLE_SLOT_BYTES = 1024 };

// Compute lane only: input -> t0 -> t1 -> ... -> loss, each temporary read by the next task only.
StepProgram *example_chain(ProgramBuilder *builder, int temporaries);

typedef struct PrefetchOptions {
    int layers, micro_batches;
    bool drop_ready_wait;  // compute does not wait for its gather
    bool drop_free_wait;   // the gather does not wait until the slot it overwrites has been read
    bool wrong_slot;       // the gather waits for the reader of the other slot
} PrefetchOptions;

// Gathers one layer ahead on a second lane into two rotating slots; forward saves x[layers + 1], backward reads it.
StepProgram *example_prefetch(ProgramBuilder *builder, const PrefetchOptions *options);

// Ring of `hops` blocks over two rotating buffers on a communication lane.
StepProgram *example_ring(ProgramBuilder *builder, int hops, bool drop_free_wait);

int32_t example_buffer(const StepProgram *program, const char *name);  // -1 = none
