// Pipelines whose steady state is skipped, compared with the same ones simulated to the end: every target with a
// pipeline, its schedules, few and many stages, hosts that run ahead and hosts blocked by messages.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/engine/engine.h"
#include "sim/frameworks/target_choices.h"
#include "sim/step/stages.h"

typedef struct Case {
    const char *model, *cluster, *target, *mesh;
    int seq, micro_batch, grad_accum;
    PpSchedule schedule;
    int chunks;
    Recompute recompute;
    int rounds;  // 0 = one
} Case;

static const Case cases[] = {
    {"llama-3-8b", "dgx-h100", "torchtitan", "pp=2,dp_shard=4", 4096, 1, 40, PP_1F1B, 1, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-h100", "torchtitan", "pp=4,cp=2,tp=2", 4096, 1, 48, PP_1F1B, 1, RECOMPUTE_SELECTIVE, 0},
    {"llama-3-8b", "dgx-h100", "torchtitan", "pp=8,dp_shard=2", 4096, 1, 64, PP_1F1B, 1, RECOMPUTE_FULL, 0},
    {"llama-3-8b", "dgx-h100", "torchtitan", "pp=4,dp_shard=2", 4096, 1, 64, PP_INTERLEAVED, 2, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-h100", "torchtitan", "pp=2,tp=4", 4096, 1, 36, PP_INTERLEAVED, 4, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-h100", "ndtune", "pp=4,tp=2", 4096, 1, 48, PP_ZERO_BUBBLE, 1, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-h100", "ndtune", "pp=4,tp=2", 4096, 1, 48, PP_ZBV, 2, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-h100", "torchtitan", "pp=4,tp=2", 4096, 1, 48, PP_GPIPE, 1, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-h100", "megatron", "pp=4,dp_shard=2,tp=2", 4096, 1, 48, PP_1F1B, 1, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-h100", "megatron", "pp=4,dp_shard=2,tp=2", 4096, 1, 48, PP_INTERLEAVED, 4, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-a100-80g", "nanotron", "pp=4,dp_shard=2", 2048, 1, 48, PP_1F1B, 1, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-a100-80g", "deepspeed", "pp=4,dp_shard=2", 2048, 1, 48, PP_1F1B, 1, RECOMPUTE_FULL, 0},
    {"qwen3-8b", "dgx-h100", "nanotron", "pp=4,dp_shard=2", 128, 1, 48, PP_1F1B, 1, RECOMPUTE_NONE,
     0},  // the host is late
    {"qwen3-8b", "dgx-h100", "torchtitan", "pp=4,tp=2", 128, 1, 48, PP_1F1B, 1, RECOMPUTE_NONE, 0},
    {"qwen3-8b", "dgx-h100", "megatron", "pp=2,tp=2", 128, 1, 48, PP_INTERLEAVED, 3, RECOMPUTE_NONE, 0},
    {"tiny", "local-cpu", "ndtune", "pp=4,dp_replicate=2", 128, 1, 48, PP_1F1B, 1, RECOMPUTE_NONE, 0},
    {"llama-3-8b", "dgx-h100", "torchtitan", "pp=2,dp_shard=4", 4096, 1, 240, PP_1F1B, 1, RECOMPUTE_NONE, 2},
    {"tiny", "local-cpu", "ndtune", "pp=2,dp_shard=2", 128, 1, 120, PP_1F1B, 1, RECOMPUTE_NONE, 3},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static TrainPlan plan_of(const Case *one, const Target *target) {
    TrainPlan plan = {.seq = one->seq, .micro_batch = one->micro_batch, .grad_accum = one->grad_accum};
    Error error = {0};
    cr_assert_eq(mesh_parse(one->mesh, &plan.mesh, &error), STATUS_OK);
    plan.precision = DTYPE_BF16;
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope != PLAN_OF_BATCH) {
            plan_set(&plan, (PlanFieldId)id, target_usual(target, &plan, (PlanFieldId)id));
        }
    }
    plan.recompute = one->recompute;
    plan.pp_schedule = one->schedule;
    plan.virtual_stages = one->chunks;
    plan.pp_rounds = one->rounds > 0 ? one->rounds : 1;
    plan.zero = plan.zero == 3 && !target->pp_keeps_gathered ? 1 : plan.zero;
    target_canonical(target, &plan);
    return plan;
}

typedef struct Run {
    StepPrograms programs;
    const StepProgram *slowest;
    EngineResult result;
} Run;

static void run(const Case *one, bool unroll, Arena *arena, Run *run) {
    ModelSpec *model = ARENA_NEW(arena, ModelSpec);
    ClusterProfile profile;
    CostModel cost = {.profile = &profile};
    Error error = {0};
    cr_assert_eq(model_find(one->model, arena, model, &error), STATUS_OK);
    cr_assert_eq(cluster_find(one->cluster, arena, &profile, &error), STATUS_OK);
    cr_assert_eq(target_find(one->target, &cost.target, &error), STATUS_OK);
    const TrainPlan plan = plan_of(one, cost.target);
    cr_assert_eq(step_lower_stages(model, &plan, cost.target, arena, &run->programs, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_eq(engine_run_stages(&run->programs, &cost, &(EngineOptions){.unroll = unroll}, arena, &run->slowest,
                                   &run->result, &error),
                 STATUS_OK, "%s", error.message);
}

static void expect_same(const EngineResult *skipped, const EngineResult *whole, int32_t tasks, int i) {
    cr_expect_eq(skipped->step_s, whole->step_s, "case %d: %.12g and %.12g s", i, skipped->step_s, whole->step_s);
    cr_expect_eq(skipped->compute_s, whole->compute_s, "case %d: compute", i);
    cr_expect_eq(skipped->optimizer_s, whole->optimizer_s, "case %d: optimizer", i);
    cr_expect_eq(skipped->bubble_s, whole->bubble_s, "case %d: bubble", i);
    cr_expect_eq(skipped->overhead_s, whole->overhead_s, "case %d: overhead", i);
    cr_expect_arr_eq(skipped->exposed_s, whole->exposed_s, sizeof whole->exposed_s, "case %d: exposed", i);
    cr_expect_eq(skipped->instances, whole->instances, "case %d: instances", i);
    for (int32_t t = 0; t < tasks; t++) {
        cr_expect_eq(skipped->totals[t].count, whole->totals[t].count, "case %d: count of task %d", i, t);
        cr_expect_eq(skipped->totals[t].seconds, whole->totals[t].seconds, "case %d: seconds of task %d", i, t);
    }
}

Test(meeting_repetition, a_steady_state_that_is_skipped_ends_as_if_gone_through) {
    int skipping = 0;
    for (int i = 0; i < CASES; i++) {
        Arena arena = {0};
        Run skipped = {0}, whole = {0};
        run(&cases[i], false, &arena, &skipped);
        run(&cases[i], true, &arena, &whole);
        cr_assert_eq(skipped.slowest->stage, whole.slowest->stage, "case %d", i);
        expect_same(&skipped.result, &whole.result, whole.slowest->task_count, i);
        const bool skips = skipped.result.events < whole.result.events;
        skipping += skips;
        cr_expect(skips || cases[i].schedule != PP_INTERLEAVED, "case %d: nothing repeats", i);
        arena_free(&arena);
    }
    cr_expect_geq(skipping, 12, "%d of %d skip anything", skipping, CASES);
}
