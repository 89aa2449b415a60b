// Tasks of the layers on the CPU, one small function each: operands and sizes go to the kernels as they are.
// fp32 only; capability checks refuse the rest before a program gets here.

#include "exec/device/cpu.h"

#include "kernels/kernels.h"

void cpu_rmsnorm(const CpuCall *call) {
    const Task *task = call->task;
    kernel_rmsnorm(task->rows, task->cols, (float)call->program->model.norm_eps, cpu_floats(call, 0),
                   cpu_floats(call, 1), cpu_floats(call, 2), cpu_floats(call, 3));
}

void cpu_rmsnorm_backward(const CpuCall *call) {
    const Task *task = call->task;
    kernel_rmsnorm_backward(task->rows, task->cols, cpu_floats(call, 0), cpu_floats(call, 1), cpu_floats(call, 2),
                            cpu_floats(call, 3), cpu_floats(call, 4), cpu_floats(call, 5), cpu_floats(call, 6),
                            task->accumulate);
}

void cpu_layernorm(const CpuCall *call) {
    const Task *task = call->task;
    float *const statistics = cpu_floats(call, 4);
    kernel_layernorm(task->rows, task->cols, (float)call->program->model.norm_eps, cpu_floats(call, 0),
                     cpu_floats(call, 1), cpu_floats(call, 2), cpu_floats(call, 3), statistics,
                     statistics + task->rows);
}

void cpu_layernorm_backward(const CpuCall *call) {
    const Task *task = call->task;
    const float *const dy = cpu_floats(call, 0), *const statistics = cpu_floats(call, 3);
    float *const dbias = cpu_optional(call, 7);
    if (dbias) {
        kernel_column_sum(task->rows, task->cols, dy, dbias, task->accumulate);
    }
    kernel_layernorm_backward(task->rows, task->cols, dy, cpu_floats(call, 1), cpu_floats(call, 2), statistics,
                              statistics + task->rows, cpu_floats(call, 4), cpu_floats(call, 5), cpu_floats(call, 6),
                              task->accumulate);
}

// Stretches of the queries and of the keys, as parts of one packed row behind each other.
typedef struct QkStretches {
    KernelStretches q, k;
    int64_t k_before, k_rstd;  // where those of the keys begin in a row
} QkStretches;

static QkStretches qk_stretches(const Task *task) {
    const bool heads = task->inner == task->head_dim;
    const int64_t q_width = (int64_t)task->heads * task->head_dim, k_width = (int64_t)task->kv_heads * task->head_dim;
    const int q_parts = heads ? task->heads : 1, k_parts = heads ? task->kv_heads : 1;
    return (QkStretches){
        .q = {task->rows, q_parts, q_width / q_parts, task->stride, q_width + k_width, q_parts + k_parts},
        .k = {task->rows, k_parts, k_width / k_parts, task->kv_stride, q_width + k_width, q_parts + k_parts},
        .k_before = q_width,
        .k_rstd = q_parts};
}

void cpu_qk_norm(const CpuCall *call) {
    const QkStretches s = qk_stretches(call->task);
    const float eps = (float)call->program->model.norm_eps;
    float *const before = cpu_floats(call, 4), *const rstd = cpu_floats(call, 5);
    kernel_stretch_norm(&s.q, eps, cpu_floats(call, 2), cpu_floats(call, 0), before, rstd);
    kernel_stretch_norm(&s.k, eps, cpu_floats(call, 3), cpu_floats(call, 1), before + s.k_before, rstd + s.k_rstd);
}

void cpu_qk_norm_backward(const CpuCall *call) {
    const QkStretches s = qk_stretches(call->task);
    const float *const before = cpu_floats(call, 2), *const rstd = cpu_floats(call, 5);
    kernel_stretch_norm_backward(&s.q, cpu_floats(call, 3), before, rstd, cpu_floats(call, 0), cpu_floats(call, 6),
                                 call->task->accumulate);
    kernel_stretch_norm_backward(&s.k, cpu_floats(call, 4), before + s.k_before, rstd + s.k_rstd, cpu_floats(call, 1),
                                 cpu_floats(call, 7), call->task->accumulate);
}

void cpu_column_sum(const CpuCall *call) {
    const Task *task = call->task;
    kernel_column_sum(task->rows, task->cols, cpu_floats(call, 0), cpu_floats(call, 1), task->accumulate);
}

// A bias is there before the products add to it: BLAS scales c in any case.
void cpu_gemm(const CpuCall *call) {
    const Task *task = call->task;
    const float *const bias = cpu_optional(call, 3);
    if (bias) {
        kernel_fill_rows(task->m, task->n, bias, cpu_floats(call, 2));
    }
    kernel_gemm(task->trans_a, task->trans_b, task->m, task->n, task->k, cpu_floats(call, 0), cpu_floats(call, 1),
                cpu_floats(call, 2), task->accumulate || bias);
}

void cpu_rope(const CpuCall *call) {
    const Task *task = call->task;
    const KernelRope queries = {.heads = task->heads,
                                .head_dim = task->head_dim,
                                .turning = (int)task->inner,
                                .stride = task->stride,
                                .theta = call->program->model.rope_theta,
                                .backward = task->backward};
    KernelRope keys = queries;
    keys.heads = task->kv_heads;
    keys.stride = task->kv_stride;
    kernel_rope(task->rows, &queries, call->positions, cpu_floats(call, 0));
    kernel_rope(task->rows, &keys, call->positions, cpu_floats(call, 1));
}

static const KernelActivation activations[ACTIVATION_COUNT] = {[ACTIVATION_SILU] = KERNEL_SILU,
                                                               [ACTIVATION_GELU] = KERNEL_GELU,
                                                               [ACTIVATION_GELU_NEW] = KERNEL_GELU_TANH,
                                                               [ACTIVATION_GELU_TANH] = KERNEL_GELU_TANH};

static KernelGated gated_shape(const Task *task) {
    return (KernelGated){activations[task->activation], task->rows, task->cols, task->stride};
}

void cpu_gated(const CpuCall *call) {
    const KernelGated shape = gated_shape(call->task);
    (call->bitwise ? exact_gated : kernel_gated)(&shape, cpu_floats(call, 0), cpu_floats(call, 1), cpu_floats(call, 2));
}

void cpu_gated_backward(const CpuCall *call) {
    const Task *task = call->task;
    const KernelGated shape = gated_shape(task);
    float *const dgate = cpu_floats(call, task->operand_count - 2);  // behind the values operand, where there is one
    float *const dup = cpu_floats(call, task->operand_count - 1);
    (call->bitwise ? exact_gated_backward : kernel_gated_backward)(&shape, cpu_floats(call, 0), cpu_floats(call, 1),
                                                                   cpu_floats(call, 2), dgate, dup);
}

void cpu_activation(const CpuCall *call) {
    const Task *task = call->task;
    kernel_activation(activations[task->activation], task->rows * task->cols, cpu_floats(call, 0), cpu_floats(call, 1));
}

void cpu_activation_backward(const CpuCall *call) {
    const Task *task = call->task;
    kernel_activation_backward(activations[task->activation], task->rows * task->cols, cpu_floats(call, 0),
                               cpu_floats(call, 1), cpu_floats(call, task->operand_count - 1));
}
