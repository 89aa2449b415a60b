// How a program is run must not change what it computes: lanes in threads with injected waits, poisoned memory, an
// allocator that kills. All comparisons are bit for bit.

#define _GNU_SOURCE  // setenv

#include <criterion/criterion.h>
#include <string.h>

#include "tests/parity/exec/flavour_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(modes, .fini = clean);

enum { MODE_STEPS = 6 };

typedef struct Case {
    const char *target, *mesh;
    int zero;
    Recompute recompute;
    CpRotate rotate;
} Case;

// Programs that use every lane: gathers and reductions, hybrid all-reduce, tensor parallel, ring; and every flavour.
static const Case cases[] = {
    {"ndtune", "dp_shard=2", 3, RECOMPUTE_NONE, CP_ROTATE_RING},
    {"ndtune", "dp_replicate=2,dp_shard=2", 2, RECOMPUTE_FULL, CP_ROTATE_RING},
    {"ndtune", "dp_shard=2,cp=2,tp=2", 0, RECOMPUTE_FULL, CP_ROTATE_RING},
    {"ndtune", "cp=4", 3, RECOMPUTE_NONE, CP_ROTATE_RING},
    {"ndtune", "dp_replicate=2,cp=2", 1, RECOMPUTE_FULL, CP_ROTATE_RING},
    {"accelerate", "dp_shard=2,tp=2", 3, RECOMPUTE_FULL, CP_ROTATE_RING},
    {"accelerate@1.13", "dp_shard=2,cp=2", 3, RECOMPUTE_FULL, CP_ROTATE_ALLGATHER},
    {"axolotl", "cp=2,tp=2", 3, RECOMPUTE_NONE, CP_ROTATE_ALLGATHER},
    {"torchtitan", "dp_shard=2,cp=2,tp=2", 3, RECOMPUTE_SELECTIVE, CP_ROTATE_ALLGATHER},
    {"torchtitan@head", "dp_replicate=2,cp=2", 3, RECOMPUTE_FULL, CP_ROTATE_ALLGATHER},
    {"megatron", "dp_shard=2,cp=2", 1, RECOMPUTE_SELECTIVE, CP_ROTATE_RING},
    {"nanotron", "dp_shard=2,tp=2", 1, RECOMPUTE_NONE, CP_ROTATE_RING},
    {"deepspeed", "dp_shard=2,tp=2", 3, RECOMPUTE_FULL, CP_ROTATE_RING},
};
enum { CASES = sizeof cases / sizeof *cases };

static RunRequest request_of(const Case *one, const RunOptions *options) {
    Mesh mesh;
    TrainPlan plan;
    const Target *target;
    Error error = {0};
    cr_assert(mesh_parse(one->mesh, &mesh, &error) == STATUS_OK, "%s", error.message);
    cr_assert(target_find(one->target, &target, &error) == STATUS_OK, "%s", error.message);
    case_plan(&mesh, 2, &plan);
    plan.seq = PAIRS_SEQ;
    plan.zero = one->zero;
    plan.recompute = one->recompute;
    plan.cp_rotate = one->rotate;
    plan.fused = target->default_fused;
    RunRequest request = flavour_request(target, &plan);
    request.options = *options;
    return request;
}

// In the steps of the shorter run.
static bool same_bits(const RunResult *a, const RunResult *b) {
    const int steps = a->steps < b->steps ? a->steps : b->steps;
    const size_t bytes = (size_t)steps * sizeof(double);
    return memcmp(a->loss, b->loss, bytes) == 0 && memcmp(a->grad_norm, b->grad_norm, bytes) == 0;
}

static void same_as_serial(const RunResult *serial, const Case *one, const RunOptions *options, const char *how) {
    const RunRequest request = request_of(one, options);
    const RunResult run = case_run_request(&request, &arena);
    cr_expect(run.steps == options->steps && same_bits(serial, &run), "%s %s, %s: loss %.9g, serial %.9g", one->target,
              one->mesh, how, run.loss[run.steps - 1], serial->loss[run.steps - 1]);
}

// Injected waits of several seeds; poison is what memory holds before it is written.
Test(modes, lanes_in_threads_injected_waits_and_poison_give_the_bits_of_issue_order) {
    enum { SEEDS = 3 };
    RunOptions serial = case_options();
    serial.steps = MODE_STEPS;
    RunOptions threads = serial, poisoned = serial, waits = serial;
    threads.lanes = waits.lanes = LANES_ASYNC;
    poisoned.poison = true;
    waits.steps = MODE_STEPS / 2;
    for (int i = 0; i < CASES; i++) {
        const RunRequest request = request_of(&cases[i], &serial);
        const RunResult run = case_run_request(&request, &arena);
        cr_assert_eq(run.steps, MODE_STEPS);
        same_as_serial(&run, &cases[i], &threads, "lanes in threads");
        same_as_serial(&run, &cases[i], &poisoned, "poisoned memory");
        for (int seed = 1; seed <= SEEDS; seed++) {
            waits.jitter_seed = (uint64_t)seed;
            same_as_serial(&run, &cases[i], &waits, "injected waits");
        }
    }
}

