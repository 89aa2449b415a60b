// MoE layers on device cuda against device cpu, over the stand-in runtime: every type of router, mixed with dense
// layers, expert parallelism. Losses and gradient norms of the first steps agree as those of meshes do.

#define _GNU_SOURCE  // setenv

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/parity/exec/cuda_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(cuda_experts, .fini = clean);

static RunRequest request_of(const char *type, const CudaCase *c, Dtype precision, const char *device) {
    RunRequest request = cuda_case_request(c, precision, device);
    Experts *experts = &request.model.experts;
    *experts = (Experts){.count = 4, .active = 2, .ffn = 24};
    cr_assert(model_set_family(&request.model, type));
    experts->shared_gate = strcmp(type, "qwen2_moe") == 0;
    experts->shared_ffn = experts->shared_gate ? 40 : 0;
    experts->unscaled = experts->shared_gate || strcmp(type, "olmoe") == 0;
    request.plan.capacity = 400;  // of few tokens all may come to one rank
    plan_canonical(&request.plan);
    setenv("NDTUNE_CUDA_HOST_SEED", c->seed, 1);
    return request;
}

// An expert has as many rows in the mean as a rank has tokens, as wide as the vocabulary and as well aligned: the
// head's product has the groups' plan.
static void make_spread(RunRequest *request) {
    request->model.experts.balance = 0.1;
    request->model.experts.ffn = 32;
    request->model.hidden = request->model.vocab = 64;
}

static void check_steps(const char *type, const CudaCase *c, void (*change)(RunRequest *request)) {
    enum { STEPS = 2 };
    RunRequest on_cuda = request_of(type, c, DTYPE_FP32, "cuda"), on_cpu = request_of(type, c, DTYPE_FP32, "cpu");
    on_cuda.options.steps = on_cpu.options.steps = STEPS;
    if (change) {
        change(&on_cuda), change(&on_cpu);
    }
    const RunResult cuda = case_run_by(CUDA_HOST_WORKER, &on_cuda, &arena), cpu = case_run_request(&on_cpu, &arena);
    for (int step = 0; step < STEPS; step++) {
        cr_expect(case_off(cuda.loss[step], cpu.loss[step]) <= 1e-5, "%s, %s: loss %.9g, on the cpu %.9g", type,
                  c->mesh, cuda.loss[step], cpu.loss[step]);
        cr_expect(case_off(cuda.grad_norm[step], cpu.grad_norm[step]) <= 1e-5, "%s, %s: norm %.9g, on the cpu %.9g",
                  type, c->mesh, cuda.grad_norm[step], cpu.grad_norm[step]);
    }
    cr_expect_eq(cuda.peak_bytes, cuda.planned_peak_bytes);
}

Test(cuda_experts, one_rank_trains_them_as_on_the_cpu) {
    check_steps("mixtral", &(CudaCase){"dp_shard=1", 0, 2, RECOMPUTE_FULL, "1"}, NULL);
}

Test(cuda_experts, spread_over_ranks_they_train_as_on_the_cpu) {
    check_steps("mixtral", &(CudaCase){"dp_shard=2,ep=2", 3, 1, RECOMPUTE_NONE, "2"}, make_spread);
}

// Weights that are shares of all experts or of the chosen ones, norms of queries and keys, an expert that all tokens
// share. The guard faults where the program touches device memory by itself: rows of experts come by copies alone.
static void make_gpt_oss(ModelSpec *model) {
    model->experts.bias = model->experts.router_bias = model->sinks;
    model->window = 7;
    model->window_every = 2;
}

