// Attention blocks on the CPU: a task loops over sequences and visible pairs of chunks. Blocks are merged by
// log-sum-exp (Milakov and Gimelshein 2018), in ring order. Masked pairs are skipped, never computed.

#include "exec/device/attention_pairs.h"

// After the last block is merged. Heads split by sp have no sinks (sim/frameworks/axis_rules.c).
static void add_sinks(const TaskCall *call, const Pair *at) {
    kernel_attention_sinks(&at->shape, call_floats(call, AT_ATTENTION_SINKS),
                           call_floats(call, AT_ATTENTION_O) + at->q_row * at->shape.o_stride,
                           call_floats(call, AT_ATTENTION_LSE) + at->lse_at);
}

// A query chunk always sees keys of its own rank, on ring step 0.
static void forward_pair(const TaskCall *call, const Pair *at) {
    const KernelAttention *shape = &at->shape;
    kernel_attention(shape, call_floats(call, AT_ATTENTION_Q) + at->q_row * shape->q_stride,
                     call_floats(call, AT_ATTENTION_K) + at->k_row * shape->kv_stride,
                     call_floats(call, AT_ATTENTION_V) + at->k_row * shape->values.stride,
                     call_floats(call, AT_ATTENTION_O) + at->q_row * shape->o_stride,
                     call_floats(call, AT_ATTENTION_LSE) + at->lse_at, call->task->ring_step > 0 || !at->first);
}

void cpu_attention(const TaskCall *call) {
    const Blocks blocks = attention_blocks(call);
    attention_each_visible(&blocks, forward_pair);
    if (call_operand(call, AT_ATTENTION_SINKS) && call->task->ring_step == call->program->plan.mesh.size[AXIS_CP] - 1) {
        attention_each_query(&blocks, add_sinks);
    }
}

static void zero_rows(int64_t rows, int64_t cols, int64_t stride, float *x) {
    for (int64_t row = 0; row < rows; row++) {
        kernel_zero(cols, x + row * stride);
    }
}

static void backward_query(const TaskCall *call, const Pair *at) {
    const int64_t o_at = at->q_row * at->shape.o_stride;
    float *const delta = call_floats(call, AT_ATTENTION_BACKWARD_WORKSPACE) + at->lse_at;
    const float *const sinks = call_optional(call, AT_ATTENTION_BACKWARD_SINKS);
    kernel_attention_delta(&at->shape, call_floats(call, AT_ATTENTION_O) + o_at,
                           call_floats(call, AT_ATTENTION_BACKWARD_DO) + o_at, delta);
    if (sinks) {
        kernel_attention_sinks_backward(&at->shape, sinks, call_floats(call, AT_ATTENTION_LSE) + at->lse_at, delta,
                                        call_floats(call, AT_ATTENTION_BACKWARD_DSINKS));
    }
}

// Outputs not continued from an earlier task start from zero: dk and dv of every block, dq and delta on ring step 0.
static void backward_begin(const Blocks *blocks) {
    const TaskCall *call = blocks->call;
    const Task *task = call->task;
    const Heads *heads = &blocks->heads;
    zero_rows(task->rows, (int64_t)heads->kv * heads->dim, task->kv_stride,
              call_floats(call, AT_ATTENTION_BACKWARD_DK));
    zero_rows(task->rows, (int64_t)heads->kv * heads->values.dim, heads->values.gradient_stride,
              call_floats(call, AT_ATTENTION_BACKWARD_DV));
    if (task->ring_step > 0) {
        return;
    }
    zero_rows(task->rows, (int64_t)task->heads * heads->dim, task->stride, call_floats(call, AT_ATTENTION_BACKWARD_DQ));
    if (call_operand(call, AT_ATTENTION_BACKWARD_SINKS) && !task->accumulate) {
        kernel_zero(call_elements(call, AT_ATTENTION_BACKWARD_DSINKS), call_floats(call, AT_ATTENTION_BACKWARD_DSINKS));
    }
    attention_each_query(blocks, backward_query);
}

static void backward_pair(const TaskCall *call, const Pair *at) {
    const KernelAttention *shape = &at->shape;
    const int64_t q_at = at->q_row * shape->q_stride, k_at = at->k_row * shape->kv_stride;
    kernel_attention_backward(shape, call_floats(call, AT_ATTENTION_Q) + q_at, call_floats(call, AT_ATTENTION_K) + k_at,
                              call_floats(call, AT_ATTENTION_V) + at->k_row * shape->values.stride,
                              call_floats(call, AT_ATTENTION_BACKWARD_DO) + at->q_row * shape->o_stride,
                              call_floats(call, AT_ATTENTION_LSE) + at->lse_at,
                              call_floats(call, AT_ATTENTION_BACKWARD_WORKSPACE) + at->lse_at,
                              call_floats(call, AT_ATTENTION_BACKWARD_DQ) + q_at, shape->q_stride,
                              call_floats(call, AT_ATTENTION_BACKWARD_DK) + k_at,
                              call_floats(call, AT_ATTENTION_BACKWARD_DV) + at->k_row * shape->values.gradient_stride,
                              shape->kv_stride);
}

void cpu_attention_backward(const TaskCall *call) {
    const Blocks blocks = attention_blocks(call);
    backward_begin(&blocks);
    attention_each_visible(&blocks, backward_pair);
}