Test(modes, layers_in_two_runs_give_the_bits_of_one_run) {
    static const LayerRun runs[] = {{LAYER_DENSE, 0, 1}, {LAYER_DENSE, 1, 1}};
    RunOptions options = case_options();
    options.steps = MODE_STEPS / 2;
    for (int i = 0; i < CASES; i++) {
        const RunRequest whole = request_of(&cases[i], &options);
        RunRequest split = whole;
        split.model.runs = runs;
        split.model.run_count = 2;
        const RunResult one = case_run_request(&whole, &arena), two = case_run_request(&split, &arena);
        cr_expect(same_bits(&one, &two), "%s %s: loss %.9g, in one run %.9g", cases[i].target, cases[i].mesh,
                  two.loss[two.steps - 1], one.loss[one.steps - 1]);
    }
}

// What runs again computes what it computed before.
Test(modes, modules_that_run_again_give_the_bits_of_a_step_that_keeps_all) {
    static const struct {
        const char *target, *mesh;
        int modules;
    } sets[] = {{"ndtune", "dp_shard=2,tp=2", RECOMPUTE_NORMS},
                {"ndtune", "dp_shard=2,cp=2", RECOMPUTE_CORE_ATTENTION | RECOMPUTE_MLP},
                {"megatron", "dp_shard=2,tp=2", RECOMPUTE_NORMS | RECOMPUTE_MLP},
                {"megatron", "cp=2", RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS | RECOMPUTE_MLP}};
    RunOptions options = case_options();
    options.steps = MODE_STEPS / 2;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const Case none = {sets[i].target, sets[i].mesh, 1, RECOMPUTE_NONE, CP_ROTATE_RING};
        Case selective = none;
        selective.recompute = RECOMPUTE_SELECTIVE;
        const RunRequest keeps = request_of(&none, &options);
        RunRequest again = request_of(&selective, &options);
        again.plan.recompute_modules = sets[i].modules;
        const RunResult kept = case_run_request(&keeps, &arena), run = case_run_request(&again, &arena);
        cr_expect(same_bits(&kept, &run), "%s %s: loss %.9g, keeping all %.9g", none.target, none.mesh,
                  run.loss[run.steps - 1], kept.loss[kept.steps - 1]);
        cr_expect_lt(run.peak_bytes, kept.peak_bytes);
    }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
Test(modes, nothing_is_allocated_inside_a_step) {
    cr_skip_test("a sanitizer has the allocator already");
}
#else
static void runs_under_guard(LaneMode lanes) {
    RunOptions options = case_options();
    options.steps = MODE_STEPS;
    options.lanes = lanes;
    options.spans = true;
    setenv("LD_PRELOAD", ALLOCATION_GUARD, 1);
    for (int i = 0; i < CASES; i++) {
        const RunRequest request = request_of(&cases[i], &options);
        case_run_request(&request, &arena);
    }
    unsetenv("LD_PRELOAD");
}

Test(modes, nothing_is_allocated_inside_a_step) {
    runs_under_guard(LANES_SERIAL);
    runs_under_guard(LANES_ASYNC);
}

Test(modes, the_allocation_guard_kills_a_worker_that_allocates) {
    RunOptions options = case_options();
    options.steps = MODE_STEPS;
    const RunRequest request = request_of(&cases[0], &options);
    Error error = {0};
    RunResult result;
    setenv("LD_PRELOAD", ALLOCATION_GUARD, 1);
    setenv("NDTUNE_GUARD_SELF_TEST", "1", 1);
    const Status status = case_try(&request.plan, &options, &arena, &result, &error);
    unsetenv("NDTUNE_GUARD_SELF_TEST");
    unsetenv("LD_PRELOAD");
    cr_assert(status == STATUS_ENVIRONMENT && strstr(error.message, "allocation inside a step"), "%s", error.message);
}
#endif

// Which layers are recomputed changes what is kept, and nothing else.
static void check_layers(const char *target_name, int first, int every) {
    RunOptions options = case_options();
    options.steps = MODE_STEPS;
    const Case one = {target_name, "dp_shard=2,tp=2", 3, RECOMPUTE_FULL, CP_ROTATE_ALLGATHER};
    RunRequest request = request_of(&one, &options);
    const RunResult all = case_run_request(&request, &arena);
    request.plan.recompute_layers = first;
    request.plan.recompute_every = every;
    const RunResult some = case_run_request(&request, &arena);
    cr_expect(same_bits(&all, &some), "%s, %d layers, every %d", target_name, first, every);
    cr_expect_gt(some.peak_bytes, all.peak_bytes, "%s", target_name);
    cr_expect_eq(some.peak_bytes, some.planned_peak_bytes, "%s", target_name);
}

Test(modes, layers_kept_next_to_recomputed_ones_give_the_same_bits_in_the_planned_bytes) {
    check_layers("ndtune", 1, 0);
    check_layers("torchtitan@0.2", 0, 2);
}
