// Bubbles and held activations of pipelines on unit costs: forward 1 and backward 2 for the whole share of a stage, of
// which a chunk takes its part; messages free. The figures come from a replay of PyTorch's own orders
// (torch.distributed.pipelining.schedules of 2026-08) on these costs; each bubble is (stages - 1) / (micro-steps x
// virtual stages) of the busy time.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/engine/engine.h"
#include "sim/step/schedules/order_file.h"
#include "tests/support/sizes.h"
#include "tests/support/written_order.h"

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

// Gradients of inputs and of weights apart: both 1, or 1.2 and 0.8. Held are activations whose weights are due.
typedef struct SplitRow {
    PpSchedule schedule;
    int stages, micro_steps, chunks;
    double makespan, uneven_makespan;
    double held_first, held_last, held_most;
} SplitRow;

static const SplitRow split_rows[] = {{PP_ZERO_BUBBLE, 2, 2, 1, 7, 7.4, 2, 2, 2},
                                      {PP_ZERO_BUBBLE, 2, 2, 2, 6.5, 6.7, 2, 2, 2},
                                      {PP_ZBV, 2, 2, 2, 7, 7.2, 1.5, 2, 2},
                                      {PP_ZERO_BUBBLE, 2, 4, 1, 13, 13.4, 2, 2, 2},
                                      {PP_ZERO_BUBBLE, 2, 4, 2, 12.5, 12.7, 2, 2, 2},
                                      {PP_ZBV, 2, 4, 2, 12.5, 12.6, 2, 2, 2},
                                      {PP_DUALPIPEV, 2, 4, 2, 12.5, 12.7, 2.5, 2.5, 2.5},
                                      {PP_ZERO_BUBBLE, 2, 8, 1, 25, 25.4, 2, 2, 2},
                                      {PP_ZERO_BUBBLE, 2, 8, 2, 24.5, 24.7, 2, 2, 2},
                                      {PP_ZBV, 2, 8, 2, 24.5, 24.6, 2, 2, 2},
                                      {PP_DUALPIPEV, 2, 8, 2, 24.5, 24.7, 2.5, 2.5, 2.5},
                                      {PP_ZERO_BUBBLE, 2, 16, 1, 49, 49.4, 2, 2, 2},
                                      {PP_ZERO_BUBBLE, 2, 16, 2, 48.5, 48.7, 2, 2, 2},
                                      {PP_ZBV, 2, 16, 2, 48.5, 48.6, 2, 2, 2},
                                      {PP_DUALPIPEV, 2, 16, 2, 48.5, 48.7, 2.5, 2.5, 2.5},
                                      {PP_ZERO_BUBBLE, 4, 4, 1, 15, 16.2, 4, 4, 4},
                                      {PP_ZERO_BUBBLE, 4, 4, 2, 13.5, 14.1, 4, 4, 4},
                                      {PP_ZBV, 4, 4, 2, 15, 15.6, 2.5, 4, 4},
                                      {PP_ZERO_BUBBLE, 4, 8, 1, 27, 28.2, 4, 4, 4},
                                      {PP_ZERO_BUBBLE, 4, 8, 2, 25.5, 26.1, 4, 4, 4},
                                      {PP_ZBV, 4, 8, 2, 25.5, 25.8, 4, 4, 4},
                                      {PP_DUALPIPEV, 4, 8, 2, 25.5, 26.1, 4.5, 4.5, 4.5},
                                      {PP_ZERO_BUBBLE, 4, 16, 1, 51, 52.2, 4, 4, 4},
                                      {PP_ZERO_BUBBLE, 4, 16, 2, 49.5, 50.1, 4, 4, 4},
                                      {PP_ZBV, 4, 16, 2, 49.5, 49.8, 4, 4, 4},
                                      {PP_DUALPIPEV, 4, 16, 2, 49.5, 50.1, 4.5, 4.5, 4.5},
                                      {PP_ZERO_BUBBLE, 4, 32, 1, 99, 100.2, 4, 4, 4},
                                      {PP_ZERO_BUBBLE, 4, 32, 2, 97.5, 98.1, 4, 4, 4},
                                      {PP_ZBV, 4, 32, 2, 97.5, 97.8, 4, 4, 4},
                                      {PP_DUALPIPEV, 4, 32, 2, 97.5, 98.1, 4.5, 4.5, 4.5},
                                      {PP_ZERO_BUBBLE, 8, 8, 1, 31, 33.8, 8, 8, 8},
                                      {PP_ZERO_BUBBLE, 8, 8, 2, 27.5, 28.9, 8, 8, 8},
                                      {PP_ZBV, 8, 8, 2, 31, 32.4, 4.5, 8, 8},
                                      {PP_ZERO_BUBBLE, 8, 16, 1, 55, 57.8, 8, 8, 8},
                                      {PP_ZERO_BUBBLE, 8, 16, 2, 51.5, 52.9, 8, 8, 8},
                                      {PP_ZBV, 8, 16, 2, 51.5, 52.2, 8, 8, 8},
                                      {PP_DUALPIPEV, 8, 16, 2, 51.5, 53.1, 8.5, 8.5, 8.5},
                                      {PP_ZERO_BUBBLE, 8, 32, 1, 103, 105.8, 8, 8, 8},
                                      {PP_ZERO_BUBBLE, 8, 32, 2, 99.5, 100.9, 8, 8, 8},
                                      {PP_ZBV, 8, 32, 2, 99.5, 100.2, 8, 8, 8},
                                      {PP_DUALPIPEV, 8, 32, 2, 99.5, 101.1, 8.5, 8.5, 8.5},
                                      {PP_ZERO_BUBBLE, 8, 64, 1, 199, 201.8, 8, 8, 8},
                                      {PP_ZERO_BUBBLE, 8, 64, 2, 195.5, 196.9, 8, 8, 8},
                                      {PP_ZBV, 8, 64, 2, 195.5, 196.2, 8, 8, 8},
                                      {PP_DUALPIPEV, 8, 64, 2, 195.5, 197.1, 8.5, 8.5, 8.5},
                                      {PP_ZERO_BUBBLE, 16, 16, 1, 63, 69, 16, 16, 16},
                                      {PP_ZERO_BUBBLE, 16, 16, 2, 55.5, 58.5, 16, 16, 16},
                                      {PP_ZBV, 16, 16, 2, 63, 66, 8.5, 16, 16},
                                      {PP_ZERO_BUBBLE, 16, 32, 1, 111, 117, 16, 16, 16},
                                      {PP_ZERO_BUBBLE, 16, 32, 2, 103.5, 106.5, 16, 16, 16},
                                      {PP_ZBV, 16, 32, 2, 103.5, 105, 16, 16, 16},
                                      {PP_DUALPIPEV, 16, 32, 2, 103.5, 107.5, 16.5, 16.5, 16.5},
                                      {PP_ZERO_BUBBLE, 16, 64, 1, 207, 213, 16, 16, 16},
                                      {PP_ZERO_BUBBLE, 16, 64, 2, 199.5, 202.5, 16, 16, 16},
                                      {PP_ZBV, 16, 64, 2, 199.5, 201, 16, 16, 16},
                                      {PP_DUALPIPEV, 16, 64, 2, 199.5, 203.5, 16.5, 16.5, 16.5},
                                      {PP_ZERO_BUBBLE, 16, 128, 1, 399, 405, 16, 16, 16},
                                      {PP_ZERO_BUBBLE, 16, 128, 2, 391.5, 394.5, 16, 16, 16},
                                      {PP_ZBV, 16, 128, 2, 391.5, 393, 16, 16, 16},
                                      {PP_DUALPIPEV, 16, 128, 2, 391.5, 395.5, 16.5, 16.5, 16.5}};
