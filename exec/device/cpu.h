// The CPU device, and what its task files share: a task call with its operands resolved.

#pragma once

#include "exec/data/data.h"
#include "exec/device/device.h"
#include "kernels/exact.h"

extern const DeviceTable device_cpu;

enum { CPU_MAX_OPERANDS = 12 };

typedef struct CpuCall {
    const StepProgram *program;
    const Task *task;
    const StepInstance *instance;
    const MeshCoordinates *at;
    const DeviceNumbers *numbers;
    int64_t step;
    const DataSource *data;
    int32_t *sequence;                 // room for seq + 1 tokens
    const int32_t *positions;          // of this rank's local token rows in one micro-batch
    char *operand[CPU_MAX_OPERANDS];   // NULL where absent
    ExactSum *sums[CPU_MAX_OPERANDS];  // bitwise: behind the operand's floats
    bool bitwise;
} CpuCall;

typedef void CpuTask(const CpuCall *call);

// By TaskKind; NULL for collectives, and for what a bitwise run has not.
extern CpuTask *const cpu_tasks[TASK_KIND_COUNT];
extern CpuTask *const cpu_exact_tasks[TASK_KIND_COUNT];

static inline float *cpu_floats(const CpuCall *call, int index) {
    return (float *)(void *)call->operand[index];
}

static inline int32_t *cpu_ints(const CpuCall *call, int index) {
    return (int32_t *)(void *)call->operand[index];
}

// An operand that some models or targets leave out: not there, or absent.
static inline float *cpu_optional(const CpuCall *call, int index) {
    return index < call->task->operand_count ? cpu_floats(call, index) : NULL;
}

// Elements of 4 bytes that the operand spans.
static inline int64_t cpu_elements(const CpuCall *call, int index) {
    return task_operand(call->program, call->task, index)->ref.bytes / 4;
}

// First vocabulary entry of this rank when its task is split by vocabulary into ranges of this many.
static inline int64_t cpu_vocab_first(const CpuCall *call, int64_t range) {
    return call->task->vocab_split ? call->at->at[AXIS_TP] * range : 0;
}

// cpu_tasks_tokens.c
CpuTask cpu_load_tokens, cpu_embed, cpu_embed_backward, cpu_position, cpu_position_backward;
KernelEmbed cpu_vocabulary(const CpuCall *call);
// cpu_tasks_layer.c
CpuTask cpu_rmsnorm, cpu_rmsnorm_backward, cpu_layernorm, cpu_layernorm_backward, cpu_qk_norm, cpu_qk_norm_backward,
    cpu_column_sum, cpu_gemm, cpu_rope, cpu_gated, cpu_gated_backward, cpu_activation, cpu_activation_backward;
// cpu_tasks_attention.c
CpuTask cpu_attention, cpu_attention_backward;
// cpu_tasks_cast.c
CpuTask cpu_copy, cpu_accumulate;
// cpu_tasks_step.c
CpuTask cpu_add, cpu_loss_max, cpu_loss_sum, cpu_loss_gradient, cpu_square_sum, cpu_exact_square_sum, cpu_clip,
    cpu_adamw, cpu_unpack, cpu_zero;
