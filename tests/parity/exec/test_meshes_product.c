// Every choice of every mesh shape of worlds 1 to 8 against one rank: sharding stages 0 to 3, reshard always and never,
// recompute none and full, one and two micro-batches. Canonical plans only, so nothing runs twice. Bounds as in
// test_meshes.c.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/parity/exec/exec_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(meshes_product, .fini = clean);

typedef struct Tally {
    RunResult reference;
    RunOptions options;
    Deviation worst;
    int runs;
    double step_s;  // sum of median-free means, for people
} Tally;

static bool same_plan(const TrainPlan *a, const TrainPlan *b) {
    char text_a[PLAN_TEXT_BYTES], text_b[PLAN_TEXT_BYTES];
    return strcmp(plan_text(a, text_a), plan_text(b, text_b)) == 0;
}

static void check_plan(Tally *tally, const TrainPlan *plan) {
    Arena own = {0};
    const RunRequest request = case_request(plan, &tally->options);
    const RunResult run = case_run_request(&request, &own);
    case_expect_same(&request, &run, &tally->reference, &tally->worst);
    tally->runs++;
    tally->step_s += run.step_time_s[run.steps - 1];
    arena_free(&own);
}

// Choice bits: 0-1 stage, 2 reshard, 3 recompute, 4 accumulation.
static void check_mesh(Tally *tally, const Mesh *mesh) {
    enum { CHOICES = 32 };
    TrainPlan plans[CHOICES];
    int count = 0;
    for (int choice = 0; choice < CHOICES; choice++) {
        TrainPlan plan;
        if (!case_plan(mesh, 1 + (choice >> 4), &plan)) {
            continue;
        }
        plan.zero = choice & 3;
        plan.reshard = choice >> 2 & 1 ? RESHARD_NEVER : RESHARD_ALWAYS;
        plan.recompute = choice >> 3 & 1 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        plan_canonical(&plan);
        bool known = false;
        for (int i = 0; i < count; i++) {
            known = known || same_plan(&plan, &plans[i]);
        }
        if (!known) {
            plans[count++] = plan;
            check_plan(tally, &plan);
        }
    }
}

static void world_product(int world) {
    TrainPlan plan;
    const Mesh single = {.size = {1, 1, 1, 1}};
    Tally tally = {.options = case_options()};
    case_plan(&single, 1, &plan);
    tally.reference = case_run(&plan, &tally.options, &arena);
    Mesh meshes[32];
    const int count = mesh_enumerate(world, AXES_FIRST, meshes, 32);
    for (int i = 0; i < count; i++) {
        check_mesh(&tally, &meshes[i]);
    }
    cr_log_warn(
        "world %d, %d shapes, %d plans: step 1 loss %.1e norm %.1e, step 20 loss %.1e norm %.1e, mean step %.2f ms",
        world, count, tally.runs, tally.worst.loss_first, tally.worst.norm_first, tally.worst.loss_last,
        tally.worst.norm_last, 1e3 * tally.step_s / tally.runs);
}

Test(meshes_product, every_choice_of_world_1_trains_as_one_rank) {
    world_product(1);
}

Test(meshes_product, every_choice_of_world_2_trains_as_one_rank) {
    world_product(2);
}

Test(meshes_product, every_choice_of_world_4_trains_as_one_rank) {
    world_product(4);
}

Test(meshes_product, every_choice_of_world_8_trains_as_one_rank) {
    world_product(8);
}
