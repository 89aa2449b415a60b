// How fast a candidate's memory is computed: plan, breakdown and proof of llama-2-7b programs, on one core. Prints,
// never asserts. Target: a plan well under 5 ms, because the tuner makes one for every candidate that it simulates.

#include <math.h>
#include <stdio.h>

#include "sim/base/clock.h"
#include "sim/memory/memory.h"
#include "tests/support/hazard_check.h"

enum { ROUNDS = 100, PROOFS = 5 };

static Status measure(const char *target_name, const char *mesh, int grad_accum, Error *error) {
    Arena arena = {0};
    Arena scratch = {0};
    ModelSpec model;
    const Target *target;
    StepProgram program;
    MemoryPlan plan;
    MemoryBreakdown breakdown;
    HazardReport report;
    TrainPlan choice = {.seq = 4096, .micro_batch = 1, .grad_accum = grad_accum, .zero = 3, .precision = DTYPE_BF16};
    double best_s[3] = {1, 1, 1};  // of many rounds: other processes disturb the rest
    TRY(mesh_parse(mesh, &choice.mesh, error));
    plan_canonical(&choice);
    TRY(model_find("7b", &arena, &model, error));
    TRY(target_find(target_name, &target, error));
    TRY(step_lower(&model, &choice, target, &arena, &program, error));
    for (int i = 0; i < ROUNDS; i++) {
        arena_reset(&scratch);
        const double start_s = clock_s();
        TRY(memory_plan(&program, &scratch, &plan, error));
        const double planned_s = clock_s();
        TRY(memory_breakdown(&program, &scratch, &breakdown, error));
        best_s[0] = fmin(best_s[0], planned_s - start_s);
        best_s[1] = fmin(best_s[1], clock_s() - planned_s);
    }
    for (int i = 0; i < PROOFS; i++) {
        arena_reset(&scratch);
        TRY(memory_plan(&program, &scratch, &plan, error));
        const double start_s = clock_s();
        TRY(hazard_check(&program, &plan, &scratch, &report, error));
        best_s[2] = fmin(best_s[2], clock_s() - start_s);
    }
    printf("%-10s %-28s ga %2d  %3d tasks %3d buffers  plan %6.3f ms  breakdown %6.3f ms  proof %7.1f ms (%lld "
           "instances)\n",
           target_name, mesh, grad_accum, program.task_count, program.buffer_count, 1e3 * best_s[0], 1e3 * best_s[1],
           1e3 * best_s[2], (long long)report.instances);
    arena_free(&scratch);
    arena_free(&arena);
    return STATUS_OK;
}

int main(void) {
    static const struct {
        const char *target, *mesh;
        int grad_accum;
    } cases[] = {{"ndtune", "dp_shard=8", 1},
                 {"ndtune", "dp_shard=2,cp=2,tp=2", 16},
                 {"ndtune", "dp_replicate=2,cp=8,tp=2", 4},
                 {"accelerate", "dp_shard=32", 1},
                 {"accelerate", "dp_shard=4,cp=4,tp=2", 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error error = {0};
        if (measure(cases[i].target, cases[i].mesh, cases[i].grad_accum, &error) != STATUS_OK) {
            fprintf(stderr, "%s %s: %s\n", cases[i].target, cases[i].mesh, error.message);
            return 1;
        }
    }
    return 0;
}
