// Cross-entropy over a vocabulary cut between ranks or into chunks, in the steps of kernels/cpu/loss.c: a block per
// row. Rows of an odd vocabulary do not begin at 16-byte addresses, so a row is read as a head, packs and a tail. Maximum
// and sum in one reading keep a running maximum (Milakov and Gimelshein 2018).

#include "kernels/cuda/pack.cuh"

// visit(col, x, count) of all elements of this thread, in packs where the address allows.
template <typename T, typename Visit>
static __device__ __forceinline__ void row_each(const T *row, int64_t cols, Visit visit) {
    const int64_t off = (int64_t)(reinterpret_cast<uintptr_t>(row) / sizeof(T) % PACK);
    const int64_t head = off == 0 ? 0 : PACK - off < cols ? PACK - off : cols;
    const int64_t packs = (cols - head) / PACK, tail = head + packs * PACK;
    for (int64_t pack = threadIdx.x; pack < packs; pack += 2 * blockDim.x) {  // both are under way before one is used
        const int64_t next = pack + blockDim.x;
        float x[PACK], y[PACK];
        pack_load<PACK>(row + head + pack * PACK, x);
        if (next < packs) {
            pack_load<PACK>(row + head + next * PACK, y);
        }
        visit(head + pack * PACK, x, PackCount<PACK>{});
        if (next < packs) {
            visit(head + next * PACK, y, PackCount<PACK>{});
        }
    }
    const int64_t rest = threadIdx.x < head ? (int64_t)threadIdx.x : tail + (int64_t)threadIdx.x - head;
    if (rest < cols) {  // fewer than PACK on both sides, and at least a warp of threads
        float x[1];
        pack_load<1>(row + rest, x);
        visit(rest, x, PackCount<1>{});
    }
}

template <typename T>
static __global__ void __launch_bounds__(ROW_THREADS, 1)
    loss_max_kernel(int64_t cols, const T *logits, float *row_max) {
    float most = -INFINITY;
    row_each(logits + blockIdx.x * cols, cols, [&](int64_t, const float *x, auto count) {
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

int kernel_cuda_loss_max(const KernelCuda *at, KernelStore store, const KernelCudaLoss *loss, const void *logits) {
    if (loss->rows <= 0) {
        return 0;
    }
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(loss_max_kernel<T>, launch_rows(loss->rows, loss->cols / PACK), at->stream, loss->cols,
                      (const T *)logits, loss->row_max);
    });
}

// The target's logit less the maximum where this range holds it, else 0.
template <typename T>
static __device__ __forceinline__ float target_of(const KernelCudaLoss &loss, const T *row, float most) {
    const int64_t target = loss.targets[blockIdx.x] - loss.first;
    float x[1] = {most};
    if (target >= 0 && target < loss.cols) {
        pack_load<1>(row + target, x);
    }
    return target >= 0 && target < loss.cols ? x[0] - most : 0.0f;
}

template <typename T>
static __global__ void __launch_bounds__(ROW_THREADS, 1) loss_sum_kernel(KernelCudaLoss loss, const T *logits) {
    const T *row = logits + blockIdx.x * loss.cols;
    const float most = loss.row_max[blockIdx.x];
    float sum = 0.0f;
    row_each(row, loss.cols, [&](int64_t, const float *x, auto count) {
#pragma unroll
        for (int k = 0; k < count.value; k++) {
            sum += expf(x[k] - most);
        }
    });
    sum = block_sum(sum, word_shared<float>());
    if (threadIdx.x == 0) {
        loss.sum_exp[blockIdx.x] = sum;
        loss.target_logit[blockIdx.x] = target_of(loss, row, most);
    }
}

int kernel_cuda_loss_sum(const KernelCuda *at, KernelStore store, const KernelCudaLoss *loss, const void *logits) {
    if (loss->rows <= 0) {
        return 0;
    }
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(loss_sum_kernel<T>, launch_rows(loss->rows, loss->cols / PACK), at->stream, *loss,
                      (const T *)logits);
    });
}

// exp(x - most) where most may be the -infinity of nothing seen yet.
static __device__ __forceinline__ float shrink(float x, float most) {
    return x == -INFINITY ? 0.0f : expf(x - most);
}

