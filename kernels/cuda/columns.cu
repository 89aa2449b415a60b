// Sums over rows, in two launches without atomics: each block sums its part of the rows, then the parts are summed.
// Within a block COLUMN_GROUPS rows are read at a time; groups and parts are added in order.

#include "kernels/cuda/columns.cuh"

template <int W, typename T>
static __global__ void __launch_bounds__(COLUMN_PACKS *COLUMN_GROUPS)
    columns_kernel(int64_t rows, int64_t cols, const T *x, float *parts) {
    float *room = word_shared<float>();
    const int64_t group = threadIdx.x / COLUMN_PACKS, lane = threadIdx.x % COLUMN_PACKS;
    const int64_t col = ((int64_t)blockIdx.x * COLUMN_PACKS + lane) * W;
    float sum[W] = {};
    if (col < cols) {
#pragma unroll 4
        for (int64_t row = (int64_t)blockIdx.y * COLUMN_GROUPS + group; row < rows;
             row += (int64_t)gridDim.y * COLUMN_GROUPS) {
            float more[W];
            pack_load<W>(x + row * cols + col, more);
#pragma unroll
            for (int k = 0; k < W; k++) {
                sum[k] += more[k];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < W; k++) {
        room[(group * W + k) * COLUMN_PACKS + lane] = sum[k];
    }
    __syncthreads();
    if (group > 0 || col >= cols) {
        return;
    }
#pragma unroll
    for (int k = 0; k < W; k++) {
        for (int other = 1; other < COLUMN_GROUPS; other++) {
            sum[k] += room[(other * W + k) * COLUMN_PACKS + lane];
        }
    }
    pack_store<W>(parts + blockIdx.y * cols + col, sum);
}

template <typename G>
static __global__ void __launch_bounds__(FINISH_COLUMNS *COLUMN_GROUPS)
    columns_finish_kernel(int64_t count, int64_t cols, const float *parts, G *sums, bool accumulate) {
    float *room = word_shared<float>();
    const int64_t group = threadIdx.x / FINISH_COLUMNS, lane = threadIdx.x % FINISH_COLUMNS;
    const int64_t col = (int64_t)blockIdx.x * FINISH_COLUMNS + lane;
    float sum = 0.0f;
#pragma unroll 4
    for (int64_t part = group; col < cols && part < count; part += COLUMN_GROUPS) {
        sum += parts[part * cols + col];
    }
    room[threadIdx.x] = sum;
    __syncthreads();
    if (group > 0 || col >= cols) {
        return;
    }
    for (int other = 1; other < COLUMN_GROUPS; other++) {
        sum += room[other * FINISH_COLUMNS + lane];
    }
    if (accumulate) {
        float before[1];
        pack_load<1>(sums + col, before);
        sum += before[0];
    }
    pack_store<1>(sums + col, &sum);
}

int columns_finish(const KernelCuda *at, KernelStore sums_store, int64_t count, int64_t cols, const float *parts,
                   void *sums, bool accumulate) {
    return with_store(sums_store, [&](auto element) {
        using G = decltype(element);
        return launch(columns_finish_kernel<G>, launch_columns_finish(cols), at->stream, count, cols, parts, (G *)sums,
                      accumulate);
    });
}

int64_t kernel_cuda_column_sum_workspace(const KernelCuda *at, int64_t rows, int64_t cols) {
    const int64_t wide = launch_columns(rows, cols, PACK, at->processors).grid_y;
    const int64_t narrow = launch_columns(rows, cols, 1, at->processors).grid_y;
    return launch_at_least(wide, narrow) * cols * (int64_t)sizeof(float);
}

int kernel_cuda_column_sum(const KernelCuda *at, KernelStore store, KernelStore sums_store, int64_t rows, int64_t cols,
                           const void *x, void *sums, bool accumulate) {
    const int missing = workspace_missing(at, kernel_cuda_column_sum_workspace(at, rows, cols));
    if (missing || cols <= 0) {
        return missing;
    }
    const bool wide = launch_is_wide(address(x) | address(at->workspace), cols);
    const LaunchShape shape = launch_columns(rows, cols, wide ? PACK : 1, at->processors);
    float *parts = (float *)at->workspace;
    const int error = with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(wide ? columns_kernel<PACK, T> : columns_kernel<1, T>, shape, at->stream, rows, cols,
                      (const T *)x, parts);
    });
    return error ? error : columns_finish(at, sums_store, shape.grid_y, cols, parts, sums, accumulate);
}
