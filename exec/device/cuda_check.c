// What device cuda cannot run is refused before the first task: kinds without a kernel, format combinations that a
// kernel does not support. Operands of a kind are as in sim/step/task_kind.h.

#include "exec/device/cuda.h"

// Bit i: operand i. `alike` share one format, fp32 or bf16; `fp32` are fp32. Others may be either.
typedef struct Formats {
    uint32_t alike, fp32;
} Formats;

#define OPERAND(i) (1u << (i))

static const Formats formats[TASK_KIND_COUNT] = {
    [TASK_EMBED] = {OPERAND(1) | OPERAND(2), 0},
    [TASK_POSITION] = {OPERAND(0) | OPERAND(1), 0},
    [TASK_RMSNORM] = {OPERAND(0) | OPERAND(1) | OPERAND(2) | OPERAND(4) | OPERAND(5), OPERAND(3)},
    [TASK_RMSNORM_BACKWARD] = {OPERAND(0) | OPERAND(1) | OPERAND(2) | OPERAND(4) | OPERAND(5), OPERAND(3)},
    [TASK_LAYERNORM] = {OPERAND(0) | OPERAND(1) | OPERAND(2) | OPERAND(3) | OPERAND(5) | OPERAND(6), OPERAND(4)},
    [TASK_LAYERNORM_BACKWARD] = {OPERAND(0) | OPERAND(1) | OPERAND(2) | OPERAND(4) | OPERAND(5), OPERAND(3)},
    [TASK_QK_NORM] = {OPERAND(0) | OPERAND(1) | OPERAND(2) | OPERAND(3) | OPERAND(4), OPERAND(5)},
    [TASK_QK_NORM_BACKWARD] = {OPERAND(0) | OPERAND(1) | OPERAND(2) | OPERAND(3) | OPERAND(4), OPERAND(5)},
    [TASK_GEMM] = {OPERAND(0) | OPERAND(1) | OPERAND(3), 0},
    [TASK_ROPE] = {OPERAND(0) | OPERAND(1), 0},
    [TASK_ATTENTION] = {OPERAND(0) | OPERAND(1) | OPERAND(2) | OPERAND(3), OPERAND(4)},
    [TASK_ATTENTION_BACKWARD] = {OPERAND(0) | OPERAND(1) | OPERAND(2) | OPERAND(3) | OPERAND(5),
                                 OPERAND(4) | OPERAND(9)},
    [TASK_SWIGLU] = {OPERAND(0) | OPERAND(1) | OPERAND(2), 0},
    [TASK_ACTIVATION] = {OPERAND(0) | OPERAND(1), 0},
    [TASK_ADD] = {OPERAND(0) | OPERAND(1) | OPERAND(2) | OPERAND(3), 0},
    [TASK_LOSS_MAX] = {OPERAND(0), OPERAND(1)},
    [TASK_LOSS_SUM] = {OPERAND(0), OPERAND(2) | OPERAND(3)},
    [TASK_LOSS_GRADIENT] = {OPERAND(0), OPERAND(2) | OPERAND(3) | OPERAND(4)},
    [TASK_LOSS] = {OPERAND(0), OPERAND(2) | OPERAND(3) | OPERAND(4)},
    [TASK_SQUARE_SUM] = {OPERAND(0), OPERAND(1)},
    [TASK_CLIP] = {0, OPERAND(0) | OPERAND(1)},
    [TASK_GROUPED_GEMM] = {OPERAND(0) | OPERAND(1) | OPERAND(AT_GROUPED_BIAS), 0},
    [TASK_ROUTE] = {OPERAND(0) | OPERAND(AT_ROUTE_CORRECTION), OPERAND(AT_ROUTE_VISITS)},
    [TASK_ROUTE_BACKWARD] = {OPERAND(0) | OPERAND(AT_ROUTE_BACKWARD_DLOGITS), OPERAND(2)},
    [TASK_PERMUTE] = {OPERAND(0) | OPERAND(AT_PERMUTE_Y), 0},
    [TASK_UNPERMUTE] = {OPERAND(0) | OPERAND(2) | OPERAND(3) | OPERAND(4), 0},
    [TASK_UNPERMUTE_BACKWARD] = {OPERAND(0) | OPERAND(1) | OPERAND(3) | OPERAND(5) | OPERAND(6) | OPERAND(7) |
                                     OPERAND(8),
                                 OPERAND(AT_UNPERMUTE_BACKWARD_DWEIGHTS)},
    [TASK_ADAMW] = {OPERAND(0) | OPERAND(1) | OPERAND(2), OPERAND(4)},
};

