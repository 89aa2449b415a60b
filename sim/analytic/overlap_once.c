// What a step does only in its first forward and its last backward, found by comparison with the other one of the two.

#include <math.h>

#include "sim/analytic/overlap.h"

// Before a layer computes as many are gathered as there is room for, and one: copying it out needs no other stage.
static int32_t gathered_ahead(const Overlap *overlap) {
    const OpRange range = overlap->sections[OVERLAP_MICRO_FIRST][OVERLAP_FORWARD];
    for (int32_t i = range.first; i < range.first + range.count; i++) {
        const OverlapOp *op = &overlap->ops[i];
        if (op->kind == SHARD_GATHER && op->unit == UNIT_LAYER && op->ring > 0) {
            return op->ring + 1;
        }
    }
    return overlap->layers;
}

OnceTimes overlap_once(const Overlap *overlap, const ShardCosts *costs,
                       const LayerFactors factors[OVERLAP_MICRO_VARIANTS][OVERLAP_SECTIONS],
                       const double first_s[OVERLAP_SECTIONS], const double last_s[OVERLAP_SECTIONS]) {
    const double *layer_s = costs->seconds[UNIT_LAYER];
    const LayerFactors *forward = &factors[OVERLAP_MICRO_FIRST][OVERLAP_FORWARD];
    const LayerFactors *backward = &factors[OVERLAP_MICRO_LAST][OVERLAP_BACKWARD];
    if (!overlap->beside[OVERLAP_MICRO_FIRST][LAYERS_FORWARD][BACKGROUND_GATHER] ||
        overlap->beside[OVERLAP_MICRO_LAST][LAYERS_FORWARD][BACKGROUND_GATHER] || layer_s[SHARD_GATHER] == 0) {
        return (OnceTimes){.gather_s = 0};
    }
    const double experts_s = overlap->experts ? costs->seconds[UNIT_EXPERTS][SHARD_GATHER] : 0;
    const double experts_sum_s = overlap->experts ? costs->seconds[UNIT_EXPERTS][SHARD_SCATTER] : 0;
    return (OnceTimes){
        .begin_s = fmax(0, first_s[OVERLAP_BEGIN] - last_s[OVERLAP_BEGIN]),
        .forward_s = fmax(0, first_s[OVERLAP_FORWARD] - last_s[OVERLAP_FORWARD]),
        .backward_s = fmax(0, last_s[OVERLAP_BACKWARD] - first_s[OVERLAP_BACKWARD]),
        .end_s = fmax(0, last_s[OVERLAP_END] - first_s[OVERLAP_END]),
        .tail_s = fabs(first_s[OVERLAP_TAIL] - last_s[OVERLAP_TAIL]),
        .gather_s =
            layer_s[SHARD_COPY_IN] + (layer_s[SHARD_GATHER] + experts_s) * forward->collective[BACKGROUND_GATHER],
        .scatter_s =
            (layer_s[SHARD_SCATTER] + experts_sum_s) * backward->collective[BACKGROUND_SCATTER] + layer_s[SHARD_CAST],
        .forward_slow = forward->block / factors[OVERLAP_MICRO_LAST][OVERLAP_FORWARD].block - 1,
        .backward_slow = backward->block / factors[OVERLAP_MICRO_FIRST][OVERLAP_BACKWARD].block - 1,
        .copy_out_s = layer_s[SHARD_COPY_OUT] * forward->block,
        .copy_in_s = layer_s[SHARD_REDUCE_COPY] * backward->block,
        .ahead = gathered_ahead(overlap)};
}
