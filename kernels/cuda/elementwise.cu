// Sums, copies, casts, zero fills, philox normals and the clip scale: one pass, one pack per thread and iteration.

#include "kernels/cuda/pack.cuh"
#include "kernels/philox.h"

template <typename From, typename To>
struct AddBody {
    const From *a;
    const To *b;
    To *c;
    template <int W>
    __device__ __forceinline__ void at(int64_t i) const {
        pack_map<W>(a + i, b + i, c + i, [](float x, float y) { return x + y; });
    }
};

int kernel_cuda_add(const KernelCuda *at, KernelStore store, int64_t count, const void *a, const void *b, void *c) {
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return flat_launch<pack_of<T>()>(at, count, launch_is_wide(address(a) | address(b) | address(c), 0),
                           AddBody<T, T>{(const T *)a, (const T *)b, (T *)c});
    });
}

template <typename T>
struct AddBiasBody {
    int64_t cols;
    const T *a, *b, *bias;
    T *c;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        const int64_t i = row * cols + col;
        float x[W], y[W], z[W];
        pack_load<W>(a + i, x);
        pack_load<W>(b + i, y);
        pack_load<W>(bias + col, z);
#pragma unroll
        for (int k = 0; k < W; k++) {
            x[k] += y[k] + z[k];
        }
        pack_store<W>(c + i, x);
    }
};

int kernel_cuda_add_bias(const KernelCuda *at, KernelStore store, int64_t rows, int64_t cols, const void *a,
                         const void *b, const void *bias, void *c) {
    const bool wide = launch_is_wide(address(a) | address(b) | address(bias) | address(c), cols);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return plane_launch<PACK>(at, rows, cols, wide,
                            AddBiasBody<T>{cols, (const T *)a, (const T *)b, (const T *)bias, (T *)c});
    });
}

// Rows in any two formats.
template <typename From, typename To>
struct CopyBody {
    int64_t src_stride, dst_stride;
    const From *src;
    To *dst;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        float x[W];
        pack_load<W>(src + row * src_stride + col, x);
        pack_store<W>(dst + row * dst_stride + col, x);
    }
    template <int W>
    __device__ __forceinline__ void at(int64_t i) const {
        at<W>(0, i);
    }
};

int kernel_cuda_copy_rows(const KernelCuda *at, const KernelCudaCopy *copy, const void *src, void *dst) {
    const bool packed = copy->rows == 1 || (copy->src_stride == copy->cols && copy->dst_stride == copy->cols);
    const bool wide = launch_is_wide(address(src) | address(dst),
                                     packed ? 0 : copy->cols | copy->src_stride | copy->dst_stride);
    return with_store(copy->from, [&](auto in) {
        return with_store(copy->to, [&](auto out) {
            using From = decltype(in);
            using To = decltype(out);
            const CopyBody<From, To> body = {copy->src_stride, copy->dst_stride, (const From *)src, (To *)dst};
            constexpr int WIDE = pack_of<From, To>();
            return packed ? flat_launch<WIDE>(at, copy->rows * copy->cols, wide, body)
                          : plane_launch<WIDE>(at, copy->rows, copy->cols, wide, body);
        });
    });
}

int kernel_cuda_accumulate(const KernelCuda *at, KernelStore from, KernelStore to, int64_t count, const void *src,
                           void *dst) {
    return with_store(from, [&](auto in) {
        return with_store(to, [&](auto out) {
            using From = decltype(in);
            using To = decltype(out);
            return flat_launch<pack_of<From, To>()>(at, count, launch_is_wide(address(src) | address(dst), 0),
                                                    AddBody<From, To>{(const From *)src, (To *)dst, (To *)dst});
        });
    });
}

template <typename T>
struct ZeroBody {
    T *x;
    template <int W>
    __device__ __forceinline__ void at(int64_t i) const {
        float zero[W] = {};
        pack_store<W>(x + i, zero);
    }
};

// Two zero bytes are a bf16 zero and half of an fp32 zero.
int kernel_cuda_zero(const KernelCuda *at, int64_t bytes, void *x) {
    return flat_launch<PACK>(at, bytes / 2, launch_is_wide(address(x), 0), ZeroBody<Bf16>{(Bf16 *)x});
}

template <typename T>
struct NormalBody {
    KernelNormal stream;
    T *x;
    template <int W>
    __device__ __forceinline__ void at(int64_t i) const {
        float y[W];
        for (int k = 0; k < W; k++) {
            y[k] = (float)philox_normal(stream.key, stream.stream, stream.first + (uint64_t)(i + k)) * stream.scale;
        }
        pack_store<W>(x + i, y);
    }
};

int kernel_cuda_normal(const KernelCuda *at, KernelStore store, const KernelNormal *stream, int64_t count, void *x) {
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return flat_launch<PACK>(at, count, launch_is_wide(address(x), 0), NormalBody<T>{*stream, (T *)x});
    });
}

static __global__ void clip_kernel(float clip, const float *norm_square, float *out) {
    if (threadIdx.x == 0) {
        const float norm = sqrtf(*norm_square);
        out[0] = norm > clip ? clip / norm : 1.0f;
        out[1] = norm;
    }
}

int kernel_cuda_clip(const KernelCuda *at, float clip, const float *norm_square, float *out) {
    return launch(clip_kernel, LaunchShape{1, 1, 1, WARP, 0}, at->stream, clip, norm_square, out);
}

static __global__ void __launch_bounds__(WARP) count_kernel(unsigned *count) {
    if (threadIdx.x == 0) {
        word_add_for_host(count, 1);
    }
}

int kernel_cuda_count(const KernelCuda *at, unsigned *count) {
    return launch(count_kernel, LaunchShape{1, 1, 1, WARP, 0}, at->stream, count);
}
