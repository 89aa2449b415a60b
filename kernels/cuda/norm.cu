// RMS norm and layer norm of rows, with an optional addition first: one block per row, the row in registers (the
// remainder is reread, from cache). The variance is computed from x - mean, without cancellation.

#include "kernels/cuda/pack.cuh"

// The pack of x at a column; the first time, the addition is computed and written, rounded as it will be read.
template <int W, bool ADD, typename T>
static __device__ __forceinline__ void norm_load(const KernelNorm &n, int64_t row, int64_t col, bool first,
                                                 float x[W]) {
    const int64_t at = row * n.cols + col;
    if (ADD && !first) {
        pack_load<W>((const T *)n.added + at, x);
        return;
    }
    pack_load<W>((const T *)n.x + row * n.x_stride + col, x);
    if (ADD) {
        float more[W];
        pack_load<W>((const T *)n.add + at, more);
#pragma unroll
        for (int k = 0; k < W; k++) {
            x[k] = as_stored((const T *)n.x, x[k] + more[k]);
        }
        pack_store<W>((T *)n.added + at, x);
    }
}

// Calls visit(pack, x) for all packs of this thread: kept ones from registers, the others from memory.
template <int W, bool ADD, typename T, typename Visit>
static __device__ __forceinline__ void norm_each(const KernelNorm &n, int64_t row, bool first,
                                                 float (&kept)[ROW_KEPT][W], Visit visit) {
    const int64_t packs = n.cols / W;
#pragma unroll
    for (int k = 0; k < ROW_KEPT; k++) {
        const int64_t pack = threadIdx.x + k * (int64_t)blockDim.x;
        if (pack < packs) {
            if (first) {
                norm_load<W, ADD, T>(n, row, pack * W, true, kept[k]);
            }
            visit(pack * W, kept[k]);
        }
    }
    for (int64_t pack = threadIdx.x + ROW_KEPT * (int64_t)blockDim.x; pack < packs; pack += blockDim.x) {
        float x[W];
        norm_load<W, ADD, T>(n, row, pack * W, first, x);
        visit(pack * W, x);
    }
}

template <int W, bool MEAN, bool ADD, typename T>
static __global__ void __launch_bounds__(ROW_THREADS, 1) norm_kernel(KernelNorm n) {
    float *room = word_shared<float>();
    const int64_t row = blockIdx.x;
    float kept[ROW_KEPT][W];
    float sum = 0.0f, squares = 0.0f;
    norm_each<W, ADD, T>(n, row, true, kept, [&](int64_t, const float *x) {
#pragma unroll
        for (int k = 0; k < W; k++) {
            sum += x[k];
            squares += x[k] * x[k];
        }
    });
    const float mean = MEAN ? block_sum(sum, room) / (float)n.cols : 0.0f;
    if (MEAN) {
        squares = 0.0f;
        norm_each<W, ADD, T>(n, row, false, kept, [&](int64_t, const float *x) {
#pragma unroll
            for (int k = 0; k < W; k++) {
                squares += (x[k] - mean) * (x[k] - mean);
            }
        });
    }
    const float rstd = 1.0f / sqrtf(block_sum(squares, room) / (float)n.cols + n.eps);
    norm_each<W, ADD, T>(n, row, false, kept, [&](int64_t col, const float *x) {
        float w[W], y[W], bias[W] = {};
        pack_load<W>((const T *)n.w + col, w);
        if (MEAN && n.bias) {
            pack_load<W>((const T *)n.bias + col, bias);
        }
#pragma unroll
        for (int k = 0; k < W; k++) {
            y[k] = (x[k] - mean) * rstd * w[k] + bias[k];
        }
        pack_store<W>((T *)n.y + row * n.cols + col, y);
    });
    if (threadIdx.x == 0) {
        n.rstd[row] = rstd;
        if (MEAN) {
            n.mean[row] = mean;
        }
    }
}

template <int W, typename T>
static int norm_launch(const KernelCuda *at, const KernelNorm &n) {
    const auto kernel = n.mean ? n.add ? norm_kernel<W, true, true, T> : norm_kernel<W, true, false, T>
                        : n.add ? norm_kernel<W, false, true, T>
                                : norm_kernel<W, false, false, T>;
    return launch(kernel, launch_rows(n.rows, n.cols / W), at->stream, n);
}

int kernel_cuda_norm(const KernelCuda *at, KernelStore store, const KernelNorm *norm) {
    if (norm->rows <= 0) {
        return 0;
    }
    const bool wide = launch_is_wide(address(norm->x) | address(norm->add) | address(norm->w) | address(norm->bias) |
                                         address(norm->added) | address(norm->y),
                                     norm->cols | norm->x_stride);
    KernelNorm n = *norm;
    n.x_stride = norm->x_stride > 0 ? norm->x_stride : norm->cols;
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return wide ? norm_launch<PACK, T>(at, n) : norm_launch<1, T>(at, n);
    });
}
