// Tasks of the layers on the CPU, one small function each: operands and sizes go to the kernels as they are.
// fp32 only; capability checks refuse the rest before a program gets here.

#include "exec/device/cpu.h"
#include "kernels/latent.h"

// y and what follows are behind the bias, where the kind has one.
static KernelAddNorm adding_norm(const TaskCall *call, int y) {
    const int added = task_added_operand(call->task);
    return (KernelAddNorm){.rows = call->task->rows,
                           .cols = call->task->cols,
                           .eps = (float)call->program->model.norm_eps,
                           .x = call_floats(call, AT_NORM_X),
                           .more = call_floats(call, added),
                           .w = call_floats(call, AT_NORM_W),
                           .sum = call_floats(call, added + 1),
                           .y = call_floats(call, y),
                           .rstd = call_floats(call, y + 1)};
}

// Of the leading columns of wider rows.
static KernelLatentNorm latent_norm(const TaskCall *call, int x, int w) {
    const Task *task = call->task;
    return (KernelLatentNorm){task->rows, task->cols, task->stride, call_floats(call, x), call_floats(call, w)};
}

void cpu_rmsnorm(const TaskCall *call) {
    const Task *task = call->task;
    if (task->stride > 0) {
        const KernelLatentNorm norm = latent_norm(call, AT_NORM_X, AT_NORM_W);
        kernel_latent_norm(&norm, call_norm_eps(call), call_floats(call, AT_RMSNORM_Y),
                           call_floats(call, AT_RMSNORM_RSTD));
        return;
    }
    if (task_added_operand(task)) {
        const KernelAddNorm norm = adding_norm(call, AT_RMSNORM_Y);
        kernel_add_norm(&norm);
        return;
    }
    kernel_rmsnorm(task->rows, task->cols, (float)call->program->model.norm_eps, call_floats(call, AT_NORM_X),
                   call_floats(call, AT_NORM_W), call_floats(call, AT_RMSNORM_Y), call_floats(call, AT_RMSNORM_RSTD));
}

void cpu_rmsnorm_backward(const TaskCall *call) {
    const Task *task = call->task;
    if (task->stride > 0) {
        const KernelLatentNorm norm = latent_norm(call, AT_NORM_BACKWARD_X, AT_NORM_BACKWARD_W);
        kernel_latent_norm_backward(
            &norm, call_floats(call, AT_NORM_BACKWARD_DY), call_floats(call, AT_NORM_BACKWARD_STATISTICS),
            call_floats(call, AT_NORM_BACKWARD_DX), call_floats(call, AT_NORM_BACKWARD_DW), task->accumulate);
        return;
    }
    kernel_rmsnorm_backward(task->rows, task->cols, call_floats(call, AT_NORM_BACKWARD_DY),
                            call_floats(call, AT_NORM_BACKWARD_X), call_floats(call, AT_NORM_BACKWARD_W),
                            call_floats(call, AT_NORM_BACKWARD_STATISTICS),
                            call_floats(call, AT_NORM_BACKWARD_RESIDUAL), call_floats(call, AT_NORM_BACKWARD_DX),
                            call_floats(call, AT_NORM_BACKWARD_DW), task->accumulate);
}

void cpu_layernorm(const TaskCall *call) {
    const Task *task = call->task;
    float *const statistics = call_floats(call, AT_LAYERNORM_STATISTICS);
    if (task_added_operand(task)) {
        KernelAddNorm norm = adding_norm(call, AT_LAYERNORM_Y);
        norm.bias = call_floats(call, AT_LAYERNORM_BIAS);
        norm.mean = statistics;
        norm.rstd = statistics + task->rows;
        kernel_add_norm(&norm);
        return;
    }
    kernel_layernorm(task->rows, task->cols, (float)call->program->model.norm_eps, call_floats(call, AT_NORM_X),
                     call_floats(call, AT_NORM_W), call_floats(call, AT_LAYERNORM_BIAS),
                     call_floats(call, AT_LAYERNORM_Y), statistics, statistics + task->rows);
}

void cpu_layernorm_backward(const TaskCall *call) {
    const Task *task = call->task;
    const float *const dy = call_floats(call, AT_NORM_BACKWARD_DY);
    const float *const statistics = call_floats(call, AT_NORM_BACKWARD_STATISTICS);
    float *const dbias = call_optional(call, AT_NORM_BACKWARD_DBIAS);
    if (dbias) {
        kernel_column_sum(task->rows, task->cols, dy, dbias, task->accumulate);
    }
    kernel_layernorm_backward(task->rows, task->cols, dy, call_floats(call, AT_NORM_BACKWARD_X),
                              call_floats(call, AT_NORM_BACKWARD_W), statistics, statistics + task->rows,
                              call_floats(call, AT_NORM_BACKWARD_RESIDUAL), call_floats(call, AT_NORM_BACKWARD_DX),
                              call_floats(call, AT_NORM_BACKWARD_DW), task->accumulate);
}

