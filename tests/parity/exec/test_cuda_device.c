// Device cuda against device cpu: the same programs with the same weights and tokens, over the stand-in runtime that
// runs kernels and streams on the processor in an order drawn from a seed. Losses and gradient norms of the first steps
// must agree as those of meshes do: a lost event, a wrong address or format would show in them. What a real GPU adds
// (rounding of tensor cores, races inside kernels, cuBLASLt itself) is not covered here.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/parity/exec/cuda_case.h"
#include "tests/parity/exec/exec_families.h"

static Arena arena;

static void setup(void) {
    arena = (Arena){0};
}

static void teardown(void) {
    arena_free(&arena);
}

TestSuite(cuda_device, .init = setup, .fini = teardown);

static RunResult run_cuda(const CudaCase *c, Dtype precision) {
    const RunRequest request = cuda_case_request(c, precision, "cuda");
    setenv("NDTUNE_CUDA_HOST_SEED", c->seed, 1);
    return case_run_by(CUDA_HOST_WORKER, &request, &arena);
}

static RunResult run_cpu(const CudaCase *c) {
    const RunRequest request = cuda_case_request(c, DTYPE_FP32, "cpu");
    return case_run_request(&request, &arena);
}

static void check_fp32_steps(const CudaCase *c, int steps) {
    RunRequest on_cpu = cuda_case_request(c, DTYPE_FP32, "cpu"), on_cuda = cuda_case_request(c, DTYPE_FP32, "cuda");
    on_cpu.options.steps = on_cuda.options.steps = steps;
    setenv("NDTUNE_CUDA_HOST_SEED", c->seed, 1);
    const RunResult cpu = case_run_request(&on_cpu, &arena), cuda = case_run_by(CUDA_HOST_WORKER, &on_cuda, &arena);
    cr_expect(case_off(cuda.loss[0], cpu.loss[0]) <= 2e-6, "%s: loss %.9g, on the cpu %.9g", c->mesh, cuda.loss[0],
              cpu.loss[0]);
    cr_expect(case_off(cuda.grad_norm[0], cpu.grad_norm[0]) <= 2e-6, "%s: norm %.9g, on the cpu %.9g", c->mesh,
              cuda.grad_norm[0], cpu.grad_norm[0]);
    cr_expect(case_off(cuda.loss[steps - 1], cpu.loss[steps - 1]) <= 1e-5, "%s: loss %.9g at the end, on the cpu %.9g",
              c->mesh, cuda.loss[steps - 1], cpu.loss[steps - 1]);
    cr_expect_eq(cuda.peak_bytes, cuda.planned_peak_bytes);
}

static void check_fp32(const CudaCase *c) {
    check_fp32_steps(c, CUDA_CASE_STEPS);
}

Test(cuda_device, one_rank_trains_as_on_the_cpu) {
    check_fp32(&(CudaCase){"dp_shard=1", 0, 1, RECOMPUTE_NONE, "1"});
}

Test(cuda_device, sharded_ranks_with_accumulation_train_as_on_the_cpu) {
    check_fp32(&(CudaCase){"dp_shard=2", 3, 2, RECOMPUTE_FULL, "2"});
}

Test(cuda_device, rings_and_tensor_parallel_ranks_train_as_on_the_cpu) {
    check_fp32(&(CudaCase){"cp=2,tp=2", 3, 1, RECOMPUTE_FULL, "3"});
}

// The guard faults where the program touches device memory by itself; it costs most of a step, and every step touches
// the same.
Test(cuda_device, sharded_ranks_with_accumulation_leave_device_memory_to_the_device) {
    setenv("NDTUNE_CUDA_HOST_GUARD", "1", 1);  // in this test's process and its workers
    check_fp32_steps(&(CudaCase){"dp_shard=2", 3, 2, RECOMPUTE_FULL, "2"}, 1);
}

