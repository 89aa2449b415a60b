// Some layers recomputed and the others kept: between all and none, by their share. Of memory that is an upper bound,
// the peak being the largest of moments that each grow straight with the layers that are kept.

#include "sim/analytic/stages.h"

static TrainPlan all_recomputed(const TrainPlan *plan) {
    TrainPlan all = *plan;
    plan_all_layers_alike(&all);
    return all;
}

static TrainPlan none_recomputed(const TrainPlan *plan) {
    TrainPlan none = *plan;
    none.recompute = RECOMPUTE_NONE;
    plan_canonical(&none);
    return none;
}

// How many layers of a stage's chunk keep all.
static int32_t kept_layers(const Analytic *analytic, const TrainPlan *plan, int32_t first, int32_t count) {
    int32_t kept = 0;
    for (int32_t layer = first; layer < first + count; layer++) {
        kept += !target_recomputes(analytic->cost.target, plan, layer, layer - first);
    }
    return kept;
}

static double kept_of_all(const Analytic *analytic, const TrainPlan *plan) {
    const int32_t each = analytic->model.layers / mesh_stages(&plan->mesh), layers = each > 0 ? each : 1;
    return 1 - (double)target_recomputed_layers(analytic->cost.target, plan, layers) / layers;
}

// Of what the stage carries where it carries most, had all of its layers kept all: chunks carry different numbers of
// micro-steps.
static double kept_share(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape, const StageSplit *split,
                         int stage) {
    const int32_t *layers = stage_chunk_layers(split, shape, stage);
    const int32_t all = stage_all_layers(shape, layers);
    int32_t *kept = split->chunk_kept;
    for (int32_t chunk = 0, first = 0; chunk < shape->chunks; first += layers[chunk++]) {
        kept[chunk] = kept_layers(analytic, plan, first, layers[chunk]);
    }
    const PipelineLoad some = {.chunk_layers = kept, .layers = all, .carried_bytes = 1};
    const PipelineLoad whole = {.chunk_layers = layers, .layers = all, .carried_bytes = 1};
    return pipeline_most_bytes(&analytic->orders, shape, stage, &some) /
           pipeline_most_bytes(&analytic->orders, shape, stage, &whole);
}

// The larger bytes of this stage, which keeps this share.
static Status add_stage(Analytic *analytic, const TrainPlan *plan, int stage, double kept, Estimate *estimate,
                        Error *error) {
    const TrainPlan all = all_recomputed(plan), none = none_recomputed(plan);
    Estimate most, least;
    TRY(analytic_bytes_of_stage(analytic, &all, stage, &most, error));
    TRY(analytic_bytes_of_stage(analytic, &none, stage, &least, error));
    const double reserved = analytic_between(most.reserved_bytes, least.reserved_bytes, kept);
    if (reserved > estimate->reserved_bytes) {
        estimate->reserved_bytes = reserved;
        estimate->peak_bytes = analytic_between(most.peak_bytes, least.peak_bytes, kept);
        estimate->stage = stage;
    }
    return STATUS_OK;
}

// Of stages with the same layers the first one keeps most micro-steps, but has fewest buffers of what it receives; the
// last one has the logits.
static Status add_stages(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    PipelineShape shape;
    TRY(stage_shape(analytic->cost.target, plan, &shape, error));
    const StageSplit *split = stage_split(analytic, plan);
    estimate->reserved_bytes = 0;
    for (int stage = 0; stage < shape.stages; stage++) {
        const bool candidate = stage == 0 || stage == shape.stages - 1 || analytic->cost.target->buffers_each_message ||
                               !stages_are_alike(split, &shape, stage, stage - 1);
        if (candidate && stage_all_layers(&shape, stage_chunk_layers(split, &shape, stage)) > 0) {
            const double kept = kept_share(analytic, plan, &shape, split, stage);
            TRY(add_stage(analytic, plan, stage, kept, estimate, error));
        }
    }
    return STATUS_OK;
}

Status analytic_estimate_partly(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    const double kept = kept_of_all(analytic, plan);
    const TrainPlan all = all_recomputed(plan), none = none_recomputed(plan);
    Estimate most, least;
    analytic->limits = (EstimateLimits){.no_bytes = analytic->limits.no_bytes};
    TRY(analytic_estimate_whole(analytic, &all, &most, error));
    TRY(analytic_estimate_whole(analytic, &none, &least, error));
    *estimate = (Estimate){.step_s = analytic_between(most.step_s, least.step_s, kept),
                           .compute_s = analytic_between(most.compute_s, least.compute_s, kept),
                           .optimizer_s = analytic_between(most.optimizer_s, least.optimizer_s, kept),
                           .bubble_s = analytic_between(most.bubble_s, least.bubble_s, kept),
                           .overhead_s = analytic_between(most.overhead_s, least.overhead_s, kept),
                           .peak_bytes = analytic_between(most.peak_bytes, least.peak_bytes, kept),
                           .reserved_bytes = analytic_between(most.reserved_bytes, least.reserved_bytes, kept),
                           .stage = most.stage};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        estimate->exposed_s[axis] = analytic_between(most.exposed_s[axis], least.exposed_s[axis], kept);
    }
    const bool stages = plan_has_stages(plan) && analytic_wants_bytes(analytic, estimate->step_s);
    return stages ? add_stages(analytic, plan, estimate, error) : STATUS_OK;
}
