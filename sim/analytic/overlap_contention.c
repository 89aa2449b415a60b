// Contention in a micro-step: which collectives overlap the layers of a pass, how they and the layers slow each
// other down on one mesh, and how much each candidate's blocks and collectives are stretched by it. Not modelled:
// collectives that begin or end in the middle of a pass; their work is spread over its layers.

#include <math.h>
#include <string.h>

#include "sim/analytic/overlap.h"

static const ShardKind background_kinds[BACKGROUNDS] = {SHARD_GATHER, SHARD_SCATTER, SHARD_REPLICA};

static void update_contention(const ShardCosts *costs, const Interference *interference,
                              OverlapContention *contention) {
    const ShareDemand *active[2] = {&costs->demand[SHARD_ADAMW], &costs->demand[SHARD_REGATHER]};
    double rates[2] = {1, 1};
    if (costs->seconds[UNIT_LAYER][SHARD_REGATHER] > 0) {
        share_rates(active, 2, interference, rates);
    }
    contention->update_slow = 1 / rates[0];
    contention->regather_slow = 1 / rates[1];
}

void overlap_contention_make(const Overlap *overlap, const ShardCosts *costs, const Interference *interference,
                             FluidMemo *known, OverlapContention *contention) {
    ShareDemand demands[BACKGROUNDS];
    uint64_t numbers[BACKGROUNDS];
    int occurs = 0;
    for (int i = 0; i < BACKGROUNDS; i++) {
        demands[i] = costs->demand[background_kinds[i]];
        numbers[i] = fluid_demand_number(known, &demands[i]);
        occurs |= demands[i].collective ? 1 << i : 0;
    }
    update_contention(costs, interference, contention);
    for (int set = 0; set < BACKGROUND_SETS; set++) {
        const bool turns = overlap->shared_communicator && (set & GATHERS) && (set & SCATTERS);
        if ((set & ~occurs) || turns) {
            continue;
        }
        background_rates(demands, set, interference, contention->rates[set]);
        for (int pass = 0; pass < LAYER_PASSES; pass++) {
            contention->response[pass].isolated_s = overlap->isolated_s[pass];
            contention->response[pass].beside[set] =
                fluid_run_known(known, &overlap->fluid[pass], numbers, set, interference);
        }
    }
    for (int pass = 0;
         pass < LAYER_PASSES && costs->seconds[UNIT_LAYER][SHARD_COPY_IN] + costs->seconds[UNIT_LAYER][SHARD_ADD] > 0;
         pass++) {
        const ShardKind kind = costs->seconds[UNIT_LAYER][SHARD_COPY_IN] > 0 ? SHARD_COPY_IN : SHARD_ADD;
        const uint64_t kernel[BACKGROUNDS] = {[BACKGROUND_GATHER] = fluid_demand_number(known, &costs->demand[kind])};
        const FluidResponse beside = fluid_run_known(known, &overlap->fluid[pass], kernel, GATHERS, interference);
        LayerResponse *response = &contention->response[pass];
        response->kernel_delay =
            beside.rate[BACKGROUND_GATHER] > 0
                ? (1 - response->beside[0].seconds / beside.seconds) / beside.rate[BACKGROUND_GATHER]
                : 0;
    }
}

// Its demand on the device is taken to be that of a gather over all shards.
static ShardKind kind_of(const Overlap *overlap, MicroVariant variant, int pass, int background) {
    const bool over_all = pass == LAYERS_FORWARD && (variant == OVERLAP_MICRO_FIRST || variant == OVERLAP_MICRO_ONLY);
    return background == BACKGROUND_GATHER && overlap->near_gathers && !over_all ? SHARD_NEAR_GATHER
                                                                                 : background_kinds[background];
}

// Variants whose layers overlap the same collectives have the same factors.
static bool same_beside(const Overlap *overlap, const ShardCosts *costs, MicroVariant variant, int pass) {
    const MicroVariant other = variant - 1;
    const bool adds = costs->seconds[UNIT_LAYER][SHARD_ADD] > 0 && overlap->beside[variant][pass][BACKGROUND_SCATTER];
    const bool nearer = overlap->near_gathers && other == OVERLAP_MICRO_FIRST && pass == LAYERS_FORWARD;
    return !(adds && other == OVERLAP_MICRO_FIRST) && !nearer &&
           memcmp(overlap->beside[variant][pass], overlap->beside[other][pass], sizeof overlap->beside[0][0]) == 0 &&
           memcmp(overlap->experts_beside[variant][pass], overlap->experts_beside[other][pass],
                  sizeof overlap->experts_beside[0][0]) == 0 &&
           memcmp(overlap->edge_beside[variant][pass], overlap->edge_beside[other][pass],
                  sizeof overlap->edge_beside[0][0]) == 0;
}