void cpu_qk_norm(const TaskCall *call) {
    const QkStretches s = call_qk_stretches(call);
    const float eps = (float)call->program->model.norm_eps;
    float *const before = call_floats(call, AT_QK_NORM_BEFORE), *const rstd = call_floats(call, AT_QK_NORM_RSTD);
    kernel_stretch_norm(&s.q, eps, call_floats(call, AT_QK_NORM_WQ), call_floats(call, AT_QK_NORM_Q), before, rstd);
    kernel_stretch_norm(&s.k, eps, call_floats(call, AT_QK_NORM_WK), call_floats(call, AT_QK_NORM_K),
                        before + s.k_before, rstd + s.k_rstd);
}

void cpu_qk_norm_backward(const TaskCall *call) {
    const QkStretches s = call_qk_stretches(call);
    const float *const before = call_floats(call, AT_QK_NORM_BACKWARD_BEFORE);
    const float *const rstd = call_floats(call, AT_QK_NORM_BACKWARD_RSTD);
    kernel_stretch_norm_backward(&s.q, call_floats(call, AT_QK_NORM_BACKWARD_WQ), before, rstd,
                                 call_floats(call, AT_QK_NORM_BACKWARD_DQ), call_floats(call, AT_QK_NORM_BACKWARD_DWQ),
                                 call->task->accumulate);
    kernel_stretch_norm_backward(&s.k, call_floats(call, AT_QK_NORM_BACKWARD_WK), before + s.k_before, rstd + s.k_rstd,
                                 call_floats(call, AT_QK_NORM_BACKWARD_DK), call_floats(call, AT_QK_NORM_BACKWARD_DWK),
                                 call->task->accumulate);
}

void cpu_column_sum(const TaskCall *call) {
    const Task *task = call->task;
    if (task->operand_count > AT_COLUMN_SUM_CAME) {
        cpu_expert_bias_gradient(call);
        return;
    }
    kernel_column_sum(task->rows, task->cols, call_floats(call, AT_COLUMN_SUM_X), call_floats(call, AT_COLUMN_SUM_SUMS),
                      task->accumulate);
}

// A bias is there before the products add to it: BLAS scales c in any case.
void cpu_gemm(const TaskCall *call) {
    const Task *task = call->task;
    const float *const bias = call_optional(call, AT_GEMM_BIAS);
    if (bias) {
        kernel_fill_rows(task->m, task->n, bias, call_floats(call, AT_GEMM_C));
    }
    const float factor = task->factor != 0 ? (float)task->factor : 1;
    kernel_gemm_scaled(task->trans_a, task->trans_b, task->m, task->n, task->k, factor, call_floats(call, AT_GEMM_A),
                       call_floats(call, AT_GEMM_B), call_floats(call, AT_GEMM_C), task->accumulate || bias);
}

void cpu_rope(const TaskCall *call) {
    const QkTurns turns = call_turns(call);
    const int64_t still = call_still(call, &turns.q);
    kernel_rope(call->task->rows, &turns.q, call->positions, call_floats(call, AT_ROPE_Q) + still);
    if (turns.k.heads > 0) {
        kernel_rope(call->task->rows, &turns.k, call->positions, call_floats(call, AT_ROPE_K) + still);
    }
}

void cpu_gated(const TaskCall *call) {
    const KernelGated shape = call_gated_rows(call, AT_SWIGLU_CAME);
    const bool clamped = call_gate_is_clamped(call, AT_SWIGLU_CAME);
    (clamped         ? kernel_clamped
     : call->bitwise ? exact_gated
                     : kernel_gated)(&shape, call_floats(call, AT_SWIGLU_GATE), call_floats(call, AT_SWIGLU_UP),
                                     call_floats(call, AT_SWIGLU_S));
}

void cpu_gated_backward(const TaskCall *call) {
    const KernelGated shape = call_gated_rows(call, AT_SWIGLU_BACKWARD_CAME);
    float *const dgate = call_floats(call, AT_SWIGLU_BACKWARD_DGATE);
    float *const dup = call_floats(call, AT_SWIGLU_BACKWARD_DUP);
    const bool clamped = call_gate_is_clamped(call, AT_SWIGLU_BACKWARD_CAME);
    (clamped         ? kernel_clamped_backward
     : call->bitwise ? exact_gated_backward
                     : kernel_gated_backward)(&shape, call_floats(call, AT_SWIGLU_BACKWARD_DS),
                                              call_floats(call, AT_SWIGLU_BACKWARD_GATE),
                                              call_floats(call, AT_SWIGLU_BACKWARD_UP), dgate, dup);
}

void cpu_activation(const TaskCall *call) {
    const KernelGated shape = call_gated_shape(call);
    kernel_activation(shape.activation, shape.rows * shape.cols, call_floats(call, AT_ACTIVATION_X),
                      call_floats(call, AT_ACTIVATION_Y));
}

void cpu_activation_backward(const TaskCall *call) {
    const KernelGated shape = call_gated_shape(call);
    kernel_activation_backward(shape.activation, shape.rows * shape.cols, call_floats(call, AT_ACTIVATION_BACKWARD_DY),
                               call_floats(call, AT_ACTIVATION_BACKWARD_X),
                               call_floats(call, AT_ACTIVATION_BACKWARD_DX));
}
