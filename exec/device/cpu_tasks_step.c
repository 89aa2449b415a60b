// Tasks outside the layers on the CPU: loss, sums, copies, gradient norm and optimizer.

#include "exec/device/cpu.h"

#include <math.h>

#include "kernels/half.h"

void cpu_add(const TaskCall *call) {
    const Task *task = call->task;
    const float *const bias = call_optional(call, AT_ADD_BIAS);
    if (bias) {
        kernel_add_bias(task->rows, task->cols, call_floats(call, AT_ADD_A), call_floats(call, AT_ADD_B), bias,
                        call_floats(call, AT_ADD_C));
        return;
    }
    kernel_add(call_elements(call, AT_ADD_C), call_floats(call, AT_ADD_A), call_floats(call, AT_ADD_B),
               call_floats(call, AT_ADD_C));
}

void cpu_loss_max(const TaskCall *call) {
    const KernelLoss loss = {.rows = call->task->rows,
                             .cols = call->task->cols,
                             .row_max = call_floats(call, AT_LOSS_MAX_ROW_MAX),
                             .cap = (float)call->program->model.logit_cap};
    float *const logits = call_floats(call, AT_LOSS_MAX_LOGITS);
    if (loss.cap > 0) {
        kernel_loss_cap(call_elements(call, AT_LOSS_MAX_LOGITS), loss.cap, logits);
    }
    kernel_loss_max(&loss, logits);
}

void cpu_loss_sum(const TaskCall *call) {
    const KernelLoss loss = call_loss(call);
    kernel_loss_sum(&loss, call_floats(call, AT_LOSS_LOGITS));
}

void cpu_loss_gradient(const TaskCall *call) {
    const KernelLoss loss = call_loss(call);
    kernel_loss_gradient(&loss, call_floats(call, AT_LOSS_LOGITS), call_floats(call, AT_LOSS_LOSS),
                         call->task->accumulate);
}

void cpu_loss(const TaskCall *call) {
    const KernelLoss loss = call_loss(call);
    kernel_loss(&loss, call_floats(call, AT_LOSS_LOGITS), call_floats(call, AT_LOSS_LOSS), call->task->accumulate);
}

void cpu_square_sum(const TaskCall *call) {
    const ShardStretch shard = call_replicated_stretch(call);
    const int ranks = call->program->plan.mesh.size[AXIS_TP];
    kernel_square_sum(shard.count, shard.lead, 1.0 / ranks, call_floats(call, AT_SQUARE_SUM_GRADIENT),
                      call_floats(call, AT_SQUARE_SUM_SUM), call->task->accumulate);
}

// Elements that every tp rank holds are counted by the first one.
void cpu_exact_square_sum(const TaskCall *call) {
    const ShardStretch shard = call_replicated_stretch(call);
    const int64_t skipped = call->at->at[AXIS_TP] > 0 ? shard.lead : 0;
    exact_square_sum(shard.count - skipped, call_floats(call, AT_SQUARE_SUM_GRADIENT) + skipped, call->task->accumulate,
                     call->sums[AT_SQUARE_SUM_SUM], call_floats(call, AT_SQUARE_SUM_SUM));
}

void cpu_clip(const TaskCall *call) {
    const float norm = sqrtf(call_floats(call, AT_CLIP_NORM_SQUARE)[0]);
    float *const out = call_floats(call, AT_CLIP_SCALE);
    const float clip = (float)call->numbers->clip;
    out[0] = norm > clip ? clip / norm : 1.0f;
    out[1] = norm;
}

// In bf16 the working copy of a part is written while its masters are in the cache.
static void update_stretch(const TaskCall *call, const KernelAdamw *options, const ShardStretch *shard) {
    enum { PART = 1 << 16 };  // elements: a quarter of a megabyte of each array
    const bool half = call_optional(call, AT_ADAMW_WORKING) && call_dtype(call, AT_ADAMW_WORKING) == DTYPE_BF16;
    for (int64_t at = 0; at < shard->count; at += half ? PART : shard->count) {
        const int64_t rest = shard->count - at, first = shard->first + at;
        const int64_t count = half && rest > PART ? PART : rest, lead = shard->lead > at ? shard->lead - at : 0;
        float *const master = call_floats(call, AT_ADAMW_MASTER) + first;
        (call->bitwise ? exact_adamw
                       : kernel_adamw)(count, lead < count ? lead : count, options, call_floats(call, AT_ADAMW_SCALE),
                                       call_floats(call, AT_ADAMW_GRADIENT) + first, master,
                                       call_floats(call, AT_ADAMW_M) + first, call_floats(call, AT_ADAMW_V) + first);
        if (half) {
            kernel_narrow(count, master, call_halves(call, AT_ADAMW_WORKING) + first);
        }
    }
    if (call_optional(call, AT_ADAMW_WORKING) && !half) {
        kernel_copy_rows(1, shard->count, shard->count, shard->count, call_floats(call, AT_ADAMW_MASTER) + shard->first,
                         call_floats(call, AT_ADAMW_WORKING) + shard->first);
    }
}

void cpu_adamw(const TaskCall *call) {
    const KernelAdamw options = call_adamw_options(call);
    ShardStretch shard;
    for (int32_t slice = 0; call_update_stretch(call, &slice, &shard);) {
        update_stretch(call, &options, &shard);
    }
}
