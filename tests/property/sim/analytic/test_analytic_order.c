// Earlier estimates do not change an estimate: programs and sizes are shared among plans. NDTUNE_SEED repeats a run.

#include <criterion/criterion.h>

#include "sim/analytic/analytic.h"
#include "sim/plan/plan_fields.h"
#include "tests/property/sim/engine/random_request.h"

enum { PLANS = 60, COUSINS = 6 };

static Estimate estimate_of(Analytic *analytic, const TrainPlan *plan) {
    Estimate estimate;
    Error error = {0};
    cr_assert_eq(analytic_estimate(analytic, plan, &estimate, &error), STATUS_OK, "%s", error.message);
    return estimate;
}

// The same tp and cp, with another choice, other shards and, every third time, twice as many ranks.
static TrainPlan cousin_of(Random *random, const TrainPlan *plan) {
    TrainPlan cousin = *plan;
    const PlanFieldId id = (PlanFieldId)random_below(random, PLAN_FIELD_COUNT);
    const PlanField *field = &plan_fields[id];
    if (field->searched) {
        plan_set(&cousin, id, field->low + (int)random_below(random, (uint32_t)(field->high - field->low + 1)));
    }
    int *replicas = &cousin.mesh.size[AXIS_DP_REPLICATE], *shards = &cousin.mesh.size[AXIS_DP_SHARD];
    int *less = random_below(random, 2) ? replicas : shards, *more = less == replicas ? shards : replicas;
    if (*less % 2 == 0) {
        *less /= 2;
        *more *= 2;
    }
    if (random_below(random, 3) == 0) {
        cousin.mesh.size[AXIS_DP_REPLICATE] *= 2;
    }
    cousin.grad_accum = 1 + (int)random_below(random, 5);
    plan_canonical(&cousin);
    return cousin;
}

static void check_plan(Random *random, const RandomRequest *request, const TrainPlan *plan, Arena *arena) {
    const CostModel cost = {.profile = &request->profile, .target = request->target};
    Analytic *fresh = analytic_new(&request->model, &cost, arena), *used = analytic_new(&request->model, &cost, arena);
    char text[PLAN_TEXT_BYTES];
    plan_text(plan, text);
    for (int i = 0; i < COUSINS; i++) {
        const TrainPlan cousin = cousin_of(random, plan);
        if (random_is_legal(request, &cousin, arena)) {
            estimate_of(used, &cousin);
        }
    }
    const Estimate alone = estimate_of(fresh, plan), after = estimate_of(used, plan);
    cr_assert_eq(alone.peak_bytes, after.peak_bytes, "%s %s: %.0f and %.0f", request->target->name, text,
                 alone.peak_bytes, after.peak_bytes);
    cr_assert_eq(alone.reserved_bytes, after.reserved_bytes);
    cr_assert(alone.step_s == after.step_s, "%s %s: %.17g and %.17g s", request->target->name, text, alone.step_s,
              after.step_s);
    analytic_free(fresh);
    analytic_free(used);
}

Test(analytic_order, an_estimate_is_the_same_whatever_was_estimated_before) {
    Random random = random_begin("order");
    int targets;
    const Target *table = target_table(&targets);
    for (int plans = 0; plans < PLANS;) {
        Arena arena = {0};
        TrainPlan plan;
        RandomRequest request = random_request(&random, &arena);
        request.target = &table[random_below(&random, (uint32_t)targets)];
        if (random_plan(&random, &request, &arena, &plan)) {
            check_plan(&random, &request, &plan, &arena);
            plans++;
        }
        arena_free(&arena);
    }
}
