// Lower bounds on a pipeline's step, of what similar ones took.

#include <math.h>

#include "sim/analytic/stages.h"
#include "sim/plan/plan_fields.h"

// Backward is two of three parts, recomputation a forward more.
double stage_forward_share(const TrainPlan *plan) {
    return plan->recompute == RECOMPUTE_FULL ? 1.0 / 4 : 1.0 / 3;
}

void stage_time_parts(const StageSplit *split, double layer_s, double dense_s, double head_s, double slowed_s) {
    for (int32_t part = 0; part < split->parts; part++) {
        const int32_t dense = split->part_dense[part];
        split->part_s[part] = layer_s * (split->part_layers[part] - dense) + dense_s * dense + slowed_s;
    }
    split->part_s[split->parts - 1] += head_s;
}

// Lower bound from the first forward to the last backward, by each stage: the first micro-step has to get there, the
// stage has its work of all of them, and the last one has to get back, with what makes those of the first stage longer.
// With separate weight passes it may do its own meanwhile.
double stage_least_span_s(const StageSplit *split, const PipelineShape *shape, const PipelineTimes *times) {
    enum { WHOLE_BACKWARD = 2 };
    const double back_share = schedule_works(shape->schedule) == WHOLE_BACKWARD ? 1 - times->forward_share : 0;
    const double once_s = times->first_s ? times->first_s[0] + (back_share > 0 ? times->last_s[0] : 0) : 0;
    double way_s = 0, least_s = 0;
    for (int32_t stage = 0; stage < shape->stages; way_s += split->part_s[stage++]) {
        double work_s = 0;
        for (int32_t chunk = 0; chunk < shape->chunks; chunk++) {
            work_s += split->part_s[pipeline_part(shape, stage, chunk)];
        }
        least_s = fmax(least_s, way_s * (times->forward_share + back_share) + work_s * shape->micro_steps);
    }
    return least_s * times->device_share + once_s;
}

// ---- what a layer takes at least

// Pipelines that differ in these only: their layers take about as long.
#define PIPELINE_CHOICES                                                                                               \
    (PLAN_BIT(PLAN_PP_SCHEDULE) | PLAN_BIT(PLAN_VIRTUAL_STAGES) | PLAN_BIT(PLAN_PP_SPLIT) | PLAN_BIT(PLAN_PP_FIRST) |  \
     PLAN_BIT(PLAN_PP_LAST))

// What a stage has in addition to its layers, such as the embedding, and layer kinds mixed in other proportions. Of
// 35,977 estimates of 405B, 70B, 8x22B and DeepSeek-V3 the largest bound was 0.993 of its own; medians 0.83 to 0.93.
static const double PACE_SLACK = 0.95;

// Of pipelines with this number of layers on their fullest stage, which has no embedding and no head: its further
// micro-steps as if data ranks took no time. With any data ranks a layer takes at least as long, and so it does on a
// stage of fewer layers, which divide among them what a micro-step takes outside its layers.
typedef struct LayerAlone {
    int32_t layers;  // 0 = not known
    double layer_s;  // in which the device does not wait for its host
    double share;    // of all time
    double chip_factor;
} LayerAlone;

typedef struct Pace {
    double least_s;      // of a layer in any pipeline so far
    double chip_factor;  // the largest of their chips
    LayerAlone alone[1 << ANALYTIC_DATA_BITS];
} Pace;

static const double ROUNDING = 1e-6;  // and what shards of a copied gradient are padded by

// *kept: the one of plans that recompute nothing, for those that do.
static MemoKey pace_key(const Analytic *analytic, const TrainPlan *plan, bool kept) {
    return analytic_layer_key(analytic, plan, PIPELINE_CHOICES | (kept ? PLAN_RECOMPUTE_CHOICES : 0), kept);
}

static Pace *take_pace(Analytic *analytic, const TrainPlan *plan, bool kept) {
    const MemoKey key = pace_key(analytic, plan, kept);
    Pace *pace = memo_find(&analytic->paces, &key);
    if (!pace) {
        pace = ARENA_NEW(analytic->arena, Pace);
        *pace = (Pace){.least_s = INFINITY};
        memo_add(&analytic->paces, &key, pace, analytic->arena);
    }
    return pace;
}

// Further micro-steps are all alike, and so are layers and stages.
static bool has_one_pace(const Analytic *analytic, const TrainPlan *plan, const StageSplit *split) {
    enum { LEAST_STEPS = 3 };
    return plan_round_steps(plan) >= LEAST_STEPS && !plan->ep_overlap && !stage_mixes_layers(&analytic->model) &&
           split->stage[STAGE_FULLEST] != 0 && !stage_last_is_fullest(split);
}

