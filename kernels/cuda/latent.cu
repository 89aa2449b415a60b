// Joins keys of latent attention from each head's part of the latent and the shared part, and splits them again:
// elements of rows, assigned to any thread.

#include "kernels/cuda/pack.cuh"

template <typename T>
struct JoinBody {
    KernelKeys keys;
    const T *up, *shared;
    T *k;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        const int width = keys.still + keys.turning, head = (int)(col / width), i = (int)(col % width);
        const T *from = i < keys.still ? up + (row * keys.heads + head) * (keys.still + keys.value) + i
                                       : shared + row * keys.shared_stride + i - keys.still;
        float x[W];
        pack_load<W>(from, x);
        pack_store<W>(k + row * keys.heads * width + col, x);
    }
};

static bool keys_are_wide(const KernelKeys *keys, uint64_t addresses) {
    return launch_is_wide(addresses, keys->still | keys->turning | keys->value | keys->shared_stride);
}

int kernel_cuda_join_keys(const KernelCuda *at, KernelStore store, const KernelKeys *keys, const void *up,
                          const void *shared, void *k) {
    const bool wide = keys_are_wide(keys, address(up) | address(shared) | address(k));
    const int64_t cols = (int64_t)keys->heads * (keys->still + keys->turning);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return plane_launch<PACK>(at, keys->rows, cols, wide,
                            JoinBody<T>{*keys, (const T *)up, (const T *)shared, (T *)k});
    });
}

template <typename T>
struct PartBody {
    KernelKeys keys;
    const T *dk, *dv;
    T *dup;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        const int width = keys.still + keys.value, head = (int)(col / width), i = (int)(col % width);
        const int64_t number = row * keys.heads + head;
        const T *from = i < keys.still ? dk + number * (keys.still + keys.turning) + i
                                       : dv + number * keys.value + i - keys.still;
        float x[W];
        pack_load<W>(from, x);
        pack_store<W>(dup + row * keys.heads * width + col, x);
    }
};

// The sum over heads, in order.
template <typename T>
struct SharedPartBody {
    KernelKeys keys;
    const T *dk;
    T *dshared;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        float sum[W] = {};
        for (int head = 0; head < keys.heads; head++) {
            float x[W];
            pack_load<W>(dk + (row * keys.heads + head) * (keys.still + keys.turning) + keys.still + col, x);
#pragma unroll
            for (int k = 0; k < W; k++) {
                sum[k] += x[k];
            }
        }
        pack_store<W>(dshared + row * keys.shared_stride + col, sum);
    }
};

int kernel_cuda_part_keys(const KernelCuda *at, KernelStore store, const KernelKeys *keys, const void *dk,
                          const void *dv, void *dup, void *dshared) {
    const bool wide = keys_are_wide(keys, address(dk) | address(dv) | address(dup) | address(dshared));
    const int64_t cols = (int64_t)keys->heads * (keys->still + keys->value);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        const int error = plane_launch<PACK>(at, keys->rows, cols, wide,
                                       PartBody<T>{*keys, (const T *)dk, (const T *)dv, (T *)dup});
        return error ? error
                     : plane_launch<PACK>(at, keys->rows, keys->turning, wide,
                                    SharedPartBody<T>{*keys, (const T *)dk, (T *)dshared});
    });
}