enum { SPLIT_ROW_COUNT = sizeof split_rows / sizeof split_rows[0] };

typedef struct Case {
    Arena arena;
    StepPrograms programs;
    EngineCosts *costs;
} Case;

enum { TP_NS = 1000 };  // of a collective over tp, where there are any

typedef struct UnitCosts {
    double inputs, weights;  // of forward's; what is not split takes both at once
    double host;             // seconds for each of the device's
    bool stops;              // messages stop the host
    bool announced;          // until they are known of
    double message;          // seconds
} UnitCosts;

// Gradients of weights are one of their products'.
static double task_seconds(const Task *task, const UnitCosts *costs, bool splits) {
    const double back = splits ? costs->inputs : costs->inputs + costs->weights;
    return task->kind == TASK_ATTENTION                          ? 1
           : task->kind == TASK_ATTENTION_BACKWARD               ? back
           : splits && strcmp(task->name, "mlp down wgrad") == 0 ? costs->weights
                                                                 : 0;
}

// One layer for each chunk; of its work the attention alone takes time. An order in the place of the schedule's name.
static void case_begin_order(Case *pipeline, const Row *row, const UnitCosts *unit, int tp, const PpOrder *order) {
    Error error = {0};
    ModelSpec model;
    const Target *target = NULL;
    cr_assert_eq(model_find("tiny", &pipeline->arena, &model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find("ndtune", &target, &error), STATUS_OK, "%s", error.message);
    Target *runner = ARENA_NEW(&pipeline->arena, Target);
    *runner = *target;
    runner->runtime.messages_stop_host = unit->stops;
    runner->runtime.messages_announced = unit->announced;
    model.layers = row->stages * row->chunks;
    TrainPlan plan = {.mesh = {SIZES(1, 1, 1, 1)},
                      .seq = 64,
                      .micro_batch = 1,
                      .grad_accum = row->micro_steps,
                      .pp_schedule = order ? PP_FILE : row->schedule,
                      .pp_order = order,
                      .virtual_stages = row->chunks};
    plan.mesh.size[AXIS_PP] = row->stages;
    plan.mesh.size[AXIS_TP] = tp;
    plan_canonical(&plan);
    cr_assert_eq(step_lower_stages(&model, &plan, runner, &pipeline->arena, &pipeline->programs, &error), STATUS_OK,
                 "%s", error.message);
    const Schedule *schedule = schedule_of(&plan);
    pipeline->costs = ARENA_ARRAY(&pipeline->arena, EngineCosts, row->stages);
    for (int stage = 0; stage < row->stages; stage++) {
        const StepProgram *program = &pipeline->programs.of[stage];
        TaskCost *tasks = ARENA_ARRAY(&pipeline->arena, TaskCost, program->task_count);
        for (int32_t i = 0; i < program->task_count; i++) {
            const Task *task = &program->tasks[i];
            tasks[i].seconds = task->lane == LANE_TP   ? 1e-9 * TP_NS
                               : task_is_message(task) ? unit->message
                                                       : task_seconds(task, unit, schedule->splits) / row->chunks;
            tasks[i].host_s = task_is_message(task) ? 0 : unit->host * tasks[i].seconds;
        }
        pipeline->costs[stage] = (EngineCosts){.tasks = tasks};
    }
}

static void case_begin(Case *pipeline, const Row *row, const UnitCosts *unit, int tp) {
    case_begin_order(pipeline, row, unit, tp, NULL);
}

static const UnitCosts even = {1, 1, 0, false, false, 0}, uneven = {1.2, 0.8, 0, false, false, 0};

Test(pipeline_bubble, a_step_takes_as_long_as_its_schedule_says) {
    for (int i = 0; i < ROWS; i++) {
        const Row *row = &rows[i];
        Case pipeline = {0};
        Error error = {0};
        EngineResult result;
        const StepProgram *program;
        case_begin(&pipeline, row, &even, 1);
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
    case_begin(&pipeline, &row, &even, 2);
    cr_assert_eq(engine_run_stages_costs(&pipeline.programs, pipeline.costs, &(EngineOptions){0}, &pipeline.arena,
                                         &program, &result, &error),
                 STATUS_OK, "%s", error.message);
    cr_expect_float_eq(result.bubble_s, 9, 1e-3, "%g s", result.bubble_s);
    cr_expect_gt(result.exposed_s[AXIS_TP], 0);
    cr_expect_lt(result.exposed_s[AXIS_TP], 1e-3);
    arena_free(&pipeline.arena);
}

// Stage 1 takes 2 and 4 s: it starts at 1, waits from 7 to 9 for the first gradient, is busy 48 s, and its last
// gradient takes stage 0 another 2. With tp its one slow rank is waited for by the other.
Test(pipeline_bubble, a_rank_that_is_slow_slows_its_stage_alone) {
    static const Row row = {PP_1F1B, 4, 8, 1, 33, 4, 1};
    for (int tp = 1; tp <= 2; tp++) {
        for (int all = 0; all <= 1; all++) {
            Case pipeline = {0};
            Error error = {0};
            EngineResult result;
            const StepProgram *program;
            float slowdown[8];
            case_begin(&pipeline, &row, &even, tp);
            const Mesh *mesh = &pipeline.programs.of[0].plan.mesh;
            for (int rank = 0; rank < 4 * tp; rank++) {
                const MeshCoordinates at = mesh_coordinates(mesh, rank);
                slowdown[rank] = at.at[AXIS_PP] == 1 && at.at[AXIS_TP] == tp - 1 ? 2 : 1;
            }
            const EngineOptions options = {.rank_slowdown = slowdown, .all_ranks = all};
            cr_assert_eq(engine_run_stages_costs(&pipeline.programs, pipeline.costs, &options, &pipeline.arena,
                                                 &program, &result, &error),
                         STATUS_OK, "%s", error.message);
            cr_expect_float_eq(result.step_s, 1 + 2 + 48 + 2, 1e-3, "tp %d: %g s", tp, result.step_s);
            arena_free(&pipeline.arena);
        }
    }
}

static double run_hosted(const Row *row, const UnitCosts *unit) {
    Case pipeline = {0};
    Error error = {0};
    EngineResult result;
    const StepProgram *program;
    case_begin(&pipeline, row, unit, 1);
    cr_assert_eq(engine_run_stages_costs(&pipeline.programs, pipeline.costs, &(EngineOptions){0}, &pipeline.arena,
                                         &program, &result, &error),
                 STATUS_OK, "%s", error.message);
    arena_free(&pipeline.arena);
    return result.step_s;
}

// The host needs 2 s for each of the device's: 6 for a micro-step. Of 8 the last backward is issued at 48 on every
// stage; on the last one it ends 2 later, and on each of the three before it 2 after that.
Test(pipeline_bubble, a_host_issues_ahead_while_its_stage_waits) {
    static const Row row = {PP_1F1B, 4, 8, 1, 0, 0, 0};
    cr_expect_float_eq(run_hosted(&row, &(UnitCosts){1, 1, 2, .stops = false}), 48 + 4 * 2, 1e-6);
}

// Nothing runs ahead: host and device alternate, 3 and 6 s, so the step is three times that of the schedule's units,
// 33. The last stage has no message between forward and backward: there the host gains the device's 1 s of forward, on
// the way of the first micro-step and of the last; between them the other stages are slower.
Test(pipeline_bubble, a_host_that_messages_stop_issues_nothing_while_its_stage_waits) {
    static const Row row = {PP_1F1B, 4, 8, 1, 0, 0, 0};
    cr_expect_float_eq(run_hosted(&row, &(UnitCosts){1, 1, 2, .stops = true}), 3 * 33 - 2, 1e-6);
}

// Messages of 0.5 s: the host issues the next pass, of 2 and 4 s, while one is on its way.
Test(pipeline_bubble, a_host_that_knows_of_a_message_issues_beside_it) {
    static const Row row = {PP_1F1B, 4, 8, 1, 0, 0, 0};
    const double waits_s = run_hosted(&row, &(UnitCosts){1, 1, 2, .stops = true, .message = 0.5});
    const double knows_s = run_hosted(&row, &(UnitCosts){1, 1, 2, .stops = true, .announced = true, .message = 0.5});
    cr_expect_lt(knows_s, waits_s - 1, "%g s, %g", knows_s, waits_s);
    cr_expect_geq(knows_s, run_hosted(&row, &(UnitCosts){1, 1, 2, .stops = true}));
}

// Stages with several chunks receive messages while computing.
Test(pipeline_bubble, messages_of_several_chunks_stop_no_host) {
    static const Row row = {PP_INTERLEAVED, 4, 8, 2, 0, 0, 0};
    cr_expect_eq(run_hosted(&row, &(UnitCosts){1, 1, 2, .stops = true}),
                 run_hosted(&row, &(UnitCosts){1, 1, 2, .stops = false}));
}

static double run_split(const SplitRow *row, const UnitCosts *unit) {
    Case pipeline = {0};
    Error error = {0};
    EngineResult result;
    const StepProgram *program;
    case_begin(&pipeline, &(Row){row->schedule, row->stages, row->micro_steps, row->chunks, 0, 0, 0}, unit, 1);
    cr_assert_eq(engine_run_stages_costs(&pipeline.programs, pipeline.costs, &(EngineOptions){0}, &pipeline.arena,
                                         &program, &result, &error),
                 STATUS_OK, "%s", error.message);
    cr_expect_float_eq(result.compute_s + result.bubble_s, result.step_s, 1e-6);
    cr_expect_float_eq(result.compute_s, 3.0 * row->micro_steps, 1e-6);
    arena_free(&pipeline.arena);
    return result.step_s;
}

Test(pipeline_bubble, a_step_with_split_gradients_takes_as_long_as_its_schedule_says) {
    for (int i = 0; i < SPLIT_ROW_COUNT; i++) {
        const SplitRow *row = &split_rows[i];
        const double step_s = run_split(row, &even), uneven_s = run_split(row, &uneven);
        cr_expect_float_eq(step_s, row->makespan, 0.051, "row %d: %g s, not %g", i, step_s, row->makespan);
        cr_expect_float_eq(uneven_s, row->uneven_makespan, 0.051, "row %d, uneven: %g s, not %g", i, uneven_s,
                           row->uneven_makespan);
    }
}

static double most_held(const Row *row, int stage, Arena *arena) {
    const Schedule *schedule = schedule_find(pp_schedule_names[row->schedule]);
    const Work last = schedule->splits ? WORK_WEIGHTS : WORK_BACKWARD;
    const ScheduleShape shape = {stage, row->stages, row->chunks, row->micro_steps, 0, 1};
    ScheduleAction *actions = ARENA_ARRAY(arena, ScheduleAction, schedule_action_count(schedule, &shape));
    schedule_order(schedule, &shape, actions);
    int held = 0, most = 0;
    for (int32_t i = 0; i < schedule_action_count(schedule, &shape); i++) {
        held += (actions[i].work == WORK_FORWARD) - (actions[i].work == last);
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

Test(pipeline_bubble, stages_with_split_gradients_hold_as_much_as_their_schedule_says) {
    for (int i = 0; i < SPLIT_ROW_COUNT; i++) {
        const SplitRow *row = &split_rows[i];
        const Row shape = {row->schedule, row->stages, row->micro_steps, row->chunks, 0, 0, 0};
        double most = 0;
        for (int stage = 0; stage < row->stages; stage++) {
            Arena arena = {0};
            const double held = most_held(&shape, stage, &arena);
            most = held > most ? held : most;
            cr_expect(stage > 0 || held == row->held_first, "row %d: %g on the first stage", i, held);
            cr_expect(stage < row->stages - 1 || held == row->held_last, "row %d: %g on the last stage", i, held);
            arena_free(&arena);
        }
        cr_expect_eq(most, row->held_most, "row %d: %g", i, most);
    }
}

// ---- orders in files

static EngineResult run_order(Case *pipeline, const Row *row, const UnitCosts *unit, const PpOrder *order) {
    Error error = {0};
    EngineResult result;
    const StepProgram *program;
    case_begin_order(pipeline, row, unit, 1, order);
    cr_assert_eq(engine_run_stages_costs(&pipeline->programs, pipeline->costs, &(EngineOptions){0}, &pipeline->arena,
                                         &program, &result, &error),
                 STATUS_OK, "%s", error.message);
    return result;
}

// To the digit, and in as many bytes.
Test(pipeline_bubble, an_order_in_a_file_is_priced_as_the_schedule_that_has_it) {
    static const Row schedules_of[] = {{PP_GPIPE, 4, 8, 1, 0, 0, 0},       {PP_1F1B, 4, 8, 1, 0, 0, 0},
                                       {PP_INTERLEAVED, 4, 8, 2, 0, 0, 0}, {PP_ZERO_BUBBLE, 4, 8, 1, 0, 0, 0},
                                       {PP_ZERO_BUBBLE, 2, 8, 2, 0, 0, 0}, {PP_ZBV, 4, 8, 2, 0, 0, 0},
                                       {PP_DUALPIPEV, 2, 8, 2, 0, 0, 0}};
    for (size_t i = 0; i < sizeof schedules_of / sizeof *schedules_of; i++) {
        const Row *row = &schedules_of[i];
        Case named = {0}, of_file = {0};
        Error error = {0};
        PpOrder order;
        const char *text =
            order_written(schedule_find(pp_schedule_names[row->schedule]),
                          (ScheduleShape){0, row->stages, row->chunks, row->micro_steps, 0, 1}, &of_file.arena);
        cr_assert_eq(order_text_read("order", text, &of_file.arena, &order, &error), STATUS_OK, "%s", error.message);
        const EngineResult a = run_order(&named, row, &uneven, NULL), b = run_order(&of_file, row, &uneven, &order);
        cr_expect_eq(a.step_s, b.step_s, "row %zu: %.17g s, in a file %.17g s", i, a.step_s, b.step_s);
        cr_expect_eq(a.bubble_s, b.bubble_s, "row %zu", i);
        for (int stage = 0; stage < row->stages; stage++) {
            const StepProgram *program = &named.programs.of[stage], *other = &of_file.programs.of[stage];
            cr_assert_eq(program->buffer_count, other->buffer_count, "row %zu, stage %d", i, stage);
            for (int32_t k = 0; k < program->buffer_count; k++) {
                cr_expect_eq(program->buffers[k].slots, other->buffers[k].slots, "row %zu, stage %d: %s", i, stage,
                             program->buffers[k].name);
            }
        }
        arena_free(&named.arena);
        arena_free(&of_file.arena);
    }
}

static int32_t most_slots(const StepProgram *program) {
    int32_t most = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        most = program->buffers[i].micro_steps > most ? program->buffers[i].micro_steps : most;
    }
    return most;
}

// Two more forwards ahead on each rank cost activations and save nothing on a last rank that never waits: 33 as 1F1B.
// Backward of the latest first holds all that GPipe holds, as long.
Test(pipeline_bubble, an_order_of_its_own_takes_as_long_as_it_says_and_holds_what_it_holds) {
    static const Row row = {PP_1F1B, 2, 4, 1, 0, 0, 0};
    static const struct {
        const char *text;
        double makespan;
        int32_t held;  // with the place of one that arrives, at most all
    } orders[] = {{"0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n", 15, 3},
                  {"0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n", 15, 4},
                  {"0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0\n1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0\n", 15, 4},
                  {"0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n", 24, 2}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        Case pipeline = {0};
        Error error = {0};
        PpOrder order;
        cr_assert_eq(order_text_read("order", orders[i].text, &pipeline.arena, &order, &error), STATUS_OK, "%s",
                     error.message);
        const EngineResult result = run_order(&pipeline, &row, &even, &order);
        cr_expect_float_eq(result.step_s, orders[i].makespan, 1e-6, "%zu: %g s", i, result.step_s);
        cr_expect_float_eq(result.bubble_s, orders[i].makespan - 12, 1e-6, "%zu: %g s", i, result.bubble_s);
        cr_expect_eq(most_slots(&pipeline.programs.of[0]), orders[i].held, "%zu: %d", i,
                     most_slots(&pipeline.programs.of[0]));
        arena_free(&pipeline.arena);
    }
}
