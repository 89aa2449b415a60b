// What a pipeline's stages hold: the fullest one, and the first and the last where these may hold more.

#include <math.h>

#include "sim/analytic/stages.h"

// Of micro-steps through all of the stage's layers: its chunks may have different numbers of them.
static double steps_in_flight(Analytic *analytic, const PipelineShape *shape, const StageSplit *split, int stage) {
    const int32_t *layers = stage_chunk_layers(split, shape, stage);
    bool alike = true;
    for (int32_t chunk = 1; chunk < shape->chunks; chunk++) {
        alike &= layers[chunk] == layers[0];
    }
    const PipelineLoad load = {layers, stage_all_layers(shape, layers), .carried_bytes = 1};
    return (alike && !shape->schedule->splits) || load.layers == 0
               ? (double)pipeline_held(&analytic->orders, shape, stage) / shape->chunks
               : pipeline_most_bytes(&analytic->orders, shape, stage, &load);
}

// Chunks, and weight gradients of their own, end one after another.
static bool drains(const PipelineShape *shape) {
    return shape->chunks == 1 && !shape->schedule->splits;
}

// Is there a moment at which the stage holds most and has all gradients?
static bool is_steady(const PipelineShape *shape, const Estimate *estimate) {
    enum { GROUPS = 3 };
    const int32_t group = shape->group > shape->stages ? shape->group : shape->stages;
    return shape->chunks > 1 ? shape->micro_steps >= GROUPS * group : shape->micro_steps > estimate->in_flight;
}

// What comes and goes leaves free blocks of other sizes (stage_slack); what is held for good does not.
static void add_bytes(const Analytic *analytic, const TrainPlan *alone, double bytes, bool held, Estimate *estimate) {
    estimate->peak_bytes += bytes;
    estimate->drained_bytes += held ? bytes : 0;
    estimate->reserved_bytes += target_cached_bytes(analytic->cost.target, alone, bytes, held ? bytes : 0);
}

// As long as no forward follows the first backward, gradients grow while held activations shrink, and with several
// chunks those of one are reduced before those of another exist.
static void take_off_growing(Analytic *analytic, const TrainPlan *alone, const PipelineShape *shape,
                             const StageSplit *split, int stage, Estimate *estimate) {
    const int32_t *layers = stage_chunk_layers(split, shape, stage);
    const double edges = estimate->first_growing_bytes + estimate->last_growing_bytes;
    const PipelineLoad load = {layers,
                               stage_all_layers(shape, layers),
                               estimate->carried_bytes,
                               estimate->growing_bytes - edges,
                               estimate->first_growing_bytes,
                               estimate->last_growing_bytes,
                               estimate->early_bytes};
    const bool planned = target_is_executor(analytic->cost.target);  // slots are there from the first forward on
    if (planned || is_steady(shape, estimate) || load.layers == 0 || estimate->growing_bytes == 0) {
        return;
    }
    const double both = load.carried_bytes * estimate->in_flight + estimate->growing_bytes + load.early_bytes;
    const double less = fmax(0, both - pipeline_most_bytes(&analytic->orders, shape, stage, &load));
    add_bytes(analytic, alone, -fmin(less, estimate->peak_bytes - estimate->drained_bytes), false, estimate);
}

// What arrives has slots for one micro-step more than are in flight, a gradient for two (lower_messages.c).
static double buffered_bytes(const Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape, int stage,
                             double in_flight) {
    const Target *target = analytic->cost.target;
    const ReceivedMessages received = schedule_received(shape->schedule->folded, shape->stages, shape->chunks, stage);
    const double inputs = fmin(in_flight + 1, shape->micro_steps), gradients = fmin(2, shape->micro_steps);
    return target->buffers_each_message ? schedule_beyond_slots(&received, shape->micro_steps, inputs, gradients) *
                                              (double)target_message_bytes(target, &analytic->model, plan)
                                        : 0;
}

