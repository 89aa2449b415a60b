// The engine's equalities on programs that the lowering makes, of random plans. NDTUNE_SEED repeats a run.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/property/sim/engine/random_request.h"

enum { PLANS = 120, LARGEST_WORLD = 32 };

typedef struct Case {
    RandomRequest request;
    CostModel cost;
    TrainPlan plan;
    StepProgram program;
    Arena arena;
} Case;

static void next_case(Random *random, Case *one) {
    for (;;) {
        *one = (Case){0};
        one->request = random_request(random, &one->arena);
        one->cost = (CostModel){.profile = &one->request.profile, .target = one->request.target};
        if (one->request.world <= LARGEST_WORLD && random_plan(random, &one->request, &one->arena, &one->plan)) {
            break;
        }
        arena_free(&one->arena);
    }
    Error error = {0};
    cr_assert_eq(step_lower(&one->request.model, &one->plan, one->request.target, &one->arena, &one->program, &error),
                 STATUS_OK, "%s", error.message);
}

static EngineResult run(Case *one, EngineOptions options) {
    EngineResult result;
    Error error = {0};
    cr_assert_eq(engine_run(&one->program, &one->cost, &options, &one->arena, &result, &error), STATUS_OK, "%s",
                 error.message);
    return result;
}

static void same_result(const Case *one, const EngineResult *a, const EngineResult *b) {
    char text[PLAN_TEXT_BYTES];
    plan_text(&one->plan, text);
    cr_assert_eq(a->step_s, b->step_s, "%.17g and %.17g: %s", a->step_s, b->step_s, text);
    cr_assert(a->compute_s == b->compute_s && a->optimizer_s == b->optimizer_s && a->overhead_s == b->overhead_s, "%s",
              text);
    cr_assert_eq(memcmp(a->exposed_s, b->exposed_s, sizeof a->exposed_s), 0, "%s", text);
    for (int32_t i = 0; i < one->program.task_count; i++) {
        cr_assert_eq(a->totals[i].count, b->totals[i].count, "%s: %s", one->program.tasks[i].name, text);
        cr_assert_eq(a->totals[i].seconds, b->totals[i].seconds, "%s: %s", one->program.tasks[i].name, text);
    }
}

Test(engine_lowered, repeated_segments_equal_the_unrolled_program) {
    Random random = random_begin("repeat");
    int64_t events = 0, instances = 0;
    for (int i = 0; i < PLANS; i++) {
        Case one;
        next_case(&random, &one);
        const EngineResult repeated = run(&one, (EngineOptions){0}), whole = run(&one, (EngineOptions){.unroll = true});
        same_result(&one, &repeated, &whole);
        cr_assert_eq(whole.events, step_instance_count(&one.program));
        cr_assert_eq(repeated.instances, whole.events);
        events += repeated.events;
        instances += repeated.instances;
        arena_free(&one.arena);
    }
    fprintf(stderr, "simulated %lld of %lld task instances\n", (long long)events, (long long)instances);
    cr_assert_lt(2 * events, instances);
}

Test(engine_lowered, one_rank_equals_all_ranks) {
    Random random = random_begin("ranks");
    for (int i = 0; i < PLANS / 4; i++) {
        Case one;
        next_case(&random, &one);
        const EngineResult alone = run(&one, (EngineOptions){0}), all = run(&one, (EngineOptions){.all_ranks = true});
        cr_assert_eq(alone.classes, 1);
        cr_assert_eq(all.classes, one.request.world);
        same_result(&one, &alone, &all);
        arena_free(&one.arena);
    }
}

Test(engine_lowered, classes_of_a_straggler_equal_all_ranks) {
    Random random = random_begin("straggler");
    for (int i = 0; i < PLANS / 8; i++) {
        Case one;
        next_case(&random, &one);
        float slowdown[LARGEST_WORLD];
        for (int rank = 0; rank < LARGEST_WORLD; rank++) {
            slowdown[rank] = 1;
        }
        slowdown[random_below(&random, (uint32_t)one.request.world)] = 1.25f;
        const EngineResult classes = run(&one, (EngineOptions){.rank_slowdown = slowdown});
        const EngineResult all = run(&one, (EngineOptions){.rank_slowdown = slowdown, .all_ranks = true});
        same_result(&one, &classes, &all);
        cr_assert_geq(classes.step_s, run(&one, (EngineOptions){0}).step_s);
        arena_free(&one.arena);
    }
}

Test(engine_lowered, classes_of_a_slow_node_equal_all_ranks) {
    Random random = random_begin("slow node");
    for (int i = 0; i < PLANS / 8; i++) {
        Case one;
        next_case(&random, &one);
        float ranks[LARGEST_WORLD], links[LARGEST_WORLD];
        const int per_node = cost_ranks_per_node(&one.request.profile, &one.plan.mesh);
        const int node = (int)random_below(&random, (uint32_t)one.request.world) / per_node;
        for (int rank = 0; rank < LARGEST_WORLD; rank++) {
            ranks[rank] = random_below(&random, 8) == 0 ? 1.1f : 1;
            links[rank] = rank / per_node == node ? 2.5f : 1;
        }
        const EngineOptions few = {.rank_slowdown = ranks, .link_slowdown = links};
        EngineOptions every = few;
        every.all_ranks = true;
        const EngineResult classes = run(&one, few), all = run(&one, every);
        same_result(&one, &classes, &all);
        arena_free(&one.arena);
    }
}
