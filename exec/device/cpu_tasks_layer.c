// Tasks of the layers on the CPU, one small function each: operands and sizes go to the kernels as they are.
// fp32 only; capability checks refuse the rest before a program gets here.

#include "exec/device/cpu.h"

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

void cpu_embed(const CpuCall *call) {
    const Task *task = call->task;
    kernel_embed(task->rows, task->cols, cpu_vocab_first(call, task->inner), task->inner, cpu_ints(call, 0),
                 cpu_floats(call, 1), cpu_floats(call, 2));
}

void cpu_embed_backward(const CpuCall *call) {
    const Task *task = call->task;
    kernel_embed_backward(task->rows, task->cols, cpu_vocab_first(call, task->inner), task->inner, cpu_ints(call, 0),
                          cpu_floats(call, 1), cpu_floats(call, 2), task->accumulate);
}

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

void cpu_gemm(const CpuCall *call) {
    const Task *task = call->task;
    kernel_gemm(task->trans_a, task->trans_b, task->m, task->n, task->k, cpu_floats(call, 0), cpu_floats(call, 1),
                cpu_floats(call, 2), task->accumulate);
}

void cpu_rope(const CpuCall *call) {
    const Task *task = call->task;
    const double theta = call->program->model.rope_theta;
    kernel_rope(task->rows, task->heads, task->head_dim, task->stride, theta, call->positions, task->backward,
                cpu_floats(call, 0));
    kernel_rope(task->rows, task->kv_heads, task->head_dim, task->kv_stride, theta, call->positions, task->backward,
                cpu_floats(call, 1));
}

void cpu_swiglu(const CpuCall *call) {
    const Task *task = call->task;
    kernel_swiglu(task->rows, task->cols, task->stride, cpu_floats(call, 0), cpu_floats(call, 1), cpu_floats(call, 2));
}

void cpu_swiglu_backward(const CpuCall *call) {
    const Task *task = call->task;
    float *const dgate = cpu_floats(call, task->operand_count - 2);  // behind the silu operand, where there is one
    float *const dup = cpu_floats(call, task->operand_count - 1);
    kernel_swiglu_backward(task->rows, task->cols, task->stride, cpu_floats(call, 0), cpu_floats(call, 1),
                           cpu_floats(call, 2), dgate, dup);
}
