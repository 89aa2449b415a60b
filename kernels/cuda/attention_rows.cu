// Row passes around attention: delta = rowsum(do * o), the merge of a block that another tier left in memory, and
// adding or rounding between packed scratch and strided results.

#include "kernels/cuda/attention_launch.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/heads.h"

enum { ROWS = 8, THREADS = 256 };  // warps per block, one row each; threads of an elementwise pass

// blockIdx.x: groups of ROWS (sequence, head, query) rows; one row per warp.
struct Row {
    int64_t sequence, query;
    int head;
    bool inside;
};

static __device__ __forceinline__ Row row_of(const CudaAttention &call) {
    const KernelAttention &block = call.block;
    const int64_t number = (int64_t)blockIdx.x * ROWS + threadIdx.x / WARP;
    Row row;
    row.head = (int)(number % block.heads);  // heads of one token are adjacent
    row.query = number / block.heads % block.queries;
    row.sequence = number / block.heads / block.queries;
    row.inside = row.sequence < call.sequences;
    return row;
}

static LaunchShape shape_of_rows(const CudaAttention *call) {
    const int64_t rows = call->sequences * call->block.heads * call->block.queries;
    return launch_line(launch_parts(rows, ROWS), ROWS * WARP, 0);
}

static __global__ void delta_kernel(const CudaAttention call, const void *o, const void *d_o, float *delta) {
    const KernelAttention &block = call.block;
    const Row row = row_of(call);
    const int lane = threadIdx.x % WARP;
    if (!row.inside) {
        return;
    }
    const int dim = kernel_value_dim(&block);
    const int64_t at = row.sequence * call.o_sequence + row.query * block.o_stride + (int64_t)row.head * dim;
    float sum = 0.0f;
    for (int t = lane; t < dim; t += WARP) {
        sum += stored_load(o, call.output, at + t) * stored_load(d_o, call.input, at + t);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        delta[row.sequence * call.lse_sequence + row.head * block.lse_stride + row.query] = sum;
    }
}

extern "C" int cuda_attention_delta(const CudaAttention *call, const void *o, const void *d_o, float *delta,
                                    cudaStream_t stream) {
    return launch(delta_kernel, shape_of_rows(call), stream, *call, o, d_o, delta);
}

static __global__ void merge_kernel(const CudaAttention call, const Bf16 *o_block, const float *lse_block, float *o,
                                    float *lse) {
    const KernelAttention &block = call.block;
    const Row row = row_of(call);
    const int lane = threadIdx.x % WARP;
    if (!row.inside) {
        return;
    }
    float *const lse_at = lse + row.sequence * call.lse_sequence + row.head * block.lse_stride + row.query;
    const float before = call.merge ? *lse_at : -INFINITY;
    const float own = lse_block[(row.sequence * block.heads + row.head) * block.queries + row.query];
    const float high = fmaxf(before, own), low = fminf(before, own);
    const float both = low > -INFINITY ? high + log1pf(expf(low - high)) : high;
    const float keep = before > -INFINITY ? expf(before - both) : 0.0f;
    const float take = own > -INFINITY ? expf(own - both) : 0.0f;
    __syncwarp();  // every lane has read lse
    if (lane == 0) {
        *lse_at = both;
    }
    float *const to =
        o + row.sequence * call.o_sequence + row.query * block.o_stride + (int64_t)row.head * block.head_dim;
    const Bf16 *const from =
        o_block + ((row.sequence * block.queries + row.query) * block.heads + row.head) * (int64_t)block.head_dim;
    for (int t = lane; t < block.head_dim; t += WARP) {
        to[t] = (call.merge ? to[t] * keep : 0.0f) + bf16_widen(from[t]) * take;
    }
}

extern "C" int attention_merge(const CudaAttention *call, const void *o_block, const float *lse_block, float *o,
                               float *lse, cudaStream_t stream) {
    return launch(merge_kernel, shape_of_rows(call), stream, *call, static_cast<const Bf16 *>(o_block),
                  lse_block, o, lse);
}

