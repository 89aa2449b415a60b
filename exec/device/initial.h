// What a run starts from, as functions of (seed, global index): a mesh decides who holds a number, never which number
// it is.

#pragma once

#include "kernels/kernels.h"
#include "sim/step/step.h"

// Elements [first, first + count) of one instance of a unit's flat parameter, as a rank of these indices cuts it.
typedef struct InitialStretch {
    const Unit *unit;
    int instance, tp_index, ep_index;
    int64_t first, count;
} InitialStretch;

// Elements [at, at + count) of a stretch: these random numbers, or all the same value.
typedef struct InitialPiece {
    int64_t at, count;
    bool random;
    KernelNormal numbers;
    float value;
} InitialPiece;

// Hands over a stretch piece by piece, for whoever makes the numbers; what no piece covers is padding, 0.
typedef void InitialTake(void *context, const InitialPiece *piece);
void initial_pieces(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, InitialTake *take,
                    void *context);
// Makes them here, padding too.
void initial_parameters(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, float *out);
void initial_parameters_half(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, uint16_t *out);
