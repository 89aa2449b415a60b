// The initial state of a run as functions of (seed, global index): a mesh decides which rank holds a number, never its
// value.

#pragma once

#include "kernels/kernels.h"
#include "sim/step/step.h"

// Elements [first, first + count) of one instance of a unit's flat parameter, as sharded for a rank of these indices.
typedef struct InitialStretch {
    const Unit *unit;
    int instance, tp_index, ep_index;
    int64_t first, count;
} InitialStretch;

// Elements [at, at + count) of a stretch: these random numbers, or one constant value.
typedef struct InitialPiece {
    int64_t at, count;
    bool random;
    KernelNormal numbers;
    float value;
} InitialPiece;

// Passes a stretch piece by piece to the code that fills it; what no piece covers is padding, 0.
typedef void InitialTake(void *context, const InitialPiece *piece);
void initial_pieces(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, InitialTake *take,
                    void *context);
// Fills them on the host, padding included.
void initial_parameters(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, float *out);
void initial_parameters_half(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, uint16_t *out);
