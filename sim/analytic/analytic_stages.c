// A pipeline: its fullest stage and its last one are estimated as if each were alone; what a layer and what the head
// take follows from the two, so the time of every chunk of layers, and a run over the schedule says when the last
// backward has ended. The rest of a step (gathers, reductions, optimizer) is added on top. Not modelled: messages that
// share links with what data ranks move; what ranks of other stages do concurrently.

#include <math.h>

#include "sim/analytic/stages.h"
#include "sim/frameworks/pp_groups.h"

Status stage_shape(const Target *target, const TrainPlan *plan, PipelineShape *shape, Error *error) {
    *shape = (PipelineShape){schedule_of(plan), mesh_stages(&plan->mesh), plan_chunks(plan), plan_round_steps(plan),
                             target_other_group(target, plan)};
    return shape->schedule ? STATUS_OK
                           : error_set(error, STATUS_INFEASIBLE, "the schedule %s of a pipeline is not predicted yet",
                                       pp_schedule_names[plan->pp_schedule]);
}

// Of data ranks' exposed transfers, those before the end of the last backward.
static double waits_s(const Estimate *step) {
    return step->exposed_s[step->update.axis] - step->update.late_s - step->update.exposed_s;
}

// The last micro-step may reduce into buffers of few layers: its backward waits for these, and the stages before wait
// for it. Where it is the only one, each of two is taken to wait for half of what both do.
static double waits_of_last_s(const Estimate *few, const Estimate *more, int steps) {
    return steps == 1 ? waits_s(few) - waits_s(more) / 2 : waits_s(few) - steps * (waits_s(more) - waits_s(few));
}

// First, middle and last micro-steps are in three; a fourth is what each further one takes. No bytes.
static Status time_stage(Analytic *analytic, const AlonePlan *alone, int stage, StageTimes *times, Error *error) {
    enum { ENOUGH = 3 };
    AlonePlan of = *alone;
    const int all_steps = alone->plan.grad_accum, plan_steps = all_steps < ENOUGH ? all_steps : ENOUGH;
    Estimate more, *few = &times->step;
    of.stage = stage;
    of.plan.grad_accum = plan_steps;
    TRY(analytic_time_alike(analytic, &of, few, error));
    of.plan.grad_accum++;
    TRY(analytic_time_alike(analytic, &of, &more, error));
    times->pace_s = more.step_s - few->step_s;
    times->host_s = fmax(0, more.overhead_s - few->overhead_s);
    times->lead_s = fmax(0, more.lead_s - few->lead_s);
    few->once = more.once;
    times->last_s = stage_is_once(few) ? 0 : fmax(0, few->compute_s - plan_steps * (more.compute_s - few->compute_s));
    times->last_s += stage_is_once(few) ? 0 : fmax(0, waits_of_last_s(few, &more, plan_steps));
    analytic_mix_in(few, &more, all_steps - plan_steps);
    stage_reduce_behind_chunks(analytic, alone->pipeline, times);
    return STATUS_OK;
}

static double layer_s(const StageSplit *split, const StageTimes *fullest, double head_s) {
    return fmax(0, fullest->pace_s - (stage_last_is_fullest(split) ? head_s : 0)) / split->layers[STAGE_FULLEST];
}

// Head and loss cost the same with any number of stages or data ranks, and whatever layers recompute, so one such plan
// serves all. Experts stay where they are: with all on one rank its host may lag, and then the head's time is hidden.
static TrainPlan plan_of_head(const TrainPlan *plan) {
    TrainPlan of = *plan;
    of.pp_schedule = PP_1F1B;
    of.pp_split = SPLIT_TARGET;
    const bool spread = plan->mesh.size[AXIS_EP] > 1;
    const unsigned kept = AXES_SEQUENCE | AXES_TENSOR | (spread ? AXIS_BIT(AXIS_EP) | AXIS_BIT(AXIS_DP_SHARD) : 0);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const bool stages = AXES_STAGE & AXIS_BIT(axis) && of.mesh.size[axis] > 1;
        of.mesh.size[axis] = stages ? 2 : kept & AXIS_BIT(axis) ? of.mesh.size[axis] : 1;
    }
    of.mesh.order = (AxisOrder){0};
    of.grad_accum = 2;
    of.pp_rounds = 1;
    of.recompute = RECOMPUTE_NONE;
    of.zero = spread && plan->zero > 0 ? 1 : 0;
    plan_canonical(&of);
    return of;
}

