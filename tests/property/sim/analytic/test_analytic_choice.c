// Does screening find the shape that simulating everything would find? Random requests; every legal shape with two
// micro-batches and both recompute choices, at one global batch; the engine with contention. Shapes whose simulated
// times are within 0.1 % of each other count as the same choice: neither reader can distinguish them, and no cluster
// would. NDTUNE_SEED repeats a run.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/analytic/analytic.h"
#include "sim/engine/engine.h"
#include "tests/property/sim/engine/random_request.h"

enum { REQUESTS = 200 };

static const double tie = 1.001;

typedef struct Best {
    double step_s;
    Mesh mesh;
} Best;

typedef struct Search {
    const RandomRequest *request;
    CostModel cost;
    Analytic *analytic;
    Best estimated, simulated;
    double simulated_of_estimated_s;  // engine's time of the shape that the estimate picks
    int plans;
} Search;

static bool simulate(const Search *search, const TrainPlan *plan, double *step_s) {
    Arena arena = {0};
    StepProgram program;
    EngineResult result;
    Error error = {0};
    const bool ran =
        step_lower(&search->request->model, plan, search->request->target, &arena, &program, &error) == STATUS_OK &&
        engine_run(&program, &search->cost, &(EngineOptions){0}, &arena, &result, &error) == STATUS_OK;
    cr_assert(ran, "%s", error.message);
    *step_s = result.step_s;
    arena_free(&arena);
    return ran;
}

static void try_plan(Search *search, const TrainPlan *plan) {
    Estimate estimate;
    Error error = {0};
    cr_assert_eq(analytic_estimate(search->analytic, plan, &estimate, &error), STATUS_OK, "%s", error.message);
    if (estimate.reserved_bytes > search->request->profile.accelerator.memory_bytes) {
        return;
    }
    double simulated_s;
    simulate(search, plan, &simulated_s);
    search->plans++;
    if (estimate.step_s < search->estimated.step_s) {
        search->estimated = (Best){estimate.step_s, plan->mesh};
        search->simulated_of_estimated_s = simulated_s;
    }
    if (simulated_s < search->simulated.step_s) {
        search->simulated = (Best){simulated_s, plan->mesh};
    }
}

static void try_mesh(Search *search, const Mesh *mesh, int global_batch, Arena *arena) {
    for (int choice = 0; choice < 4; choice++) {
        TrainPlan plan = {.mesh = *mesh,
                          .seq = search->request->seq,
                          .micro_batch = choice & 1 ? 2 : 1,
                          .zero = target_default_zero(search->request->target, mesh),
                          .recompute = choice & 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE,
                          .cp_rotate = target_default_rotate(search->request->target),
                          .precision = DTYPE_BF16,
                          .grad_accum = 1};
        const int64_t per_step = plan_global_batch(&plan);
        plan.grad_accum = (int)(global_batch / per_step);
        plan_canonical(&plan);
        const char *reason = "the global batch is no multiple";
        if (global_batch % per_step == 0) {
            target_check(search->request->target, &search->request->model, &plan, arena, &reason);
        }
        if (!reason && plan.mesh.size[AXIS_TP] <= search->request->profile.node.accelerators) {
            try_plan(search, &plan);
        }
    }
}

static Search run_search(Random *random, Arena *arena, RandomRequest *request) {
    static const int worlds[] = {4, 8, 16, 16, 32};
    *request = random_request(random, arena);
    request->world = worlds[random_below(random, 5)];
    Search search = {.request = request,
                     .cost = {.profile = &request->profile, .target = request->target},
                     .estimated = {1e30, {{0}}},
                     .simulated = {1e30, {{0}}}};
    search.analytic = analytic_new(&request->model, &search.cost, arena);
    const int global_batch = request->world * (1 << random_below(random, 4));
    const int count = mesh_enumerate(request->world, AXES_FIRST, NULL, 0);
    Mesh *meshes = ARENA_ARRAY(arena, Mesh, count);
    mesh_enumerate(request->world, AXES_FIRST, meshes, count);
    for (int i = 0; i < count; i++) {
        try_mesh(&search, &meshes[i], global_batch, arena);
    }
    analytic_free(search.analytic);
    return search;
}

Test(analytic_choice, screening_picks_the_engines_best_shape_in_95_of_100_requests) {
    Random random = random_begin("choice");
    int requests = 0, same = 0, tied = 0, plans = 0;
    double worst = 1;
    while (requests < REQUESTS) {
        Arena arena = {0};
        RandomRequest request;
        const Search search = run_search(&random, &arena, &request);
        arena_free(&arena);
        if (search.plans < 2) {
            continue;  // nothing to choose between
        }
        requests++;
        plans += search.plans;
        const bool equal = mesh_same_shape(&search.estimated.mesh, &search.simulated.mesh);
        const double regret = search.simulated_of_estimated_s / search.simulated.step_s;
        same += equal;
        tied += !equal && regret < tie;
        worst = regret > worst ? regret : worst;
    }
    fprintf(stderr, "%d requests, %d plans: same best shape in %d, a tie in %d, worst regret %.4f\n", requests, plans,
            same, tied, worst);
    cr_assert_geq((same + tied) * 100, REQUESTS * 95);
    cr_assert_lt(worst, 1.03);
}
