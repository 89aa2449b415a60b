// Copies and sums that may convert formats: gradients are cast to bf16 before a reduction and back after it, weights
// after an update.

#include "exec/device/cpu.h"

#include <string.h>

#include "kernels/half.h"
#include "kernels/latent.h"

static bool in_halves(const TaskCall *call, int index) {
    return call_dtype(call, index) == DTYPE_BF16;
}

// Rows of a block, with their strides in elements.
typedef struct Rows {
    int64_t rows, cols, src_stride, dst_stride;
} Rows;

static void copy_halves(const Rows *r, const uint16_t *src, uint16_t *dst) {
    for (int64_t row = 0; row < r->rows; row++) {
        memcpy(dst + row * r->dst_stride, src + row * r->src_stride, sizeof *dst * (size_t)r->cols);
    }
}

static void narrow_rows(const Rows *r, const float *src, uint16_t *dst) {
    for (int64_t row = 0; row < r->rows; row++) {
        kernel_narrow(r->cols, src + row * r->src_stride, dst + row * r->dst_stride);
    }
}

static void widen_rows(const Rows *r, const uint16_t *src, float *dst) {
    for (int64_t row = 0; row < r->rows; row++) {
        kernel_widen(r->cols, src + row * r->src_stride, dst + row * r->dst_stride);
    }
}

// Contiguous on both sides: a single row.
static Rows flattened(Rows r) {
    const bool packed = r.src_stride == r.cols && r.dst_stride == r.cols;
    return packed ? (Rows){1, r.rows * r.cols, r.rows * r.cols, r.rows * r.cols} : r;
}

// Block strides are in elements.
static void copy_blocks(const TaskCall *call, const Rows *rows, int64_t src_apart, int64_t dst_apart) {
    const bool from_halves = in_halves(call, AT_COPY_SRC), to_halves = in_halves(call, AT_COPY_DST);
    const Rows r = from_halves != to_halves ? flattened(*rows) : *rows;
    for (int64_t block = 0; block < task_blocks(call->task); block++) {
        const float *src = call_floats(call, AT_COPY_SRC) + (from_halves ? 0 : block * src_apart);
        float *dst = call_floats(call, AT_COPY_DST) + (to_halves ? 0 : block * dst_apart);
        const uint16_t *half_src = call_halves(call, AT_COPY_SRC) + (from_halves ? block * src_apart : 0);
        uint16_t *half_dst = call_halves(call, AT_COPY_DST) + (to_halves ? block * dst_apart : 0);
        if (from_halves && to_halves) {
            copy_halves(&r, half_src, half_dst);
        } else if (to_halves) {
            narrow_rows(&r, src, half_dst);
        } else if (from_halves) {
            widen_rows(&r, half_src, dst);
        } else {
            kernel_copy_rows(r.rows, r.cols, r.src_stride, r.dst_stride, src, dst);
        }
    }
}

// Latent attention's keys, and in the other direction their gradients (lower_latent.c).
static void copy_keys(const TaskCall *call) {
    const KernelKeys keys = call_keys(call);
    const int64_t shared = call_keys_shared(call);
    if (call->task->operand_count > AT_KEYS_DSHARED) {
        kernel_part_keys(&keys, call_floats(call, AT_COPY_SRC), call_floats(call, AT_KEYS_DV),
                         call_floats(call, AT_COPY_DST), call_floats(call, AT_KEYS_DSHARED) + shared);
    } else {
        kernel_join_keys(&keys, call_floats(call, AT_COPY_SRC), call_floats(call, AT_KEYS_SHARED) + shared,
                         call_floats(call, AT_COPY_DST));
    }
}

void cpu_copy(const TaskCall *call) {
    const Task *task = call->task;
    if (call_copies_keys(call)) {
        copy_keys(call);
        return;
    }
    const Rows rows = {task->rows, task->cols, task->stride > 0 ? task->stride : task->cols, task->cols};
    copy_blocks(call, &rows, task->cols, task->rows * task->cols);
}

void cpu_unpack(const TaskCall *call) {
    const Task *task = call->task;
    const Rows rows = {task->rows, task->cols, task->cols, task->stride};
    copy_blocks(call, &rows, task->rows * task->cols, task->cols);
}

// One or both in bf16: converted piecewise through fp32.
static void accumulate_halves(const TaskCall *call, int64_t count) {
    enum { SOME = 1024 };
    const bool from_halves = in_halves(call, AT_COPY_SRC), to_halves = in_halves(call, AT_COPY_DST);
    float room[2][SOME];
    for (int64_t at = 0; at < count; at += SOME) {
        const int64_t some = count - at < SOME ? count - at : SOME;
        const float *src = from_halves ? room[0] : call_floats(call, AT_COPY_SRC) + at;
        float *dst = to_halves ? room[1] : call_floats(call, AT_COPY_DST) + at;
        if (from_halves) {
            kernel_widen(some, call_halves(call, AT_COPY_SRC) + at, room[0]);
        }
        if (to_halves) {
            kernel_widen(some, call_halves(call, AT_COPY_DST) + at, room[1]);
        }
        kernel_add(some, dst, src, dst);
        if (to_halves) {
            kernel_narrow(some, dst, call_halves(call, AT_COPY_DST) + at);
        }
    }
}

void cpu_accumulate(const TaskCall *call) {
    const int64_t count = call_elements(call, AT_COPY_DST);
    if (in_halves(call, AT_COPY_SRC) || in_halves(call, AT_COPY_DST)) {
        accumulate_halves(call, count);
    } else {
        kernel_add(count, call_floats(call, AT_COPY_DST), call_floats(call, AT_COPY_SRC),
                   call_floats(call, AT_COPY_DST));
    }
}

void cpu_zero(const TaskCall *call) {
    const int64_t bytes = task_operand(call->program, call->task, AT_ZERO_DST)->ref.bytes;
    const int64_t whole = bytes / (int64_t)sizeof(float) * (int64_t)sizeof(float);
    kernel_zero(whole / (int64_t)sizeof(float), call_floats(call, AT_ZERO_DST));
    memset(call->operand[AT_ZERO_DST] + whole, 0, (size_t)(bytes - whole));
}
