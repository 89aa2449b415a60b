// Tasks of expert layers on a GPU, except products. What depends on counted rows waits for the counts on the host
// (cuda_counts.c); routing, and moving rows to their experts and back, does not.

#include "exec/device/cuda.h"

int cuda_route(const TaskCall *call, const KernelCuda *at) {
    const KernelRoute shape = call_route_shape(call);
    const Routing routing = call_routing(call, AT_ROUTE_ROUTING);
    int32_t *const rows = call_ints(call, AT_ROUTE_ROWS);
    const int code = kernel_cuda_route(at, store_of(call, AT_ROUTE_LOGITS), &shape, call_operand(call, AT_ROUTE_LOGITS),
                                       call_operand(call, AT_ROUTE_CORRECTION), routing.weights, routing.places, rows);
    float *const visits = call_optional(call, AT_ROUTE_VISITS);
    return code || !visits
               ? code
               : kernel_cuda_count_visits(at, &shape, call_rows_of_sequence(call), routing.places, rows, visits);
}

int cuda_route_backward(const TaskCall *call, const KernelCuda *at) {
    const KernelRoute shape = call_route_shape(call);
    const Routing routing = call_routing(call, AT_ROUTE_ROUTING);
    // tp ranks have all tokens, and sum their parts of the gradient
    const float *const visits = call->at->at[AXIS_TP] == 0 ? call_optional(call, AT_ROUTE_BACKWARD_VISITS) : NULL;
    const KernelCudaRouteBackward back = {.logits = call_operand(call, AT_ROUTE_LOGITS),
                                          .weights = routing.weights,
                                          .dweights = call_floats(call, AT_ROUTE_BACKWARD_DWEIGHTS),
                                          .places = routing.places,
                                          .counts = call_ints(call, AT_ROUTE_BACKWARD_ROWS),
                                          .dlogits = call_operand(call, AT_ROUTE_BACKWARD_DLOGITS),
                                          .visits = visits,
                                          .sequence = visits ? call_rows_of_sequence(call) : 1,
                                          .factor = visits ? call_balance_factor(call) : 0};
    void *const dcorrection = call_operand(call, AT_ROUTE_BACKWARD_DCORRECTION);
    int code = 0;
    if (dcorrection && !call->task->accumulate) {
        code = kernel_cuda_zero(at, task_operand(call->program, call->task, AT_ROUTE_BACKWARD_DCORRECTION)->ref.bytes,
                                dcorrection);
    }
    return code ? code : kernel_cuda_route_backward(at, store_of(call, AT_ROUTE_LOGITS), &shape, &back);
}

int cuda_permute(const TaskCall *call, const KernelCuda *at) {
    const Task *task = call->task;
    const KernelStore store = store_of(call, AT_PERMUTE_X);
    const void *const x = call_operand(call, AT_PERMUTE_X);
    void *const y = call_operand(call, AT_PERMUTE_Y);
    if (task->groups > 0) {
        const KernelGroups groups = call_groups(call, AT_PERMUTE_CAME);
        const int64_t room = call_elements(call, AT_PERMUTE_Y) / task->cols;
        return kernel_cuda_regroup(at, store, &groups, room, task->cols, task->backward, x, y);
    }
    const KernelSpread shape = call_spread_shape(call, AT_PERMUTE_ROUTING);
    return kernel_cuda_spread(at, store, &shape, x, y);
}

int cuda_unpermute(const TaskCall *call, const KernelCuda *at) {
    const KernelCudaCollect collect = {
        .shape = call_spread_shape(call, AT_UNPERMUTE_ROUTING),
        .weights = call->task->backward ? NULL : call_routing(call, AT_UNPERMUTE_ROUTING).weights,
        .y = call_operand(call, AT_UNPERMUTE_Y),
        .more = call_operand(call, AT_UNPERMUTE_MORE),
        .gate = call_operand(call, AT_SUM_GATE),
        .x = call_operand(call, AT_UNPERMUTE_X)};
    return kernel_cuda_collect(at, store_of(call, AT_UNPERMUTE_X), &collect);
}

