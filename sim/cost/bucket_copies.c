// Gradients that are copied into the buckets in which replicas reduce them.

#include "sim/cost/buckets.h"

// DDP's Reducer without gradient_as_bucket_view: mark_variable_ready_dense divides each gradient into its bucket,
// finalize_bucket_dense copies the sum back behind all of backward, both on its stream (PyTorch,
// torch/csrc/distributed/c10d/reducer.cpp). Counted once a step, with the update.
double buckets_copied_bytes(const Target *target, const StepProgram *program, const Task *task) {
    enum { PASSES = 4 };
    const int *size = program->plan.mesh.size;
    const bool replicas = program->plan.zero == 0 && size[AXIS_DP_REPLICATE] > 1 && size[AXIS_DP_SHARD] == 1;
    return target->runtime.copies_buckets && replicas
               ? PASSES * (double)task_operand(program, task, AT_ADAMW_GRADIENT)->ref.bytes
               : 0;
}