// What the longest chunk keeps with ep_overlap beside the next one's forward.
static double kept_bytes(const Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                         const StageSplit *split, int stage) {
    const int32_t *layers = stage_chunk_layers(split, shape, stage);
    int32_t most = 0;
    for (int32_t chunk = 0; chunk < shape->chunks; chunk++) {
        most = layers[chunk] > most ? layers[chunk] : most;
    }
    return target_kept_bytes(analytic->cost.target, &analytic->model, plan, most);
}

Status stage_add_bytes(Analytic *analytic, const TrainPlan *alone, const PipelineShape *shape, const StageSplit *split,
                       int stage, Estimate *estimate, Error *error) {
    const double in_flight = steps_in_flight(analytic, shape, split, stage);
    TRY(analytic_add_bytes(analytic, alone, stage, in_flight, drains(shape), estimate, error));
    take_off_growing(analytic, alone, shape, split, stage, estimate);
    add_bytes(analytic, alone, buffered_bytes(analytic, alone, shape, stage, in_flight), true, estimate);
    add_bytes(analytic, alone, kept_bytes(analytic, alone, shape, split, stage), false, estimate);
    return STATUS_OK;
}

// By how many parameters the last stage has more than the fullest one, at most: it has the head, but fewer layers, and
// a first stage has the embedding, as large. Where parameters are not alike (adapters, experts), the head's.
static double more_parameters(const Analytic *analytic, const TrainPlan *plan, const StageSplit *split) {
    const ModelSpec *model = &analytic->model;
    const double head = (double)model->vocab * (double)model->hidden;
    if (plan_has_adapters(plan) || model->experts.count > 0) {
        return head;
    }
    const int32_t fewer = split->layers[STAGE_FULLEST] - split->layers[STAGE_LAST];
    const double embedding = split->stage[STAGE_FULLEST] == 0 ? head : 0;
    const double of_layers = fewer * (double)model_layers_parameters(model) / model->layers;
    return fmax(0, head - embedding - of_layers);
}

// How much less than the fullest stage one needs that keeps so many micro-steps fewer.
static double kept_less(const Estimate *fullest, double fewer) {
    return fmin(fullest->carried_bytes * fewer, fullest->peak_bytes - fullest->drained_bytes);
}

// The last stage keeps fewest micro-steps, but has the logits: it is looked at where what it does not keep is less than
// they can be (fp32 logits, their softmax and gradient, a copy or two), and than a gathered copy of the head and the
// states of what it has more.
static bool last_may_need_most(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                               const StageSplit *split, const Estimate *fullest) {
    enum { BYTES_PER_LOGIT = 16, BYTES_PER_PARAMETER = 18, BYTES_PER_GATHERED = 2 };
    const double vocab = (double)analytic->model.vocab, hidden = (double)analytic->model.hidden;
    const double bytes = vocab * (BYTES_PER_LOGIT * (double)plan_local_tokens(plan) + BYTES_PER_GATHERED * hidden) +
                         BYTES_PER_PARAMETER * more_parameters(analytic, plan, split);
    const bool whole = target_has_whole_logits(analytic->cost.target);
    const int32_t fewer = pipeline_held(&analytic->orders, shape, split->stage[STAGE_FULLEST]) -
                          pipeline_held(&analytic->orders, shape, split->stage[STAGE_LAST]);
    const double growing = is_steady(shape, fullest) ? 0 : fullest->growing_bytes;  // may not be all there
    return bytes / (whole ? 1 : plan->mesh.size[AXIS_TP]) + growing > kept_less(fullest, (double)fewer / shape->chunks);
}

Status analytic_bytes_of_stage(Analytic *analytic, const TrainPlan *plan, int stage, Estimate *estimate, Error *error) {
    const TrainPlan alone = stage_plan_alone(analytic, plan);
    const StageSplit *split = stage_split(analytic, plan);
    PipelineShape shape;
    TRY(stage_shape(analytic->cost.target, plan, &shape, error));
    *estimate = (Estimate){.stage = stage};
    return stage_add_bytes(analytic, &alone, &shape, split, stage, estimate, error);
}