static __global__ void sinks_kernel(const CudaAttention call, KernelStore store, const void *sinks, void *o,
                                    float *lse) {
    const KernelAttention &block = call.block;
    const Row row = row_of(call);
    const int lane = threadIdx.x % WARP, dim = kernel_value_dim(&block);
    if (!row.inside) {
        return;
    }
    float *const lse_at = lse + row.sequence * call.lse_sequence + row.head * block.lse_stride + row.query;
    const float before = *lse_at, sink = stored_load(sinks, store, row.head);
    const float high = fmaxf(before, sink), both = high + log1pf(expf(fminf(before, sink) - high));
    const float keep = expf(before - both);
    __syncwarp();  // every lane has read lse
    if (lane == 0) {
        *lse_at = both;
    }
    const int64_t at = row.sequence * call.o_sequence + row.query * block.o_stride + (int64_t)row.head * dim;
    for (int t = lane; t < dim; t += WARP) {
        stored_store(o, call.output, at + t, keep * stored_load(o, call.output, at + t));
    }
}

extern "C" int cuda_attention_sinks(const CudaAttention *call, KernelStore store, const void *sinks, void *o,
                                    float *lse, cudaStream_t stream) {
    return launch(sinks_kernel, shape_of_rows(call), stream, *call, store, sinks, o, lse);
}

// One block per head. The sink takes a share p of the softmax, and its value is zero: d sink = p (0 - delta).
static __global__ void __launch_bounds__(THREADS)
    sinks_backward_kernel(const CudaAttention call, const AttentionSinksBack back) {
    const KernelAttention &block = call.block;
    const int64_t rows = call.sequences * block.queries, head = blockIdx.x;
    const float sink = stored_load(back.sinks, back.sinks_store, head);
    double sum = 0;
    for (int64_t row = threadIdx.x; row < rows; row += THREADS) {
        const int64_t at =
            row / block.queries * call.lse_sequence + head * block.lse_stride + row % block.queries;
        sum += (double)(expf(sink - back.lse[at]) * back.delta[at]);
    }
    sum = block_sum(sum, word_shared<double>());
    if (threadIdx.x == 0) {
        const float before = back.accumulate ? stored_load(back.dsinks, back.dsinks_store, head) : 0.0f;
        stored_store(back.dsinks, back.dsinks_store, head, before - (float)sum);
    }
}

extern "C" int cuda_attention_sinks_backward(const CudaAttention *call, const AttentionSinksBack *back,
                                             cudaStream_t stream) {
    return launch(sinks_backward_kernel, launch_line(call->block.heads, THREADS, THREADS / WARP * 8), stream, *call,
                  *back);
}

// Two adjacent elements of every row; the number of columns is even.
struct Place {
    int64_t from, to;
    bool inside;
};

static __device__ __forceinline__ Place place_of(const AttentionRows &rows) {
    const int64_t at = 2 * ((int64_t)blockIdx.x * THREADS + threadIdx.x), row = at / rows.cols;
    Place place;
    place.from = at;
    place.to = row / rows.rows * rows.sequence + row % rows.rows * rows.stride + at % rows.cols;
    place.inside = row < rows.sequences * rows.rows;
    return place;
}

static LaunchShape shape_of_pairs(const AttentionRows *rows) {
    return launch_line(launch_parts(rows->sequences * rows->rows * rows->cols / 2, THREADS), THREADS, 0);
}

static __global__ void add_kernel(const AttentionRows rows, const Bf16 *from, float *to) {
    const Place at = place_of(rows);
    if (at.inside) {
        to[at.to] += bf16_widen(from[at.from]);
        to[at.to + 1] += bf16_widen(from[at.from + 1]);
    }
}

extern "C" int attention_add_rows(const AttentionRows *rows, const void *from, float *to, cudaStream_t stream) {
    return launch(add_kernel, shape_of_pairs(rows), stream, *rows, static_cast<const Bf16 *>(from), to);
}

static __global__ void narrow_kernel(const AttentionRows rows, const float *from, Bf16 *to) {
    const Place at = place_of(rows);
    if (at.inside) {
        *reinterpret_cast<uint32_t *>(to + at.to) = word_bf16_pair(from[at.from], from[at.from + 1]);
    }
}

extern "C" int attention_narrow_rows(const AttentionRows *rows, const float *from, void *to, cudaStream_t stream) {
    return launch(narrow_kernel, shape_of_pairs(rows), stream, *rows, from, static_cast<Bf16 *>(to));
}
