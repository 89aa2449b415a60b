// Scalar attention for every shape: head dimensions that are multiples of 8 up to 256, ALiBi, bf16 or fp32. One warp
// handles one row (a query; in the dK, dV pass a key) with its head spread over the lanes; a score is a sum over lanes.
// It is the reference for the other GPU tiers and serves what they refuse. No atomics: equal inputs give equal bits.

#include "kernels/cuda/attention_launch.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/heads.h"

enum { PER_LANE = 8, ROWS = 4 };  // maximum dimensions per lane; warps per block

struct Scalar {
    CudaAttention call;
    AttentionData data;
};

// The lane's part of one row of a head: dimensions lane, lane + 32 ...
struct Part {
    float x[PER_LANE];
};

static __device__ Part load_row(const void *from, KernelStore type, int64_t at, int head_dim) {
    Part part = {};
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        const int t = i * WARP + (int)(threadIdx.x % WARP);
        if (t < head_dim) {
            part.x[i] = stored_load(from, type, at + t);
        }
    }
    return part;
}

static __device__ float dot(const Part &a, const Part &b) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        sum += a.x[i] * b.x[i];
    }
    return warp_sum(sum);
}

static __device__ void add_to(Part &to, float factor, const Part &x) {
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        to.x[i] += factor * x.x[i];
    }
}

// to = keep * to + take * part; keep 0: `to` is not read.
static __device__ void store_row(void *to, KernelStore type, int64_t at, int head_dim, const Part &part, float keep,
                                 float take) {
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        const int t = i * WARP + (int)(threadIdx.x % WARP);
        if (t < head_dim) {
            const float before = keep != 0.0f ? keep * stored_load(to, type, at + t) : 0.0f;
            stored_store(to, type, at + t, part.x[i] * take + before);
        }
    }
}

// The warp's row: blockIdx.x counts groups of ROWS rows, y heads, z sequences.
static __device__ __forceinline__ int64_t row_of() {
    return (int64_t)blockIdx.x * ROWS + threadIdx.x / WARP;
}

static __device__ __forceinline__ int64_t kv_place(const CudaAttention &call, int64_t key, int64_t kv_head,
                                                   int64_t sequence) {
    return sequence * call.kv_sequence + key * call.block.kv_stride + kv_head * call.block.head_dim;
}

static __device__ __forceinline__ int64_t v_place(const CudaAttention &call, int64_t key, int64_t kv_head,
                                                  int64_t sequence) {
    const KernelValues &values = call.block.values;
    return values.dim > 0 ? sequence * call.v_sequence + key * values.stride + kv_head * values.apart
                          : kv_place(call, key, kv_head, sequence);
}

static __device__ __forceinline__ int64_t o_place(const CudaAttention &call, int64_t query, int head,
                                                  int64_t sequence) {
    return sequence * call.o_sequence + query * call.block.o_stride + (int64_t)head * kernel_value_dim(&call.block);
}

// The first key that a query at this position sees: the first one in its window, if there is a window.
static __device__ __forceinline__ int64_t first_key(const KernelAttention &block, int64_t at) {
    const int64_t first = block.window > 0 ? at - block.window + 1 - block.k_first : 0;
    return first > 0 ? first : 0;
}

// The score of a query `distance` tokens after the key.
static __device__ __forceinline__ float score(const KernelAttention &block, const Part &q, const Part &k, float slope,
                                              int64_t distance) {
    return dot(q, k) / sqrtf((float)block.head_dim) - slope * (float)distance;
}

static __global__ void scalar_forward_kernel(const Scalar work) {
    const CudaAttention &call = work.call;
    const KernelAttention &block = call.block;
    const int64_t query = row_of(), sequence = blockIdx.z;
    const int head = (int)blockIdx.y;
    if (query >= block.queries) {
        return;
    }
    const int64_t head_at = (int64_t)head * block.head_dim, at = block.q_first + query;
    const Part q = load_row(work.data.q, call.input, sequence * call.q_sequence + query * block.q_stride + head_at,
                            block.head_dim);
    const float slope = kernel_alibi_slope(&block, head);
    float max = -INFINITY, sum = 0.0f;
    Part o = {};
    for (int64_t key = first_key(block, at); key < block.keys && block.k_first + key <= at; key++) {
        const int64_t kv = kv_place(call, key, head / (block.heads / block.kv_heads), sequence);
        const float s =
            score(block, q, load_row(work.data.k, call.input, kv, block.head_dim), slope, at - block.k_first - key);
        const float higher = fmaxf(max, s), shrink = expf(max - higher), weight = expf(s - higher);
        sum = sum * shrink + weight;
        add_to(o, shrink - 1.0f, o);
        const int64_t v = v_place(call, key, head / (block.heads / block.kv_heads), sequence);
        add_to(o, weight, load_row(work.data.v, call.input, v, kernel_value_dim(&block)));
        max = higher;
    }
    float *const lse = work.data.lse + sequence * call.lse_sequence + head * block.lse_stride + query;
    const float before = call.merge ? *lse : -INFINITY, own = sum > 0.0f ? max + logf(sum) : -INFINITY;
    const float high = fmaxf(before, own), low = fminf(before, own);
    const float both = low > -INFINITY ? high + log1pf(expf(low - high)) : high;
    __syncwarp();  // every lane has read lse
    if (call.merge && sum <= 0.0f) {
        return;
    }
    *lse = both;
    store_row(work.data.o, call.output, o_place(call, query, head, sequence), kernel_value_dim(&block), o,
              before > -INFINITY ? expf(before - both) : 0.0f, sum > 0.0f ? expf(own - both) / sum : 0.0f);
}

