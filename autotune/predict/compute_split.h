// What the compute of a step is made of, by kind of kernel.

#pragma once

#include "autotune/result.h"

typedef enum { COMPUTE_GEMM, COMPUTE_ATTENTION, COMPUTE_MEMORY_BOUND, COMPUTE_HEAD, COMPUTE_KINDS } ComputeKind;

extern const char *const compute_kind_names[COMPUTE_KINDS];  // "gemm" "attention" "memory-bound" "head"

typedef struct ComputeSplit {
    double seconds[COMPUTE_KINDS];  // sum to the prediction's compute_s
} ComputeSplit;

// Of the stage that computes longest: the tasks' standalone times, all scaled equally for what runs concurrently.
Status compute_split(const TuneRequest *request, const Prediction *prediction, ComputeSplit *split, Error *error);
