// The engine's entry point: compile, simulate, report.

#include "sim/engine/engine.h"

#include "sim/engine/meeting.h"

static const double s_per_ps = 1e-12;

// The rank that the step waits for: the first among the slowest to compute, and among these, with the slowest links.
static int32_t slowest_actor(const RankClasses *classes) {
    int32_t slowest = 0;
    for (int32_t i = 1; i < classes->actors; i++) {
        const double behind = classes->slowdown[i] - classes->slowdown[slowest];
        const bool worse_links = classes->link_slowdown[i] > classes->link_slowdown[slowest];
        slowest = behind > 0 || (behind == 0 && worse_links) ? i : slowest;
    }
    return slowest;
}

static Status simulation_prepare(const StepProgram *program, const EngineCosts *costs, const EngineOptions *options,
                                 Simulation *simulation, Error *error) {
    Arena *arena = simulation->arena;
    simulation->options = *options;
    simulation->complete = true;
    TRY(engine_compile(program, costs, arena, &simulation->program, error));
    TRY(rank_classes_find(program, options, arena, &simulation->classes, error));
    const int32_t actors = simulation->classes.actors;
    walker_begin(&simulation->walker, &simulation->program, arena);
    simulation->actors = ARENA_ARRAY(arena, Actor, actors);
    simulation->lanes = (1u << program->lane_count) - 1;
    for (int32_t i = 0; i < actors; i++) {
        simulation->actors[i].idle = simulation->lanes;
        simulation->actors[i].look = simulation->lanes;
        for (int lane = 0; lane < ENGINE_LANES; lane++) {
            simulation->actors[i].next_ps[lane] = INT64_MAX;
        }
    }
    actor_queue_init(&simulation->queue, actors, arena);
    simulation->arrived = ARENA_ARRAY(arena, int32_t, program->group_count * program->lane_count * actors + 1);
    simulation->touched = ARENA_ARRAY(arena, int32_t, actors);
    simulation->changed = ARENA_ARRAY(arena, int32_t, actors);
    simulation->sums = ARENA_ARRAY(arena, TaskSum, program->task_count);
    simulation->observed = slowest_actor(&simulation->classes);
    simulation->rates = rate_cache_new(arena);
    simulation->repetition = repetition_new(simulation, arena);
    return STATUS_OK;
}

// A span's place in the report: its rank and its position in issue order.
typedef struct SpanKey {
    uint64_t key;
    const Span *span;
} SpanKey;

enum { POSITION_BITS = 40, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

// By one digit, stable; false where all have the same.
static bool sort_digit(const SpanKey *from, size_t count, int shift, SpanKey *to) {
    size_t first[DIGITS + 1] = {0};
    for (size_t i = 0; i < count; i++) {
        first[(from[i].key >> shift) % DIGITS + 1]++;
    }
    if (count == 0 || first[(from[0].key >> shift) % DIGITS + 1] == count) {
        return false;
    }
    for (int digit = 0; digit < DIGITS; digit++) {
        first[digit + 1] += first[digit];
    }
    for (size_t i = 0; i < count; i++) {
        to[first[(from[i].key >> shift) % DIGITS]++] = from[i];
    }
    return true;
}

static void report_spans(const Simulation *simulation, Arena *arena, Timeline *timeline) {
    const size_t count = simulation->span_count;
    SpanKey *keys = ARENA_UNCLEARED(simulation->arena, SpanKey, count);
    SpanKey *other = ARENA_UNCLEARED(simulation->arena, SpanKey, count);
    for (size_t i = 0; i < count; i++) {
        const SpanEntry *entry = &simulation->spans[i];
        keys[i] = (SpanKey){(uint64_t)entry->span.rank << POSITION_BITS | (uint64_t)entry->position, &entry->span};
    }
    for (int shift = 0; shift < 64; shift += DIGIT_BITS) {  // radix sort (Knuth 5.2.5)
        if (sort_digit(keys, count, shift, other)) {
            SpanKey *sorted = other;
            other = keys;
            keys = sorted;
        }
    }
    timeline->spans = ARENA_UNCLEARED(arena, Span, count);
    timeline->span_count = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        timeline->spans[i] = *keys[i].span;
    }
}