int cuda_unpermute_backward(const TaskCall *call, const KernelCuda *at) {
    const KernelSpread shape = call_spread_shape(call, AT_UNPERMUTE_BACKWARD_ROUTING);
    const KernelStore store = store_of(call, AT_UNPERMUTE_BACKWARD_DX);
    const void *const dx = call_operand(call, AT_UNPERMUTE_BACKWARD_DX);
    const void *const gate = call_operand(call, AT_SUM_BACKWARD_GATE);
    const int code = kernel_cuda_collect_backward(
        at, store, &shape, call_routing(call, AT_UNPERMUTE_BACKWARD_ROUTING).weights, dx,
        call_operand(call, AT_UNPERMUTE_BACKWARD_Y), call_operand(call, AT_UNPERMUTE_BACKWARD_DY),
        call_floats(call, AT_UNPERMUTE_BACKWARD_DWEIGHTS));
    return code || !gate ? code
                         : kernel_cuda_shared_backward(at, store, shape.rows, shape.cols, gate,
                                                       call_operand(call, AT_SUM_BACKWARD_MORE), dx,
                                                       call_operand(call, AT_DMORE), call_operand(call, AT_DGATE));
}

// ---------------------------------------------------------------------------------------------- rows that came

// For all rows, or for as many as the local experts received.
static int gated_rows(const TaskCall *call, const KernelCuda *at, int came, KernelGated *shape) {
    *shape = call_gated_experts(call, came);
    if (call->task->operand_count <= came) {
        return 0;
    }
    KernelGroups groups;
    const int code = cuda_groups(call, at->stream, came, &groups);
    shape->rows = 0;
    for (int g = 0; code == 0 && g < groups.count; g++) {
        shape->rows += groups_rows(&groups, g);
    }
    return code;
}

int cuda_gated(const TaskCall *call, const KernelCuda *at) {
    KernelGated shape;
    const int code = gated_rows(call, at, AT_SWIGLU_CAME, &shape);
    return code ? code
                : kernel_cuda_gated(at, store_of(call, AT_SWIGLU_GATE), &shape, call_operand(call, AT_SWIGLU_GATE),
                                    call_operand(call, AT_SWIGLU_UP), call_operand(call, AT_SWIGLU_S));
}

int cuda_gated_backward(const TaskCall *call, const KernelCuda *at) {
    KernelGated shape;
    const int code = gated_rows(call, at, AT_SWIGLU_BACKWARD_CAME, &shape);
    return code ? code
                : kernel_cuda_gated_backward(
                      at, store_of(call, AT_SWIGLU_BACKWARD_DS), &shape, call_operand(call, AT_SWIGLU_BACKWARD_DS),
                      call_operand(call, AT_SWIGLU_BACKWARD_GATE), call_operand(call, AT_SWIGLU_BACKWARD_UP),
                      call_operand(call, AT_SWIGLU_BACKWARD_DGATE), call_operand(call, AT_SWIGLU_BACKWARD_DUP));
}

int cuda_expert_bias_gradient(const TaskCall *call, const KernelCuda *at) {
    const Task *task = call->task;
    const KernelStore from = store_of(call, AT_COLUMN_SUM_X), to = store_of(call, AT_COLUMN_SUM_SUMS);
    const char *x = call_operand(call, AT_COLUMN_SUM_X);
    char *sums = call_operand(call, AT_COLUMN_SUM_SUMS);
    KernelGroups groups;
    int code = cuda_groups(call, at->stream, AT_COLUMN_SUM_CAME, &groups);
    for (int g = 0; code == 0 && g < groups.count; g++) {
        const int64_t rows = groups_rows(&groups, g);
        code = kernel_cuda_column_sum(at, from, to, call_bias_is_anothers(call) ? 0 : rows, task->cols, x, sums,
                                      task->accumulate);
        x += rows * task->cols * kernel_store_bytes(from);
        sums += task->cols * kernel_store_bytes(to);
    }
    return code;
}