static Status time_layer_alone(Analytic *analytic, const TrainPlan *plan, const StageSplit *split, LayerAlone *alone,
                               Error *error) {
    enum { FEW = 3 };
    AlonePlan steps = {.plan = stage_plan_alone(analytic, plan), .stage = split->stage[STAGE_FULLEST]};
    Estimate few, more;
    steps.plan.grad_accum = FEW;
    TRY(analytic_time_alone(analytic, &steps, &few, error));
    steps.plan.grad_accum = FEW + 1;
    TRY(analytic_time_alone(analytic, &steps, &more, error));
    const double pace_s = more.step_s - few.step_s, host_s = fmax(0, more.overhead_s - few.overhead_s);
    *alone = (LayerAlone){.layers = split->layers[STAGE_FULLEST],
                          .layer_s = (pace_s - host_s) / split->layers[STAGE_FULLEST],
                          .share = 1 - host_s / pace_s,
                          .chip_factor = analytic->cost.chip_factor};
    return STATUS_OK;
}

static void note_least(const Analytic *analytic, Pace *pace, double layer_s) {
    pace->least_s = fmin(pace->least_s, layer_s);
    pace->chip_factor = fmax(pace->chip_factor, analytic->cost.chip_factor);
}

// What took so long on chips of that factor takes at least so long on the plan's: only products follow the chips.
static double on_its_chips(const Analytic *analytic, double seconds, double chip_factor) {
    return seconds * fmin(1, analytic->cost.chip_factor / chip_factor);
}

Status stage_note_pace(Analytic *analytic, const TrainPlan *plan, const StageSplit *split, double layer_s,
                       Error *error) {
    Pace *pace = take_pace(analytic, plan, false);
    LayerAlone *alone = &pace->alone[analytic_data_bits(plan)];
    note_least(analytic, pace, layer_s);
    if (has_one_pace(analytic, plan, split) && alone->layers < split->layers[STAGE_FULLEST]) {
        TRY(time_layer_alone(analytic, plan, split, alone, error));
    }
    if (plan->recompute == RECOMPUTE_NONE) {
        Pace *kept = take_pace(analytic, plan, true);
        note_least(analytic, kept, layer_s);
        kept->alone[analytic_data_bits(plan)] = *alone;
    }
    return STATUS_OK;
}

// What a layer and the head take at least; false = nothing is known.
static bool find_least(Analytic *analytic, const TrainPlan *plan, const StageSplit *split, double *layer_s,
                       double *head_s) {
    MemoKey key = pace_key(analytic, plan, false);
    const Pace *pace = memo_find(&analytic->paces, &key);
    if (!pace) {
        key = pace_key(analytic, plan, true);
        pace = memo_find(&analytic->paces, &key);
    }
    if (!pace) {
        return false;
    }
    const LayerAlone *alone = &pace->alone[analytic_data_bits(plan)];
    const bool known = has_one_pace(analytic, plan, split) && split->layers[STAGE_FULLEST] <= alone->layers;
    const double least_s = on_its_chips(analytic, pace->least_s, pace->chip_factor);
    const double alone_s = known ? on_its_chips(analytic, alone->layer_s, alone->chip_factor) : 0;
    *layer_s = fmax(PACE_SLACK * least_s, (1 - ROUNDING) * alone_s);
    *head_s = known && alone->share >= 1 - STAGE_WAIT_NO_MATTER ? alone->share * stage_known_head_s(analytic, plan) : 0;
    return true;
}

bool analytic_bound(Analytic *analytic, const TrainPlan *plan, Estimate *bound) {
    PipelineShape shape;
    Error error;
    double layer_s, head_s;
    if (!plan_has_stages(plan) || stage_shape(analytic->cost.target, plan, &shape, &error) != STATUS_OK) {
        return false;
    }
    analytic_see_chips(analytic, plan);
    const StageSplit *split = stage_split(analytic, plan);
    if (!find_least(analytic, plan, split, &layer_s, &head_s)) {
        return false;
    }
    const PipelineTimes times = {
        .part_s = split->part_s, .forward_share = stage_forward_share(plan), .device_share = 1};
    stage_time_parts(split, layer_s, 0, head_s, 0);
    *bound = (Estimate){.step_s = stage_least_span_s(split, &shape, &times) * plan_rounds(plan), .is_bound = true};
    bound->compute_s = (layer_s * analytic->model.layers + head_s) * plan->grad_accum / shape.stages;
    bound->bubble_s = fmax(0, bound->step_s - bound->compute_s);
    return true;
}
