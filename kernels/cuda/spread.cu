// Permutes rows into the order of their experts and back. Forward, a row is read once and written to all of its places,
// or read from them and written once; backward, a block per row sums weight gradients over columns.

#include "kernels/cuda/pack.cuh"
#include "kernels/routing.h"

template <typename T>
struct SpreadBody {
    KernelSpread shape;
    const T *x;
    T *y;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        float z[W];
        pack_load<W>(x + row * shape.cols + col, z);
        for (int64_t i = row * shape.active; i < (row + 1) * shape.active; i++) {
            pack_store<W>(y + shape.places[i] * shape.cols + col, z);
        }
    }
};

int kernel_cuda_spread(const KernelCuda *at, KernelStore store, const KernelSpread *shape, const void *x, void *y) {
    const bool wide = launch_is_wide(address(x) | address(y), shape->cols);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return plane_launch<PACK>(at, shape->rows, shape->cols, wide, SpreadBody<T>{*shape, (const T *)x, (T *)y});
    });
}

template <typename T>
static __device__ __forceinline__ float one_of(const T *at) {
    float x[1];
    pack_load<1>(at, x);
    return x[0];
}

template <typename T>
struct CollectBody {
    KernelSpread shape;
    const float *weights;
    const T *y, *more, *gate;
    T *x;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        float sum[W] = {};
        if (more) {
            const float open = gate ? routing_sigmoid(one_of(gate + row)) : 1.0f;
            pack_load<W>(more + row * shape.cols + col, sum);
#pragma unroll
            for (int k = 0; k < W; k++) {
                sum[k] *= open;
            }
        }
        for (int64_t i = row * shape.active; i < (row + 1) * shape.active; i++) {
            const float weight = weights ? weights[i] : 1.0f;
            float z[W];
            pack_load<W>(y + shape.places[i] * shape.cols + col, z);
#pragma unroll
            for (int k = 0; k < W; k++) {
                sum[k] += weight * z[k];
            }
        }
        pack_store<W>(x + row * shape.cols + col, sum);
    }
};

int kernel_cuda_collect(const KernelCuda *at, KernelStore store, const KernelCudaCollect *c) {
    const bool wide = launch_is_wide(address(c->y) | address(c->more) | address(c->x), c->shape.cols);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        const CollectBody<T> body = {c->shape,           c->weights,          (const T *)c->y,
                                     (const T *)c->more, (const T *)c->gate, (T *)c->x};
        return plane_launch<PACK>(at, c->shape.rows, c->shape.cols, wide, body);
    });
}

// dy = factor dx; returns dx . y to all threads.
template <int W, typename T>
static __device__ __forceinline__ float weighed_back(int64_t cols, float factor, const T *dx, const T *y, T *dy,
                                                     float *room) {
    float dot = 0;
    for (int64_t col = (int64_t)threadIdx.x * W; col < cols; col += (int64_t)blockDim.x * W) {
        float d[W], z[W];
        pack_load<W>(dx + col, d);
        pack_load<W>(y + col, z);
#pragma unroll
        for (int k = 0; k < W; k++) {
            dot += d[k] * z[k];
            d[k] *= factor;
        }
        pack_store<W>(dy + col, d);
    }
    return block_sum(dot, room);
}

template <int W, typename T>
static __global__ void __launch_bounds__(ROW_THREADS)
    collect_backward_kernel(KernelSpread shape, const float *weights, const T *dx, const T *y, T *dy,
                            float *dweights) {
    float *const room = word_shared<float>();
    for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
        for (int64_t i = row * shape.active; i < (row + 1) * shape.active; i++) {
            const int64_t place = shape.places[i] * shape.cols;
            const float dot =
                weighed_back<W>(shape.cols, weights[i], dx + row * shape.cols, y + place, dy + place, room);
            if (threadIdx.x == 0) {
                dweights[i] = dot;
            }
        }
    }
}