// Times of a plan's stages, as they wait for each other.
typedef struct TimedStages {
    StageTimes fullest;
    double head_s, dense_s, layer_s;
    double head_host_s;  // by which the last stage waits longer for its host than the fullest one
    double slower_s;     // a micro-step beside messages
    double issue_s;      // the host's for messages of a micro-step
} TimedStages;

// What the last stage takes beyond its layers.
static double beyond_layers(const StageSplit *split, const StageTimes *fullest, const StageTimes *last) {
    return fmax(0, last->pace_s - layer_s(split, fullest, 0) * split->layers[STAGE_LAST]);
}

// What they add to a micro-step: the last of two stages, less its layers.
static Status time_head(Analytic *analytic, const AlonePlan *of, double *head_s, Error *error) {
    const StageSplit *split = stage_split(analytic, &of->plan);
    StageTimes fullest, last;
    TRY(time_stage(analytic, of, split->stage[STAGE_FULLEST], &fullest, error));
    TRY(time_stage(analytic, of, split->stage[STAGE_LAST], &last, error));
    *head_s = beyond_layers(split, &fullest, &last);
    return STATUS_OK;
}

// Where the stages before the last have layers of another kind, theirs say nothing about its: it is timed with one
// layer and with two.
static Status time_head_by_difference(Analytic *analytic, const AlonePlan *of, double *head_s, Error *error) {
    AlonePlan ends = *of;
    StageTimes times[2];
    ends.plan.pp_split = SPLIT_ENDS;
    for (int i = 1; i >= 0; i--) {
        ends.plan.pp_last = i + 1;
        ends.plan.pp_first = analytic->model.layers - ends.plan.pp_last;
        TRY(time_stage(analytic, &ends, mesh_stages(&of->plan.mesh) - 1, &times[i], error));
    }
    const int32_t layers = stage_split(analytic, &ends.plan)->layers[STAGE_LAST];  // one, and those of mtp
    *head_s = fmax(0, (layers + 1) * times[0].pace_s - layers * times[1].pace_s);
    return STATUS_OK;
}

// The plan whose head is timed, and its key.
static MemoKey head_key(Analytic *analytic, const TrainPlan *plan, TrainPlan *of) {
    *of = plan_of_head(plan);
    if (stage_split(analytic, of)->layers[STAGE_LAST] == 0) {
        of->pp_split =
            SPLIT_EVEN;  // a head as expensive as the layers before it: it is timed only together with layers
    }
    return analytic_choices_key(of);
}

double stage_known_head_s(Analytic *analytic, const TrainPlan *plan) {
    TrainPlan of;
    const MemoKey key = head_key(analytic, plan, &of);
    const double *known = memo_find(&analytic->times->heads, &key);
    return known ? *known : 0;
}

static Status find_head(Analytic *analytic, const TrainPlan *plan, double *head_s, Error *error) {
    AlonePlan of = {.pipeline = &of.plan};
    const MemoKey key = head_key(analytic, plan, &of.plan);
    double *known = memo_find(&analytic->times->heads, &key);
    if (!known) {
        known = ARENA_NEW(analytic->arena, double);
        TRY(stage_mixes_layers(&analytic->model) ? time_head_by_difference(analytic, &of, known, error)
                                                 : time_head(analytic, &of, known, error));
        memo_add(&analytic->times->heads, &key, known, analytic->arena);
    }
    *head_s = *known;
    return STATUS_OK;
}