Test(cuda_device, rings_and_tensor_parallel_ranks_leave_device_memory_to_the_device) {
    setenv("NDTUNE_CUDA_HOST_GUARD", "1", 1);
    check_fp32_steps(&(CudaCase){"cp=2,tp=2", 3, 1, RECOMPUTE_FULL, "3"}, 1);
}

Test(cuda_device, replicas_with_a_sharded_optimizer_train_as_on_the_cpu) {
    check_fp32(&(CudaCase){"dp_replicate=2,dp_shard=2", 1, 1, RECOMPUTE_NONE, "4"});
}

static double worst_loss(const RunResult *run, const RunResult *exact) {
    double worst = 0;
    for (int step = 0; step < CUDA_CASE_STEPS; step++) {
        worst = fmax(worst, isfinite(run->loss[step]) ? case_off(run->loss[step], exact->loss[step]) : INFINITY);
    }
    return worst;
}

// What bf16 costs on one rank it may cost twice on a mesh (sim/SOURCES.md X3).
static void check_bf16(const CudaCase *c) {
    const CudaCase one = {"dp_shard=1", 0, 1, RECOMPUTE_NONE, "5"};
    const RunResult exact = run_cpu(&one), alone = run_cuda(&one, DTYPE_BF16), mesh = run_cuda(c, DTYPE_BF16);
    const double cost = worst_loss(&alone, &exact), on_mesh = worst_loss(&mesh, &exact);
    cr_expect(cost > 0 && cost < 5e-3, "bf16 on one rank is off by %.2e", cost);
    cr_expect(on_mesh <= 2 * cost, "%s: bf16 is off by %.2e, on one rank by %.2e", c->mesh, on_mesh, cost);
}

Test(cuda_device, bf16_on_a_mesh_is_as_near_as_bf16_on_one_rank) {
    check_bf16(&(CudaCase){"dp_shard=2,tp=2", 3, 1, RECOMPUTE_NONE, "6"});
}

Test(cuda_device, bf16_on_a_ring_is_as_near_as_bf16_on_one_rank) {
    check_bf16(&(CudaCase){"cp=2", 3, 2, RECOMPUTE_FULL, "7"});
}

Test(cuda_device, what_a_run_found_out_of_its_chip_serves_the_next_one) {
    const CudaCase one = {"dp_shard=1", 0, 1, RECOMPUTE_NONE, "8"};
    RunRequest request = cuda_case_request(&one, DTYPE_BF16, "cuda");
    request.options.steps = 1;
    const RunResult first = case_run_by(CUDA_HOST_WORKER, &request, &arena);
    cr_assert(first.chip && first.price_count > 5 && first.device_bytes > first.planned_peak_bytes);
    request.options.prices = first.prices;
    request.options.price_count = first.price_count;
    const RunResult second = case_run_by(CUDA_HOST_WORKER, &request, &arena);
    cr_assert_eq(second.price_count, first.price_count);
    for (int i = 0; i < first.price_count; i++) {  // a time that was measured again would differ in its last digits
        cr_expect(second.prices[i].seconds == first.prices[i].seconds && first.prices[i].seconds > 0, "%s",
                  first.prices[i].what);
    }
}

Test(cuda_device, ranks_that_share_a_gpu_find_no_prices_of_it) {
    const CudaCase two = {"tp=2", 0, 1, RECOMPUTE_NONE, "14"};
    RunRequest request = cuda_case_request(&two, DTYPE_BF16, "cuda");
    request.options.steps = 1;
    const RunResult run = case_run_by(CUDA_HOST_WORKER, &request, &arena);
    cr_expect(run.chip && run.price_count == 0);
}

