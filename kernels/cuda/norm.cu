// RMS norm and layer norm of rows, with an optional addition first: one block per row, the row in registers (the
// remainder is reread, from cache). The variance is computed from x - mean, without cancellation.

#include "kernels/cuda/pack.cuh"

template <typename T>
struct NormRow {
    int64_t cols, x_stride;
    float eps;
    const T *x, *add, *w, *bias;
    T *added, *y;
    float *mean, *rstd;
};

// The pack of x at a column; the first time, the addition is computed and written, rounded as it will be read.
template <int W, bool ADD, typename T>
static __device__ __forceinline__ void norm_load(const NormRow<T> &n, int64_t row, int64_t col, bool first,
                                                 float x[W]) {
    const int64_t at = row * n.cols + col;
    if (ADD && !first) {
        pack_load<W>(n.added + at, x);
        return;
    }
    pack_load<W>(n.x + row * n.x_stride + col, x);
    if (ADD) {
        float more[W];
        pack_load<W>(n.add + at, more);
#pragma unroll
        for (int k = 0; k < W; k++) {
            x[k] = as_stored(n.x, x[k] + more[k]);
        }
        pack_store<W>(n.added + at, x);
    }
}

// Calls visit(pack, x) for all packs of this thread: kept ones from registers, the others from memory.
template <int W, bool ADD, typename T, typename Visit>
static __device__ __forceinline__ void norm_each(const NormRow<T> &n, int64_t row, bool first,
                                                 float (&kept)[ROW_KEPT][W], Visit visit) {
    const int64_t packs = n.cols / W;
#pragma unroll
    for (int k = 0; k < ROW_KEPT; k++) {
        const int64_t pack = threadIdx.x + k * (int64_t)blockDim.x;
        if (pack < packs) {
            if (first) {
                norm_load<W, ADD>(n, row, pack * W, true, kept[k]);
            }
            visit(pack * W, kept[k]);
        }
    }
    for (int64_t pack = threadIdx.x + ROW_KEPT * (int64_t)blockDim.x; pack < packs; pack += blockDim.x) {
        float x[W];
        norm_load<W, ADD>(n, row, pack * W, first, x);
        visit(pack * W, x);
    }
}

template <int W, bool MEAN, bool ADD, typename T>
static __global__ void __launch_bounds__(ROW_THREADS, 1) norm_kernel(NormRow<T> n) {
    float *room = word_shared<float>();
    const int64_t row = blockIdx.x;
    float kept[ROW_KEPT][W];
    float sum = 0.0f, squares = 0.0f;
    norm_each<W, ADD>(n, row, true, kept, [&](int64_t, const float *x) {
#pragma unroll
        for (int k = 0; k < W; k++) {
            sum += x[k];
            squares += x[k] * x[k];
        }
    });
    const float mean = MEAN ? block_sum(sum, room) / (float)n.cols : 0.0f;
    if (MEAN) {
        squares = 0.0f;
        norm_each<W, ADD>(n, row, false, kept, [&](int64_t, const float *x) {
#pragma unroll
            for (int k = 0; k < W; k++) {
                squares += (x[k] - mean) * (x[k] - mean);
            }
        });
    }
    const float rstd = 1.0f / sqrtf(block_sum(squares, room) / (float)n.cols + n.eps);
    norm_each<W, ADD>(n, row, false, kept, [&](int64_t col, const float *x) {
        float w[W], y[W], bias[W] = {};
        pack_load<W>(n.w + col, w);
        if (MEAN && n.bias) {
            pack_load<W>(n.bias + col, bias);
        }
#pragma unroll
        for (int k = 0; k < W; k++) {
            y[k] = (x[k] - mean) * rstd * w[k] + bias[k];
        }
        pack_store<W>(n.y + row * n.cols + col, y);
    });
    if (threadIdx.x == 0) {
        n.rstd[row] = rstd;
        if (MEAN) {
            n.mean[row] = mean;
        }
    }
}

template <int W, typename T>
static int norm_launch(const KernelCuda *at, int64_t rows, const NormRow<T> &n) {
    const auto kernel = n.mean ? n.add ? norm_kernel<W, true, true, T> : norm_kernel<W, true, false, T>
                        : n.add ? norm_kernel<W, false, true, T>
                                : norm_kernel<W, false, false, T>;
    return launch(kernel, launch_rows(rows, n.cols / W), at->stream, n);
}

int kernel_cuda_norm(const KernelCuda *at, KernelStore store, const KernelNorm *norm) {
    if (norm->rows <= 0) {
        return 0;
    }
    const bool wide = launch_is_wide(address(norm->x) | address(norm->add) | address(norm->w) | address(norm->bias) |
                                         address(norm->added) | address(norm->y),
                                     norm->cols | norm->x_stride);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        const NormRow<T> n = {norm->cols,
                              norm->x_stride > 0 ? norm->x_stride : norm->cols,
                              norm->eps,
                              (const T *)norm->x,
                              (const T *)norm->add,
                              (const T *)norm->w,
                              (const T *)norm->bias,
                              (T *)norm->added,
                              (T *)norm->y,
                              norm->mean,
                              norm->rstd};
        return wide ? norm_launch<PACK>(at, norm->rows, n) : norm_launch<1>(at, norm->rows, n);
    });
}