static void report(Simulation *simulation, double step_fixed_s, Arena *arena, EngineResult *result) {
    const Attribution *attribution = &simulation->attribution;
    const int32_t tasks = simulation->program.step->task_count;
    const int64_t fixed_ps = engine_picoseconds(step_fixed_s);
    const int64_t step_ps = simulation->now_ps + simulation->skipped_ps + fixed_ps;
    *result = (EngineResult){.step_s = (double)step_ps * s_per_ps,
                             .compute_s = (double)attribution->compute_ps * s_per_ps,
                             .optimizer_s = (double)attribution->optimizer_ps * s_per_ps,
                             .bubble_s = (double)attribution->bubble_ps * s_per_ps,
                             .overhead_s = (double)(attribution->overhead_ps + fixed_ps) * s_per_ps,
                             .events = simulation->events,
                             .instances = simulation->events + simulation->instances,
                             .classes = simulation->classes.actors,
                             .representative = simulation->classes.rank[simulation->observed],
                             .totals = ARENA_ARRAY(arena, TaskTotal, tasks)};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        result->exposed_s[axis] = (double)attribution->exposed_ps[axis] * s_per_ps;
    }
    for (int32_t i = 0; i < tasks; i++) {
        result->totals[i] =
            (TaskTotal){.count = simulation->sums[i].count, .seconds = (double)simulation->sums[i].ps * s_per_ps};
    }
    result->timeline =
        (Timeline){.origin = TIMELINE_SIMULATED, .complete = simulation->complete, .step_s = result->step_s};
    if (simulation->options.keep_spans) {
        report_spans(simulation, arena, &result->timeline);
    } else {
        result->timeline.complete = false;
    }
}

void engine_wait_for_data(const CostModel *cost, const TrainPlan *plan, EngineResult *result) {
    result->timeline.step_s += cost_wait_for_data(cost, plan, &result->step_s, &result->overhead_s);
}

Status engine_run_costs(const StepProgram *program, const EngineCosts *costs, const EngineOptions *options,
                        Arena *arena, EngineResult *result, Error *error) {
    Arena scratch = {0};
    Simulation simulation = {.arena = &scratch};
    Status status = simulation_prepare(program, costs, options, &simulation, error);
    if (status == STATUS_OK) {
        status = simulation_run(&simulation, error);
    }
    if (status == STATUS_OK) {
        attribution_finish(&simulation, &simulation.actors[simulation.observed]);
        report(&simulation, costs->step_fixed_s, arena, result);
    } else {
        error_wrap(error, "engine");
    }
    arena_free(&scratch);
    return status;
}

Status engine_run(const StepProgram *program, const CostModel *cost, const EngineOptions *options, Arena *arena,
                  EngineResult *result, Error *error) {
    Arena scratch = {0};
    const EngineCosts costs = {.tasks = cost_program(cost, program, &scratch),
                               .interference = cost->profile->interference,
                               .step_fixed_s = cost_step_fixed_s(cost, &program->model, &program->plan)};
    const Status status = engine_run_costs(program, &costs, options, arena, result, error);
    arena_free(&scratch);
    TRY(status);
    engine_wait_for_data(cost, &program->plan, result);
    return STATUS_OK;
}

// The stage whose compute lane has most to do.
static int32_t busiest_stage(const Meeting *meeting) {
    int32_t busiest = 0;
    for (int32_t s = 1; s < meeting->count; s++) {
        const Attribution *here = &meeting->stages[s].simulation.attribution;
        const Attribution *most = &meeting->stages[busiest].simulation.attribution;
        busiest = here->compute_ps > most->compute_ps ? s : busiest;
    }
    return busiest;
}

// A message goes to the counterpart of its rank: there is one rank of each stage, or all are there. A stage alone does
// not repeat, because the others are not always where they were.
static Status prepare_stage(const StepProgram *program, const EngineCosts *costs, const EngineOptions *options,
                            Simulation *simulation, Error *error) {
    EngineOptions of_stage = *options;
    of_stage.unroll = true;
    of_stage.all_ranks = options->all_ranks || options->rank_slowdown || options->link_slowdown;
    return simulation_prepare(program, costs, &of_stage, simulation, error);
}

