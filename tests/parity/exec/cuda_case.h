// Runs of device cuda over the stand-in runtime compared with runs of device cpu: one small model and batch for all.

#pragma once

#include "tests/parity/exec/exec_case.h"

enum { CUDA_CASE_STEPS = 3 };

typedef struct CudaCase {
    const char *mesh;
    int zero, grad_accum;
    Recompute recompute;
    const char *seed;
} CudaCase;

ModelSpec cuda_case_model(void);
RunRequest cuda_case_request(const CudaCase *c, Dtype precision, const char *device);

double case_off(double value, double reference);  // relative

typedef struct CudaAllowed {
    double loss, norm;
} CudaAllowed;

// One step on the stand-in GPU must match the CPU's in fp32.
void cuda_case_step(RunRequest *request, Arena *arena, CudaAllowed allowed, const char *words);
