// Runs of layers: a model whose layers are given as several runs of one kind is, to every reader of its program, the
// same as with one run.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/analytic/analytic.h"
#include "sim/engine/engine.h"
#include "sim/memory/memory.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"

static const LayerRun halves[] = {{LAYER_DENSE, 0, 2}, {LAYER_DENSE, 2, 2}};
static const LayerRun thirds[] = {{LAYER_DENSE, 0, 1}, {LAYER_DENSE, 1, 14}, {LAYER_DENSE, 15, 9}};

static const LoweredRequest requests[] = {
    {.layers = 4},
    {.layers = 4, .mesh = "dp_shard=4", .grad_accum = 3, .zero = 3, .bf16 = true},
    {.layers = 4, .mesh = "dp_shard=2,cp=2", .target = "accelerate", .recompute = RECOMPUTE_FULL, .bf16 = true},
    {.layers = 4, .mesh = "dp_shard=2,tp=2", .target = "torchtitan", .grad_accum = 2, .zero = 3, .bf16 = true},
    {.layers = 4, .mesh = "dp_replicate=2,tp=2", .target = "megatron", .bf16 = true},
    {.layers = 24, .mesh = "dp_shard=4", .target = "accelerate", .grad_accum = 2, .zero = 3, .bf16 = true},
};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

typedef struct Pair {
    Arena arena;
    StepProgram whole, split;
} Pair;

static void set_up(Pair *pair, const LoweredRequest *request) {
    Error error = {0};
    *pair = (Pair){0};
    pair->whole = lowered(&pair->arena, *request);
    ModelSpec model = pair->whole.model;
    model.runs = request->layers == 4 ? halves : thirds;
    model.run_count = request->layers == 4 ? 2 : 3;
    cr_assert_eq(model_check(&model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(step_lower(&model, &pair->whole.plan, pair->whole.target, &pair->arena, &pair->split, &error),
                 STATUS_OK, "%s", error.message);
}

Test(layer_runs, a_run_is_a_loop_over_the_same_tasks) {
    for (int i = 0; i < REQUESTS; i++) {
        static Pair pair;
        set_up(&pair, &requests[i]);
        cr_assert_gt(pair.split.segment_count, pair.whole.segment_count);
        cr_assert_eq(pair.split.task_count, pair.whole.task_count);
        cr_assert_eq(step_instance_count(&pair.split), step_instance_count(&pair.whole));
        StepCursor a = step_cursor_begin(&pair.whole), b = step_cursor_begin(&pair.split);
        StepInstance x, y;
        while (step_cursor_next(&a, &x)) {
            cr_assert(step_cursor_next(&b, &y));
            cr_assert(x.task == y.task && x.layer == y.layer && x.micro_step == y.micro_step);
        }
        cr_assert_not(step_cursor_next(&b, &y));
        arena_free(&pair.arena);
    }
}

Test(layer_runs, runs_of_one_kind_take_the_time_of_one_run) {
    for (int i = 0; i < REQUESTS; i++) {
        static Pair pair;
        Error error = {0};
        ClusterProfile profile;
        EngineResult whole, split;
        set_up(&pair, &requests[i]);
        cr_assert_eq(cluster_find("dgx-h100", &pair.arena, &profile, &error), STATUS_OK, "%s", error.message);
        const CostModel cost = {.profile = &profile, .target = pair.whole.target};
        cr_assert_eq(engine_run(&pair.whole, &cost, &(EngineOptions){0}, &pair.arena, &whole, &error), STATUS_OK);
        cr_assert_eq(engine_run(&pair.split, &cost, &(EngineOptions){0}, &pair.arena, &split, &error), STATUS_OK);
        cr_assert_eq(whole.step_s, split.step_s, "%d: %.17g and %.17g", i, whole.step_s, split.step_s);
        cr_assert_eq(memcmp(whole.exposed_s, split.exposed_s, sizeof whole.exposed_s), 0);
        arena_free(&pair.arena);
    }
}

Test(layer_runs, runs_of_one_kind_need_the_memory_of_one_run) {
    for (int i = 0; i < REQUESTS; i++) {
        static Pair pair;
        Error error = {0};
        MemoryBreakdown whole, split;
        MemoryPlan offsets;
        set_up(&pair, &requests[i]);
        cr_assert_eq(memory_breakdown(&pair.whole, &pair.arena, &whole, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(memory_breakdown(&pair.split, &pair.arena, &split, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(whole.peak_bytes, split.peak_bytes, "%d: %.0f and %.0f", i, whole.peak_bytes, split.peak_bytes);
        cr_assert_eq(whole.reserved_bytes, split.reserved_bytes);
        cr_assert_eq(memory_plan(&pair.split, &pair.arena, &offsets, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(hazard_check(&pair.split, &offsets, &pair.arena, NULL, &error), STATUS_OK, "%s", error.message);
        arena_free(&pair.arena);
    }
}

static Estimate estimate_of(const StepProgram *program, const CostModel *cost, Arena *arena) {
    Error error = {0};
    Estimate estimate;
    Analytic *analytic = analytic_new(&program->model, cost, arena);
    cr_assert_eq(analytic_estimate(analytic, &program->plan, &estimate, &error), STATUS_OK, "%s", error.message);
    analytic_free(analytic);
    return estimate;
}

Test(layer_runs, runs_of_one_kind_are_estimated_as_one_run) {
    for (int i = 0; i < REQUESTS; i++) {
        static Pair pair;
        Error error = {0};
        ClusterProfile profile;
        set_up(&pair, &requests[i]);
        cr_assert_eq(cluster_find("dgx-h100", &pair.arena, &profile, &error), STATUS_OK, "%s", error.message);
        const CostModel cost = {.profile = &profile, .target = pair.whole.target};
        const Estimate whole = estimate_of(&pair.whole, &cost, &pair.arena);
        const Estimate split = estimate_of(&pair.split, &cost, &pair.arena);
        cr_assert_eq(whole.step_s, split.step_s, "%d: %.17g and %.17g", i, whole.step_s, split.step_s);
        cr_assert_eq(whole.peak_bytes, split.peak_bytes);
        arena_free(&pair.arena);
    }
}
