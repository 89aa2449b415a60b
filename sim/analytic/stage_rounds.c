// A step of several schedules, one after another: what each of them does again, and what the step does once.

#include <math.h>

#include "sim/analytic/stages.h"
#include "sim/frameworks/pp_groups.h"

HostStops stage_host_stops(const AlonePlan *of) {
    HostStops stops = {{false}};
    if (of->stops_host) {
        stops.after[OVERLAP_FORWARD] = of->stage + 1 < mesh_stages(&of->plan.mesh);
        stops.after[OVERLAP_END] = of->stage > 0;
    }
    return stops;
}

// Alone, a stage goes through all its chunks in each micro-step, so only its last one hides reductions. Where groups of
// micro-steps go through chunk after chunk, what is reduced behind a chunk has a group's backward through the chunks
// that follow; the last chunk's reductions have none (as gathers of updated weights: gather_open_s).
void stage_reduce_behind_chunks(const Analytic *analytic, const TrainPlan *plan, StageTimes *times) {
    UpdateTimes *update = &times->step.update;
    if (!plan || plan->pp_schedule != PP_INTERLEAVED || plan_chunks(plan) == 1 || stage_is_once(&times->step) ||
        target_reduce_overlap(analytic->cost.target, plan) == REDUCE_OVERLAP_OFF) {
        return;
    }
    const int group = target_pp_group(analytic->cost.target, plan);
    const double backward_s = times->pace_s * (1 - stage_forward_share(plan));
    const double late_s = fmax(0, update->late_s - (group - 1) * backward_s);
    const double behind_s = (update->late_s - late_s) * (1 - 1.0 / plan_chunks(plan));
    const double hidden_s = fmax(0, fmin(behind_s, times->step.exposed_s[update->axis]));
    // As slow beside them as the last micro-step's backward, which had some all along.
    const double slower_s = backward_s > 0 ? hidden_s * fmin(1, times->last_s / backward_s) : 0;
    update->late_s -= hidden_s;
    times->last_s += slower_s;
    times->step.exposed_s[update->axis] -= hidden_s;
    times->step.compute_s += slower_s;
    times->step.step_s += slower_s - hidden_s;
}

// What is neither a further micro-step nor a longer first or last one that the span has (of the first chunk, as no
// stage waits for the others'): of a round, and, with the optimizer, of a step.
static double beside_s(const TrainPlan *plan, const StageTimes *fullest) {
    const Estimate *step = &fullest->step;
    return step->step_s - plan_round_steps(plan) * fullest->pace_s - fullest->last_s / plan_chunks(plan) -
           once_sum_s(&step->once);
}

static double once_s(const Analytic *analytic, const TrainPlan *plan, const Estimate *step) {
    return step->update.seconds + cost_step_fixed_s(&analytic->cost, &analytic->model, plan);
}

// The first stage ends a round and begins the next one: what it has not reduced then it reduces meanwhile, but where
// gathers come first.
static double hidden_s(const Estimate *step) {
    return stage_is_once(step) ? 0 : step->update.late_s;
}

// A round takes at least as long as its reductions and, between them, from the end of its first backward, which waits
// for the last reduction of the round before, to the beginning of its last one.
static double reducing_round_s(const TrainPlan *plan, const StageTimes *fullest) {
    const int steps = plan_round_steps(plan);
    const double between = steps > 1 ? steps - 2 + stage_forward_share(plan) : 0;
    return fullest->step.update.reduces_s + between * fullest->pace_s;
}

double stage_rounds_s(const Analytic *analytic, const TrainPlan *plan, const StageTimes *fullest, double span_s) {
    const Estimate *step = &fullest->step;
    const double last_s = span_s + beside_s(plan, fullest);
    const double each_s = last_s - once_s(analytic, plan, step) - hidden_s(step);
    return last_s + (plan_rounds(plan) - 1) * fmax(each_s, reducing_round_s(plan, fullest));
}

void stage_repeat_rounds(const Analytic *analytic, const TrainPlan *plan, Estimate *step) {
    const int more = plan_rounds(plan) - 1;
    const UpdateTimes *update = &step->update;
    const double fixed_s = cost_step_fixed_s(&analytic->cost, &analytic->model, plan), late_s = hidden_s(step);
    const double update_host_s = fmax(0, update->seconds - step->optimizer_s - update->exposed_s);
    step->step_s += more * (step->step_s - once_s(analytic, plan, step) - late_s);
    step->compute_s += more * step->compute_s;
    step->overhead_s += more * (step->overhead_s - fixed_s - update_host_s);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const double once = axis == update->axis ? update->exposed_s + late_s : 0;
        step->exposed_s[axis] += more * (step->exposed_s[axis] - once);
    }
}