// Expert biases, clamped gates, attention sinks, alternating sliding-window layers: with heads split over ranks, and in
// a ring whose chunks a window cuts.
Test(cuda_experts, biases_clamps_sinks_and_windows_step_as_on_the_cpu) {
    static const CudaCase cases[] = {{"tp=2", 0, 1, RECOMPUTE_NONE, "7"}, {"cp=2", 3, 1, RECOMPUTE_FULL, "8"}};
    for (int i = 0; i < 2; i++) {
        RunRequest request = request_of("gpt_oss", &cases[i], i == 0 ? DTYPE_FP32 : DTYPE_BF16, "cuda");
        make_gpt_oss(&request.model);
        cr_assert(request.model.sinks);
        cuda_case_step(&request, &arena, i == 0 ? (CudaAllowed){1e-5, 1e-5} : (CudaAllowed){1e-3, 5e-2}, cases[i].mesh);
    }
}

static void make_latent(ModelSpec *model) {
    model->latent = (LatentAttention){.q_rank = 16, .kv_rank = 32, .rope = 8, .value = 16};
    model->head_dim = 24;
    model->rotary_dims = model->latent.rope;
    model->heads = model->kv_heads = 2;
    model->experts.shared_ffn = 40;
    model->experts.sigmoid = (SigmoidRouter){.groups = 2, .active_groups = 1, .factor = 2.5};
}

// Keys of two parts, values of another width than theirs, scores in groups of experts: of heads of ranks of a ring, and
// spread over ranks.
Test(cuda_experts, latent_attention_and_routers_of_sigmoids_step_as_on_the_cpu) {
    static const CudaCase cases[] = {{"cp=2,tp=2", 0, 1, RECOMPUTE_NONE, "10"},
                                     {"dp_shard=2,ep=2", 3, 1, RECOMPUTE_FULL, "11"}};
    for (int i = 0; i < 2; i++) {
        RunRequest request = request_of("deepseek_v3", &cases[i], i == 0 ? DTYPE_FP32 : DTYPE_BF16, "cuda");
        make_latent(&request.model);
        request.model.experts.balance = 0.1 * i;
        cuda_case_step(&request, &arena, i == 0 ? (CudaAllowed){1e-5, 1e-5} : (CudaAllowed){1e-3, 5e-2}, cases[i].mesh);
    }
}

// As Mistral's and Gemma 3's: a window, and angles of their own for layers that slide.
Test(cuda_experts, dense_layers_that_slide_step_as_on_the_cpu) {
    const CudaCase c = {"cp=2", 3, 1, RECOMPUTE_FULL, "9"};
    RunRequest request = cuda_case_request(&c, DTYPE_FP32, "cuda");
    request.model.window = 5;
    request.model.window_every = 2;
    request.model.rope_local = 500;
    cuda_case_step(&request, &arena, (CudaAllowed){1e-5, 1e-5}, "windows");
}

Test(cuda_experts, types_of_routers_step_in_bf16_as_on_the_cpu_in_fp32) {
    static const char *const types[] = {"qwen3_moe", "qwen2_moe"};
    const CudaCase c = {"dp_shard=2,ep=2", 3, 1, RECOMPUTE_NONE, "4"};
    setenv("NDTUNE_CUDA_HOST_GUARD", "1", 1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        RunRequest request = request_of(types[i], &c, DTYPE_BF16, "cuda");
        cuda_case_step(&request, &arena, (CudaAllowed){1e-3, 5e-2}, types[i]);
    }
}

Test(cuda_experts, any_legal_order_of_streams_gives_the_same_bits) {
    CudaCase c = {"dp_shard=2,ep=2", 3, 1, RECOMPUTE_FULL, "6"};
    RunRequest request = request_of("mixtral", &c, DTYPE_BF16, "cuda");
    request.options.steps = 1;
    const RunResult first = case_run_by(CUDA_HOST_WORKER, &request, &arena);
    setenv("NDTUNE_CUDA_HOST_SEED", "7", 1);
    const RunResult again = case_run_by(CUDA_HOST_WORKER, &request, &arena);
    cr_expect(again.loss[0] == first.loss[0] && again.grad_norm[0] == first.grad_norm[0], "loss %.17g, not %.17g",
              again.loss[0], first.loss[0]);
}
