#include "tests/unit/kernels/cuda/attention_case.h"

#include "kernels/cuda/cudnn_attention.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <cuda_runtime.h>
#include <string.h>

static uint16_t narrow_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float wide_of(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// 16-byte aligned, with room after the last row.
static void *room(int64_t count, size_t bytes) {
    void *x = aligned_alloc(256, ((size_t)count * bytes + 511) / 256 * 256);
    cr_assert_not_null(x);
    memset(x, 0, ((size_t)count * bytes + 511) / 256 * 256);
    return x;
}

static float *numbers(int64_t count, uint64_t seed) {
    float *random = check_floats(count, seed), *x = room(count, sizeof *x);
    for (int64_t i = 0; i < count; i++) {
        x[i] = wide_of(narrow_of(random[i]));
    }
    free(random);
    return x;
}

static uint16_t *narrowed(const float *x, int64_t count) {
    uint16_t *y = room(count, sizeof *y);
    for (int64_t i = 0; i < count; i++) {
        y[i] = narrow_of(x[i]);
    }
    return y;
}

CudaAttentionCase cuda_attention_case(KernelAttention block, int64_t sequences, uint64_t seed) {
    CudaAttentionCase c = {.call = {.block = block, .sequences = sequences, .input = KERNEL_BF16}};
    CudaAttention *call = &c.call;
    call->q_sequence = call->dq_sequence = block.queries * block.q_stride;
    call->kv_sequence = call->dkv_sequence = block.keys * block.kv_stride;
    call->o_sequence = block.queries * block.o_stride;
    call->lse_sequence = block.heads * block.lse_stride;
    call->dq_stride = block.q_stride;
    call->dkv_stride = block.kv_stride;
    c.q_size = c.dq_size = sequences * call->q_sequence;
    c.kv_size = c.dkv_size = sequences * call->kv_sequence;
    c.o_size = sequences * call->o_sequence;
    c.lse_size = sequences * call->lse_sequence;
    c.q = numbers(c.q_size, seed), c.k = numbers(c.kv_size, seed + 1), c.v = numbers(c.kv_size, seed + 2);
    c.d_o = numbers(c.o_size, seed + 3);
    c.narrow_q = narrowed(c.q, c.q_size), c.narrow_k = narrowed(c.k, c.kv_size);
    c.narrow_v = narrowed(c.v, c.kv_size), c.narrow_d_o = narrowed(c.d_o, c.o_size);
    c.o = room(c.o_size, 4), c.lse = room(c.lse_size, 4), c.delta = room(c.lse_size, 4);
    c.dq = room(c.dq_size, 4), c.dk = room(c.dkv_size, 4), c.dv = room(c.dkv_size, 4);
    return c;
}

void cuda_attention_case_free(CudaAttentionCase *c) {
    void *const all[] = {c->q,          c->k, c->v,   c->d_o,   c->narrow_q, c->narrow_k, c->narrow_v,
                         c->narrow_d_o, c->o, c->lse, c->delta, c->dq,       c->dk,       c->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]);
    }
}

void cuda_attention_case_forward(CudaAttentionCase *c) {
    const CudaAttention *call = &c->call;
    for (int64_t s = 0; s < call->sequences; s++) {
        kernel_attention(&call->block, c->q + s * call->q_sequence, c->k + s * call->kv_sequence,
                         c->v + s * call->kv_sequence, c->o + s * call->o_sequence, c->lse + s * call->lse_sequence,
                         call->merge);
    }
}

void cuda_attention_case_backward(CudaAttentionCase *c) {
    const CudaAttention *call = &c->call;
    for (int64_t s = 0; s < call->sequences; s++) {
        float *delta = c->delta + s * call->lse_sequence;
        kernel_attention_delta(&call->block, c->o + s * call->o_sequence, c->d_o + s * call->o_sequence, delta);
        kernel_attention_backward(
            &call->block, c->q + s * call->q_sequence, c->k + s * call->kv_sequence, c->v + s * call->kv_sequence,
            c->d_o + s * call->o_sequence, c->lse + s * call->lse_sequence, delta, c->dq + s * call->dq_sequence,
            call->dq_stride, c->dk + s * call->dkv_sequence, c->dv + s * call->dkv_sequence, call->dkv_stride);
    }
}

