// What DeepSpeed's stage 3 costs the host in Python: hooks around each module of the model, both ways, which fetch its
// parameters, look ahead in the trace for the next ones and let go of them (runtime/zero/parameter_offload.py,
// partitioned_param_coordinator.py), in operations of 13 us (sim/SOURCES.md H7). Measured by training a model of 8
// layers (8 modules and 12 parameters each) with DeepSpeed 0.18.7 on PyTorch 2.6, a process group of four that does
// nothing, one thread's time on module_host.c's EPYC and on its scale, least of 37 steps: a layer takes 599 us forward
// and 687 back without DeepSpeed, 2,236 and 3,117 with all parameters below the persistence threshold, 2,903 and 4,005
// with none. Not counted: what CUDA's streams, events and launches add; modules of dropout; norms and biases above the
// threshold.

#include "sim/cost/compute.h"

static const double operations_per_us = TIMED_PYTHON / OPERATION_US;

// A layer's modules and its share of embeddings, head and the model itself; and as many parameters.
static const double modules_measured = 8.5, parameters_measured = 12.5;
static const double plain_us = 599, plain_backward_us = 687, hooked_us = 2236, hooked_backward_us = 3117,
                    fetched_us = 2903, fetched_backward_us = 4005;

// Of transformers' layers: each linear layer and norm, the attention, the MLP and its activation, and the layer.
static int modules_of(const Task *task) {
    switch (task->kind) {
    case TASK_GEMM:  // backward: with the gradient of its input
        return task->phase == PHASE_BACKWARD && task->trans_a ? 0 : 1;
    case TASK_EMBED:
    case TASK_EMBED_BACKWARD:
    case TASK_POSITION:
    case TASK_POSITION_BACKWARD:
    case TASK_RMSNORM:
    case TASK_RMSNORM_BACKWARD:
    case TASK_LAYERNORM:
    case TASK_LAYERNORM_BACKWARD:
        return 1;
    case TASK_QK_NORM:
    case TASK_QK_NORM_BACKWARD:
    case TASK_ACTIVATION:
    case TASK_ACTIVATION_BACKWARD:
    case TASK_SWIGLU:
    case TASK_SWIGLU_BACKWARD:
        return 2;
    case TASK_ATTENTION:
    case TASK_ATTENTION_BACKWARD:
        return task->ring_step == 0 ? 2 : 0;
    default:
        return 0;
    }
}

// Weights of products and tables are above the threshold (stage3_param_persistence_threshold, 100,000 elements).
static int fetched_by(const Task *task) {
    const bool table = task->kind == TASK_EMBED || task->kind == TASK_EMBED_BACKWARD;
    return table || task->kind == TASK_GEMM ? modules_of(task) : 0;
}

double hook_operations(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool hooked = target->runtime.hooks_modules && plan->zero == 3 && task->phase != PHASE_OPTIMIZER;
    if (!hooked) {
        return 0;
    }
    const bool back = task->phase == PHASE_BACKWARD;
    const double hook_us = (back ? hooked_backward_us - plain_backward_us : hooked_us - plain_us) / modules_measured;
    const double fetch_us =
        (back ? fetched_backward_us - hooked_backward_us : fetched_us - hooked_us) / parameters_measured;
    return operations_per_us * (modules_of(task) * hook_us + fetched_by(task) * fetch_us);
}
