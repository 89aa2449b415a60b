// Tasks of layers of experts on the CPU. How many rows each expert has is known when they run, not before.

#include "exec/device/cpu.h"

// Weights of a routing's choices, and their places behind them.
typedef struct Routing {
    float *weights;
    int32_t *places;
} Routing;

static Routing routing_of(const TaskCall *call, int operand) {
    const int64_t choices = call_elements(call, operand) / 2;
    return (Routing){call_floats(call, operand), call_ints(call, operand) + choices};
}

static KernelRoute route_shape(const TaskCall *call) {
    const Task *task = call->task;
    return (KernelRoute){task->rows, (int)task->cols, (int)task->inner, call->program->model.experts.unscaled};
}

void cpu_route(const TaskCall *call) {
    const KernelRoute shape = route_shape(call);
    const Routing routing = routing_of(call, AT_ROUTE_ROUTING);
    kernel_route(&shape, call_floats(call, AT_ROUTE_LOGITS), routing.weights, routing.places,
                 call_ints(call, AT_ROUTE_ROWS));
}

void cpu_route_backward(const TaskCall *call) {
    const KernelRoute shape = route_shape(call);
    const Routing routing = routing_of(call, AT_ROUTE_ROUTING);
    kernel_route_backward(&shape, call_floats(call, AT_ROUTE_LOGITS), routing.weights, routing.places,
                          call_ints(call, AT_ROUTE_BACKWARD_ROWS), call_floats(call, AT_ROUTE_BACKWARD_DWEIGHTS),
                          call_floats(call, AT_ROUTE_BACKWARD_DLOGITS));
}

static KernelSpread spread_shape(const TaskCall *call, int operand) {
    const Task *task = call->task;
    return (KernelSpread){task->rows, task->cols, (int)task->inner, routing_of(call, operand).places};
}

void cpu_permute(const TaskCall *call) {
    const Task *task = call->task;
    if (task->groups > 0) {
        const KernelGroups groups = call_groups(call, AT_PERMUTE_CAME);
        kernel_regroup(&groups, task->cols, task->backward, call_floats(call, AT_PERMUTE_X),
                       call_floats(call, AT_PERMUTE_Y));
        return;
    }
    const KernelSpread shape = spread_shape(call, AT_PERMUTE_ROUTING);
    kernel_spread(&shape, call_floats(call, AT_PERMUTE_X), call_floats(call, AT_PERMUTE_Y));
}

void cpu_unpermute(const TaskCall *call) {
    const KernelSpread shape = spread_shape(call, AT_UNPERMUTE_ROUTING);
    const float *const weights = routing_of(call, AT_UNPERMUTE_ROUTING).weights;
    kernel_collect(&shape, call->task->backward ? NULL : weights, call_floats(call, AT_UNPERMUTE_Y),
                   call_optional(call, AT_UNPERMUTE_MORE), call_floats(call, AT_UNPERMUTE_X));
}

void cpu_unpermute_backward(const TaskCall *call) {
    const KernelSpread shape = spread_shape(call, AT_UNPERMUTE_BACKWARD_ROUTING);
    kernel_collect_backward(&shape, routing_of(call, AT_UNPERMUTE_BACKWARD_ROUTING).weights,
                            call_floats(call, AT_UNPERMUTE_BACKWARD_DX), call_floats(call, AT_UNPERMUTE_BACKWARD_Y),
                            call_floats(call, AT_UNPERMUTE_BACKWARD_DY),
                            call_floats(call, AT_UNPERMUTE_BACKWARD_DWEIGHTS));
}

void cpu_grouped_gemm(const TaskCall *call) {
    const Task *task = call->task;
    const KernelGroups groups = call_groups(call, AT_GROUPED_CAME);
    kernel_grouped_gemm(&groups, task->trans_a, task->trans_b, task->trans_a ? task->m : task->n,
                        task->trans_a ? task->n : task->k, call_floats(call, AT_GEMM_A), call_floats(call, AT_GEMM_B),
                        call_floats(call, AT_GEMM_C), task->accumulate);
}