Test(cuda_device, spans_of_the_last_steps_come_from_events) {
    const CudaCase c = {"dp_shard=2", 3, 1, RECOMPUTE_NONE, "9"};
    RunRequest request = cuda_case_request(&c, DTYPE_FP32, "cuda");
    request.options.steps = 4;
    request.options.spans = true;
    const RunResult run = case_run_by(CUDA_HOST_WORKER, &request, &arena);
    cr_assert_gt(run.timeline.span_count, 0);
    for (int64_t i = 0; i < run.timeline.span_count; i++) {
        const Span *span = &run.timeline.spans[i];
        cr_expect(span->start_s >= 0 && span->end_s >= span->start_s, "task %d: %g to %g", span->task, span->start_s,
                  span->end_s);
    }
    for (int32_t t = 0; t < run.task_count; t++) {
        cr_expect(run.totals[t].count > 0 && run.totals[t].seconds > 0, "task %d", t);
    }
}

// ---------------------------------------------------------------------------------------------- what a run starts from

enum { WEIGHTS_BYTES = 1 << 20 };

// All weights after a step that changes none.
static size_t weights_of(const char *worker, RunRequest request, char content[WEIGHTS_BYTES]) {
    char path[] = "/tmp/ndtune-weights-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    request.options.steps = 1;
    request.options.lr = 0;
    request.options.weights_path = path;
    case_run_by(worker, &request, &arena);
    FILE *file = fopen(path, "rb");
    cr_assert(file);
    const size_t bytes = fread(content, 1, WEIGHTS_BYTES, file);
    fclose(file);
    unlink(path);
    return bytes;
}

// The device makes them itself: columns cut by tp go row by row, a shard begins in the middle of a matrix.
Test(cuda_device, parameters_begin_with_the_bits_of_the_cpu) {
    static const CudaCase cases[] = {{"dp_shard=1", 0, 1, RECOMPUTE_NONE, "12"},
                                     {"dp_shard=2,tp=2", 3, 1, RECOMPUTE_NONE, "13"}};
    char *const cuda = ARENA_ARRAY(&arena, char, WEIGHTS_BYTES), *const cpu = ARENA_ARRAY(&arena, char, WEIGHTS_BYTES);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("NDTUNE_CUDA_HOST_SEED", cases[i].seed, 1);
        const size_t bytes = weights_of(CUDA_HOST_WORKER, cuda_case_request(&cases[i], DTYPE_FP32, "cuda"), cuda);
        const size_t expected =
            weights_of(NDTUNE_BIN_DIR "/ndtune-worker", cuda_case_request(&cases[i], DTYPE_FP32, "cpu"), cpu);
        cr_assert(bytes == expected && bytes > 1000 * sizeof(float) && bytes < WEIGHTS_BYTES);
        cr_expect(memcmp(cuda, cpu, bytes) == 0, "%s", cases[i].mesh);
    }
}

// ---------------------------------------------------------------------------------------------- every model and target

// Biases, layer norms, learnt positions, norms of queries and keys, ALiBi: every kernel that Llama has not.
Test(cuda_device, every_family_of_models_steps_as_on_the_cpu) {
    const CudaCase one = {"dp_shard=1", 0, 1, RECOMPUTE_NONE, "10"};
    for (int f = 0; f < EXEC_FAMILIES; f++) {
        RunRequest request = cuda_case_request(&one, DTYPE_FP32, "cuda");
        request.model = exec_family(cuda_case_model(), exec_families[f]);
        cuda_case_step(&request, &arena, (CudaAllowed){2e-6, 2e-6}, exec_families[f]);
    }
}

// Formats of their kernels, and biases of products in the format of the result.
Test(cuda_device, every_family_of_models_steps_in_bf16_as_on_the_cpu_in_fp32) {
    const CudaCase one = {"dp_shard=1", 0, 1, RECOMPUTE_NONE, "15"};
    for (int f = 0; f < EXEC_FAMILIES; f++) {
        RunRequest request = cuda_case_request(&one, DTYPE_BF16, "cuda");
        request.model = exec_family(cuda_case_model(), exec_families[f]);
        cuda_case_step(&request, &arena, (CudaAllowed){2e-4, 2e-2}, exec_families[f]);
    }
}

