// Cross-entropy over a vocabulary split between ranks, in the steps of kernels/cpu/loss.c, and fused where it is whole:
// one block per row. Rows of an odd vocabulary do not begin at 16-byte addresses, so a row is read as a head, packs and
// a tail. Maximum and sum in one read keep a running maximum (Milakov and Gimelshein 2018); the gradient pass then
// starts at the end of the row, which is in cache.

#include "kernels/cuda/pack.cuh"

// e^x, about 3 ulp near 0; 0 for -infinity.
static __device__ __forceinline__ float power(float x) {
    return word_exp2(x * 1.4426950408889634f);
}

// Calls visit(col, x, count) on this thread's elements, in packs where the address allows; BACK: from the row's end.
template <bool BACK, typename T, typename Visit>
static __device__ __forceinline__ void row_each(const T *row, int64_t cols, Visit visit) {
    constexpr int LOADS = 64 / (PACK * (int)sizeof(T));
    const int64_t off = (int64_t)(reinterpret_cast<uintptr_t>(row) / sizeof(T) % PACK);
    const int64_t head = off == 0 ? 0 : PACK - off < cols ? PACK - off : cols;
    const int64_t packs = (cols - head) / PACK, tail = head + packs * PACK;
    const auto col_of = [&](int64_t pack) { return head + (BACK ? packs - 1 - pack : pack) * PACK; };
    for (int64_t pack = threadIdx.x; pack < packs; pack += LOADS * blockDim.x) {
        PackWords<PACK, T> words[LOADS];  // all are loaded before one is used
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int64_t at = pack + i * (int64_t)blockDim.x;
            words[i] = pack_fetch<PACK>(row + col_of(at < packs ? at : packs - 1));
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int64_t at = pack + i * (int64_t)blockDim.x;
            if (at < packs) {
                float x[PACK];
                pack_open<PACK>(words[i], x);
                visit(col_of(at), x, PackCount<PACK>{});
            }
        }
    }
    const int64_t rest = threadIdx.x < head ? (int64_t)threadIdx.x : tail + (int64_t)threadIdx.x - head;
    if (rest < cols) {  // fewer than PACK on each side, and at least a warp of threads
        float x[1];
        pack_load<1>(row + rest, x);
        visit(rest, x, PackCount<1>{});
    }
}

template <typename T>
static __global__ void __launch_bounds__(LONG_ROW_THREADS, 1)
    loss_max_kernel(int64_t cols, const T *logits, float *row_max) {
    float most = -INFINITY;
    row_each<false>(logits + blockIdx.x * cols, cols, [&](int64_t, const float *x, auto count) {
#pragma unroll
        for (int k = 0; k < count.value; k++) {
            most = fmaxf(most, x[k]);
        }
    });
    most = block_max(most, word_shared<float>());
    if (threadIdx.x == 0) {
        row_max[blockIdx.x] = most;
    }
}

int kernel_cuda_loss_max(const KernelCuda *at, KernelStore store, const KernelLoss *loss, const void *logits) {
    if (loss->rows <= 0) {
        return 0;
    }
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(loss_max_kernel<T>, launch_long_rows(loss->rows, loss->cols / PACK), at->stream, loss->cols,
                      (const T *)logits, loss->row_max);
    });
}

// The target's logit minus the maximum if this range holds it, else 0.
template <typename T>
static __device__ __forceinline__ float target_of(const KernelLoss &loss, const T *row, float most) {
    const int64_t target = loss.targets[blockIdx.x] - loss.first;
    float x[1] = {most};
    if (target >= 0 && target < loss.cols) {
        pack_load<1>(row + target, x);
    }
    return target >= 0 && target < loss.cols ? x[0] - most : 0.0f;
}

template <typename T>
static __global__ void __launch_bounds__(LONG_ROW_THREADS, 1) loss_sum_kernel(KernelLoss loss, const T *logits) {
    const T *row = logits + blockIdx.x * loss.cols;
    const float most = loss.row_max[blockIdx.x];
    float sum = 0.0f;
    row_each<false>(row, loss.cols, [&](int64_t, const float *x, auto count) {
#pragma unroll
        for (int k = 0; k < count.value; k++) {
            sum += power(x[k] - most);
        }
    });
    sum = block_sum(sum, word_shared<float>());
    if (threadIdx.x == 0) {
        loss.sum_exp[blockIdx.x] = sum;
        loss.target_logit[blockIdx.x] = target_of(loss, row, most);
    }
}

int kernel_cuda_loss_sum(const KernelCuda *at, KernelStore store, const KernelLoss *loss, const void *logits) {
    if (loss->rows <= 0) {
        return 0;
    }
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(loss_sum_kernel<T>, launch_long_rows(loss->rows, loss->cols / PACK), at->stream, *loss,
                      (const T *)logits);
    });
}