int kernel_cuda_collect_backward(const KernelCuda *at, KernelStore store, const KernelSpread *shape,
                                 const float *weights, const void *dx, const void *y, void *dy, float *dweights) {
    const bool wide = launch_is_wide(address(dx) | address(y) | address(dy), shape->cols);
    const LaunchShape grid = launch_rows(shape->rows, shape->cols / (wide ? PACK : 1));
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(wide ? collect_backward_kernel<PACK, T> : collect_backward_kernel<1, T>, grid, at->stream,
                      *shape, weights, (const T *)dx, (const T *)y, (T *)dy, dweights);
    });
}

template <int W, typename T>
static __global__ void __launch_bounds__(ROW_THREADS)
    shared_backward_kernel(int64_t rows, int64_t cols, const T *gate, const T *y, const T *dx, T *dy, T *dgate) {
    float *const room = word_shared<float>();
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float open = routing_sigmoid(one_of(gate + row));
        const float dot = weighed_back<W>(cols, open, dx + row * cols, y + row * cols, dy + row * cols, room);
        const float gradient[1] = {open * (1.0f - open) * dot};
        if (threadIdx.x == 0) {
            pack_store<1>(dgate + row, gradient);
        }
    }
}

int kernel_cuda_shared_backward(const KernelCuda *at, KernelStore store, int64_t rows, int64_t cols, const void *gate,
                                const void *y, const void *dx, void *dy, void *dgate) {
    const bool wide = launch_is_wide(address(y) | address(dx) | address(dy), cols);
    const LaunchShape grid = launch_rows(rows, cols / (wide ? PACK : 1));
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(wide ? shared_backward_kernel<PACK, T> : shared_backward_kernel<1, T>, grid, at->stream, rows,
                      cols, (const T *)gate, (const T *)y, (const T *)dx, (T *)dy, (T *)dgate);
    });
}

// ---------------------------------------------------------------------------------------------- groups

// In group order: where a group's rows from one part end, and where they begin in part order.
struct Stretches {
    int32_t *end, *begin;
    int count;
};

static __device__ __forceinline__ Stretches stretches_of(const KernelGroups &groups) {
    const int count = groups.count * groups.parts;
    const Stretches s = {word_shared<int32_t>(), word_shared<int32_t>() + count, count};
    for (int at = (int)threadIdx.x; at < count; at += (int)blockDim.x) {
        const int g = at / groups.parts, p = at % groups.parts;
        int32_t end = 0, begin = 0;
        for (int other = 0; other < count; other++) {
            const int32_t rows = groups.counts[other];
            const int of_part = other / groups.count, of_group = other % groups.count;
            end += of_group < g || (of_group == g && of_part <= p) ? rows : 0;
            begin += other < p * groups.count + g ? rows : 0;
        }
        s.end[at] = end;
        s.begin[at] = begin;
    }
    __syncthreads();
    return s;
}

template <int W, typename T>
static __global__ void __launch_bounds__(REGROUP_THREADS)
    regroup_kernel(KernelGroups groups, int64_t most, int64_t cols, bool back, const T *from, T *to) {
    const Stretches s = stretches_of(groups);
    const int64_t all = s.end[s.count - 1], rows = all < most ? all : most;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const int at = routing_range_at(s.end, s.count, row);
        const int64_t other = s.begin[at] + row - (at > 0 ? s.end[at - 1] : 0);
        const T *source = from + (back ? row : other) * cols;
        T *target = to + (back ? other : row) * cols;
        for (int64_t col = (int64_t)threadIdx.x * W; col < cols; col += (int64_t)blockDim.x * W) {
            float x[W];
            pack_load<W>(source + col, x);
            pack_store<W>(target + col, x);
        }
    }
}

int kernel_cuda_regroup(const KernelCuda *at, KernelStore store, const KernelGroups *groups, int64_t rows, int64_t cols,
                        bool back, const void *from, void *to) {
    const bool wide = launch_is_wide(address(from) | address(to), cols);
    const LaunchShape grid = launch_regroup(rows, groups->count * groups->parts, at->processors);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(wide ? regroup_kernel<PACK, T> : regroup_kernel<1, T>, grid, at->stream, *groups, rows, cols,
                      back, (const T *)from, (T *)to);
    });
}