// What a part takes more for what it sends and takes before it and behind: where others wait for a message its slices
// are gathered meanwhile; between chunks that go on computing the layers wait for that.
static ChunkHost beside_messages(const TrainPlan *plan, const StageMessage *message) {
    if (!stage_sends_beside(plan)) {
        return (ChunkHost){0, 0};
    }
    return (ChunkHost){message->gather_s + message->slowed_s[LAYERS_BACKWARD],
                       message->gather_s + message->slowed_s[LAYERS_FORWARD]};
}

// With what is gathered of it, which those that wait do, too.
static double whole_s(const StageMessage *message) {
    return message->seconds + message->gather_s;
}

static bool waits_for_host(const StageTimes *times) {
    return times->host_s > STAGE_WAIT_NO_MATTER * times->pace_s;
}

static bool stops_host(const Analytic *analytic, const TrainPlan *plan) {
    return target_stops_host(analytic->cost.target, plan) || message_sleep_s(&analytic->cost, &plan->mesh) > 0;
}

// What the fullest stage's host has no lead to issue in. One that stops at messages has none; one that waits in layers
// what it has issued behind the last wait of a forward, which others follow before there is a backward; one that goes
// on, in each micro-step what it does not need.
static ChunkHost chunk_host(const Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                            const StageSplit *split, const StageTimes *fullest) {
    ChunkHost host = cost_chunk_host(&analytic->cost, plan);
    if (stops_host(analytic, plan)) {
        return host;
    }
    if (cost_host_waits_in_layers(&analytic->cost, plan)) {
        const double lead_s = fmax(0, fullest->step.forward_lead_s);
        return (ChunkHost){fmax(0, host.before_s - lead_s), fmax(0, host.after_s - lead_s)};
    }
    const double issue_s = stage_issue_s(split, shape, split->stage[STAGE_FULLEST], &host);
    const double shown = issue_s > fullest->lead_s ? 1 - fullest->lead_s / issue_s : 0;
    host.before_s *= shown;
    host.after_s *= shown;
    return host;
}

// While a stage waits for others its host goes on issuing, unless it waits itself, as some do in each layer's forward:
// the device has not to wait then.
static double device_share(const Analytic *analytic, const TrainPlan *plan, const StageTimes *fullest) {
    const bool in_layers = cost_host_waits_in_layers(&analytic->cost, plan);
    const double ahead = in_layers ? 1 - stage_forward_share(plan) : 1;
    return stops_host(analytic, plan) ? 1 : 1 - ahead * fullest->host_s / fullest->pace_s;
}

// The last stage is the slowest where the head is more than the layers that it lacks.
static void add_head(const StageSplit *split, const TimedStages *times, int micro_steps, Estimate *estimate) {
    const double more_s = times->head_s - times->layer_s * (split->layers[STAGE_FULLEST] - split->layers[STAGE_LAST]);
    if (more_s > 0 && !stage_last_is_fullest(split)) {
        const double host_s = fmin(more_s, times->head_host_s);
        estimate->compute_s += (more_s - host_s) * micro_steps;
        estimate->overhead_s += host_s * micro_steps;
        estimate->step_s += more_s * micro_steps;
    }
}

// A dense layer where the fullest stage's are of experts: what the first stage takes beyond its own of these.
static Status time_dense_layer(Analytic *analytic, const AlonePlan *of, const StageSplit *split, double layer_s,
                               double *dense_s, Error *error) {
    StageTimes first;
    *dense_s = layer_s;
    if (split->first_dense == 0 || split->stage[STAGE_FULLEST] == 0) {
        return STATUS_OK;
    }
    TRY(time_stage(analytic, of, 0, &first, error));
    *dense_s = fmax(0, first.pace_s - layer_s * (split->first_layers - split->first_dense)) / split->first_dense;
    return STATUS_OK;
}

