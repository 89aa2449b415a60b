// Tasks around the layers on the CPU: loss, sums, copies, gradient norm and optimizer.
// The loss gradient is scaled by 1 / tokens of the global step, so gradients of ranks and micro-batches simply add up.

#include "exec/device/cpu.h"

#include <math.h>

#include "kernels/kernels.h"

void cpu_add(const CpuCall *call) {
    const Task *task = call->task;
    const float *const bias = cpu_optional(call, 3);
    if (bias) {
        kernel_add_bias(task->rows, task->cols, cpu_floats(call, 0), cpu_floats(call, 1), bias, cpu_floats(call, 2));
        return;
    }
    kernel_add(cpu_elements(call, 2), cpu_floats(call, 0), cpu_floats(call, 1), cpu_floats(call, 2));
}

void cpu_loss_max(const CpuCall *call) {
    kernel_loss_max(call->task->rows, call->task->cols, cpu_floats(call, 0), cpu_floats(call, 1));
}

void cpu_loss_sum(const CpuCall *call) {
    const Task *task = call->task;
    float *const sums = cpu_floats(call, 3);
    kernel_loss_sum(task->rows, task->cols, cpu_vocab_first(call, task->cols), cpu_floats(call, 0), cpu_ints(call, 1),
                    cpu_floats(call, 2), sums, sums + task->rows);
}

void cpu_loss_gradient(const CpuCall *call) {
    const Task *task = call->task;
    const float *const sums = cpu_floats(call, 3);
    const float gradient = (float)(1.0 / (double)plan_tokens_per_step(&call->program->plan));
    kernel_loss_gradient(task->rows, task->cols, cpu_vocab_first(call, task->cols), cpu_floats(call, 0),
                         cpu_ints(call, 1), cpu_floats(call, 2), sums, sums + task->rows, gradient, cpu_floats(call, 4),
                         task->accumulate);
}

// Elements of the leading stretch [0, lead) of a unit that lie in this rank's shard [first, first + count).
static int64_t leading(int64_t lead, int64_t first, int64_t count) {
    const int64_t here = lead - first;
    return here < 0 ? 0 : here < count ? here : count;
}

static void shard_of(const CpuCall *call, int64_t *first, int64_t *count) {
    step_shard_range(call->program, &call->program->units[call->task->unit], call->at, first, count);
}

void cpu_square_sum(const CpuCall *call) {
    int64_t first, count;
    shard_of(call, &first, &count);
    const int ranks = call->program->plan.mesh.size[AXIS_TP];
    kernel_square_sum(count, leading(call->task->replicated, first, count), 1.0 / ranks, cpu_floats(call, 0),
                      cpu_floats(call, 1), call->task->accumulate);
}

// What every tp rank holds is the first one's to count.
void cpu_exact_square_sum(const CpuCall *call) {
    int64_t first, count;
    shard_of(call, &first, &count);
    const int64_t skipped = call->at->at[AXIS_TP] > 0 ? leading(call->task->replicated, first, count) : 0;
    exact_square_sum(count - skipped, cpu_floats(call, 0) + skipped, call->task->accumulate, call->sums[1],
                     cpu_floats(call, 1));
}

void cpu_clip(const CpuCall *call) {
    const float norm = sqrtf(cpu_floats(call, 0)[0]);
    float *const out = cpu_floats(call, 1);
    const float clip = (float)call->numbers->clip;
    out[0] = norm > clip ? clip / norm : 1.0f;
    out[1] = norm;
}

// Norms lead a unit and take no weight decay.
static int64_t undecayed_lead(const StepProgram *program, const Unit *unit) {
    int64_t lead = 0;
    for (int32_t s = 0; s < unit->slice_count; s++) {
        const ParamSlice *slice = &program->slices[unit->first_slice + s];
        if (slice->decay) {
            break;
        }
        lead = slice->offset_elements + slice->local_rows * slice->local_cols;
    }
    return lead;
}

void cpu_adamw(const CpuCall *call) {
    const DeviceNumbers *numbers = call->numbers;
    int64_t first, count;
    shard_of(call, &first, &count);
    const KernelAdamw options = {.lr = (float)numbers->lr,
                                 .beta1 = (float)numbers->beta1,
                                 .beta2 = (float)numbers->beta2,
                                 .eps = (float)numbers->eps,
                                 .weight_decay = (float)numbers->weight_decay,
                                 .step = call->step + 1};
    const Unit *unit = &call->program->units[call->task->unit];
    (call->bitwise ? exact_adamw : kernel_adamw)(count, leading(undecayed_lead(call->program, unit), first, count),
                                                 &options, cpu_floats(call, 4), cpu_floats(call, 3),
                                                 cpu_floats(call, 0), cpu_floats(call, 1), cpu_floats(call, 2));
    float *const working = cpu_optional(call, 5);
    if (working) {
        kernel_copy_rows(1, count, count, count, cpu_floats(call, 0), working);
    }
}

void cpu_unpack(const CpuCall *call) {
    const Task *task = call->task;
    kernel_copy_rows(task->rows, task->cols, task->cols, task->stride, cpu_floats(call, 0), cpu_floats(call, 1));
}

void cpu_zero(const CpuCall *call) {
    kernel_zero(cpu_elements(call, 0), cpu_floats(call, 0));
}