// Another stage's, where it needs more.
static Status add_stage(Analytic *analytic, const TrainPlan *plan, int stage, Estimate *estimate, Error *error) {
    Estimate other;
    TRY(analytic_bytes_of_stage(analytic, plan, stage, &other, error));
    if (other.reserved_bytes > estimate->reserved_bytes) {
        estimate->peak_bytes = other.peak_bytes;
        estimate->reserved_bytes = other.reserved_bytes;
        estimate->stage = stage;
    }
    return STATUS_OK;
}

// The first stage keeps most micro-steps and has the embedding, where others have more layers.
static bool first_may_need_most(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                                const StageSplit *split, const Estimate *fullest) {
    enum { MOST_PER_PARAMETER = 18, LEAST_PER_PARAMETER = 2 };
    const ModelSpec *model = &analytic->model;
    const int32_t layers = split->layers[STAGE_FULLEST], fewer = layers - split->first_layers;
    if (split->stage[STAGE_FULLEST] == 0 || split->first_layers == 0) {
        return false;
    }
    if (stage_mixes_layers(model) || plan_has_adapters(plan)) {
        return plan->pp_split != SPLIT_TARGET || split->first_dense > 0;
    }
    const double carried =
        fullest->carried_bytes / layers *
        (split->first_layers * steps_in_flight(analytic, shape, split, 0) - layers * fullest->in_flight);
    const double parameters =
        (double)model->vocab * (double)model->hidden - fewer * (double)model_layers_parameters(model) / model->layers;
    const double each = parameters > 0 ? MOST_PER_PARAMETER : LEAST_PER_PARAMETER;
    return carried + each * parameters / plan->mesh.size[AXIS_TP] > 0;
}

// How much more than the first stage one behind it with as many layers needs.
static double more_behind_first(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                                const StageSplit *split, int stage, const Estimate *first) {
    const double in_flight = steps_in_flight(analytic, shape, split, stage);
    return buffered_bytes(analytic, plan, shape, stage, in_flight) -
           buffered_bytes(analytic, plan, shape, 0, first->in_flight) - kept_less(first, first->in_flight - in_flight);
}

// Stages behind the first keep less, but receive inputs, which have a buffer more for each micro-step that they keep
// less: the second needs most of them where most is needed in between, the last but one where it is at the end.
static Status add_behind_first(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                               const StageSplit *split, Estimate *estimate, Error *error) {
    if (!analytic->cost.target->buffers_each_message || estimate->stage > 0 || shape->stages < 3) {
        return STATUS_OK;
    }
    const int late = shape->stages - 2;
    const double second = more_behind_first(analytic, plan, shape, split, 1, estimate);
    const double last_but_one = more_behind_first(analytic, plan, shape, split, late, estimate);
    return fmax(second, last_but_one) > 0 ? add_stage(analytic, plan, last_but_one > second ? late : 1, estimate, error)
                                          : STATUS_OK;
}

Status stage_add_ends(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape, const StageSplit *split,
                      Estimate *estimate, Error *error) {
    const Estimate fullest = *estimate;
    TRY(add_behind_first(analytic, plan, shape, split, estimate, error));
    if (first_may_need_most(analytic, plan, shape, split, &fullest)) {
        TRY(add_stage(analytic, plan, 0, estimate, error));
    }
    if (split->layers[STAGE_LAST] == 0 || !last_may_need_most(analytic, plan, shape, split, &fullest)) {
        return STATUS_OK;
    }
    return add_stage(analytic, plan, split->stage[STAGE_LAST], estimate, error);
}

Status analytic_bytes_of_stages(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    PipelineShape shape;
    TRY(stage_shape(analytic->cost.target, plan, &shape, error));
    const StageSplit *split = stage_split(analytic, plan);
    TRY(analytic_bytes_of_stage(analytic, plan, split->stage[STAGE_FULLEST], estimate, error));
    return stage_add_ends(analytic, plan, &shape, split, estimate, error);
}