// Turns logits into gradients. The thread that has the target passes its logit to found.
template <bool BACK, typename T, typename Found>
static __device__ __forceinline__ void gradient_row(T *row, int64_t cols, int64_t target, float most, float factor,
                                                    float gradient, Found found) {
    row_each<BACK>(row, cols, [&](int64_t col, const float *x, auto count) {
        float y[count.value];
#pragma unroll
        for (int k = 0; k < count.value; k++) {
            y[k] = power(x[k] - most) * factor;
        }
        if (target >= col && target < col + count.value) {
#pragma unroll
            for (int k = 0; k < count.value; k++) {
                y[k] -= col + k == target ? gradient : 0.0f;
                if (col + k == target) {
                    found(x[k]);
                }
            }
        }
        pack_store<count.value>(row + col, y);
    });
}

template <typename T>
static __global__ void __launch_bounds__(LONG_ROW_THREADS, 1)
    loss_gradient_kernel(KernelLoss loss, T *logits) {
    const int64_t at = blockIdx.x;
    gradient_row<false>(logits + at * loss.cols, loss.cols, loss.targets[at] - loss.first, loss.row_max[at],
                        loss.gradient / loss.sum_exp[at], loss.gradient, [](float) {});
}

// exp(x - most), where most may be -infinity: nothing seen yet.
static __device__ __forceinline__ float shrink(float x, float most) {
    return x == -INFINITY ? 0.0f : power(x - most);
}

template <typename T>
static __global__ void __launch_bounds__(LONG_ROW_THREADS, 1)
    loss_kernel(KernelLoss loss, T *logits) {
    const int64_t at = blockIdx.x, target = loss.targets[at] - loss.first;
    T *row = logits + at * loss.cols;
    float most = -INFINITY, sum = 0.0f;
    row_each<false>(row, loss.cols, [&](int64_t, const float *x, auto count) {
        float larger = most;
#pragma unroll
        for (int k = 0; k < count.value; k++) {
            larger = fmaxf(larger, x[k]);
        }
        const float from = larger > -INFINITY ? larger : 0.0f;
        sum *= power(most - from);
#pragma unroll
        for (int k = 0; k < count.value; k++) {
            sum += power(x[k] - from);
        }
        most = larger;
    });
    const float all = block_max(most, word_shared<float>());
    sum = block_sum(sum * shrink(most, all), word_shared<float>());  // every thread has read the row
    if (threadIdx.x == 0) {
        loss.row_max[at] = all;
        loss.sum_exp[at] = sum;
        if (target < 0 || target >= loss.cols) {
            loss.target_logit[at] = 0.0f;
        }
    }
    gradient_row<true>(row, loss.cols, target, all, loss.gradient / sum, loss.gradient,
                       [&](float x) { loss.target_logit[at] = x - all; });
}

// One block: each thread strides over the rows, then threads are added in order.
static __global__ void __launch_bounds__(LAUNCH_MAX_THREADS)
    loss_total_kernel(KernelLoss loss, float *total, bool accumulate) {
    double sum = 0.0;
    for (int64_t row = threadIdx.x; row < loss.rows; row += blockDim.x) {
        sum += log((double)loss.sum_exp[row]) - (double)loss.target_logit[row];
    }
    sum = block_sum(sum, word_shared<double>());
    if (threadIdx.x == 0) {
        *total = (float)(sum + (accumulate ? (double)*total : 0.0));
    }
}

static int total_launch(const KernelCuda *at, const KernelLoss *loss, float *total, bool accumulate) {
    return launch(loss_total_kernel, LaunchShape{1, 1, 1, LAUNCH_MAX_THREADS, WARP * sizeof(double)}, at->stream, *loss,
                  total, accumulate);
}

int kernel_cuda_loss_gradient(const KernelCuda *at, KernelStore store, const KernelLoss *loss, void *logits,
                              float *total, bool accumulate) {
    const int error = total_launch(at, loss, total, accumulate);
    if (error || loss->rows <= 0) {
        return error;
    }
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(loss_gradient_kernel<T>, launch_long_rows(loss->rows, loss->cols / PACK), at->stream, *loss,
                      (T *)logits);
    });
}

int kernel_cuda_loss(const KernelCuda *at, KernelStore store, const KernelLoss *loss, void *logits, float *total,
                     bool accumulate) {
    int error = 0;
    if (loss->rows > 0) {
        error = with_store(store, [&](auto element) {
            using T = decltype(element);
            return launch(loss_kernel<T>, launch_long_rows(loss->rows, loss->cols / PACK), at->stream, *loss,
                          (T *)logits);
        });
    }
    return error ? error : total_launch(at, loss, total, accumulate);
}
