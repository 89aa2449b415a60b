// bf16 on device cpu against fp32 on it: an error on one rank may at most double on a mesh (sim/SOURCES.md X3), for
// every model type and every target's program as close as device cuda must be. Where this build or processor has no
// products in bf16, a run ends with a message that gives the reason.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "tests/parity/exec/exec_case.h"
#include "tests/parity/exec/exec_families.h"

enum { STEPS = 3 };

static Arena arena;
static char why[KERNEL_HALF_WHY_BYTES];

static void clean(void) {
    arena_free(&arena);
}

TestSuite(half, .fini = clean);

static bool is_here(void) {
    KernelHalves *halves = kernel_halves_open(1, why);
    kernel_halves_close(halves);
    return halves;
}

static void skip_elsewhere(void) {
    if (!is_here()) {
        cr_skip_test("%s", why);
    }
}

typedef struct Case {
    const char *mesh;
    int grad_accum;
    Recompute recompute;
    LaneMode lanes;
    int threads;
} Case;

static RunRequest request_of(const Case *c, Dtype precision) {
    Mesh mesh;
    TrainPlan plan;
    Error error = {0};
    RunOptions options = case_options();
    cr_assert(mesh_parse(c->mesh, &mesh, &error) == STATUS_OK && case_plan(&mesh, c->grad_accum, &plan));
    plan.zero = plan.mesh.size[AXIS_DP_SHARD] > 1 ? 3 : 0;
    plan.seq = PAIRS_SEQ;
    plan.precision = precision;
    plan.recompute = c->recompute;
    plan_canonical(&plan);
    options.steps = STEPS;
    options.lanes = c->lanes;
    options.threads = c->threads;
    options.poison = true;
    return case_request(&plan, &options);
}

static RunResult trained(const Case *c, Dtype precision) {
    const RunRequest request = request_of(c, precision);
    return case_run_request(&request, &arena);
}

static double off(double value, double reference) {
    return fabs(value - reference) / fabs(reference);
}

static double worst_loss(const RunResult *run, const RunResult *exact) {
    double worst = 0;
    for (int step = 0; step < STEPS; step++) {
        worst = fmax(worst, isfinite(run->loss[step]) ? off(run->loss[step], exact->loss[step]) : INFINITY);
    }
    return worst;
}

static const Case one = {"dp_shard=1", 1, RECOMPUTE_NONE, LANES_SERIAL, 1};

Test(half, on_a_mesh_is_as_near_as_on_one_rank) {
    static const Case cases[] = {
        {"dp_shard=2,tp=2", 1, RECOMPUTE_NONE, LANES_SERIAL, 1},
        {"cp=2", 2, RECOMPUTE_FULL, LANES_SERIAL, 2},
        {"sp=2,tp=2", 1, RECOMPUTE_NONE, LANES_SERIAL, 1},
        {"pp=2,dp_replicate=2", 2, RECOMPUTE_NONE, LANES_SERIAL, 1},
        {"dp_shard=2,cp=2", 2, RECOMPUTE_NONE, LANES_ASYNC, 1},
    };
    skip_elsewhere();
    const RunResult exact = trained(&one, DTYPE_FP32), alone = trained(&one, DTYPE_BF16);
    const double cost = worst_loss(&alone, &exact);
    cr_expect(cost > 0 && cost < 5e-3, "bf16 on one rank is off by %.2e", cost);
    cr_expect_eq(alone.peak_bytes, alone.planned_peak_bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const RunResult mesh = trained(&cases[i], DTYPE_BF16);
        const double on_mesh = worst_loss(&mesh, &exact);
        cr_expect(on_mesh <= 2 * cost, "%s: bf16 is off by %.2e, on one rank by %.2e", cases[i].mesh, on_mesh, cost);
        cr_expect_eq(mesh.peak_bytes, mesh.planned_peak_bytes, "%s", cases[i].mesh);
    }
}

static void check_step(RunRequest *request, double loss, double norm, const char *words) {
    request->options.steps = 1;
    const RunResult half = case_run_request(request, &arena);
    request->plan.precision = DTYPE_FP32;
    request->plan.bf16_master = false;
    const RunResult full = case_run_request(request, &arena);
    cr_expect(off(half.loss[0], full.loss[0]) <= loss, "%s: loss %.9g, in fp32 %.9g", words, half.loss[0],
              full.loss[0]);
    cr_expect(off(half.grad_norm[0], full.grad_norm[0]) <= norm && half.grad_norm[0] != full.grad_norm[0],
              "%s: norm %.9g, in fp32 %.9g", words, half.grad_norm[0], full.grad_norm[0]);
}

// Bounds are those of device cuda (test_cuda_device.c).
Test(half, every_family_of_models_steps_as_in_fp32) {
    skip_elsewhere();
    for (int f = 0; f < EXEC_FAMILIES; f++) {
        RunRequest request = request_of(&one, DTYPE_BF16);
        request.model = exec_family(case_model(), exec_families[f]);
        check_step(&request, 2e-4, 2e-2, exec_families[f]);
    }
}

Test(half, gemma_3_and_a_dense_layer_before_one_of_experts_step_as_in_fp32) {
    static const LayerRun runs[] = {{LAYER_DENSE, 0, 1}, {LAYER_EXPERTS, 1, 1}};
    skip_elsewhere();
    RunRequest request = request_of(&one, DTYPE_BF16);
    request.model = exec_family(case_model(), "gemma3_text");
    request.model.window = 7;
    request.model.window_every = 2;
    request.model.rope_local = 1000;
    check_step(&request, 2e-4, 2e-2, "gemma3_text");
    request = request_of(&one, DTYPE_BF16);
    request.model = exec_family(case_model(), "mixtral");
    request.model.experts = (Experts){.count = 4, .active = 4, .ffn = 96};  // all: bf16 chooses as fp32
    request.model.runs = runs;
    request.model.run_count = 2;
    check_step(&request, 2e-4, 2e-2, "two kinds");
}

Test(half, every_target_s_program_steps_as_in_fp32) {
    static const char *const targets[] = {"accelerate", "axolotl",   "torchtitan", "megatron",
                                          "nanotron",   "deepspeed", "fsdp1"};
    const Case c = {"dp_shard=2", 1, RECOMPUTE_NONE, LANES_SERIAL, 1};
    skip_elsewhere();
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        Error error = {0};
        RunRequest request = request_of(&c, DTYPE_BF16);
        cr_assert(target_find(targets[t], &request.target, &error) == STATUS_OK, "%s", error.message);
        request.plan.zero = target_default_zero(request.target, &request.plan.mesh);
        request.plan.bf16_master = request.target->bf16_weights;
        check_step(&request, 1e-4, 1e-2, targets[t]);
    }
}

Test(half, is_refused_in_a_sentence_where_nothing_multiplies_in_it) {
    if (is_here()) {
        cr_skip_test("this processor multiplies in bf16");
    }
    const RunRequest request = request_of(&one, DTYPE_BF16);
    const ExecOptions options = {.worker_path = NDTUNE_BIN_DIR "/ndtune-worker"};
    Error error = {0};
    RunResult result;
    cr_assert_eq(exec_run(&request, &options, &arena, &result, &error), STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "computes in fp32 here, not in bf16") && strstr(error.message, why), "%s",
              error.message);
}