// Where the device waits for the host, the head hides as much of its own time: the last stage itself is timed. A host
// that stops at messages may be late there alone: its forward follows one, where the first stage's device still has a
// backward to do.
static Status time_head_beside_host(Analytic *analytic, const AlonePlan *of, const StageSplit *split,
                                    TimedStages *times, Error *error) {
    const StageTimes *fullest = &times->fullest;
    const bool may_wait = of->stops_host || waits_for_host(fullest);
    StageTimes last;
    if (!may_wait || stage_last_is_fullest(split) || split->layers[STAGE_LAST] == 0) {
        return STATUS_OK;
    }
    TRY(time_stage(analytic, of, split->stage[STAGE_LAST], &last, error));
    times->head_host_s = fmax(0, last.host_s - fullest->host_s);
    if (times->head_host_s > 0 || waits_for_host(fullest)) {
        times->head_s = beyond_layers(split, fullest, &last);
    }
    return STATUS_OK;
}

// Hopeless even if the head took no time: the fullest stage's layers and the rest of the step already take too long?
static bool is_hopeless_headless(const Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                                 const StageSplit *split, const StageTimes *fullest) {
    const PipelineTimes parts = {.part_s = split->part_s,
                                 .forward_share = stage_forward_share(plan),
                                 .first_s = stage_is_once(&fullest->step) ? split->first_s : NULL,
                                 .last_s = stage_is_once(&fullest->step) ? split->last_s : NULL,
                                 .device_share = device_share(analytic, plan, fullest)};
    if (!analytic->limits.time_only || stage_last_is_fullest(split) || stage_mixes_layers(&analytic->model)) {
        return false;
    }
    stage_time_parts(split, layer_s(split, fullest, 0), 0, 0, 0);
    stage_time_once(analytic, split, &fullest->step.once, layer_s(split, fullest, 0), parts.forward_share);
    return analytic_is_hopeless(analytic,
                                stage_rounds_s(analytic, plan, fullest, stage_least_span_s(split, shape, &parts)));
}

// The head's time stays 0 where it does not matter.
static Status time_stages(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                          const StageSplit *split, TimedStages *times, Error *error) {
    const AlonePlan of = {stage_plan_alone(analytic, plan), .stops_host = stops_host(analytic, plan), .pipeline = plan};
    StageTimes *fullest = &times->fullest;
    *times = (TimedStages){.head_s = 0};
    TRY(time_stage(analytic, &of, split->stage[STAGE_FULLEST], fullest, error));
    if (is_hopeless_headless(analytic, plan, shape, split, fullest)) {
        times->layer_s = times->dense_s = layer_s(split, fullest, 0);
        return STATUS_OK;
    }
    TRY(find_head(analytic, plan, &times->head_s, error));
    TRY(time_head_beside_host(analytic, &of, split, times, error));
    times->layer_s = layer_s(split, fullest, times->head_s);
    return time_dense_layer(analytic, &of, split, times->layer_s, &times->dense_s, error);
}

// Chunks spread dense layers over the stages, of which the fullest one alone has fewest: how much less a micro-step of
// the stage with most of the others takes.
static double spread_s(const Analytic *analytic, const StageSplit *split, const PipelineShape *shape, double layer_s,
                       double dense_s) {
    double most_s = 0;
    if (shape->chunks == 1 || !stage_mixes_layers(&analytic->model)) {
        return 0;
    }
    for (int stage = 0; stage < shape->stages; stage++) {
        double of_stage_s = 0;
        for (int32_t chunk = 0; chunk < shape->chunks; chunk++) {
            const int32_t part = pipeline_part(shape, stage, chunk), dense = split->part_dense[part];
            of_stage_s += (split->part_layers[part] - dense) * layer_s + dense * dense_s;
        }
        most_s = fmax(most_s, of_stage_s);
    }
    return fmax(0, split->layers[STAGE_FULLEST] * layer_s - most_s);
}

