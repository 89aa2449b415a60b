// Tasks that turn tokens and positions into rows, and back, on the CPU.

#include "exec/device/cpu.h"

#include <math.h>

#include "kernels/kernels.h"

// Sequence of this micro-batch and data coordinate, counted over the global batch of one step.
static int64_t global_sequence(const CpuCall *call, int local) {
    const Mesh *mesh = &call->program->plan.mesh;
    const int data_ranks = mesh->size[AXIS_DP_REPLICATE] * mesh->size[AXIS_DP_SHARD];
    const int data_index = call->at->at[AXIS_DP_REPLICATE] * mesh->size[AXIS_DP_SHARD] + call->at->at[AXIS_DP_SHARD];
    return ((int64_t)call->instance->micro_batch * data_ranks + data_index) * call->task->sequences + local;
}

void cpu_load_tokens(const CpuCall *call) {
    const SequenceChunks chunks = step_chunks(call->program, call->at->at[AXIS_CP]);
    int32_t *tokens = cpu_ints(call, 0), *targets = cpu_ints(call, 1);
    for (int s = 0; s < call->task->sequences; s++) {
        data_sequence(call->data, call->step, global_sequence(call, s), call->program->plan.seq + 1, call->sequence);
        for (int c = 0; c < chunks.count; c++) {
            for (int i = 0; i < chunks.length; i++) {
                *tokens++ = call->sequence[chunks.start[c] + i];
                *targets++ = call->sequence[chunks.start[c] + i + 1];
            }
        }
    }
}

KernelEmbed cpu_vocabulary(const CpuCall *call) {
    const Task *task = call->task;
    return (KernelEmbed){.rows = task->rows,
                         .cols = task->cols,
                         .first = cpu_vocab_first(call, task->inner),
                         .range = task->inner,
                         .scale = task->scaled ? sqrtf((float)task->cols) : 1.0f};
}

void cpu_embed(const CpuCall *call) {
    const KernelEmbed shape = cpu_vocabulary(call);
    kernel_embed(&shape, cpu_ints(call, 0), cpu_floats(call, 1), cpu_floats(call, 2), false);
}

void cpu_embed_backward(const CpuCall *call) {
    const KernelEmbed shape = cpu_vocabulary(call);
    kernel_embed_backward(&shape, cpu_ints(call, 0), cpu_floats(call, 1), cpu_floats(call, 2), call->task->accumulate);
}

static KernelEmbed position_table(const Task *task) {
    return (KernelEmbed){.rows = task->rows, .cols = task->cols, .range = task->inner, .scale = 1.0f};
}

// Forward, a tp rank may have its own stretch of the local tokens only.
void cpu_position(const CpuCall *call) {
    const Task *task = call->task;
    const KernelEmbed shape = position_table(task);
    const bool split = task->rows < plan_local_tokens(&call->program->plan);
    const int64_t first = split ? call->at->at[AXIS_TP] * task->rows : 0;
    kernel_embed(&shape, call->positions + first, cpu_floats(call, 1), cpu_floats(call, 0), true);
}

void cpu_position_backward(const CpuCall *call) {
    const KernelEmbed shape = position_table(call->task);
    kernel_embed_backward(&shape, call->positions, cpu_floats(call, 0), cpu_floats(call, 1), call->task->accumulate);
}
