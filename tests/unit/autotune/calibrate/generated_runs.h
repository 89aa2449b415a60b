// Runs of a known machine: times predicted on the base profile with known factors, multiplied by known noise. A
// calibration must recover these.

#pragma once

#include "autotune/calibrate/calibrate.h"

enum { GENERATED_SHAPES = 18, GENERATED_MOST = GENERATED_SHAPES * 6 };

typedef struct Generated {
    ModelSpec model;
    ClusterProfile base;
    const Target *target;
    CalibrationCase cases[GENERATED_SHAPES];
    CalibrationSample samples[GENERATED_MOST];
    int count;
    Arena *arena;
} Generated;

// The machine of the runs: parameter `name` of the table is off by exp(log_factor).
typedef struct Truth {
    const char *name;
    double log_factor;
} Truth;

// Plans of the tiny model on up to 4 ranks of local-cpu, run by our executor (target "ndtune"), or with another target
// on dgx-h100 in bf16.
void generated_begin(Generated *generated, const char *target, Arena *arena);

// `repeats` runs of each shape: time under the truth, times a misfit of the shape, times noise of the run.
void generated_runs(Generated *generated, const Truth *truth, int truths, int repeats, double misfit_sd,
                    double noise_sd, uint64_t *seed);

// The samples' spans under the truth, without noise.
void generated_spans(Generated *generated, const Truth *truth, int truths);

// Step time of a case under the truth.
double generated_step_s(const Generated *generated, const CalibrationCase *what, const Truth *truth, int truths);

CalibrationInput generated_input(const Generated *generated);
int generated_coordinate(const CalibrationPosterior *posterior,
                         const char *name);  // fails the test where there is none

double generated_uniform(uint64_t *seed);
double generated_normal(uint64_t *seed);
uint64_t generated_seed(void);  // printed; NDTUNE_SEED repeats it