// Where only the first three and the last operands are the kernel's: those kept by an eager activation lie between.
static Formats formats_of(const Task *task) {
    const bool told = task->kind == TASK_SWIGLU_BACKWARD && task->operand_count > AT_SWIGLU_BACKWARD_CAME;
    const uint32_t last = OPERAND(task->operand_count - 1 - told);
    switch (task->kind) {
    case TASK_SWIGLU_BACKWARD:
        return (Formats){OPERAND(0) | OPERAND(1) | OPERAND(2) | last | last >> 1, 0};
    case TASK_ACTIVATION_BACKWARD:
        return (Formats){OPERAND(0) | OPERAND(1) | last, 0};
    default:
        return formats[task->kind];
    }
}

static Status formats_check(const StepProgram *program, const Task *task, Error *error) {
    const Formats wanted = formats_of(task);
    Dtype first = DTYPE_COUNT;
    for (int i = 0; i < task->operand_count; i++) {
        const int32_t buffer = task_operand(program, task, i)->ref.buffer;
        if (buffer < 0) {
            continue;
        }
        const Dtype dtype = program->buffers[buffer].dtype;
        if (wanted.alike & OPERAND(i)) {
            first = first == DTYPE_COUNT ? dtype : first;
        }
        FAIL_IF(((wanted.alike & OPERAND(i)) && dtype != first) || ((wanted.fp32 & OPERAND(i)) && dtype != DTYPE_FP32),
                error, STATUS_USAGE, "task '%s': device cuda has no %s with %s as %s", task->name,
                task_kind_name(task->kind), program->buffers[buffer].name, dtype_name(dtype));
    }
    return STATUS_OK;
}

// Workspaces and scratch of products and attention belong to one stream.
static bool on_one_stream(const StepProgram *program, const Task *task) {
    const bool wants = task->kind == TASK_GEMM || task->kind == TASK_GROUPED_GEMM || task->kind == TASK_ATTENTION ||
                       task->kind == TASK_ATTENTION_BACKWARD;
    return !wants || program->lanes[task->lane].communicator == program->lanes[0].communicator;
}

static Status task_check(const StepProgram *program, const Task *task, Error *error) {
    FAIL_IF(!cuda_tasks[task->kind], error, STATUS_USAGE, "task '%s': device cuda has no %s", task->name,
            task_kind_name(task->kind));
    FAIL_IF(task->operand_count > TASK_MAX_OPERANDS || !on_one_stream(program, task), error, STATUS_INTERNAL,
            "task '%s' has %d operands and is on lane %s", task->name, task->operand_count,
            program->lanes[task->lane].name);
    return formats_check(program, task, error);
}

Status cuda_check(const StepProgram *program, Error *error) {
    for (int32_t b = 0; b < program->buffer_count; b++) {
        const Dtype dtype = program->buffers[b].dtype;
        FAIL_IF(dtype != DTYPE_FP32 && dtype != DTYPE_INT32 && dtype != DTYPE_BF16, error, STATUS_USAGE,
                "device cuda computes in fp32 and bf16, buffer '%s' is %s", program->buffers[b].name,
                dtype_name(dtype));
    }
    for (int32_t t = 0; t < program->task_count; t++) {
        if (!task_is_transfer(&program->tasks[t])) {
            TRY(task_check(program, &program->tasks[t], error));
        }
    }
    return STATUS_OK;
}