template <typename T>
static __global__ void __launch_bounds__(ROW_THREADS, 1)
    loss_max_sum_kernel(KernelCudaLoss loss, const T *logits, int64_t merged) {
    const int64_t at = blockIdx.x;
    const T *row = logits + at * loss.cols;
    float most = -INFINITY, sum = 0.0f;
    row_each(row, loss.cols, [&](int64_t, const float *x, auto count) {
        float larger = most;
#pragma unroll
        for (int k = 0; k < count.value; k++) {
            larger = fmaxf(larger, x[k]);
        }
        sum *= larger > most ? shrink(most, larger) : 1.0f;
#pragma unroll
        for (int k = 0; k < count.value; k++) {
            sum += shrink(x[k], larger);
        }
        most = larger;
    });
    const float before = merged > 0 ? loss.row_max[at] : -INFINITY;
    const float all = fmaxf(block_max(most, word_shared<float>()), before);
    sum = block_sum(sum * shrink(most, all), word_shared<float>());
    if (threadIdx.x > 0) {
        return;
    }
    const int64_t target = loss.targets[at] - loss.first;
    const bool here = target >= 0 && target < loss.cols;
    const bool elsewhere = target < 0 && target >= -merged;
    loss.sum_exp[at] = sum + (merged > 0 ? loss.sum_exp[at] * shrink(before, all) : 0.0f);
    loss.target_logit[at] =
        here ? target_of(loss, row, all) : elsewhere ? loss.target_logit[at] + before - all : 0.0f;
    loss.row_max[at] = all;
}

int kernel_cuda_loss_max_sum(const KernelCuda *at, KernelStore store, const KernelCudaLoss *loss, const void *logits,
                             int64_t merged) {
    if (loss->rows <= 0) {
        return 0;
    }
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(loss_max_sum_kernel<T>, launch_rows(loss->rows, loss->cols / PACK), at->stream, *loss,
                      (const T *)logits, merged);
    });
}

template <typename T>
static __global__ void __launch_bounds__(ROW_THREADS, 1)
    loss_gradient_kernel(KernelCudaLoss loss, T *logits, float gradient) {
    T *row = logits + blockIdx.x * loss.cols;
    const float most = loss.row_max[blockIdx.x], factor = gradient / loss.sum_exp[blockIdx.x];
    const int64_t target = loss.targets[blockIdx.x] - loss.first;
    row_each(row, loss.cols, [&](int64_t col, const float *x, auto count) {
        float y[count.value];
#pragma unroll
        for (int k = 0; k < count.value; k++) {
            y[k] = expf(x[k] - most) * factor - (col + k == target ? gradient : 0.0f);
        }
        pack_store<count.value>(row + col, y);
    });
}

// One block: rows in steps of its threads, then the threads in order.
static __global__ void __launch_bounds__(LAUNCH_MAX_THREADS)
    loss_total_kernel(KernelCudaLoss loss, float *total, bool accumulate) {
    double sum = 0.0;
    for (int64_t row = threadIdx.x; row < loss.rows; row += blockDim.x) {
        sum += log((double)loss.sum_exp[row]) - (double)loss.target_logit[row];
    }
    sum = block_sum(sum, word_shared<double>());
    if (threadIdx.x == 0) {
        *total = (float)(sum + (accumulate ? (double)*total : 0.0));
    }
}

int kernel_cuda_loss_gradient(const KernelCuda *at, KernelStore store, const KernelCudaLoss *loss, void *logits,
                              float gradient, float *total, bool accumulate) {
    if (total) {
        const int error = launch(loss_total_kernel, LaunchShape{1, 1, 1, LAUNCH_MAX_THREADS, WARP * sizeof(double)},
                                 at->stream, *loss, total, accumulate);
        if (error) {
            return error;
        }
    }
    if (loss->rows <= 0) {
        return 0;
    }
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return launch(loss_gradient_kernel<T>, launch_rows(loss->rows, loss->cols / PACK), at->stream, *loss,
                      (T *)logits, gradient);
    });
}
