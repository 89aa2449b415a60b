// The rules that there are, a row each.

#include "sim/step/splits/split.h"

extern const LayerSplit layer_split_even, layer_split_edges, layer_split_cost, layer_split_parameters;

const LayerSplit *const layer_splits[LAYER_RULE_COUNT] = {
    [LAYERS_EVEN] = &layer_split_even,
    [LAYERS_EDGES_IF_UNEVEN] = &layer_split_edges,
    [LAYERS_BY_COST] = &layer_split_cost,
    [LAYERS_BY_PARAMETERS] = &layer_split_parameters,
};
