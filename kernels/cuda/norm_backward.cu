// Backward of the norms, with the formulas of kernels/cpu/norm.c. A block walks every grid_x-th row: two sums along the
// row, dx, and dy x^ added to its column sums, where every column belongs to one thread: in registers if a thread has
// only one pack of each row, with the next row being prefetched, otherwise in shared memory. A second launch adds the
// blocks' sums.

#include "kernels/cuda/columns.cuh"

template <int W>
struct NormPack {
    float dy[W], x[W], w[W], residual[W];
};

template <int W, typename T>
static __device__ __forceinline__ void back_load(const KernelNormBackward &n, int64_t row, int64_t col,
                                                 NormPack<W> &pack) {
    pack_load<W>((const T *)n.dy + row * n.cols + col, pack.dy);
    pack_load<W>((const T *)n.x + row * n.x_stride + col, pack.x);
    pack_load<W>((const T *)n.w + col, pack.w);
    if (n.residual) {
        pack_load<W>((const T *)n.residual + row * n.cols + col, pack.residual);
    }
}

// dx = (residual) + r dy w - (x - mean) pull - drop, and the column sums.
template <int W, typename T>
static __device__ __forceinline__ void back_store(const KernelNormBackward &n, int64_t row, int64_t col,
                                                  const float four[4], const NormPack<W> &pack, float *sums) {
    const float mean = four[0], rstd = four[1], pull = four[2], drop = four[3];
    float dx[W];
#pragma unroll
    for (int k = 0; k < W; k++) {
        const float from_mean = pack.x[k] - mean;
        dx[k] = pack.residual[k] + (pack.dy[k] * pack.w[k] * rstd - from_mean * pull - drop);
        sums[k * blockDim.x] += pack.dy[k] * (from_mean * rstd);
    }
    pack_store<W>((T *)n.dx + row * n.x_stride + col, dx);
}

// The sums of pack i of this thread have stride blockDim.x: no two threads of a warp share a bank.
template <int W>
static __device__ __forceinline__ float *back_sums(float *room, int64_t round) {
    return room + WARP + round * blockDim.x * W + threadIdx.x;
}

template <int W, bool MEAN, typename T>
static __device__ __forceinline__ void back_row(const KernelNormBackward &n, int64_t row, float *room) {
    const int64_t packs = n.cols / W;
    const float rstd = n.rstd[row], mean = MEAN ? n.mean[row] : 0.0f;
    float along = 0.0f, level = 0.0f;
    NormPack<W> kept = {};
    for (int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
        back_load<W, T>(n, row, pack * W, kept);
#pragma unroll
        for (int k = 0; k < W; k++) {
            const float g = kept.dy[k] * kept.w[k];
            along += g * (kept.x[k] - mean);
            level += g;
        }
    }
    along = block_sum(along, room) / (float)n.cols;
    level = MEAN ? block_sum(level, room) / (float)n.cols : 0.0f;
    const float four[4] = {mean, rstd, along * rstd * rstd * rstd, level * rstd};
    for (int64_t pack = threadIdx.x, round = 0; pack < packs; pack += blockDim.x, round++) {
        back_load<W, T>(n, row, pack * W, kept);
        back_store<W, T>(n, row, pack * W, four, kept, back_sums<W>(room, round));
    }
}

// A thread's pack of a row as stored in memory.
template <int W, typename T>
struct NormWords {
    PackWords<W, T> dy, x;
    float mean, rstd;
};

template <int W, bool MEAN, typename T>
static __device__ __forceinline__ void back_fetch(const KernelNormBackward &n, int64_t row, int64_t col,
                                                  NormWords<W, T> &words) {
    if (col < n.cols) {
        words.dy = pack_fetch<W>((const T *)n.dy + row * n.cols + col);
        words.x = pack_fetch<W>((const T *)n.x + row * n.x_stride + col);
    }
    words.rstd = n.rstd[row];
    words.mean = MEAN ? n.mean[row] : 0.0f;
}

// Sums both numbers over the block, for all threads. Alternating between two halves of room, one barrier is enough: a
// thread that rewrites a half has met all others after they read it.
static __device__ __forceinline__ void back_totals(float &x, float &y, float *room, int turn) {
    float *const here = room + turn % 2 * 2 * WARP;
    x = warp_sum(x);
    y = warp_sum(y);
    if (threadIdx.x % WARP == 0) {
        here[threadIdx.x / WARP] = x;
        here[WARP + threadIdx.x / WARP] = y;
    }
    __syncthreads();
    x = y = 0.0f;
    for (uint32_t warp = 0; warp < blockDim.x / WARP; warp++) {
        x += here[warp];
        y += here[WARP + warp];
    }
}

