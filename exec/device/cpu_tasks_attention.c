// Attention blocks on the CPU. A task is this rank's queries against the keys of one ring owner; both consist of
// sequence chunks (zigzag: two each), so a task is a loop over sequences and visible pairs of chunks. Blocks merge by
// log-sum-exp (Milakov and Gimelshein 2018), in ring order. Masked pairs are skipped, never computed.

#include "exec/device/cpu_attention.h"

Blocks attention_blocks(const CpuCall *call) {
    const Task *task = call->task;
    const int owner = step_ring_owner(call->program, task->ring_step, call->at);
    return (Blocks){.call = call,
                    .query = step_chunks(call->program, call->at->at[AXIS_CP]),
                    .key = step_chunks(call->program, owner),
                    .local = task->rows / task->sequences,
                    .o_stride = (int64_t)task->heads * task->head_dim};
}

bool attention_visible(const Blocks *blocks, int query, int key) {
    return blocks->key.start[key] <= blocks->query.start[query] + blocks->query.length - 1;
}

Pair attention_pair(const Blocks *blocks, int sequence, int query, int key) {
    const Task *task = blocks->call->task;
    const int64_t in_sequence = (int64_t)query * blocks->query.length;
    return (Pair){.shape = {.queries = blocks->query.length,
                            .keys = blocks->key.length,
                            .q_first = blocks->query.start[query],
                            .k_first = blocks->key.start[key],
                            .heads = task->heads,
                            .kv_heads = task->kv_heads,
                            .head_dim = task->head_dim,
                            .q_stride = task->stride,
                            .kv_stride = task->kv_stride,
                            .o_stride = blocks->o_stride,
                            .lse_stride = blocks->local,
                            .alibi_heads = task->alibi ? blocks->call->program->model.heads : 0,
                            .alibi_first = blocks->call->at->at[AXIS_TP] * task->heads},
                  .q_row = sequence * blocks->local + in_sequence,
                  .k_row = sequence * blocks->local + (int64_t)key * blocks->key.length,
                  .lse_at = (int64_t)sequence * task->heads * blocks->local + in_sequence};
}

void cpu_attention(const CpuCall *call) {
    const Blocks blocks = attention_blocks(call);
    const float *q = cpu_floats(call, 0), *k = cpu_floats(call, 1), *v = cpu_floats(call, 2);
    float *o = cpu_floats(call, 3), *lse = cpu_floats(call, 4);
    for (int s = 0; s < call->task->sequences; s++) {
        for (int i = 0; i < blocks.query.count; i++) {
            bool merge = call->task->ring_step > 0;  // a query chunk always sees keys of its own rank, ring step 0
            for (int j = 0; j < blocks.key.count; j++) {
                if (!attention_visible(&blocks, i, j)) {
                    continue;
                }
                const Pair at = attention_pair(&blocks, s, i, j);
                kernel_attention(&at.shape, q + at.q_row * at.shape.q_stride, k + at.k_row * at.shape.kv_stride,
                                 v + at.k_row * at.shape.kv_stride, o + at.q_row * at.shape.o_stride, lse + at.lse_at,
                                 merge);
                merge = true;
            }
        }
    }
}

static void zero_rows(int64_t rows, int64_t cols, int64_t stride, float *x) {
    for (int64_t row = 0; row < rows; row++) {
        kernel_zero(cols, x + row * stride);
    }
}

// What the task writes rather than adds to begins at zero: dk and dv of every block, dq and delta on ring step 0.
static void backward_begin(const Blocks *blocks) {
    const CpuCall *call = blocks->call;
    const Task *task = call->task;
    const int64_t kv_width = (int64_t)task->kv_heads * task->head_dim;
    zero_rows(task->rows, kv_width, task->kv_stride, cpu_floats(call, 7));
    zero_rows(task->rows, kv_width, task->kv_stride, cpu_floats(call, 8));
    if (task->ring_step > 0) {
        return;
    }
    zero_rows(task->rows, blocks->o_stride, task->stride, cpu_floats(call, 6));
    for (int s = 0; s < task->sequences; s++) {
        for (int i = 0; i < blocks->query.count; i++) {
            const Pair at = attention_pair(blocks, s, i, 0);
            const int64_t o_at = at.q_row * at.shape.o_stride;
            kernel_attention_delta(&at.shape, cpu_floats(call, 3) + o_at, cpu_floats(call, 5) + o_at,
                                   cpu_floats(call, 9) + at.lse_at);
        }
    }
}

static void backward_pair(const CpuCall *call, const Pair *at) {
    const KernelAttention *shape = &at->shape;
    const int64_t q_at = at->q_row * shape->q_stride, k_at = at->k_row * shape->kv_stride;
    kernel_attention_backward(shape, cpu_floats(call, 0) + q_at, cpu_floats(call, 1) + k_at, cpu_floats(call, 2) + k_at,
                              cpu_floats(call, 5) + at->q_row * shape->o_stride, cpu_floats(call, 4) + at->lse_at,
                              cpu_floats(call, 9) + at->lse_at, cpu_floats(call, 6) + q_at, shape->q_stride,
                              cpu_floats(call, 7) + k_at, cpu_floats(call, 8) + k_at, shape->kv_stride);
}

void cpu_attention_backward(const CpuCall *call) {
    const Blocks blocks = attention_blocks(call);
    backward_begin(&blocks);
    for (int s = 0; s < call->task->sequences; s++) {
        for (int i = 0; i < blocks.query.count; i++) {
            for (int j = 0; j < blocks.key.count; j++) {
                if (attention_visible(&blocks, i, j)) {
                    const Pair at = attention_pair(&blocks, s, i, j);
                    backward_pair(call, &at);
                }
            }
        }
    }
}
