// Products of a task; seconds.

#pragma once

#include "sim/cost/compute.h"
#include "sim/cost/cost.h"

// In which type a task computes: as it is stored but where processors widen it.
Dtype cost_computed_dtype(const Accelerator *accelerator, const Task *task);

// What PyTorch's kernels that take elements one by one need beyond their traffic.
double cost_apart_s(const Accelerator *accelerator, const Task *task);
// Of a bias gradient by index, at least.
double cost_repeated_s(const Accelerator *accelerator, const StepProgram *program, const Task *task);

KernelTime cost_gemm_time(const Accelerator *accelerator, const StepProgram *program, const Task *task);

// Of as many rows for each expert.
KernelTime cost_grouped_time(const CostModel *model, const StepProgram *program, const Task *task);
