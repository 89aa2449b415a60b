// Gradients reduced on each micro-step, over the shards on each and over replicas once, or whole on the last: only the
// order of sums differs, so training matches one rank, within the planned memory.

#include <criterion/criterion.h>

#include "tests/parity/exec/flavour_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(grad_sync, .fini = clean);

typedef struct Case {
    const char *target, *mesh;
    int zero;
} Case;

// Stages that shard gradients and one that does not; replicas, slices of sequences; copies around the reduction.
static const Case cases[] = {
    {"ndtune", "dp_replicate=2,dp_shard=2", 3},
    {"ndtune", "dp_shard=2,cp=2", 2},
    {"ndtune", "dp_replicate=4", 0},
    {"accelerate", "dp_replicate=2,dp_shard=2", 3},
};

enum { MICRO_STEPS = 2 };

static RunRequest request_of(const char *target_name, const char *mesh_words, int zero, GradSync sync) {
    Mesh mesh;
    TrainPlan plan;
    const Target *target;
    Error error = {0};
    cr_assert(mesh_parse(mesh_words, &mesh, &error) == STATUS_OK && case_plan(&mesh, MICRO_STEPS, &plan));
    cr_assert(target_find(target_name, &target, &error) == STATUS_OK, "%s", error.message);
    plan.seq = PAIRS_SEQ;
    plan.zero = zero;
    plan.grad_sync = sync;
    return flavour_request(target, &plan);
}

Test(grad_sync, trains_as_one_rank_whenever_gradients_are_reduced) {
    const RunRequest one = request_of("ndtune", "dp_shard=1", 0, GRAD_SYNC_TARGET);
    const RunResult reference = case_run_request(&one, &arena);
    Deviation worst = {0};
    int runs = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (GradSync sync = GRAD_SYNC_EACH; sync < GRAD_SYNC_COUNT; sync++) {
            const RunRequest request = request_of(cases[i].target, cases[i].mesh, cases[i].zero, sync);
            const char *reason = NULL;
            target_check(request.target, &request.model, &request.plan, &arena, &reason);
            if (!reason) {
                const RunResult run = case_run_request(&request, &arena);
                case_expect_same(&request, &run, &reference, &worst);
                runs++;
            }
        }
    }
    cr_assert_eq(runs, 3 + 3 + 3 + 2);  // shards is none of accelerate's
    cr_log_warn("%d runs: losses off by %.1e, at the last step by %.1e", runs, worst.loss_first, worst.loss_last);
}
