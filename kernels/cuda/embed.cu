// Lookup of table rows, and their gradient without atomics. The rows' entries are sorted by counting: the place of a
// row is the number of rows with a smaller entry, or with the same entry and an earlier index. Then every run of equal
// entries belongs to one warp per group of columns, which adds its rows in order, in fp32, and writes the entry once.

#include "kernels/cuda/pack.cuh"

template <typename T>
struct EmbedBody {
    KernelEmbed shape;
    const int32_t *entries;
    const T *table;
    T *x;
    bool accumulate;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        const int64_t entry = entries[row] - shape.first;
        const bool here = entry >= 0 && entry < shape.range;
        if (!here && accumulate) {
            return;
        }
        float y[W] = {}, before[W] = {};
        if (here) {
            pack_load<W>(table + entry * shape.cols + col, y);
        }
        if (accumulate) {
            pack_load<W>(x + row * shape.cols + col, before);
        }
#pragma unroll
        for (int k = 0; k < W; k++) {
            y[k] = before[k] + shape.scale * y[k];
        }
        pack_store<W>(x + row * shape.cols + col, y);
    }
};

int kernel_cuda_embed(const KernelCuda *at, KernelStore store, const KernelEmbed *shape, const int32_t *entries,
                      const void *table, void *x, bool accumulate) {
    const bool wide = launch_is_wide(address(table) | address(x), shape->cols);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return plane_launch<PACK>(at, shape->rows, shape->cols, wide,
                            EmbedBody<T>{*shape, entries, (const T *)table, (T *)x, accumulate});
    });
}

// Entries held here are keyed by their index in the table; all others sort after them.
static __device__ __forceinline__ uint32_t embed_key(const KernelEmbed &shape, int32_t entry) {
    const int64_t here = entry - shape.first;
    return here >= 0 && here < shape.range ? (uint32_t)here : UINT32_MAX;
}

// A block places SORT_ROWS rows: it reads the keys of all rows, SORT_ROWS at a time, through shared memory.
static __global__ void __launch_bounds__(SORT_ROWS)
    embed_sort_kernel(KernelEmbed shape, const int32_t *entries, int32_t *order) {
    uint32_t *keys = word_shared<uint32_t>();
    const int64_t row = (int64_t)blockIdx.x * SORT_ROWS + threadIdx.x;
    const uint32_t key = row < shape.rows ? embed_key(shape, entries[row]) : 0;
    int64_t place = 0;
    for (int64_t first = 0; first < shape.rows; first += SORT_ROWS) {
        const int64_t other = first + threadIdx.x;
        __syncthreads();
        keys[threadIdx.x] = other < shape.rows ? embed_key(shape, entries[other]) : UINT32_MAX;
        __syncthreads();
        const int64_t left = shape.rows - first;
        const int count = left < SORT_ROWS ? (int)left : (int)SORT_ROWS;
        const int before = row - first < 0 ? 0 : row - first < count ? (int)(row - first) : count;
        int smaller = 0;
        for (int i = 0; i < before; i++) {
            smaller += keys[i] <= key;
        }
        for (int i = before; i < count; i++) {
            smaller += keys[i] < key;
        }
        place += smaller;
    }
    if (row < shape.rows) {
        order[place] = (int32_t)row;
    }
}

template <typename T, typename G>
struct EmbedSums {
    KernelEmbed shape;
    const int32_t *entries, *order;
    const T *dx;
    G *dtable;
    bool accumulate;
};

// W columns of the run of equal entries that begins at this place; does nothing where none begins.
template <int W, typename T, typename G>
static __device__ __forceinline__ void embed_run(const EmbedSums<T, G> &e, int64_t begin, int64_t col) {
    const uint32_t key = embed_key(e.shape, e.entries[e.order[begin]]);
    if (key == UINT32_MAX || (begin > 0 && embed_key(e.shape, e.entries[e.order[begin - 1]]) == key)) {
        return;
    }
    G *out = e.dtable + (int64_t)key * e.shape.cols + col;
    float sum[W] = {};
    if (e.accumulate) {
        pack_load<W>(out, sum);
    }
    for (int64_t place = begin; place < e.shape.rows; place++) {
        const int64_t row = e.order[place];
        if (embed_key(e.shape, e.entries[row]) != key) {
            break;
        }
        float more[W];
        pack_load<W>(e.dx + row * e.shape.cols + col, more);
#pragma unroll
        for (int k = 0; k < W; k++) {
            sum[k] += e.shape.scale * more[k];
        }
    }
    pack_store<W>(out, sum);
}

// One warp per place and W * WARP columns.
template <int W, typename T, typename G>
static __global__ void __launch_bounds__(FLAT_THREADS) embed_sum_kernel(EmbedSums<T, G> e) {
    const int64_t warps = blockDim.x / WARP, across = (e.shape.cols / W + WARP - 1) / WARP;
    int64_t task = (int64_t)blockIdx.x * warps + threadIdx.x / WARP;
    for (; task < e.shape.rows * across; task += gridDim.x * warps) {
        const int64_t col = (task % across * WARP + threadIdx.x % WARP) * W;
        if (col < e.shape.cols) {
            embed_run<W>(e, task / across, col);
        }
    }
}

int64_t kernel_cuda_embed_backward_workspace(const KernelEmbed *shape) {
    return shape->rows * (int64_t)sizeof(int32_t);
}

int kernel_cuda_embed_backward(const KernelCuda *at, KernelStore store, KernelStore sums, const KernelEmbed *shape,
                               const int32_t *entries, const void *dx, void *dtable, bool accumulate) {
    int error = workspace_missing(at, kernel_cuda_embed_backward_workspace(shape));
    if (!error && !accumulate) {
        error = kernel_cuda_zero(at, shape->range * shape->cols * kernel_store_bytes(sums), dtable);
    }
    if (error || shape->rows <= 0 || shape->cols <= 0) {
        return error;
    }
    int32_t *order = (int32_t *)at->workspace;
    error = launch(embed_sort_kernel, launch_sort(shape->rows), at->stream, *shape, entries, order);
    if (error) {
        return error;
    }
    const bool wide = launch_is_wide(address(dx) | address(dtable), shape->cols);
    const int64_t pack = store == KERNEL_FP32 || sums == KERNEL_FP32 ? WORD_FLOATS : PACK;
    const LaunchShape grid = launch_runs(shape->rows, shape->cols / (wide ? pack : 1));
    return with_store(store, [&](auto in) {
        return with_store(sums, [&](auto out) {
            using T = decltype(in);
            using G = decltype(out);
            const EmbedSums<T, G> e = {*shape, entries, order, (const T *)dx, (G *)dtable, accumulate};
            return launch(wide ? embed_sum_kernel<pack_of<T, G>(), T, G> : embed_sum_kernel<1, T, G>, grid, at->stream,
                          e);
        });
    });
}
