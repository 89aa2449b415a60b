// What a step takes beyond its tasks: its edges, and what the host does while the device waits for it, token by token,
// parameter by parameter or bucket by bucket. Not counted: tensors of biases, tensors that other ranks hold whole;
// buckets of a stage.

#include <math.h>

#include "sim/cost/buckets.h"
#include "sim/cost/compute.h"
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

static double data_ranks(const TrainPlan *plan) {
    const int *size = plan->mesh.size;
    return (double)size[AXIS_DP_REPLICATE] * size[AXIS_DP_SHARD] * size[AXIS_CP] * size[AXIS_SP];
}

// Of all stages, before data ranks share them.
typedef struct HeldParameters {
    double experts, others;
} HeldParameters;

static HeldParameters held_parameters(const ModelSpec *model, const TrainPlan *plan) {
    const int *size = plan->mesh.size;
    const double experts = (double)model_expert_parameters(model);
    const double others = (double)model_parameters(model) - experts;
    return (HeldParameters){experts / ((double)size[AXIS_EP] * plan_expert_tp(plan)), others / size[AXIS_TP]};
}

// Experts have buffers of their own.
static double reduced_buckets(const TargetRuntime *runtime, const ModelSpec *model, const TrainPlan *plan) {
    const double bucket = bucket_parameters(runtime, data_ranks(plan));
    const HeldParameters held = held_parameters(model, plan);
    return ceil(held.others / bucket) + ceil(held.experts / bucket);
}

// Reduced behind backward they are one bucket.
static double bucket_stops_s(const CostModel *model, const ModelSpec *spec, const TrainPlan *plan) {
    const TargetRuntime *runtime = &model->target->runtime;
    const bool overlaps = target_reduce_overlap(model->target, plan) == REDUCE_OVERLAP_ON && data_ranks(plan) > 1;
    if (runtime->bucket_stop_operations == 0 || plan_has_stages(plan) || !overlaps) {
        return 0;
    }
    return reduced_buckets(runtime, spec, plan) * runtime->bucket_stop_operations * runtime->host_s_per_op *
           runtime_host_pace(runtime);
}

static double hashes_s(const CostModel *model, const ModelSpec *spec, const TrainPlan *plan) {
    const TargetRuntime *runtime = &model->target->runtime;
    if (runtime->hashed_s_per_parameter == 0) {
        return 0;
    }
    const HeldParameters held = held_parameters(spec, plan);
    return runtime->hashed_s_per_parameter * runtime_host_pace(runtime) * (held.experts + held.others) /
           mesh_stages(&plan->mesh);
}

// Of a matrix that is orthogonalised: decayed, averaged, gathered over its ranks (3), divided by its norm (4), cast
// twice, five steps of three products and two views, cut, scaled and subtracted (Emerging-Optimizers, muon_utils.py and
// orthogonalized_optimizer.py), views not counted; each as a tensor's norm or clipping, 5.9 and 6.0 us (at
// CORE_UPDATE_HOST_S).
enum { MUON_OPERATIONS = 30 };
static const double MUON_OPERATION_S = 6e-6;

static double matrices_host_s(const StepProgram *program, const Unit *unit) {
    int matrices = 0;
    for (int32_t i = 0; unit_is_orthogonalized(unit) && i < unit->trained_slices; i++) {
        const ParamSlice *slice = &program->slices[unit->first_slice + i];
        matrices += slice_is_matrix(slice) ? slice->blocks : 0;
    }
    return matrices * MUON_OPERATIONS * MUON_OPERATION_S;
}

// A unit's slices are its parameters; of those that are sharded a rank updates what begins in its part.
double update_host_s(const CostModel *model, const StepProgram *program, const Task *task) {
    const TargetRuntime *runtime = &model->target->runtime;
    if (runtime->update_host_s_per_tensor == 0 || (task->kind != TASK_ADAMW && task->kind != TASK_UPDATE)) {
        return 0;
    }
    const Unit *unit = &program->units[task->unit];
    const double seconds = runtime->update_host_s_per_tensor * unit->trained_slices + matrices_host_s(program, unit);
    return seconds * runtime_host_pace(runtime) / unit->shards;
}

double cost_step_fixed_s(const CostModel *model, const ModelSpec *spec, const TrainPlan *plan) {
    const TargetRuntime *runtime = &model->target->runtime;
    // What is estimated for a step of the target stood for casts where they are counted: our own loop of autocast on an
    // H200 has none of it left (tests/accuracy/holdout/gpu.csv).
    double seconds = cost_autocasts_weights(model->target, plan) ? 0 : runtime->step_fixed_s;
    if (runtime->host_s_per_token > 0) {
        seconds += runtime->host_s_per_token * (double)plan->micro_batch * plan->seq * plan->grad_accum;
    }
    if (runtime->host_s_per_tensor > 0) {
        seconds += runtime->host_s_per_tensor * (double)trained_tensors(spec, plan);
    }
    return seconds + bucket_stops_s(model, spec, plan) + hashes_s(model, spec, plan);
}

// Of all that read the slowest is waited for.
double cost_data_s(const Node *node, const TrainPlan *plan) {
    const double sequences = (double)plan->micro_batch * plan->grad_accum;
    const int readers = plan->mesh.size[AXIS_DP_REPLICATE] * plan->mesh.size[AXIS_DP_SHARD];
    const double late = node->sequence_read_spread > 0
                            ? node->sequence_read_spread * slowest_chip_sigmas(readers) / sqrt(sequences)
                            : 0;
    return node->sequence_read_s * sequences * (1 + late);
}

double cost_wait_for_data(const CostModel *model, const TrainPlan *plan, double *step_s, double *overhead_s) {
    const double wait_s = fmax(0, cost_data_s(&model->profile->node, plan) - *step_s);
    *step_s += wait_s;
    *overhead_s += wait_s;
    return wait_s;
}
