// The available rules, one row each.

#include "sim/step/splits/split.h"

extern const LayerSplit layer_split_even, layer_split_edges, layer_split_cost, layer_split_parameters,
    layer_split_modules, layer_split_weighted, layer_split_ends, layer_split_chunks;

const LayerSplit *const layer_splits[LAYER_RULE_COUNT] = {
    [LAYERS_EVEN] = &layer_split_even,          [LAYERS_EDGES_IF_UNEVEN] = &layer_split_edges,
    [LAYERS_BY_COST] = &layer_split_cost,       [LAYERS_BY_PARAMETERS] = &layer_split_parameters,
    [LAYERS_AS_MODULES] = &layer_split_modules, [LAYERS_WEIGHTED] = &layer_split_weighted,
    [LAYERS_BY_ENDS] = &layer_split_ends,       [LAYERS_BY_CHUNKS] = &layer_split_chunks,
};

void split_layers(const ModelSpec *model, const Target *target, const TrainPlan *plan, int32_t *counts) {
    const SplitShape shape = {mesh_stages(&plan->mesh), plan_all_chunks(plan), plan->pp_first, plan->pp_last};
    layer_splits[target_layer_rule(target, plan)]->cut(model, &shape, counts);
    counts[shape.chunks - 1] += plan->mtp;  // all of them in the last one (get_mtp_num_layers_to_build)
}

void split_alone(const ModelSpec *model, TrainPlan *plan) {
    const int32_t each = plan_chunks(plan), inner = plan_all_chunks(plan) - 2;
    if (plan->pp_split == SPLIT_CHUNKS && each > 1) {
        const int32_t others = (each - 1) * (model->layers - plan->pp_first - plan->pp_last) / inner;
        plan->pp_split = SPLIT_ENDS;
        plan->pp_first += others;
        plan->pp_last += others;
    }
}
