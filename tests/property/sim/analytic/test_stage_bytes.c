// Bytes of pipelines whose backward is split, or whose stages have the first and the last chunk of layers: of generated
// plans, the estimate compared with the programs of all stages.

#include <criterion/criterion.h>

#include "sim/analytic/analytic.h"
#include "sim/frameworks/target_choices.h"
#include "sim/memory/memory_breakdown.h"
#include "sim/step/stages.h"
#include "tests/support/splitmix.h"

typedef struct Question {
    ModelSpec model;
    ClusterProfile profile;
    CostModel cost;
    TrainPlan plan;
} Question;

static int one_of(uint64_t *state, const int *values, int count) {
    return values[splitmix_next(state) % (uint64_t)count];
}

#define ONE_OF(state, ...)                                                                                             \
    one_of((state), (const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

static void take_usual(const Target *target, TrainPlan *plan) {
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope != PLAN_OF_BATCH) {
            plan_set(plan, (PlanFieldId)id, target_usual(target, plan, (PlanFieldId)id));
        }
    }
}

static void take_stages(uint64_t *state, Question *question) {
    TrainPlan *plan = &question->plan;
    const int stages = ONE_OF(state, 2, 2, 4, 8);
    plan->mesh.size[AXIS_PP] = stages;
    plan->pp_schedule = (PpSchedule)ONE_OF(state, PP_ZERO_BUBBLE, PP_ZBV, PP_DUALPIPEV);
    plan->virtual_stages = plan->pp_schedule == PP_ZERO_BUBBLE ? ONE_OF(state, 1, 2) : 2;
    plan->pp_rounds = ONE_OF(state, 1, 1, 1, 2, 3);
    plan->grad_accum = stages * ONE_OF(state, 1, 2, 4, 8) * plan->pp_rounds;
    question->model.layers = stages * plan->virtual_stages * ONE_OF(state, 1, 2, 3) + ONE_OF(state, 0, 0, 1, 3);
}

// A legal plan, or false.
static bool draw(uint64_t seed, const char *target, Arena *arena, Question *question) {
    uint64_t state = seed;
    Error error = {0};
    const char *reason = NULL;
    *question = (Question){.cost = {.profile = &question->profile}, .plan = {.mesh = mesh_of_one()}};
    TrainPlan *plan = &question->plan;
    cr_assert_eq(model_find("llama-3-8b", arena, &question->model, &error), STATUS_OK);
    cr_assert_eq(cluster_find("dgx-h100", arena, &question->profile, &error), STATUS_OK);
    cr_assert_eq(target_find(target, &question->cost.target, &error), STATUS_OK);
    plan->seq = ONE_OF(&state, 1024, 4096, 8192);
    plan->micro_batch = ONE_OF(&state, 1, 1, 2, 4);
    plan->precision = DTYPE_BF16;
    plan->mesh.size[AXIS_DP_SHARD] = ONE_OF(&state, 1, 2, 8, 32);
    plan->mesh.size[AXIS_TP] = ONE_OF(&state, 1, 1, 2, 4);
    take_stages(&state, question);
    const TrainPlan batch = *plan;
    take_usual(question->cost.target, plan);
    plan->precision = DTYPE_BF16;
    plan->pp_schedule = batch.pp_schedule;
    plan->virtual_stages = batch.virtual_stages;
    plan->pp_rounds = batch.pp_rounds;
    plan->fused = plan->fused == FUSED_COMPILED ? FUSED_EAGER : plan->fused;
    plan->recompute = (Recompute)ONE_OF(&state, RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_FULL);
    target_canonical(question->cost.target, plan);
    target_check(question->cost.target, &question->model, plan, arena, &reason);
    return !reason;
}

typedef struct Bounds {
    double below, above;
} Bounds;

static int expect_near(const char *target, uint64_t seed, Bounds within) {
    Arena arena = {0};
    Question question;
    const bool legal = draw(seed, target, &arena, &question);
    if (legal) {
        Error error = {0};
        StepPrograms programs;
        LiveTraces traces = {0};
        MemoryBreakdown memory;
        Estimate estimate;
        const TrainPlan *plan = &question.plan;
        Analytic *analytic = analytic_new(&question.model, &question.cost, &arena);
        cr_assert_eq(analytic_estimate_bytes(analytic, plan, &estimate, &error), STATUS_OK, "%s", error.message);
        analytic_free(analytic);
        cr_assert_eq(step_lower_stages(&question.model, plan, question.cost.target, &arena, &programs, &error),
                     STATUS_OK, "%s", error.message);
        cr_assert_eq(memory_breakdown_stages(&programs, 0, &traces, &arena, &memory, &error), STATUS_OK);
        live_traces_free(&traces);
        const double bytes = estimate.reserved_bytes / memory.reserved_bytes - 1;
        cr_expect(bytes > within.below && bytes < within.above,
                  "%s %s, %d layers on %d stages of %d chunks, %d micro-steps, %d rounds, %s: memory %+.2f %%", target,
                  pp_schedule_names[plan->pp_schedule], question.model.layers, plan->mesh.size[AXIS_PP],
                  plan_chunks(plan), plan->grad_accum, plan_rounds(plan), recompute_names[plan->recompute],
                  100 * bytes);
    }
    arena_free(&arena);
    return legal;
}

static void expect_all_near(const char *target, int draws, Bounds within) {
    int legal = 0;
    for (int i = 0; i < draws; i++) {
        legal += expect_near(target, (uint64_t)i, within);
    }
    cr_assert_gt(4 * legal, draws, "%d of %d plans are legal", legal, draws);
}

Test(stage_bytes, halves_of_backward_and_folded_stages_hold_what_their_programs_do) {
    expect_all_near("torchtitan", 160, (Bounds){-0.005, 0.005});
}

// An arena of many micro-steps and rounds has other holes than one of few.
Test(stage_bytes, so_do_they_where_slots_are_planned) {
    expect_all_near("ndtune", 40, (Bounds){-0.04, 0.04});
}
