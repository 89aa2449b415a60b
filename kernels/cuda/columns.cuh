// The second step of every sum over rows: parts[count][cols] are added in order into sums (columns.cu).

#pragma once

#include "kernels/cuda/pack.cuh"

int columns_finish(const KernelCuda *at, KernelStore sums_store, int64_t count, int64_t cols, const float *parts,
                   void *sums, bool accumulate);