static void take_off(Estimate *estimate, double seconds) {
    static const AxisMask inner = AXES_SEQUENCE | AXES_TENSOR | AXIS_BIT(AXIS_EP);
    double of_layers_s = estimate->compute_s + estimate->overhead_s;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        of_layers_s += inner & AXIS_BIT(axis) ? estimate->exposed_s[axis] : 0;
    }
    const double kept = 1 - seconds / of_layers_s;
    estimate->compute_s *= kept;
    estimate->overhead_s *= kept;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        estimate->exposed_s[axis] *= inner & AXIS_BIT(axis) ? kept : 1;
    }
    estimate->step_s -= seconds;
}

// A stage of one chunk waits for what it sends before it takes anything (lower_messages.c).
static bool messages_hold(const Analytic *analytic, const TrainPlan *plan) {
    return analytic->cost.target->messages_in_turn && plan_chunks(plan) == 1 && !plan->p2p_waits;
}

// Where the host issues the next pass while a message is on its way, the device waits for the later of the two.
static double shown_message_s(const Analytic *analytic, const StageTimes *fullest, double forward_share,
                              double message_s) {
    const TargetRuntime *runtime = &analytic->cost.target->runtime;
    const bool beside = runtime->messages_stop_host && runtime->messages_announced;
    return beside ? fmax(0, message_s - fullest->host_s * fmin(forward_share, 1 - forward_share)) : message_s;
}

// What bounds others, of any schedule and with more layers on a stage: of a host that goes on at messages.
static Status note_pace(Analytic *analytic, const TrainPlan *plan, const StageSplit *split, const StageTimes *fullest,
                        double head_s, Error *error) {
    StageTimes going_on = *fullest;
    if (stops_host(analytic, plan)) {
        const AlonePlan of = {stage_plan_alone(analytic, plan), .pipeline = plan};
        TRY(time_stage(analytic, &of, split->stage[STAGE_FULLEST], &going_on, error));
    }
    const double each_s = layer_s(split, &going_on, head_s);
    return stage_note_pace(analytic, plan, split, each_s * device_share(analytic, plan, &going_on), error);
}

// Writes the times of the parts.
static Status time_parts(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape, const StageSplit *split,
                         TimedStages *times, PipelineTimes *parts, Error *error) {
    const StageTimes *fullest = &times->fullest;
    const AlonePlan of = {
        .plan = stage_plan_alone(analytic, plan), .stage = split->stage[STAGE_FULLEST], .pipeline = plan};
    StageMessage message;
    TRY(stage_mean_message(analytic, &of, &message, error));
    const bool beside = stage_sends_beside(plan), waits = shape->chunks > 1 && !beside;
    const double sleep_s = message_sleep_s(&analytic->cost, &plan->mesh), forward_share = stage_forward_share(plan);
    const double all_s = beside ? message.seconds : whole_s(&message);
    const double message_s = sleep_s > 0 ? all_s : shown_message_s(analytic, fullest, forward_share, all_s);
    const ChunkHost host = chunk_host(analytic, plan, shape, split, fullest);
    const ChunkHost slower = beside_messages(plan, &message);
    const bool once = stage_is_once(&fullest->step);
    const double waited_s = waits ? 2 * whole_s(&message) : 0;
    times->slower_s = shape->chunks * waited_s + stage_issue_s(split, shape, split->stage[STAGE_FULLEST], &slower);
    times->issue_s = stage_issue_s(split, shape, split->stage[STAGE_FULLEST], &host);
    stage_time_parts(split, times->layer_s, times->dense_s, times->head_s, waited_s);
    stage_add_issue(split, &slower);
    stage_add_issue(split, &host);
    stage_time_once(analytic, split, &fullest->step.once, times->layer_s, forward_share);
    *parts = (PipelineTimes){.part_s = split->part_s,
                             .forward_share = forward_share,
                             .device_share = device_share(analytic, plan, fullest),
                             .last_share = fullest->last_s / fullest->pace_s,
                             .first_s = once ? split->first_s : NULL,
                             .last_s = once ? split->last_s : NULL,
                             .message_s = plan->p2p_waits ? 0 : message_s,
                             .held_s = messages_hold(analytic, plan) ? message_s : 0,
                             .sleep_s = sleep_s};
    return STATUS_OK;
}

