// Layer tasks on the CPU, one small function each: operands and sizes are passed to the kernels unchanged. fp32 only;
// capability checks refuse the rest before a program gets here.

#include "exec/device/cpu.h"

void cpu_norm(const TaskCall *call) {
    const KernelNorm norm = call_norm(call);
    kernel_norm(&norm);
}

// Only a layer norm has a bias.
void cpu_norm_backward(const TaskCall *call) {
    const KernelNormBackward norm = call_norm_backward(call);
    float *const dbias = call_optional(call, AT_NORM_BACKWARD_DBIAS);
    if (dbias) {
        kernel_column_sum(norm.rows, norm.cols, norm.dy, dbias, norm.accumulate);
    }
    kernel_norm_backward(&norm);
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

// The bias is stored before the product adds to it: BLAS scales c in any case.
void cpu_gemm(const TaskCall *call) {
    const Task *task = call->task;
    const float *const bias = call_optional(call, AT_GEMM_BIAS);
    if (bias) {
        kernel_copy_rows(task->m, task->n, 0, task->n, bias, call_floats(call, AT_GEMM_C));
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
    const bool exact = call->bitwise && shape.activation != KERNEL_CLAMPED;
    (exact ? exact_gated : kernel_gated)(&shape, call_floats(call, AT_SWIGLU_GATE), call_floats(call, AT_SWIGLU_UP),
                                         call_floats(call, AT_SWIGLU_S));
}

void cpu_gated_backward(const TaskCall *call) {
    const KernelGated shape = call_gated_rows(call, AT_SWIGLU_BACKWARD_CAME);
    const bool exact = call->bitwise && shape.activation != KERNEL_CLAMPED;
    (exact ? exact_gated_backward : kernel_gated_backward)(
        &shape, call_floats(call, AT_SWIGLU_BACKWARD_DS), call_floats(call, AT_SWIGLU_BACKWARD_GATE),
        call_floats(call, AT_SWIGLU_BACKWARD_UP), call_floats(call, AT_SWIGLU_BACKWARD_DGATE),
        call_floats(call, AT_SWIGLU_BACKWARD_DUP));
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
