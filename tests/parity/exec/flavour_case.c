#include "tests/parity/exec/flavour_case.h"

#include <criterion/criterion.h>
#include <string.h>

enum { PADDED_VOCAB = 128 * 8 };  // a multiple of 128 x tp up to 8
enum { MOST_PLANS = 64 };

RunRequest flavour_request(const Target *target, const TrainPlan *plan) {
    const RunOptions options = case_options();
    RunRequest request = case_request(plan, &options);
    request.target = target;
    if (target->vocab_multiple > 0) {
        request.model.vocab = PADDED_VOCAB;
    }
    return request;
}

static RunResult one_rank(const Target *target, Arena *arena) {
    TrainPlan plan;
    const Mesh single = {.size = {1, 1, 1, 1}};
    case_plan(&single, 1, &plan);
    RunRequest request = flavour_request(target, &plan);
    Error error = {0};
    cr_assert(target_find("ndtune", &request.target, &error) == STATUS_OK, "%s", error.message);
    return case_run_request(&request, arena);
}

// Choice bits: 0-1 recompute, 2 rotation, 3 accumulation, 4 reshard, 5-6 stage, 7-8 kernels. False where the target
// has no such plan.
static bool flavour_plan(const Target *target, const Mesh *mesh, int choice, TrainPlan *plan) {
    if (!case_plan(mesh, 1 + (choice >> 3 & 1), plan)) {
        return false;
    }
    plan->recompute = (Recompute)((choice & 3) % RECOMPUTE_COUNT);
    plan->cp_rotate = choice >> 2 & 1 ? CP_ROTATE_ALLGATHER : CP_ROTATE_RING;
    plan->reshard = choice >> 4 & 1 ? RESHARD_NEVER : RESHARD_ALWAYS;
    plan->zero = choice >> 5 & 3;
    plan->fused = (Fused)((choice >> 7 & 3) % FUSED_COUNT);
    plan_canonical(plan);
    Arena words = {0};
    const RunRequest request = flavour_request(target, plan);
    const bool runs = exec_check(&request.model, plan, target, "cpu", &words) == NULL;
    arena_free(&words);
    return runs;
}

enum { CHOICES = 1 << 9 };

static bool is_known(const TrainPlan *plan, const TrainPlan *plans, int count) {
    char text[PLAN_TEXT_BYTES], other[PLAN_TEXT_BYTES];
    plan_text(plan, text);
    for (int i = 0; i < count; i++) {
        if (strcmp(text, plan_text(&plans[i], other)) == 0) {
            return true;
        }
    }
    return false;
}

// Up to `most` different plans of a shape; `first` turns with the shape.
static int spread_plans(const Target *target, const Mesh *mesh, int first, int most, TrainPlan *plans) {
    enum { STRIDE = 197 };  // odd, so every choice is met once; its bits are mixed, so neighbours differ in many
    int count = 0;
    for (int i = 0; i < CHOICES && count < most; i++) {
        TrainPlan plan;
        if (flavour_plan(target, mesh, (first + i) * STRIDE % CHOICES, &plan) && !is_known(&plan, plans, count)) {
            plans[count++] = plan;
        }
    }
    return count;
}

void flavour_trains(const Target *target, int world, int plans_per_shape) {
    enum { CAPACITY = 32 };
    cr_assert_leq(plans_per_shape, MOST_PLANS);
    Arena arena = {0};
    const RunResult reference = one_rank(target, &arena);
    Deviation worst = {0};
    Mesh meshes[CAPACITY];
    const int count = mesh_enumerate(world, AXES_FIRST, meshes, CAPACITY);
    int runs = 0;
    for (int i = 0; i < count; i++) {
        TrainPlan plans[MOST_PLANS];
        const int found = spread_plans(target, &meshes[i], 7 * i, plans_per_shape, plans);
        for (int k = 0; k < found; k++, runs++) {
            Arena own = {0};
            const RunRequest request = flavour_request(target, &plans[k]);
            const RunResult run = case_run_request(&request, &own);
            case_expect_same(&request, &run, &reference, &worst);
            arena_free(&own);
        }
    }
    cr_expect(runs > 0, "%s@%s runs no shape of world %d", target->name, target->version, world);
    cr_log_warn("%s@%s, world %d: %d plans, step 1 loss %.1e norm %.1e, step 20 loss %.1e norm %.1e", target->name,
                target->version, world, runs, worst.loss_first, worst.norm_first, worst.loss_last, worst.norm_last);
    arena_free(&arena);
}

void flavour_all_train(int world, int plans_per_shape) {
    int count;
    const Target *targets = target_table(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(targets[i].name, "ndtune") != 0) {
            flavour_trains(&targets[i], world, plans_per_shape);
        }
    }
}