Test(cuda_device, every_target_s_program_steps_in_bf16_as_on_the_cpu_in_fp32) {
    static const char *const targets[] = {"accelerate", "axolotl",   "torchtitan", "megatron",
                                          "nanotron",   "deepspeed", "fsdp1"};
    const CudaCase c = {"dp_shard=2", 3, 1, RECOMPUTE_NONE, "11"};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        Error error = {0};
        RunRequest request = cuda_case_request(&c, DTYPE_BF16, "cuda");
        cr_assert(target_find(targets[t], &request.target, &error) == STATUS_OK, "%s", error.message);
        request.plan.zero = target_default_zero(request.target, &request.plan.mesh);
        request.plan.bf16_master = request.target->bf16_weights;
        cuda_case_step(&request, &arena, (CudaAllowed){1e-4, 1e-2}, targets[t]);  // bf16: 2^-9 of each value
    }
}

// Every kernel of this model sums in a fixed order (head_dim 8: attention is scalar; our own on tensor cores adds dq in
// none): what differs between orders of streams was not ordered by an event.
Test(cuda_device, any_legal_order_of_streams_gives_the_same_bits) {
    CudaCase c = {"dp_shard=2,cp=2", 3, 1, RECOMPUTE_FULL, "20"};
    const RunResult first = run_cuda(&c, DTYPE_BF16);
    for (int i = 1; i < 3; i++) {
        char seed[16];
        snprintf(seed, sizeof seed, "%d", 20 + i);
        c.seed = seed;
        const RunResult again = run_cuda(&c, DTYPE_BF16);
        for (int step = 0; step < CUDA_CASE_STEPS; step++) {
            cr_expect(again.loss[step] == first.loss[step] && again.grad_norm[step] == first.grad_norm[step],
                      "seed %s, step %d: loss %.17g, not %.17g", seed, step, again.loss[step], first.loss[step]);
        }
    }
}

// Our own attention adds dq of a query tile from several key tiles, here four: in order of arrival, or in key order
// (kernels/cuda/attention_own.h; its kernel's test shows that the order matters). Tracking turns needs memory.
static RunResult long_run(const char *seed, bool deterministic, int steps) {
    const CudaCase one = {"dp_shard=1", 0, 1, RECOMPUTE_NONE, seed};
    RunRequest request = cuda_case_request(&one, DTYPE_BF16, "cuda");
    request.model = (ModelSpec){.name = "test",
                                .layers = 1,
                                .hidden = 32,
                                .heads = 1,
                                .kv_heads = 1,
                                .head_dim = 64,
                                .ffn = 16,
                                .vocab = 32,
                                .max_seq = 512,
                                .rope_theta = 10000,
                                .norm_eps = 1e-5,
                                .source = "tests"};
    request.plan.seq = 512;
    request.plan.micro_batch = 1;
    request.options.steps = steps;
    request.options.lr = 0.01;
    request.options.deterministic = deterministic;
    setenv("NDTUNE_CUDA_HOST_SEED", seed, 1);
    return case_run_by(CUDA_HOST_WORKER, &request, &arena);
}

Test(cuda_device, a_deterministic_run_gives_the_same_bits_in_any_order_of_threads) {
    const RunResult one = long_run("31", true, 2), other = long_run("32", true, 2);
    const RunResult free_order = long_run("31", false, 1);
    for (int step = 0; step < 2; step++) {
        cr_expect(one.loss[step] == other.loss[step] && one.grad_norm[step] == other.grad_norm[step],
                  "step %d: loss %.17g and %.17g", step, one.loss[step], other.loss[step]);
    }
    cr_expect_gt(one.device_bytes, free_order.device_bytes, "no room for turns: nothing was ordered");
    cr_expect(one.price_count == 0 && free_order.price_count > 0, "an algorithm that was not timed is no price");
}
