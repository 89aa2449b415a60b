// What a step takes beyond its tasks: its edges, and what the host does while the device waits for it, token by token
// or parameter by parameter. Not counted: tensors of biases, tensors that other ranks hold whole.

#include "sim/cost/cost.h"

enum { NORMS = 2, QK_NORMS = 2, PROJECTIONS = 4, MLP = 2, ROUTER = 1, ADAPTER = 2 };

// Of each expert's matrices there is one tensor.
static int layer_tensors(const ModelSpec *model, const TrainPlan *plan, LayerKind kind) {
    const int mlp = MLP + (model->mlp != MLP_PLAIN), experts = model->experts.shared_ffn > 0 ? 2 * mlp : mlp;
    const int of_mlp = kind == LAYER_EXPERTS ? experts : mlp;
    if (plan_has_adapters(plan)) {
        static const int projections[] = {
            [LORA_ALL] = PROJECTIONS, [LORA_ATTENTION] = PROJECTIONS, [LORA_QUERY_VALUE] = 2};
        return ADAPTER * (projections[plan->lora_targets] + (plan->lora_targets == LORA_ALL ? of_mlp : 0));
    }
    return NORMS + (model->qk_norm != QK_NORM_NONE ? QK_NORMS : 0) + PROJECTIONS + of_mlp +
           (kind == LAYER_EXPERTS ? ROUTER : 0);
}

// Embedding, final norm and head.
static int edge_tensors(const ModelSpec *model, const TrainPlan *plan) {
    return plan_has_adapters(plan) ? 0 : model->tied_embeddings ? 2 : 3;
}

static int64_t trained_tensors(const ModelSpec *model, const TrainPlan *plan) {
    int64_t tensors = edge_tensors(model, plan);
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        tensors += (int64_t)run.count * layer_tensors(model, plan, run.kind);
    }
    return tensors;
}

double cost_step_fixed_s(const CostModel *model, const ModelSpec *spec, const TrainPlan *plan) {
    const TargetRuntime *runtime = &model->target->runtime;
    double seconds = runtime->step_fixed_s;
    if (runtime->host_s_per_token > 0) {
        seconds += runtime->host_s_per_token * (double)plan->micro_batch * plan->seq * plan->grad_accum;
    }
    if (runtime->host_s_per_tensor > 0) {
        seconds += runtime->host_s_per_tensor * (double)trained_tensors(spec, plan);
    }
    return seconds;
}
