// Bubbles and held activations of pipelines on unit costs: forward 1 and backward 2 for the whole share of a stage, of
// which a chunk takes its part; messages free. The figures come from a replay of PyTorch's own orders
// (torch.distributed.pipelining.schedules of 2026-08) on these costs; each bubble is (stages - 1) / (micro-steps x
// virtual stages) of the busy time.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/engine/engine.h"
#include "sim/step/schedules/schedule.h"
#include "tests/support/sizes.h"

typedef struct Row {
    PpSchedule schedule;
    int stages, micro_steps, chunks;
    double makespan;               // to four digits
    double held_first, held_last;  // on the first and the last stage, in micro-steps of the whole share
} Row;

static const Row rows[] = {{PP_GPIPE, 2, 2, 1, 9, 2, 2},
                           {PP_1F1B, 2, 2, 1, 9, 2, 1},
                           {PP_INTERLEAVED, 2, 2, 2, 7.5, 2, 1.5},
                           {PP_INTERLEAVED, 2, 2, 4, 6.75, 2, 1.75},
                           {PP_GPIPE, 2, 4, 1, 15, 4, 4},
                           {PP_1F1B, 2, 4, 1, 15, 2, 1},
                           {PP_INTERLEAVED, 2, 4, 2, 13.5, 2.5, 1.5},
                           {PP_INTERLEAVED, 2, 4, 4, 12.75, 2.25, 1.75},
                           {PP_GPIPE, 2, 8, 1, 27, 8, 8},
                           {PP_1F1B, 2, 8, 1, 27, 2, 1},
                           {PP_INTERLEAVED, 2, 8, 2, 25.5, 2.5, 1.5},
                           {PP_INTERLEAVED, 2, 8, 4, 24.75, 2.25, 1.75},
                           {PP_GPIPE, 2, 16, 1, 51, 16, 16},
                           {PP_1F1B, 2, 16, 1, 51, 2, 1},
                           {PP_INTERLEAVED, 2, 16, 2, 49.5, 2.5, 1.5},
                           {PP_INTERLEAVED, 2, 16, 4, 48.75, 2.25, 1.75},
                           {PP_GPIPE, 4, 4, 1, 21, 4, 4},
                           {PP_1F1B, 4, 4, 1, 21, 4, 1},
                           {PP_INTERLEAVED, 4, 4, 2, 16.5, 4, 2.5},
                           {PP_INTERLEAVED, 4, 4, 4, 14.25, 4, 3.25},
                           {PP_GPIPE, 4, 8, 1, 33, 8, 8},
                           {PP_1F1B, 4, 8, 1, 33, 4, 1},
                           {PP_INTERLEAVED, 4, 8, 2, 28.5, 5.5, 2.5},
                           {PP_INTERLEAVED, 4, 8, 4, 26.25, 4.75, 3.25},
                           {PP_GPIPE, 4, 16, 1, 57, 16, 16},
                           {PP_1F1B, 4, 16, 1, 57, 4, 1},
                           {PP_INTERLEAVED, 4, 16, 2, 52.5, 5.5, 2.5},
                           {PP_INTERLEAVED, 4, 16, 4, 50.25, 4.75, 3.25},
                           {PP_GPIPE, 4, 32, 1, 105, 32, 32},
                           {PP_1F1B, 4, 32, 1, 105, 4, 1},
                           {PP_INTERLEAVED, 4, 32, 2, 100.5, 5.5, 2.5},
                           {PP_INTERLEAVED, 4, 32, 4, 98.25, 4.75, 3.25},
                           {PP_GPIPE, 8, 8, 1, 45, 8, 8},
                           {PP_1F1B, 8, 8, 1, 45, 8, 1},
                           {PP_INTERLEAVED, 8, 8, 2, 34.5, 8, 4.5},
                           {PP_INTERLEAVED, 8, 8, 4, 29.25, 8, 6.25},
                           {PP_GPIPE, 8, 16, 1, 69, 16, 16},
                           {PP_1F1B, 8, 16, 1, 69, 8, 1},
                           {PP_INTERLEAVED, 8, 16, 2, 58.5, 11.5, 4.5},
                           {PP_INTERLEAVED, 8, 16, 4, 53.25, 9.75, 6.25},
                           {PP_GPIPE, 8, 32, 1, 117, 32, 32},
                           {PP_1F1B, 8, 32, 1, 117, 8, 1},
                           {PP_INTERLEAVED, 8, 32, 2, 106.5, 11.5, 4.5},
                           {PP_INTERLEAVED, 8, 32, 4, 101.2, 9.75, 6.25},
                           {PP_GPIPE, 8, 64, 1, 213, 64, 64},
                           {PP_1F1B, 8, 64, 1, 213, 8, 1},
                           {PP_INTERLEAVED, 8, 64, 2, 202.5, 11.5, 4.5},
                           {PP_INTERLEAVED, 8, 64, 4, 197.2, 9.75, 6.25},
                           {PP_GPIPE, 16, 16, 1, 93, 16, 16},
                           {PP_1F1B, 16, 16, 1, 93, 16, 1},
                           {PP_INTERLEAVED, 16, 16, 2, 70.5, 16, 8.5},
                           {PP_INTERLEAVED, 16, 16, 4, 59.25, 16, 12.25},
                           {PP_GPIPE, 16, 32, 1, 141, 32, 32},
                           {PP_1F1B, 16, 32, 1, 141, 16, 1},
                           {PP_INTERLEAVED, 16, 32, 2, 118.5, 23.5, 8.5},
                           {PP_INTERLEAVED, 16, 32, 4, 107.2, 19.75, 12.25},
                           {PP_GPIPE, 16, 64, 1, 237, 64, 64},
                           {PP_1F1B, 16, 64, 1, 237, 16, 1},
                           {PP_INTERLEAVED, 16, 64, 2, 214.5, 23.5, 8.5},
                           {PP_INTERLEAVED, 16, 64, 4, 203.2, 19.75, 12.25},
                           {PP_GPIPE, 16, 128, 1, 429, 128, 128},
                           {PP_1F1B, 16, 128, 1, 429, 16, 1},
                           {PP_INTERLEAVED, 16, 128, 2, 406.5, 23.5, 8.5},
                           {PP_INTERLEAVED, 16, 128, 4, 395.2, 19.75, 12.25}};
enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct Case {
    Arena arena;
    StepPrograms programs;
    EngineCosts *costs;
} Case;

enum { TP_NS = 1000 };  // of a collective over tp, where there are any

// One layer for each chunk; of its work the attention alone takes time.
static void case_begin(Case *pipeline, const Row *row, int tp) {
    Error error = {0};
    ModelSpec model;
    const Target *target = NULL;
    cr_assert_eq(model_find("tiny", &pipeline->arena, &model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find("ndtune", &target, &error), STATUS_OK, "%s", error.message);
    model.layers = row->stages * row->chunks;
    TrainPlan plan = {.mesh = {SIZES(1, 1, 1, 1)},
                      .seq = 64,
                      .micro_batch = 1,
                      .grad_accum = row->micro_steps,
                      .pp_schedule = row->schedule,
                      .virtual_stages = row->chunks};
    plan.mesh.size[AXIS_PP] = row->stages;
    plan.mesh.size[AXIS_TP] = tp;
    plan_canonical(&plan);
    cr_assert_eq(step_lower_stages(&model, &plan, target, &pipeline->arena, &pipeline->programs, &error), STATUS_OK,
                 "%s", error.message);
    pipeline->costs = ARENA_ARRAY(&pipeline->arena, EngineCosts, row->stages);
    for (int stage = 0; stage < row->stages; stage++) {
        const StepProgram *program = &pipeline->programs.of[stage];
        TaskCost *tasks = ARENA_ARRAY(&pipeline->arena, TaskCost, program->task_count);
        for (int32_t i = 0; i < program->task_count; i++) {
            const TaskKind kind = program->tasks[i].kind;
            tasks[i].seconds = kind == TASK_ATTENTION              ? 1.0 / row->chunks
                               : kind == TASK_ATTENTION_BACKWARD   ? 2.0 / row->chunks
                               : program->tasks[i].lane == LANE_TP ? 1e-9 * TP_NS
                                                                   : 0;
        }
        pipeline->costs[stage] = (EngineCosts){.tasks = tasks};
    }
}

Test(pipeline_bubble, a_step_takes_as_long_as_its_schedule_says) {
    for (int i = 0; i < ROWS; i++) {
        const Row *row = &rows[i];
        Case pipeline = {0};
        Error error = {0};
        EngineResult result;
        const StepProgram *program;
        case_begin(&pipeline, row, 1);
        cr_assert_eq(engine_run_stages_costs(&pipeline.programs, pipeline.costs, &(EngineOptions){0}, &pipeline.arena,
                                             &program, &result, &error),
                     STATUS_OK, "%s", error.message);
        const double busy_s = 3.0 * row->micro_steps,
                     bubble_s = busy_s * (row->stages - 1) / (row->micro_steps * row->chunks);
        cr_expect_float_eq(result.step_s, row->makespan, 0.051, "row %d: %g s, not %g", i, result.step_s,
                           row->makespan);
        cr_expect_float_eq(result.step_s, busy_s + bubble_s, 1e-6, "row %d", i);
        cr_expect_float_eq(result.compute_s, busy_s, 1e-6, "row %d", i);
        cr_expect_float_eq(result.bubble_s, bubble_s, 1e-6, "row %d: bubble %g s", i, result.bubble_s);
        arena_free(&pipeline.arena);
    }
}

// Between a message and the next product there is a collective over tp: its own time is tp's, not the wait before it.
Test(pipeline_bubble, a_wait_for_a_message_is_bubble_though_a_collective_follows_it) {
    static const Row row = {PP_1F1B, 4, 8, 1, 33, 4, 1};
    Case pipeline = {0};
    Error error = {0};
    EngineResult result;
    const StepProgram *program;
    case_begin(&pipeline, &row, 2);
    cr_assert_eq(engine_run_stages_costs(&pipeline.programs, pipeline.costs, &(EngineOptions){0}, &pipeline.arena,
                                         &program, &result, &error),
                 STATUS_OK, "%s", error.message);
    cr_expect_float_eq(result.bubble_s, 9, 1e-3, "%g s", result.bubble_s);
    cr_expect_gt(result.exposed_s[AXIS_TP], 0);
    cr_expect_lt(result.exposed_s[AXIS_TP], 1e-3);
    arena_free(&pipeline.arena);
}

static double most_held(const Row *row, int stage, Arena *arena) {
    const Schedule *schedule = schedule_find(pp_schedule_names[row->schedule]);
    const ScheduleShape shape = {stage, row->stages, row->chunks, row->micro_steps};
    ScheduleAction *actions = ARENA_ARRAY(arena, ScheduleAction, schedule_action_count(&shape));
    schedule->order(&shape, actions);
    int held = 0, most = 0;
    for (int32_t i = 0; i < schedule_action_count(&shape); i++) {
        held += actions[i].work == WORK_FORWARD ? 1 : -1;
        most = held > most ? held : most;
    }
    return (double)most / row->chunks;
}

Test(pipeline_bubble, stages_hold_as_much_as_their_schedule_says) {
    for (int i = 0; i < ROWS; i++) {
        Arena arena = {0};
        cr_expect_eq(most_held(&rows[i], 0, &arena), rows[i].held_first, "row %d", i);
        cr_expect_eq(most_held(&rows[i], rows[i].stages - 1, &arena), rows[i].held_last, "row %d", i);
        arena_free(&arena);
    }
}