// The terms of the fullest stage, and what they lack of the step: waiting.
static void add_up(const Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape, const StageSplit *split,
                   const TimedStages *times, double tied_s, double step_s, Estimate *estimate) {
    const int micro_steps = plan->grad_accum;
    const double slower_s = times->slower_s * micro_steps, issue_s = times->issue_s * micro_steps;
    *estimate = times->fullest.step;
    stage_repeat_rounds(analytic, plan, estimate);
    estimate->stage = split->stage[STAGE_FULLEST];
    take_off(estimate, spread_s(analytic, split, shape, times->layer_s, times->dense_s) * micro_steps);
    add_head(split, times, micro_steps, estimate);
    *(plan->p2p_waits ? &estimate->exposed_s[AXIS_PP] : &estimate->compute_s) += slower_s;
    estimate->overhead_s += issue_s;
    estimate->exposed_s[AXIS_PP] += tied_s;
    estimate->step_s += slower_s + issue_s + tied_s;
    estimate->bubble_s = fmax(0, step_s - estimate->step_s);
    estimate->step_s += estimate->bubble_s;
}

static Status time_pipeline(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                            const StageSplit *split, Estimate *estimate, Error *error) {
    const TrainPlan alone = stage_plan_alone(analytic, plan);
    TimedStages times;
    TRY(time_stages(analytic, plan, shape, split, &times, error));
    PipelineTimes parts;
    TRY(time_parts(analytic, plan, shape, split, &times, &parts, error));
    TRY(note_pace(analytic, plan, split, &times.fullest, times.head_s, error));
    // Beside what the stage has not reduced yet.
    const double tied_s = fmax(0, stage_tied_s(analytic, plan, shape) - times.fullest.step.update.behind_s);
    const double least_s = stage_least_span_s(split, shape, &parts);
    double step_s = tied_s + stage_rounds_s(analytic, plan, &times.fullest, least_s);
    const bool hopeless = analytic_is_hopeless(analytic, step_s);
    if (!hopeless) {
        const double span_s = pipeline_span_s(&analytic->orders, shape, &parts);
        step_s = tied_s + stage_rounds_s(analytic, plan, &times.fullest, span_s);
    }
    add_up(analytic, plan, shape, split, &times, tied_s, step_s, estimate);
    estimate->is_bound = hopeless;
    return analytic_wants_bytes(analytic, estimate->step_s)
               ? stage_add_bytes(analytic, &alone, shape, split, estimate->stage, estimate, error)
               : analytic_no_bytes(estimate);
}

// Of the fullest stage, where a limit is set and its bytes are known: a look-up comes first.
static Status find_too_large(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape,
                             const StageSplit *split, Estimate *estimate, Error *error) {
    const TrainPlan alone = stage_plan_alone(analytic, plan);
    *estimate = (Estimate){.stage = split->stage[STAGE_FULLEST]};
    if (analytic->limits.bytes > 0 && analytic_bytes_are_known(analytic, &alone, estimate->stage)) {
        TRY(stage_add_bytes(analytic, &alone, shape, split, estimate->stage, estimate, error));
        estimate->is_too_large = estimate->reserved_bytes > analytic->limits.bytes;
    }
    return STATUS_OK;
}

Status analytic_estimate_stages(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    PipelineShape shape;
    TRY(stage_shape(analytic->cost.target, plan, &shape, error));
    const StageSplit *split = stage_split(analytic, plan);
    TRY(find_too_large(analytic, plan, &shape, split, estimate, error));
    TRY(estimate->is_too_large ? STATUS_OK : time_pipeline(analytic, plan, &shape, split, estimate, error));
    const bool enough = estimate->is_too_large || !analytic_wants_bytes(analytic, estimate->step_s);
    return enough ? STATUS_OK : stage_add_ends(analytic, plan, &shape, split, estimate, error);
}