// A query and a key that it sees: the probability, and the gradient of the score times the scale.
struct Pair {
    float p, ds;
};

static __device__ Pair pair_of(const Scalar &work, const Part rows[4], int head, int64_t lse_at, int64_t distance) {
    const KernelAttention &block = work.call.block;
    const float s = score(block, rows[0], rows[1], kernel_alibi_slope(&block, head), distance);
    const float lse = work.data.lse[lse_at];
    Pair pair;
    pair.p = lse > -INFINITY ? expf(s - lse) : 0.0f;
    const float dp = dot(rows[2], rows[3]);
    pair.ds = lse > -INFINITY ? pair.p * (dp - work.data.delta[lse_at]) / sqrtf((float)block.head_dim) : 0.0f;
    return pair;
}

static __global__ void scalar_dq_kernel(const Scalar work) {
    const CudaAttention &call = work.call;
    const KernelAttention &block = call.block;
    const int64_t query = row_of(), sequence = blockIdx.z;
    const int head = (int)blockIdx.y, head_dim = block.head_dim;
    if (query >= block.queries) {
        return;
    }
    const int64_t head_at = (int64_t)head * head_dim, at = block.q_first + query;
    Part rows[4], dq = {};
    rows[0] =
        load_row(work.data.q, call.input, sequence * call.q_sequence + query * block.q_stride + head_at, head_dim);
    rows[2] = load_row(work.data.d_o, call.input, o_place(call, query, head, sequence), kernel_value_dim(&block));
    const int64_t lse_at = sequence * call.lse_sequence + head * block.lse_stride + query;
    for (int64_t key = first_key(block, at); key < block.keys && block.k_first + key <= at; key++) {
        const int64_t kv = kv_place(call, key, head / (block.heads / block.kv_heads), sequence);
        rows[1] = load_row(work.data.k, call.input, kv, head_dim);
        rows[3] = load_row(work.data.v, call.input,
                           v_place(call, key, head / (block.heads / block.kv_heads), sequence),
                           kernel_value_dim(&block));
        add_to(dq, pair_of(work, rows, head, lse_at, at - block.k_first - key).ds, rows[1]);
    }
    store_row(work.data.dq, call.gradient, sequence * call.dq_sequence + query * call.dq_stride + head_at, head_dim, dq,
              call.gradient == KERNEL_FP32 ? 1.0f : 0.0f, 1.0f);
}

static __global__ void scalar_dkv_kernel(const Scalar work) {
    const CudaAttention &call = work.call;
    const KernelAttention &block = call.block;
    const int64_t key = row_of(), sequence = blockIdx.z;
    const int kv_head = (int)blockIdx.y, head_dim = block.head_dim, group = block.heads / block.kv_heads;
    if (key >= block.keys) {
        return;
    }
    Part rows[4], dk = {}, dv = {};
    rows[1] = load_row(work.data.k, call.input, kv_place(call, key, kv_head, sequence), head_dim);
    rows[3] = load_row(work.data.v, call.input, v_place(call, key, kv_head, sequence), kernel_value_dim(&block));
    const int64_t at = block.k_first + key, first = at > block.q_first ? at - block.q_first : 0;
    const int64_t behind = block.window > 0 ? at + block.window - block.q_first : block.queries;
    const int64_t last = behind < block.queries ? behind : block.queries;
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++) {
        for (int64_t query = first; query < last; query++) {
            const int64_t head_at = (int64_t)head * head_dim;
            rows[0] = load_row(work.data.q, call.input, sequence * call.q_sequence + query * block.q_stride + head_at,
                               head_dim);
            rows[2] =
                load_row(work.data.d_o, call.input, o_place(call, query, head, sequence), kernel_value_dim(&block));
            const int64_t lse_at = sequence * call.lse_sequence + head * block.lse_stride + query;
            const Pair pair = pair_of(work, rows, head, lse_at, block.q_first + query - at);
            add_to(dk, pair.ds, rows[0]);
            add_to(dv, pair.p, rows[2]);
        }
    }
    const int64_t to = sequence * call.dkv_sequence + key * call.dkv_stride + (int64_t)kv_head * head_dim;
    const float keep = call.gradient == KERNEL_FP32 ? 1.0f : 0.0f;
    store_row(work.data.dk, call.gradient, to, head_dim, dk, keep, 1.0f);
    const int64_t dv_to = block.values.dim > 0 ? sequence * call.dv_sequence + key * call.dv_stride +
                                                     (int64_t)kv_head * block.values.dim
                                               : to;
    store_row(work.data.dv, call.gradient, dv_to, kernel_value_dim(&block), dv, keep, 1.0f);
}

static LaunchShape shape_of(const CudaAttention *call, int64_t rows, int heads) {
    LaunchShape shape = launch_grid(launch_parts(rows, ROWS), heads, ROWS * WARP, 0);
    shape.grid_z = (uint32_t)call->sequences;
    return shape;
}

extern "C" int attention_scalar_forward(const CudaAttention *call, const AttentionData *data, cudaStream_t stream) {
    const Scalar work = {*call, *data};
    return launch(scalar_forward_kernel, shape_of(call, call->block.queries, call->block.heads), stream, work);
}

extern "C" int attention_scalar_backward(const CudaAttention *call, const AttentionData *data, cudaStream_t stream) {
    const Scalar work = {*call, *data};
    const int status = launch(scalar_dq_kernel, shape_of(call, call->block.queries, call->block.heads), stream, work);
    return status ? status
                  : launch(scalar_dkv_kernel, shape_of(call, call->block.keys, call->block.kv_heads), stream, work);
}