// The step is over when the last stage is; what the observed one waits for then is bubble.
static void end_with_the_last(const Meeting *meeting, Simulation *observed) {
    int64_t end_ps = observed->now_ps;
    for (int32_t s = 0; s < meeting->count; s++) {
        const int64_t here = meeting->stages[s].simulation.now_ps;
        end_ps = here > end_ps ? here : end_ps;
    }
    attribution_finish(observed, &observed->actors[observed->observed]);
    observed->attribution.bubble_ps += end_ps - observed->now_ps;
    observed->now_ps = end_ps;
}

static Status run_meeting(const StepPrograms *programs, const EngineCosts *costs, const EngineOptions *options,
                          Meeting *meeting, Arena *scratch, Error *error) {
    meeting->count = programs->count;
    meeting->stages = ARENA_ARRAY(scratch, MeetingStage, programs->count);
    for (int stage = 0; stage < programs->count; stage++) {
        Simulation *simulation = &meeting->stages[stage].simulation;
        simulation->arena = scratch;
        TRY(prepare_stage(&programs->of[stage], &costs[stage], options, simulation, error));
    }
    meeting_init(meeting, scratch);
    if (!options->unroll && !options->keep_spans) {
        meeting->repetition = meeting_repetition_new(meeting, scratch);
    }
    return meeting_run(meeting, error);
}

// Of each stage the rank that it is known by; all are on one clock.
static Timeline *report_stages(Meeting *meeting, double step_s, Arena *arena) {
    Timeline *stages = ARENA_ARRAY(arena, Timeline, meeting->count);
    for (int32_t s = 0; s < meeting->count; s++) {
        Simulation *simulation = &meeting->stages[s].simulation;
        const int32_t rank = simulation->classes.rank[simulation->observed];
        Timeline *stage = &stages[s];
        *stage = (Timeline){.origin = TIMELINE_SIMULATED, .complete = simulation->complete, .step_s = step_s};
        report_spans(simulation, arena, stage);
        int64_t kept = 0;
        for (int64_t i = 0; i < stage->span_count; i++) {
            if (stage->spans[i].rank == rank) {
                stage->spans[kept++] = stage->spans[i];
            }
        }
        stage->span_count = kept;
    }
    return stages;
}

Status engine_run_stages_costs(const StepPrograms *programs, const EngineCosts *costs, const EngineOptions *options,
                               Arena *arena, const StepProgram **program, EngineResult *result, Error *error) {
    Arena scratch = {0};
    Meeting meeting = {0};
    const Status status = run_meeting(programs, costs, options, &meeting, &scratch, error);
    if (status == STATUS_OK) {
        const int32_t stage = busiest_stage(&meeting);
        *program = &programs->of[stage];
        end_with_the_last(&meeting, &meeting.stages[stage].simulation);
        report(&meeting.stages[stage].simulation, costs[stage].step_fixed_s, arena, result);
        result->stages = options->keep_spans ? report_stages(&meeting, result->step_s, arena) : NULL;
    } else {
        error_wrap(error, "engine");
    }
    arena_free(&scratch);
    return status;
}

Status engine_run_stages(const StepPrograms *programs, const CostModel *cost, const EngineOptions *options,
                         Arena *arena, const StepProgram **program, EngineResult *result, Error *error) {
    *program = &programs->of[0];
    if (programs->count == 1) {
        return engine_run(*program, cost, options, arena, result, error);
    }
    Arena scratch = {0};
    EngineCosts *costs = ARENA_ARRAY(&scratch, EngineCosts, programs->count);
    const CostModel seen = cost_of_stages(cost, programs->of, programs->count, &scratch);
    for (int stage = 0; stage < programs->count; stage++) {
        costs[stage] = (EngineCosts){
            .tasks = cost_program(&seen, &programs->of[stage], &scratch),
            .interference = cost->profile->interference,
            .step_fixed_s = cost_step_fixed_s(cost, &programs->of[stage].model, &programs->of[stage].plan)};
    }
    const Status status = engine_run_stages_costs(programs, costs, options, arena, program, result, error);
    arena_free(&scratch);
    TRY(status);
    engine_wait_for_data(cost, &programs->of[0].plan, result);
    return STATUS_OK;
}
