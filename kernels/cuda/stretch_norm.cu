// RMS norm of segments of a row, in place, and its backward: one warp per segment. For dw every warp keeps one sum per
// column of a segment in shared memory, each lane its own columns; warps and blocks are added in order.

#include "kernels/cuda/columns.cuh"

template <typename T>
struct Stretched {
    KernelStretches shape;
    float eps;
    const T *w;
    T *x, *before;
    float *rstd, *parts;
};

template <int W, typename T>
static __global__ void __launch_bounds__(STRETCH_WARPS *WARP) stretch_norm_kernel(Stretched<T> s) {
    const KernelStretches &shape = s.shape;
    const int64_t step = (int64_t)gridDim.x * (blockDim.x / WARP), lane = threadIdx.x % WARP;
    int64_t stretch = (int64_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    for (; stretch < shape.rows * shape.parts; stretch += step) {
        const int64_t row = stretch / shape.parts, part = stretch % shape.parts;
        T *x = s.x + row * shape.stride + part * shape.width;
        T *before = s.before + row * shape.before_stride + part * shape.width;
        float squares = 0.0f;
        for (int64_t col = lane * W; col < shape.width; col += WARP * W) {
            float y[W];
            pack_load<W>(x + col, y);
            pack_store<W>(before + col, y);
#pragma unroll
            for (int k = 0; k < W; k++) {
                squares += y[k] * y[k];
            }
        }
        const float rstd = 1.0f / sqrtf(warp_sum(squares) / (float)shape.width + s.eps);
        for (int64_t col = lane * W; col < shape.width; col += WARP * W) {
            pack_map<W>(x + col, s.w + col, x + col, [=](float y, float w) { return y * (rstd * w); });
        }
        if (lane == 0) {
            s.rstd[row * shape.rstd_stride + part] = rstd;
        }
    }
}

static bool stretch_is_wide(const KernelStretches *shape, const void *w, const void *x, const void *before) {
    return launch_is_wide(address(w) | address(x) | address(before),
                          shape->width | shape->stride | shape->before_stride);
}

int kernel_cuda_stretch_norm(const KernelCuda *at, KernelStore store, const KernelStretches *shape, float eps,
                             const void *w, void *x, void *before, float *rstd) {
    const int64_t stretches = shape->rows * shape->parts;
    if (stretches <= 0) {
        return 0;
    }
    const LaunchShape grid = launch_flat(stretches * WARP, at->processors);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        const Stretched<T> s = {*shape, eps, (const T *)w, (T *)x, (T *)before, rstd, nullptr};
        return launch(stretch_is_wide(shape, w, x, before) ? stretch_norm_kernel<PACK, T> : stretch_norm_kernel<1, T>,
                      grid, at->stream, s);
    });
}

// Index of a column's sum: the lanes of a warp are adjacent.
template <int W>
static __device__ __forceinline__ int64_t stretch_place(int64_t col) {
    return col / (W * WARP) * (W * WARP) + col % W * WARP + col / W % WARP;
}

// One segment: x holds the gradient of the result and becomes that of the input.
template <int W, typename T>
static __device__ __forceinline__ void stretch_back(const Stretched<T> &s, int64_t stretch, float *sums) {
    const KernelStretches &shape = s.shape;
    const int64_t row = stretch / shape.parts, part = stretch % shape.parts, lane = threadIdx.x % WARP;
    T *dx = s.x + row * shape.stride + part * shape.width;
    const T *before = s.before + row * shape.before_stride + part * shape.width;
    const float rstd = s.rstd[row * shape.rstd_stride + part];
    float along = 0.0f;
    for (int64_t col = lane * W; col < shape.width; col += WARP * W) {
        float dy[W], x[W], w[W];
        pack_load<W>(dx + col, dy);
        pack_load<W>(before + col, x);
        pack_load<W>(s.w + col, w);
#pragma unroll
        for (int k = 0; k < W; k++) {
            along += dy[k] * w[k] * x[k];
            sums[stretch_place<W>(col + k)] += dy[k] * (x[k] * rstd);
        }
    }
    const float pull = warp_sum(along) / (float)shape.width * rstd * rstd * rstd;
    for (int64_t col = lane * W; col < shape.width; col += WARP * W) {
        float dy[W], x[W], w[W];
        pack_load<W>(dx + col, dy);
        pack_load<W>(before + col, x);
        pack_load<W>(s.w + col, w);
#pragma unroll
        for (int k = 0; k < W; k++) {
            dy[k] = dy[k] * w[k] * rstd - x[k] * pull;
        }
        pack_store<W>(dx + col, dy);
    }
}

template <int W, typename T>
static __global__ void __launch_bounds__(STRETCH_WARPS *WARP, 2) stretch_norm_backward_kernel(Stretched<T> s) {
    const int64_t width = s.shape.width, warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
    float *room = word_shared<float>();
    const int64_t columns = (width + W * WARP - 1) / (W * WARP) * (W * WARP);
    for (int64_t i = threadIdx.x; i < warps * columns; i += blockDim.x) {
        room[i] = 0.0f;
    }
    __syncthreads();
    for (int64_t stretch = blockIdx.x * warps + warp; stretch < s.shape.rows * s.shape.parts;
         stretch += gridDim.x * warps) {
        stretch_back<W>(s, stretch, room + warp * columns);
    }
    __syncthreads();
    for (int64_t col = threadIdx.x; col < width; col += blockDim.x) {
        float sum = 0.0f;
        for (int64_t other = 0; other < warps; other++) {
            sum += room[other * columns + stretch_place<W>(col)];
        }
        s.parts[blockIdx.x * width + col] = sum;
    }
}

static LaunchShape stretch_sums_shape(const KernelCuda *at, const KernelStretches *shape, int width) {
    return launch_stretch_sums(shape->rows * shape->parts, launch_stretch_room(shape->width, width), at->processors);
}

int64_t kernel_cuda_stretch_norm_backward_workspace(const KernelCuda *at, const KernelStretches *shape) {
    const int64_t wide = stretch_sums_shape(at, shape, PACK).grid_x, narrow = stretch_sums_shape(at, shape, 1).grid_x;
    return launch_at_least(wide, narrow) * shape->width * (int64_t)sizeof(float);
}

int kernel_cuda_stretch_norm_backward(const KernelCuda *at, KernelStore store, KernelStore sums,
                                      const KernelStretches *shape, const void *w, const void *before,
                                      const float *rstd, void *dx, void *dw, bool accumulate) {
    const int missing = workspace_missing(at, kernel_cuda_stretch_norm_backward_workspace(at, shape));
    if (missing || shape->width > KERNEL_CUDA_NORM_COLS) {
        return missing ? missing : (int)cudaErrorInvalidValue;
    }
    const bool wide = stretch_is_wide(shape, w, dx, before);
    const LaunchShape grid = stretch_sums_shape(at, shape, wide ? PACK : 1);
    const int error = with_store(store, [&](auto element) {
        using T = decltype(element);
        const Stretched<T> s = {
            *shape, 0.0f, (const T *)w, (T *)dx, (T *)const_cast<void *>(before), const_cast<float *>(rstd),
            (float *)at->workspace};
        return launch(wide ? stretch_norm_backward_kernel<PACK, T> : stretch_norm_backward_kernel<1, T>, grid,
                      at->stream, s);
    });
    return error ? error
                 : columns_finish(at, sums, grid.grid_x, shape->width, (const float *)at->workspace, dw, accumulate);
}
