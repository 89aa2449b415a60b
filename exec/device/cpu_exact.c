// Tasks of a bitwise run on the CPU: what some mesh splits is summed exactly (kernels/exact.h), and the sums are kept
// with the floats until all ranks' parts are in (interpreter.c). The others are the ordinary tasks: a row or an element
// on its own. Model parts without a task here are refused (launch/check.c).

#include "exec/device/attention_pairs.h"
#include "exec/device/cpu.h"

#include <string.h>

static void gemm(const TaskCall *call) {
    const Task *task = call->task;
    exact_gemm((const bool[]){task->trans_a, task->trans_b}, (const int64_t[]){task->m, task->n, task->k},
               call_floats(call, AT_GEMM_A), call_floats(call, AT_GEMM_B), task->accumulate, call->sums[AT_GEMM_C],
               call_floats(call, AT_GEMM_C));
}

// The other tp ranks hold zeros in rows that this one holds.
static void embed(const TaskCall *call) {
    cpu_embed(call);
    exact_take(call_elements(call, AT_EMBED_X), call_floats(call, AT_EMBED_X), call->sums[AT_EMBED_X]);
}

static void embed_backward(const TaskCall *call) {
    const KernelEmbed shape = call_vocabulary(call);
    exact_embed_backward(&shape, call_ints(call, AT_EMBED_BACKWARD_TOKENS), call_floats(call, AT_EMBED_BACKWARD_DX),
                         call->task->accumulate, call->sums[AT_EMBED_BACKWARD_DTABLE],
                         call_floats(call, AT_EMBED_BACKWARD_DTABLE));
}

// dx comes from the ordinary kernel; its dw is overwritten.
static void rmsnorm_backward(const TaskCall *call) {
    const Task *task = call->task;
    cpu_norm_backward(call);
    const ExactNorm norm = {task->rows, task->cols, call_floats(call, AT_NORM_BACKWARD_DY),
                            call_floats(call, AT_NORM_BACKWARD_X), call_floats(call, AT_NORM_BACKWARD_STATISTICS)};
    exact_rmsnorm_weight(&norm, task->accumulate, call->sums[AT_NORM_BACKWARD_DW],
                         call_floats(call, AT_NORM_BACKWARD_DW));
}

static void loss_sum(const TaskCall *call) {
    const KernelLoss loss = call_loss(call);
    exact_loss_sum(&loss, call_floats(call, AT_LOSS_LOGITS), call->sums[AT_LOSS_SUMS]);
}

static void loss_gradient(const TaskCall *call) {
    const KernelLoss loss = call_loss(call);
    exact_loss_gradient(&loss, call_floats(call, AT_LOSS_LOGITS));
    exact_loss(&loss, call->task->accumulate, call->sums[AT_LOSS_LOSS], call_floats(call, AT_LOSS_LOSS));
}

static void loss(const TaskCall *call) {
    const KernelLoss rows = call_loss(call);
    kernel_loss_max(&rows, call_floats(call, AT_LOSS_LOGITS));
    loss_sum(call);
    loss_gradient(call);
}

static void copy_sums(const TaskCall *call, bool unpack) {
    const Task *task = call->task;
    for (int64_t line = 0; line < task_blocks(task) * task->rows; line++) {
        const int64_t block = line / task->rows, row = line % task->rows;
        const int64_t packed = line * task->cols, strided = row * task->stride + block * task->cols;
        memcpy(call->sums[AT_COPY_DST] + (unpack ? strided : packed),
               call->sums[AT_COPY_SRC] + (unpack ? packed : strided), (size_t)task->cols * sizeof(ExactSum));
    }
}

static void copy(const TaskCall *call) {
    cpu_copy(call);
    copy_sums(call, false);
}

static void unpack(const TaskCall *call) {
    cpu_unpack(call);
    copy_sums(call, true);
}

// A gradient part joins the sum of the previous parts, to which other ranks contribute too; elsewhere values are added.
static void add(const TaskCall *call) {
    if (call->task->phase == PHASE_BACKWARD && call->operand[AT_ADD_A] == call->operand[AT_ADD_C]) {
        exact_accumulate(call_elements(call, AT_ADD_C), call->sums[AT_ADD_B], call->sums[AT_ADD_C],
                         call_floats(call, AT_ADD_C));
    } else {
        cpu_add(call);
    }
}

static void accumulate(const TaskCall *call) {
    exact_accumulate(call_elements(call, AT_COPY_DST), call->sums[AT_COPY_SRC], call->sums[AT_COPY_DST],
                     call_floats(call, AT_COPY_DST));
}

static void zero(const TaskCall *call) {
    cpu_zero(call);
    memset(call->sums[AT_ZERO_DST], 0, (size_t)call_elements(call, AT_ZERO_DST) * sizeof(ExactSum));
}

// ---------------------------------------------------------------------------------------------- attention

static ExactAttention attention_out(const TaskCall *call, const Pair *at) {
    const int64_t o = at->q_row * at->shape.o_stride;
    return (ExactAttention){call_floats(call, AT_ATTENTION_O) + o, call_floats(call, AT_ATTENTION_LSE) + at->lse_at,
                            call->sums[AT_ATTENTION_O] + o, call->sums[AT_ATTENTION_LSE] + at->lse_at};
}

static void pair_begin(const TaskCall *call, const Pair *at) {
    const ExactAttention out = attention_out(call, at);
    exact_attention_begin(&at->shape, call_floats(call, AT_ATTENTION_Q) + at->q_row * at->shape.q_stride,
                          call_floats(call, AT_ATTENTION_K) + at->k_row * at->shape.kv_stride, &out);
}

