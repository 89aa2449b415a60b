// Copies and sums that may change the format: gradients are cast to bf16 before a reduction and back after it. Rows
// packed on both sides where formats differ.

#include "exec/device/cpu.h"

#include "kernels/kernels.h"
#include "sim/base/bf16.h"

static Dtype dtype_of(const CpuCall *call, int index) {
    return call->program->buffers[task_operand(call->program, call->task, index)->ref.buffer].dtype;
}

static uint16_t *halves(const CpuCall *call, int index) {
    return (uint16_t *)(void *)call->operand[index];
}

static void narrow(int64_t count, const float *x, uint16_t *y) {
    for (int64_t i = 0; i < count; i++) {
        y[i] = bf16_of(x[i]);
    }
}

static void widen(int64_t count, const uint16_t *x, float *y) {
    for (int64_t i = 0; i < count; i++) {
        y[i] = bf16_value(x[i]);
    }
}

static void add_widened(int64_t count, const uint16_t *x, float *sum) {
    for (int64_t i = 0; i < count; i++) {
        sum[i] += bf16_value(x[i]);
    }
}

void cpu_copy(const CpuCall *call) {
    const Task *task = call->task;
    const bool from_bf16 = dtype_of(call, 0) == DTYPE_BF16, to_bf16 = dtype_of(call, 1) == DTYPE_BF16;
    const int64_t count = task->rows * task->cols;
    if (from_bf16 == to_bf16) {
        kernel_copy_rows(task->rows, task->cols, task->stride, task->cols, cpu_floats(call, 0), cpu_floats(call, 1));
    } else if (to_bf16) {
        narrow(count, cpu_floats(call, 0), halves(call, 1));
    } else {
        widen(count, halves(call, 0), cpu_floats(call, 1));
    }
}

void cpu_accumulate(const CpuCall *call) {
    const int64_t count = cpu_elements(call, 1);
    if (dtype_of(call, 0) == DTYPE_BF16) {
        add_widened(count, halves(call, 0), cpu_floats(call, 1));
    } else {
        kernel_add(count, cpu_floats(call, 1), cpu_floats(call, 0), cpu_floats(call, 1));
    }
}
