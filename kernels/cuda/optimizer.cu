// AdamW as in kernels/cpu/adamw.c, and the sum of squares for gradient clipping: one pass over flat buffers. Squares
// are added in double, per block and then in one block, in order.

#include "kernels/cuda/pack.cuh"

struct AdamwNumbers {
    float beta1, beta2, eps;
    float step_size, root_correction;  // lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
    float keep;                        // 1 - lr * weight_decay
};

template <typename G, typename S>
struct AdamwBody {
    AdamwNumbers n;
    int64_t undecayed;
    const float *scale;
    const G *gradient;
    S *master, *moment1, *moment2;
    Bf16 *working;
    template <int W>
    __device__ __forceinline__ void at(int64_t i) const {
        float g[W], x[W], m[W], v[W];
        const float factor = *scale;
        pack_load<W>(gradient + i, g);
        pack_load<W>(master + i, x);
        pack_load<W>(moment1 + i, m);
        pack_load<W>(moment2 + i, v);
#pragma unroll
        for (int k = 0; k < W; k++) {
            const float slope = g[k] * factor;
            m[k] = n.beta1 * m[k] + (1.0f - n.beta1) * slope;
            v[k] = n.beta2 * v[k] + (1.0f - n.beta2) * slope * slope;
            const float kept = i + k < undecayed ? x[k] : x[k] * n.keep;
            x[k] = kept - n.step_size * m[k] / (sqrtf(v[k]) * n.root_correction + n.eps);
        }
        pack_store<W>(master + i, x);
        pack_store<W>(moment1 + i, m);
        pack_store<W>(moment2 + i, v);
        if (working) {
            pack_store<W>(working + i, x);
        }
    }
};

int kernel_cuda_adamw(const KernelCuda *at, const KernelAdamw *options, const KernelCudaUpdate *u) {
    const double correction1 = 1.0 - pow((double)options->beta1, (double)options->step);
    const double correction2 = 1.0 - pow((double)options->beta2, (double)options->step);
    const AdamwNumbers n = {options->beta1,
                            options->beta2,
                            options->eps,
                            (float)((double)options->lr / correction1),
                            (float)(1.0 / sqrt(correction2)),
                            (float)(1.0 - (double)options->lr * (double)options->weight_decay)};
    const bool wide = launch_is_wide(address(u->gradient) | address(u->master) | address(u->moment1) |
                                         address(u->moment2) | address(u->working),
                                     0);
    return with_store(u->gradients, [&](auto in) {
        return with_store(u->state, [&](auto state) {
            using G = decltype(in);
            using S = decltype(state);
            return flat_launch<pack_of<G, S>()>(at, u->count, wide,
                               AdamwBody<G, S>{n, u->undecayed, u->scale, (const G *)u->gradient, (S *)u->master,
                                               (S *)u->moment1, (S *)u->moment2, (Bf16 *)u->working});
        });
    });
}

template <typename T>
struct SquareTerms {
    int64_t count, light;
    double light_weight;
    const T *x;
    template <int W>
    __device__ __forceinline__ double at(int64_t i) const {
        float y[W];
        pack_load<W>(x + i, y);
        double sum = 0.0;
#pragma unroll
        for (int k = 0; k < W; k++) {
            sum += (double)y[k] * (double)y[k] * (i + k < light ? light_weight : 1.0);
        }
        return sum;
    }
};

template <int W, typename T>
static __global__ void __launch_bounds__(FLAT_THREADS) square_kernel(SquareTerms<T> terms, double *parts) {
    const int64_t packs = terms.count / W, step = (int64_t)gridDim.x * blockDim.x;
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0.0;
#pragma unroll 4
    for (int64_t pack = first; pack < packs; pack += step) {
        sum += terms.template at<W>(pack * W);
    }
    if (packs * W + first < terms.count) {
        sum += terms.template at<1>(packs * W + first);
    }
    sum = block_sum(sum, word_shared<double>());
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
    }
}

static __global__ void __launch_bounds__(FLAT_THREADS)
    square_total_kernel(int count, const double *parts, float *total, bool accumulate) {
    double sum = 0.0;
    for (int part = (int)threadIdx.x; part < count; part += (int)blockDim.x) {
        sum += parts[part];
    }
    sum = block_sum(sum, word_shared<double>());
    if (threadIdx.x == 0) {
        *total = (float)(sum + (accumulate ? (double)*total : 0.0));
    }
}

int64_t kernel_cuda_square_sum_workspace(const KernelCuda *at) {
    return (int64_t)at->processors * SQUARE_BLOCKS * (int64_t)sizeof(double);
}

int kernel_cuda_square_sum(const KernelCuda *at, KernelStore store, int64_t count, int64_t light, double light_weight,
                           const void *x, float *sum, bool accumulate) {
    const int missing = workspace_missing(at, kernel_cuda_square_sum_workspace(at));
    if (missing) {
        return missing;
    }
    const bool wide = launch_is_wide(address(x), 0);
    const LaunchShape shape = launch_squares(count / (wide ? PACK : 1), at->processors);
    double *parts = (double *)at->workspace;
    const int error = with_store(store, [&](auto element) {
        using T = decltype(element);
        const SquareTerms<T> terms = {count, light, light_weight, (const T *)x};
        return launch(wide ? square_kernel<PACK, T> : square_kernel<1, T>, shape, at->stream, terms, parts);
    });
    return error ? error
                 : launch(square_total_kernel, LaunchShape{1, 1, 1, FLAT_THREADS, WARP * sizeof(double)}, at->stream,
                          (int)shape.grid_x, parts, sum, accumulate);
}