static void run(AttentionTier tier, const CudaAttention *call, AttentionData *data) {
    AttentionPlan plan;
    char why[ATTENTION_WHY_BYTES] = "";
    CudnnAttention *cudnn = tier == ATTENTION_TIER_CUDNN ? cudnn_attention_open(NULL, why) : NULL;
    const AttentionMeans host = {.arch = 90, .shared_bytes = 227 * 1024, .cudnn = cudnn != NULL};
    cr_assert(cuda_attention_plan(tier, call, &host, cudnn, &plan, why), "%s", why);
    cr_assert_eq(plan.tier, tier);
    void *workspace = room(plan.workspace_bytes, 1);
    memset(workspace, 0xa5, (size_t)plan.workspace_bytes);  // old contents must not matter
    data->workspace = workspace;
    cr_assert_eq(cuda_attention(&plan, cudnn, data, NULL), 0);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    cudnn_attention_close(cudnn);
    free(workspace);
}

static void bind(const CudaAttentionCase *c, AttentionData *data) {
    const bool narrow = c->call.input == KERNEL_BF16;
    data->q = narrow ? (void *)c->narrow_q : (void *)c->q;
    data->k = narrow ? (void *)c->narrow_k : (void *)c->k;
    data->v = narrow ? (void *)c->narrow_v : (void *)c->v;
    data->d_o = narrow ? (void *)c->narrow_d_o : (void *)c->d_o;
}

// x, a result of the given type, converted to fp32; frees what it replaces.
static float *widened(void *x, KernelStore type, int64_t count) {
    if (type == KERNEL_FP32) {
        return x;
    }
    float *wide = room(count, sizeof *wide);
    for (int64_t i = 0; i < count; i++) {
        wide[i] = wide_of(((const uint16_t *)x)[i]);
    }
    free(x);
    return wide;
}

CudaAttentionAnswer cuda_attention_forward_of(AttentionTier tier, const CudaAttentionCase *c,
                                              const CudaAttentionAnswer *start) {
    AttentionData data = {.o = room(c->o_size, 4), .lse = room(c->lse_size, 4)};
    bind(c, &data);
    if (start) {
        memcpy(data.o, start->o, (size_t)c->o_size * 4);
        memcpy(data.lse, start->lse, (size_t)c->lse_size * 4);
    }
    run(tier, &c->call, &data);
    return (CudaAttentionAnswer){.o = widened(data.o, c->call.output, c->o_size), .lse = data.lse};
}

CudaAttentionAnswer cuda_attention_backward_of(AttentionTier tier, const CudaAttentionCase *c) {
    return cuda_attention_backward_again(tier, c, NULL);
}

CudaAttentionAnswer cuda_attention_backward_again(AttentionTier tier, const CudaAttentionCase *c,
                                                  const CudaAttentionAnswer *start) {
    const KernelStore type = c->call.gradient;
    CudaAttention call = c->call;
    call.backward = true;
    // cuDNN reads o as it reads q
    call.output = tier == ATTENTION_TIER_CUDNN ? KERNEL_BF16 : KERNEL_FP32;
    uint16_t *narrow_o = narrowed(c->o, c->o_size);
    void *const o = tier == ATTENTION_TIER_CUDNN ? (void *)narrow_o : (void *)c->o;
    float *delta = room(c->lse_size, 4);
    AttentionData data = {.o = o, .lse = c->lse, .delta = delta};
    data.dq = room(c->dq_size, 4), data.dk = room(c->dkv_size, 4), data.dv = room(c->dkv_size, 4);
    if (start) {
        memcpy(data.dq, start->dq, (size_t)c->dq_size * 4);
        memcpy(data.dk, start->dk, (size_t)c->dkv_size * 4);
        memcpy(data.dv, start->dv, (size_t)c->dkv_size * 4);
    }
    bind(c, &data);
    cr_assert_eq(cuda_attention_delta(&call, o, data.d_o, delta, NULL), 0);
    run(tier, &call, &data);
    free(delta), free(narrow_o);
    return (CudaAttentionAnswer){.dq = widened(data.dq, type, c->dq_size),
                                 .dk = widened(data.dk, type, c->dkv_size),
                                 .dv = widened(data.dv, type, c->dkv_size)};
}

void cuda_attention_answer_free(CudaAttentionAnswer *answer) {
    free(answer->o), free(answer->lse), free(answer->dq), free(answer->dk), free(answer->dv);
    *answer = (CudaAttentionAnswer){0};
}