static void pair_forward(const TaskCall *call, const Pair *at) {
    const ExactAttention out = attention_out(call, at);
    const int64_t kv = at->k_row * at->shape.kv_stride;
    exact_attention_block(&at->shape, call_floats(call, AT_ATTENTION_Q) + at->q_row * at->shape.q_stride,
                          call_floats(call, AT_ATTENTION_K) + kv, call_floats(call, AT_ATTENTION_V) + kv, &out);
}

static void pair_end(const TaskCall *call, const Pair *at) {
    const ExactAttention out = attention_out(call, at);
    exact_attention_end(&at->shape, &out);
}

static void attention(const TaskCall *call) {
    const Blocks blocks = attention_blocks(call);
    if (call->task->ring_step == 0) {
        attention_each_query(&blocks, pair_begin);
    }
    attention_each_visible(&blocks, pair_forward);
    if (call->task->ring_step == call->program->plan.mesh.size[AXIS_CP] - 1) {
        attention_each_query(&blocks, pair_end);
    }
}

static void pair_delta(const TaskCall *call, const Pair *at) {
    const int64_t o = at->q_row * at->shape.o_stride;
    kernel_attention_delta(&at->shape, call_floats(call, AT_ATTENTION_O) + o,
                           call_floats(call, AT_ATTENTION_BACKWARD_DO) + o,
                           call_floats(call, AT_ATTENTION_BACKWARD_WORKSPACE) + at->lse_at);
}

static void pair_backward(const TaskCall *call, const Pair *at) {
    const KernelAttention *shape = &at->shape;
    const int64_t q = at->q_row * shape->q_stride, kv = at->k_row * shape->kv_stride;
    const ExactAttentionBackward work = {.q = call_floats(call, AT_ATTENTION_Q) + q,
                                         .k = call_floats(call, AT_ATTENTION_K) + kv,
                                         .v = call_floats(call, AT_ATTENTION_V) + kv,
                                         .d_o =
                                             call_floats(call, AT_ATTENTION_BACKWARD_DO) + at->q_row * shape->o_stride,
                                         .lse = call_floats(call, AT_ATTENTION_LSE) + at->lse_at,
                                         .delta = call_floats(call, AT_ATTENTION_BACKWARD_WORKSPACE) + at->lse_at,
                                         .dq = call->sums[AT_ATTENTION_BACKWARD_DQ] + q,
                                         .dk = call->sums[AT_ATTENTION_BACKWARD_DK] + kv,
                                         .dv = call->sums[AT_ATTENTION_BACKWARD_DV] + kv};
    exact_attention_backward(shape, &work);
}

typedef struct Rows {
    int operand;
    int64_t cols, stride;
} Rows;

static void zero_sums(const TaskCall *call, Rows rows) {
    for (int64_t row = 0; row < call->task->rows; row++) {
        memset(call->sums[rows.operand] + row * rows.stride, 0, (size_t)rows.cols * sizeof(ExactSum));
    }
}

static void round_sums(const TaskCall *call, Rows rows) {
    for (int64_t row = 0; row < call->task->rows; row++) {
        const int64_t at = row * rows.stride;
        exact_round(rows.cols, call->sums[rows.operand] + at, call_floats(call, rows.operand) + at);
    }
}

static void attention_backward(const TaskCall *call) {
    const Task *task = call->task;
    const Blocks blocks = attention_blocks(call);
    const int64_t kv_width = (int64_t)task->kv_heads * task->head_dim;
    const Rows gradients[] = {{AT_ATTENTION_BACKWARD_DQ, blocks.o_stride, task->stride},
                              {AT_ATTENTION_BACKWARD_DK, kv_width, task->kv_stride},
                              {AT_ATTENTION_BACKWARD_DV, kv_width, task->kv_stride}};
    for (int i = task->ring_step == 0 ? 0 : 1; i < 3; i++) {  // dq starts from zero once, dk and dv with every block
        zero_sums(call, gradients[i]);
    }
    if (task->ring_step == 0) {
        attention_each_query(&blocks, pair_delta);
    }
    attention_each_visible(&blocks, pair_backward);
    for (int i = 0; i < 3; i++) {
        round_sums(call, gradients[i]);
    }
}

CpuTask *const cpu_exact_tasks[TASK_KIND_COUNT] = {
    [TASK_LOAD_TOKENS] = cpu_load_tokens,
    [TASK_EMBED] = embed,
    [TASK_EMBED_BACKWARD] = embed_backward,
    [TASK_RMSNORM] = cpu_norm,
    [TASK_RMSNORM_BACKWARD] = rmsnorm_backward,
    [TASK_GEMM] = gemm,
    [TASK_ROPE] = cpu_rope,
    [TASK_ATTENTION] = attention,
    [TASK_ATTENTION_BACKWARD] = attention_backward,
    [TASK_SWIGLU] = cpu_gated,
    [TASK_SWIGLU_BACKWARD] = cpu_gated_backward,
    [TASK_ADD] = add,
    [TASK_LOSS_MAX] = cpu_loss_max,
    [TASK_LOSS_SUM] = loss_sum,
    [TASK_LOSS_GRADIENT] = loss_gradient,
    [TASK_LOSS] = loss,
    [TASK_SQUARE_SUM] = cpu_exact_square_sum,
    [TASK_CLIP] = cpu_clip,
    [TASK_ADAMW] = cpu_adamw,
    [TASK_COPY] = copy,
    [TASK_UNPACK] = unpack,
    [TASK_ACCUMULATE] = accumulate,
    [TASK_ZERO] = zero,
};
