// Engine speed: task events per second on lowered programs, and what repetition saves.

#include <stdio.h>
#include <stdlib.h>

#include "sim/base/clock.h"
#include "sim/cluster/cluster.h"
#include "sim/engine/engine.h"
#include "sim/frameworks/target.h"
#include "sim/model/model.h"
#include "tests/support/sizes.h"

typedef struct Case {
    const char *name, *model, *target;
    TrainPlan plan;
    EngineOptions options;
    double target_per_s;
} Case;

static const Case cases[] = {
    {"7b 32 GPUs, fsdp, isolated",
     "7b",
     "accelerate",
     {.mesh = {SIZES(1, 32, 1, 1)},
      .seq = 4096,
      .micro_batch = 1,
      .grad_accum = 8,
      .zero = 3,
      .recompute = RECOMPUTE_FULL,
      .precision = DTYPE_BF16},
     {.unroll = true, .no_contention = true},
     10e6},
    {"7b 32 GPUs, fsdp",
     "7b",
     "accelerate",
     {.mesh = {SIZES(1, 32, 1, 1)},
      .seq = 4096,
      .micro_batch = 1,
      .grad_accum = 8,
      .zero = 3,
      .recompute = RECOMPUTE_FULL,
      .precision = DTYPE_BF16},
     {.unroll = true},
     10e6},
    {"7b 32 GPUs, hsdp + cp + tp",
     "7b",
     "accelerate",
     {.mesh = {SIZES(2, 4, 2, 2)}, .seq = 8192, .micro_batch = 1, .grad_accum = 8, .zero = 3, .precision = DTYPE_BF16},
     {.unroll = true},
     10e6},
    {"70b 256 GPUs, ndtune, cp + tp",
     "llama-3-70b",
     "ndtune",
     {.mesh = {SIZES(2, 8, 2, 8)}, .seq = 8192, .micro_batch = 1, .grad_accum = 8, .zero = 3, .precision = DTYPE_BF16},
     {.unroll = true},
     10e6},
    {"70b 256 GPUs, all ranks",
     "llama-3-70b",
     "accelerate",
     {.mesh = {SIZES(2, 8, 2, 8)}, .seq = 8192, .micro_batch = 1, .grad_accum = 2, .zero = 3, .precision = DTYPE_BF16},
     {.unroll = true, .all_ranks = true},
     2e6},
    {"70b 256 GPUs, 64 micro-steps, repeated",
     "llama-3-70b",
     "accelerate",
     {.mesh = {SIZES(2, 8, 2, 8)}, .seq = 8192, .micro_batch = 1, .grad_accum = 64, .zero = 3, .precision = DTYPE_BF16},
     {0},
     0},
};

static Status run_case(const Case *row, Arena *arena, Error *error) {
    ModelSpec model;
    const Target *target;
    ClusterProfile *profile = ARENA_NEW(arena, ClusterProfile);
    StepProgram program;
    EngineResult result;
    TRY(model_find(row->model, arena, &model, error));
    TRY(target_find(row->target, &target, error));
    TRY(cluster_find("dgx-h100", arena, profile, error));
    TRY(step_lower(&model, &row->plan, target, arena, &program, error));
    const CostModel cost = {.profile = profile, .target = target};
    double best_s = 1e30;
    const double begin_s = clock_of_s(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 5 || (clock_of_s(CLOCK_PROCESS_CPUTIME_ID) - begin_s < 0.5 && i < 2000); i++) {
        const double start_s = clock_of_s(CLOCK_PROCESS_CPUTIME_ID);
        TRY(engine_run(&program, &cost, &row->options, arena, &result, error));
        const double took_s = clock_of_s(CLOCK_PROCESS_CPUTIME_ID) - start_s;
        best_s = took_s < best_s ? took_s : best_s;
    }
    printf("%-42s %9lld %10lld %9.3f %8.2f", row->name, (long long)result.events, (long long)result.instances,
           best_s * 1e3, (double)result.events / best_s * 1e-6);
    if (row->target_per_s > 0) {
        printf(" %8.0f", row->target_per_s * 1e-6);
    }
    printf("   step %.4f s\n", result.step_s);
    return STATUS_OK;
}

int main(void) {
    printf("%-42s %9s %10s %9s %8s %8s\n", "engine, best of repeats", "events", "instances", "ms", "M/s", "target");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Error error = {0};
        if (run_case(&cases[i], &arena, &error) != STATUS_OK) {
            fprintf(stderr, "%s: %s\n", cases[i].name, error.message);
            arena_free(&arena);
            return status_exit_code(error.status);
        }
        arena_free(&arena);
    }
    return 0;
}
