// Tasks of expert layers on the CPU. The row count of each expert is known only when they run.

#include "exec/device/cpu.h"
#include "kernels/shared_expert.h"

void cpu_route(const TaskCall *call) {
    KernelRoute shape = call_route_shape(call);
    shape.correction = call_optional(call, AT_ROUTE_CORRECTION);
    const Routing routing = call_routing(call, AT_ROUTE_ROUTING);
    kernel_route(&shape, call_floats(call, AT_ROUTE_LOGITS), routing.weights, routing.places,
                 call_ints(call, AT_ROUTE_ROWS));
    float *const visits = call_optional(call, AT_ROUTE_VISITS);
    if (visits) {
        kernel_count_visits(&shape, call_rows_of_sequence(call), routing.places, call_ints(call, AT_ROUTE_ROWS),
                            visits);
    }
}

// A router's gradients other than that of its weights.
static void route_backward_more(const TaskCall *call, const KernelRoute *shape) {
    float *const dcorrection = call_optional(call, AT_ROUTE_BACKWARD_DCORRECTION);
    const float *const visits = call_optional(call, AT_ROUTE_BACKWARD_VISITS);
    if (dcorrection && !call->task->accumulate) {
        kernel_zero(shape->experts, dcorrection);
    }
    if (visits && call->at->at[AXIS_TP] == 0) {  // tp ranks have all tokens, and sum their parts of the gradient
        kernel_balance_backward(shape, call_rows_of_sequence(call), call_balance_factor(call), visits,
                                call_floats(call, AT_ROUTE_LOGITS), call_floats(call, AT_ROUTE_BACKWARD_DLOGITS));
    }
}

void cpu_route_backward(const TaskCall *call) {
    const KernelRoute shape = call_route_shape(call);
    const Routing routing = call_routing(call, AT_ROUTE_ROUTING);
    kernel_route_backward(&shape, call_floats(call, AT_ROUTE_LOGITS), routing.weights, routing.places,
                          call_ints(call, AT_ROUTE_BACKWARD_ROWS), call_floats(call, AT_ROUTE_BACKWARD_DWEIGHTS),
                          call_floats(call, AT_ROUTE_BACKWARD_DLOGITS));
    route_backward_more(call, &shape);
}

void cpu_permute(const TaskCall *call) {
    const Task *task = call->task;
    if (task->groups > 0) {
        const KernelGroups groups = call_groups(call, AT_PERMUTE_CAME);
        kernel_regroup(&groups, task->cols, task->backward, call_floats(call, AT_PERMUTE_X),
                       call_floats(call, AT_PERMUTE_Y));
        return;
    }
    const KernelSpread shape = call_spread_shape(call, AT_PERMUTE_ROUTING);
    kernel_spread(&shape, call_floats(call, AT_PERMUTE_X), call_floats(call, AT_PERMUTE_Y));
}

void cpu_unpermute(const TaskCall *call) {
    const KernelSpread shape = call_spread_shape(call, AT_UNPERMUTE_ROUTING);
    const float *const weights = call_routing(call, AT_UNPERMUTE_ROUTING).weights;
    const float *const more = call_optional(call, AT_UNPERMUTE_MORE), *const gate = call_optional(call, AT_SUM_GATE);
    float *const x = call_floats(call, AT_UNPERMUTE_X);
    kernel_collect(&shape, call->task->backward ? NULL : weights, call_floats(call, AT_UNPERMUTE_Y), gate ? NULL : more,
                   x);
    if (gate) {
        kernel_shared(&(KernelShared){shape.rows, shape.cols, gate, more}, x);
    }
}

void cpu_unpermute_backward(const TaskCall *call) {
    const KernelSpread shape = call_spread_shape(call, AT_UNPERMUTE_BACKWARD_ROUTING);
    kernel_collect_backward(&shape, call_routing(call, AT_UNPERMUTE_BACKWARD_ROUTING).weights,
                            call_floats(call, AT_UNPERMUTE_BACKWARD_DX), call_floats(call, AT_UNPERMUTE_BACKWARD_Y),
                            call_floats(call, AT_UNPERMUTE_BACKWARD_DY),
                            call_floats(call, AT_UNPERMUTE_BACKWARD_DWEIGHTS));
    const float *const gate = call_optional(call, AT_SUM_BACKWARD_GATE);
    if (gate) {
        kernel_shared_backward(&(KernelShared){shape.rows, shape.cols, gate, call_floats(call, AT_SUM_BACKWARD_MORE)},
                               call_floats(call, AT_UNPERMUTE_BACKWARD_DX), call_floats(call, AT_DMORE),
                               call_floats(call, AT_DGATE));
    }
}

static void begin_with_bias(const TaskCall *call, const KernelGroups *groups) {
    const int64_t cols = call->task->n;
    const bool anothers = call_bias_is_anothers(call);
    const float *bias = call_floats(call, AT_GROUPED_BIAS);
    float *c = call_floats(call, AT_GEMM_C);
    for (int g = 0; g < groups->count; g++) {
        const int64_t rows = groups_rows(groups, g);
        if (anothers) {
            kernel_zero(rows * cols, c);
        } else {
            kernel_copy_rows(rows, cols, 0, cols, bias + g * cols, c);
        }
        c += rows * cols;
    }
}

void cpu_expert_bias_gradient(const TaskCall *call) {
    const Task *task = call->task;
    const KernelGroups groups = call_groups(call, AT_COLUMN_SUM_CAME);
    const bool anothers = call_bias_is_anothers(call);
    const float *x = call_floats(call, AT_COLUMN_SUM_X);
    float *sums = call_floats(call, AT_COLUMN_SUM_SUMS);
    for (int g = 0; g < groups.count; g++) {
        const int64_t rows = groups_rows(&groups, g);
        kernel_column_sum(anothers ? 0 : rows, task->cols, x, sums + g * task->cols, task->accumulate);
        x += rows * task->cols;
    }
}

void cpu_grouped_gemm(const TaskCall *call) {
    const Task *task = call->task;
    const KernelGroups groups = call_groups(call, AT_GROUPED_CAME);
    const bool biased = task->operand_count > AT_GROUPED_BIAS;
    if (biased) {
        begin_with_bias(call, &groups);
    }
    kernel_grouped_gemm(&groups, task->trans_a, task->trans_b, task->trans_a ? task->m : task->n,
                        task->trans_a ? task->n : task->k, call_floats(call, AT_GEMM_A), call_floats(call, AT_GEMM_B),
                        call_floats(call, AT_GEMM_C), task->accumulate || biased);
}