template <int W, bool MEAN, typename T>
static __device__ __forceinline__ void back_rows_kept(const KernelNormBackward &n, float *parts, float *room) {
    const int64_t col = threadIdx.x * (int64_t)W;
    float sums[W] = {};
    PackWords<W, T> factors = {};
    NormWords<W, T> next = {};
    if (col < n.cols) {
        factors = pack_fetch<W>((const T *)n.w + col);
    }
    if (blockIdx.x < n.rows) {
        back_fetch<W, MEAN, T>(n, blockIdx.x, col, next);
    }
    int turn = 0;
    for (int64_t row = blockIdx.x; row < n.rows; row += gridDim.x, turn++) {
        const NormWords<W, T> now = next;
        PackWords<W, T> residual = {};
        if (n.residual && col < n.cols) {
            residual = pack_fetch<W>((const T *)n.residual + row * n.cols + col);
        }
        if (row + gridDim.x < n.rows) {
            back_fetch<W, MEAN, T>(n, row + gridDim.x, col, next);
        }
        float dy[W], x[W], w[W], dx[W];
        pack_open<W>(now.dy, dy);
        pack_open<W>(now.x, x);
        pack_open<W>(factors, w);
        float along = 0.0f, level = 0.0f;
#pragma unroll
        for (int k = 0; k < W; k++) {
            along += dy[k] * w[k] * (x[k] - now.mean);
            level += dy[k] * w[k];
        }
        back_totals(along, level, room, turn);
        const float pull = along / (float)n.cols * now.rstd * now.rstd * now.rstd;
        const float drop = MEAN ? level / (float)n.cols * now.rstd : 0.0f;
        pack_open<W>(residual, dx);
#pragma unroll
        for (int k = 0; k < W; k++) {
            const float from_mean = x[k] - now.mean;
            dx[k] += dy[k] * w[k] * now.rstd - from_mean * pull - drop;
            sums[k] += dy[k] * (from_mean * now.rstd);
        }
        if (col < n.cols) {
            pack_store<W>((T *)n.dx + row * n.x_stride + col, dx);
        }
    }
    if (col < n.cols) {
        pack_store<W>(parts + blockIdx.x * n.cols + col, sums);
    }
}

// Blocks per processor, whose memory waits overlap: two where nothing is spilled for it.
template <bool MEAN, typename T>
static constexpr int back_blocks() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    return 1;
#else
    return sizeof(T) == 2 && !MEAN ? 2 : 1;
#endif
}

template <int W, bool MEAN, typename T>
static __global__ void __launch_bounds__(ROW_THREADS, (back_blocks<MEAN, T>()))
    norm_backward_kernel(KernelNormBackward n, float *parts) {
    float *room = word_shared<float>();
    const int64_t packs = n.cols / W;
    if (packs <= (int64_t)blockDim.x) {
        back_rows_kept<W, MEAN, T>(n, parts, room);
        return;
    }
    for (int64_t pack = threadIdx.x, round = 0; pack < packs; pack += blockDim.x, round++) {
        for (int k = 0; k < W; k++) {
            back_sums<W>(room, round)[k * blockDim.x] = 0.0f;
        }
    }
    for (int64_t row = blockIdx.x; row < n.rows; row += gridDim.x) {
        back_row<W, MEAN, T>(n, row, room);
    }
    for (int64_t pack = threadIdx.x, round = 0; pack < packs; pack += blockDim.x, round++) {
        float sum[W];
        for (int k = 0; k < W; k++) {
            sum[k] = back_sums<W>(room, round)[k * blockDim.x];
        }
        pack_store<W>(parts + blockIdx.x * n.cols + pack * W, sum);
    }
}

// A partial last round takes as much room as a full one.
static LaunchShape back_shape(int64_t rows, int64_t cols, int width, int processors) {
    const uint32_t threads = launch_row_sums(rows, cols, cols / width, processors).threads;
    const int64_t rounds = launch_parts(launch_at_least(cols / width, 1), threads);
    return launch_row_sums(rows, rounds * threads * width, cols / width, processors);
}

int64_t kernel_cuda_norm_backward_workspace(const KernelCuda *at, const KernelNormBackward *norm) {
    const int64_t wide = back_shape(norm->rows, norm->cols, PACK, at->processors).grid_x;
    const int64_t narrow = back_shape(norm->rows, norm->cols, 1, at->processors).grid_x;
    return launch_at_least(wide, narrow) * norm->cols * (int64_t)sizeof(float);
}

int kernel_cuda_norm_backward(const KernelCuda *at, KernelStore store, KernelStore sums,
                              const KernelNormBackward *norm) {
    const int missing = workspace_missing(at, kernel_cuda_norm_backward_workspace(at, norm));
    if (missing || norm->cols > KERNEL_CUDA_NORM_COLS) {
        return missing ? missing : (int)cudaErrorInvalidValue;
    }
    const bool wide = launch_is_wide(address(norm->dy) | address(norm->x) | address(norm->w) |
                                         address(norm->residual) | address(norm->dx) | address(at->workspace),
                                     norm->cols | norm->x_stride);
    const LaunchShape shape = back_shape(norm->rows, norm->cols, wide ? PACK : 1, at->processors);
    KernelNormBackward n = *norm;
    n.x_stride = norm->x_stride > 0 ? norm->x_stride : norm->cols;
    float *const parts = (float *)at->workspace;
    const int error = with_store(store, [&](auto element) {
        using T = decltype(element);
        const auto kernel = norm->mean ? wide ? norm_backward_kernel<PACK, true, T> : norm_backward_kernel<1, true, T>
                            : wide ? norm_backward_kernel<PACK, false, T>
                                   : norm_backward_kernel<1, false, T>;
        return launch(kernel, shape, at->stream, n, parts);
    });
    return error ? error
                 : columns_finish(at, sums, shape.grid_x, norm->cols, parts, norm->dw, norm->accumulate);
}