// Kernels beside the sum of a layer's whole gradients are those of the next layer up to its first gradient, where there
// is one buffer for both.
static double replica_share(const Overlap *overlap, const ShardCosts *costs, int pass) {
    const double sum_s = costs->seconds[UNIT_LAYER][SHARD_REPLICA];
    const bool waits = pass == LAYERS_BACKWARD && overlap->sums_whole && overlap->before_gradient_s > 0;
    return waits && sum_s > overlap->before_gradient_s ? overlap->before_gradient_s / sum_s : 1;
}

static LayerWork layer_work(const Overlap *overlap, const ShardCosts *costs, MicroVariant variant, int pass) {
    const double *layer_s = costs->seconds[UNIT_LAYER];
    LayerWork work = {.take_turns = overlap->shared_communicator, .replica_share = replica_share(overlap, costs, pass)};
    for (int i = 0; i < BACKGROUNDS; i++) {
        const ShardKind kind = kind_of(overlap, variant, pass, i);
        double edges_s = 0;
        for (int unit = 0; unit < UNIT_COUNT; unit++) {
            edges_s += overlap->edge_beside[variant][pass][unit][i] * costs->seconds[unit][kind];
        }
        const double share = i == BACKGROUND_REPLICA ? work.replica_share : 1;
        work.layers_s[i] = overlap->beside[variant][pass][i] * layer_s[kind] * share +
                           overlap->experts_beside[variant][pass][i] * costs->seconds[UNIT_EXPERTS][kind];
        work.collective_s[i] = work.layers_s[i] + edges_s / overlap->layers;
    }
    const bool gathers = work.collective_s[BACKGROUND_GATHER] > 0, reduces = work.collective_s[BACKGROUND_SCATTER] > 0;
    if (overlap->copies) {
        work.copies_s = (gathers ? layer_s[SHARD_COPY_OUT] : 0) + (reduces ? layer_s[SHARD_REDUCE_COPY] : 0);
    }
    if (overlap->copies && overlap->experts) {
        const double *experts_s = costs->seconds[UNIT_EXPERTS];
        work.copies_s += (gathers ? experts_s[SHARD_COPY_OUT] : 0) + (reduces ? experts_s[SHARD_REDUCE_COPY] : 0);
    }
    const double add_s = variant == OVERLAP_MICRO_FIRST ? 0 : layer_s[SHARD_ADD];
    const bool copied_in = gathers && kind_of(overlap, variant, pass, BACKGROUND_GATHER) == SHARD_GATHER;
    work.lane_kernels_s = (copied_in ? layer_s[SHARD_COPY_IN] : 0) + (reduces ? fmax(layer_s[SHARD_CAST], add_s) : 0);
    return work;
}

// What the block would lose if one layer of the pass overlapped no gather (forward) or no reduction (backward).
static double spare_of(const Overlap *overlap, const LayerResponse *response, const LayerWork *work, int pass,
                       double block) {
    const double isolated_s = response->isolated_s + work->copies_s;
    const double *collective_s = work->collective_s, *layers_s = work->layers_s;
    const double all_s =
        collective_s[BACKGROUND_GATHER] + collective_s[BACKGROUND_SCATTER] + collective_s[BACKGROUND_REPLICA];
    if (all_s <= 0 || isolated_s <= 0) {
        return 0;
    }
    const double missing_s = pass == LAYERS_FORWARD ? layers_s[BACKGROUND_GATHER]
                                                    : layers_s[BACKGROUND_SCATTER] + layers_s[BACKGROUND_REPLICA];
    const double alone = (response->beside[0].seconds + work->copies_s) / isolated_s;
    return (block - alone) * missing_s / all_s / overlap->layers;
}

void overlap_factors(const Overlap *overlap, const ShardCosts *costs, const OverlapContention *contention,
                     MicroVariant variant, LayerFactors factors[OVERLAP_MICRO_VARIANTS][LAYER_PASSES]) {
    const bool follows = variant == OVERLAP_MICRO_MIDDLE || variant == OVERLAP_MICRO_LAST;
    for (int pass = 0; pass < LAYER_PASSES; pass++) {
        if (!contention) {
            factors[variant][pass] = no_factors;
        } else if (follows && same_beside(overlap, costs, variant, pass)) {
            factors[variant][pass] = factors[variant - 1][pass];
        } else {
            const LayerWork work = layer_work(overlap, costs, variant, pass);
            const LayerResponse *response = &contention->response[pass];
            LayerFactors *made = &factors[variant][pass];
            *made = layer_factors(response, contention->rates, &work);
            made->spare = spare_of(overlap, response, &work, pass, made->block);
            made->collective[BACKGROUND_REPLICA] = 1 + (made->collective[BACKGROUND_REPLICA] - 1) * work.replica_share;
        }
    }
}
