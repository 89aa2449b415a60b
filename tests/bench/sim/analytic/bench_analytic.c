// Speed of the analytic estimate: candidates per second once their keys are known, and the cost of computing the keys.
// Target: over 1,000,000 candidates per second and core.

#include <stdio.h>

#include "sim/analytic/analytic.h"
#include "sim/base/clock.h"
#include "sim/cluster/cluster.h"
#include "sim/frameworks/target.h"
#include "sim/model/model.h"

enum { MAX_PLANS = 1 << 17, ROUNDS = 100 };

// Legal plans of the world with tp <= 8 and cp <= 32: meshes x micro-batches x recompute x reshard, about 4M tokens per
// step.
static int enumerate(const ModelSpec *model, const Target *target, int world, Arena *arena, TrainPlan *plans) {
    const int meshes = mesh_enumerate(world, AXES_FIRST, NULL, 0);
    Mesh *mesh = ARENA_ARRAY(arena, Mesh, meshes);
    mesh_enumerate(world, AXES_FIRST, mesh, meshes);
    int count = 0;
    for (int i = 0; i < meshes; i++) {
        for (int choice = 0; choice < 4 * 6 && count < MAX_PLANS; choice++) {
            TrainPlan plan = {.mesh = mesh[i],
                              .seq = 4096,
                              .micro_batch = 1 << choice / 4,
                              .zero = target_default_zero(target, &mesh[i]),
                              .reshard = choice & 1 ? RESHARD_NEVER : RESHARD_ALWAYS,
                              .recompute = choice & 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE,
                              .cp_rotate = target_default_rotate(target),
                              .precision = DTYPE_BF16,
                              .grad_accum = 1};
            const int64_t steps = 1024 / plan_global_batch(&plan);
            plan.grad_accum = steps > 1 ? (int)steps : 1;
            plan_canonical(&plan);
            const char *reason;
            target_check(target, model, &plan, arena, &reason);
            const bool inside = plan.mesh.size[AXIS_TP] <= 8 && plan.mesh.size[AXIS_CP] <= 32;
            if (!reason && inside) {
                plans[count++] = plan;
            }
        }
    }
    return count;
}

static Status bench(const char *model_name, const char *target_name, int world, Arena *arena, Error *error) {
    ModelSpec model;
    const Target *target;
    ClusterProfile *profile = ARENA_NEW(arena, ClusterProfile);
    TRY(model_find(model_name, arena, &model, error));
    TRY(target_find(target_name, &target, error));
    TRY(cluster_find("dgx-h100", arena, profile, error));
    const CostModel cost = {.profile = profile, .target = target};
    TrainPlan *plans = ARENA_ARRAY(arena, TrainPlan, MAX_PLANS);
    const int count = enumerate(&model, target, world, arena, plans);
    Analytic *analytic = analytic_new(&model, &cost, arena);
    double cold_s = 0, best_s = 1e30, sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const double start_s = clock_of_s(CLOCK_PROCESS_CPUTIME_ID);
        for (int i = 0; i < count; i++) {
            Estimate estimate;
            TRY(analytic_estimate(analytic, &plans[i], &estimate, error));
            sum += estimate.step_s;
        }
        const double took_s = clock_of_s(CLOCK_PROCESS_CPUTIME_ID) - start_s;
        cold_s = round == 0 ? took_s : cold_s;
        best_s = took_s < best_s ? took_s : best_s;
    }
    printf("%-14s %-11s %6d %8d %10.1f %10.3f %8d   (%.3g)\n", model_name, target_name, world, count, cold_s * 1e3,
           count / best_s * 1e-6, 1, sum);
    analytic_free(analytic);
    return STATUS_OK;
}

int main(void) {
    static const struct {
        const char *model, *target;
        int world;
    } cases[] = {{"7b", "accelerate", 32},
                 {"7b", "ndtune", 32},
                 {"llama-3-70b", "accelerate", 1024},
                 {"llama-3-70b", "ndtune", 1024}};
    printf("%-14s %-11s %6s %8s %10s %10s %8s\n", "model", "target", "world", "plans", "cold ms", "M/s", "target");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Error error = {0};
        const Status status = bench(cases[i].model, cases[i].target, cases[i].world, &arena, &error);
        arena_free(&arena);
        if (status != STATUS_OK) {
            fprintf(stderr, "%s\n", error.message);
            return status_exit_code(status);
        }
    }
    return 0;
}
