// Gradients reduced in bf16: the forward pass is unaffected, the gradient norm is off by the error of rounding to 8
// bits (2^-9 of each part and of the sum, of random sign, so far less of the norm), and it is off, so the rounding is
// real. Training stays close to that of one rank.

#include <criterion/criterion.h>
#include <math.h>

#include "tests/parity/exec/flavour_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(reduce_dtype, .fini = clean);

typedef struct Case {
    const char *target, *mesh;
    int grad_accum, zero;
} Case;

// Every stage; each micro-step and once; replicas after the shards; copies around the reduction and none.
static const Case cases[] = {
    {"ndtune", "dp_shard=2", 1, 1},
    {"ndtune", "dp_shard=2,tp=2", 2, 2},
    {"ndtune", "dp_shard=2,cp=2", 2, 3},
    {"ndtune", "dp_replicate=2,dp_shard=2", 2, 3},
    {"accelerate", "dp_shard=2,tp=2", 2, 3},
    {"deepspeed", "dp_shard=4", 2, 2},
    {"fsdp1", "dp_replicate=2,dp_shard=2", 2, 3},
};

static RunResult trained(const Case *one, ReduceDtype dtype) {
    Mesh mesh;
    TrainPlan plan;
    const Target *target;
    Error error = {0};
    cr_assert(mesh_parse(one->mesh, &mesh, &error) == STATUS_OK && case_plan(&mesh, one->grad_accum, &plan));
    cr_assert(target_find(one->target, &target, &error) == STATUS_OK, "%s", error.message);
    plan.zero = one->zero;
    plan.reduce_dtype = dtype;
    const RunRequest request = flavour_request(target, &plan);
    return case_run_request(&request, &arena);
}

static double off(double value, double reference) {
    return fabs(value / reference - 1);
}

Test(reduce_dtype, bf16_rounds_gradients_and_nothing_else) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const RunResult full = trained(&cases[i], REDUCE_DTYPE_FP32), half = trained(&cases[i], REDUCE_DTYPE_BF16);
        const int last = CASE_STEPS - 1;
        const double norm = off(half.grad_norm[0], full.grad_norm[0]), loss = off(half.loss[last], full.loss[last]);
        const char *words = arena_format(&arena, "%s %s", cases[i].target, cases[i].mesh);
        cr_expect_eq(half.loss[0], full.loss[0], "%s", words);
        cr_expect(norm > 1e-6 && norm < 1e-3, "%s: the norm is off by %.1e", words, norm);
        cr_expect(loss < 1e-4, "%s: the last loss is off by %.1e", words, loss);
        cr_expect_eq(half.peak_bytes, half.planned_peak_bytes, "%s", words);
        cr_log_warn("%s: norm off by %.1e, last loss by %.1e", words, norm, loss);
    }
}
