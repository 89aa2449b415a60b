// Copies and sums that may change the format: gradients are cast to bf16 before a reduction and back after it. Rows
// packed on both sides where formats differ.

#include "exec/device/cpu.h"

#include "sim/base/bf16.h"

static uint16_t *halves(const TaskCall *call, int index) {
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

void cpu_copy(const TaskCall *call) {
    const Task *task = call->task;
    const bool from_bf16 = call_dtype(call, AT_COPY_SRC) == DTYPE_BF16,
               to_bf16 = call_dtype(call, AT_COPY_DST) == DTYPE_BF16;
    const int64_t count = task->rows * task->cols;
    if (from_bf16 == to_bf16) {
        for (int64_t block = 0; block < task_blocks(task); block++) {
            kernel_copy_rows(task->rows, task->cols, task->stride, task->cols,
                             call_floats(call, AT_COPY_SRC) + block * task->cols,
                             call_floats(call, AT_COPY_DST) + block * count);
        }
    } else if (to_bf16) {
        narrow(count, call_floats(call, AT_COPY_SRC), halves(call, AT_COPY_DST));
    } else {
        widen(count, halves(call, AT_COPY_SRC), call_floats(call, AT_COPY_DST));
    }
}

void cpu_accumulate(const TaskCall *call) {
    const int64_t count = call_elements(call, AT_COPY_DST);
    if (call_dtype(call, AT_COPY_SRC) == DTYPE_BF16) {
        add_widened(count, halves(call, AT_COPY_SRC), call_floats(call, AT_COPY_DST));
    } else {
        kernel_add(count, call_floats(call, AT_COPY_DST), call_floats(call, AT_COPY_SRC),
                   call_floats(call, AT_COPY_DST));
    }
}
