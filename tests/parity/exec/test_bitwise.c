// A bitwise run gives the same bits on every mesh: losses, gradient norms and all final weights of three steps, for any
// shape, stage, accumulation, recompute or target. Exact sums (kernels/exact.h) need no tolerance, so everything is
// compared with ==.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/parity/exec/exec_case.h"
#include "tests/support/sizes.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(bitwise, .fini = clean);

enum { STEPS = 3, BATCH = 8, SEQ = 16, CAPACITY = 64 };  // 16: chunks of one token for zigzag cp = 8

typedef struct Outcome {
    RunResult run;
    char *weights;
    int64_t bytes;
} Outcome;

static Outcome outcome_of(RunRequest request) {
    Outcome outcome;
    outcome.run = case_run_keeping(&request, &request.options.weights_path, &arena, &outcome.weights, &outcome.bytes);
    return outcome;
}

static TrainPlan plan_of(const int size[AXIS_COUNT], int grad_accum) {
    TrainPlan plan = {.seq = SEQ, .precision = DTYPE_FP32};
    memcpy(plan.mesh.size, size, sizeof plan.mesh.size);
    const int data_ranks = size[AXIS_DP_REPLICATE] * size[AXIS_DP_SHARD];
    plan.grad_accum = data_ranks * grad_accum <= BATCH ? grad_accum : 1;
    plan.micro_batch = BATCH / data_ranks / plan.grad_accum;
    return plan;
}

static RunRequest request_of(const TrainPlan *plan, bool bitwise) {
    RunOptions options = case_options();
    options.steps = STEPS;
    options.weight_decay = 0.1;
    options.clip = 0.5;  // below the norm of every step: the scale enters the weights
    options.bitwise = bitwise;
    RunRequest request = case_request(plan, &options);
    request.model.hidden = 32;
    request.model.heads = 8;
    request.model.ffn = 48;
    request.model.vocab = 64;
    return request;
}

static Outcome one_rank_of(const char *target) {
    const TrainPlan plan = plan_of((const int[AXIS_COUNT])SIZES(1, 1, 1, 1), 1);
    RunRequest request = request_of(&plan, true);
    Error error = {0};
    cr_assert(target_find(target, &request.target, &error) == STATUS_OK, "%s", error.message);
    request.plan.fused = request.target->default_fused;
    return outcome_of(request);
}

static Outcome one_rank(void) {
    return one_rank_of("ndtune");
}

static bool same_doubles(const double *a, const double *b) {
    return memcmp(a, b, STEPS * sizeof *a) == 0;
}

static bool same(const Outcome *a, const Outcome *b) {
    return a->bytes == b->bytes && same_doubles(a->run.loss, b->run.loss) &&
           same_doubles(a->run.grad_norm, b->run.grad_norm) && memcmp(a->weights, b->weights, (size_t)a->bytes) == 0;
}

static void expect_same(const RunRequest *request, const Outcome *reference) {
    char text[PLAN_TEXT_BYTES];
    const Outcome outcome = outcome_of(*request);
    cr_assert_eq(outcome.bytes, reference->bytes);
    int64_t first = 0;
    while (first < outcome.bytes && outcome.weights[first] == reference->weights[first]) {
        first++;
    }
    cr_expect(same(&outcome, reference),
              "%s %s: loss %a, %a, %a norm %a, %a, %a against %a, %a, %a norm %a, %a, %a; "
              "first weight that differs: %lld of %lld",
              request->target->name, plan_text(&request->plan, text), outcome.run.loss[0], outcome.run.loss[1],
              outcome.run.loss[2], outcome.run.grad_norm[0], outcome.run.grad_norm[1], outcome.run.grad_norm[2],
              reference->run.loss[0], reference->run.loss[1], reference->run.loss[2], reference->run.grad_norm[0],
              reference->run.grad_norm[1], reference->run.grad_norm[2], (long long)first / 4,
              (long long)outcome.bytes / 4);
}

// Stage, accumulation and recompute walk through their values as the shape index grows.
static void world_gives_the_same_bits(int world, const Outcome *reference) {
    Mesh meshes[CAPACITY];
    const int count = mesh_enumerate(world, AXES_FIRST, meshes, CAPACITY);
    cr_assert_leq(count, CAPACITY);
    for (int i = 0; i < count; i++) {
        TrainPlan plan = plan_of(meshes[i].size, i % 2 + 1);
        plan.zero = i % 4;
        plan.recompute = i / 2 % 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        plan_canonical(&plan);
        const RunRequest request = request_of(&plan, true);
        expect_same(&request, reference);
    }
}

Test(bitwise, worlds_of_1_2_and_4_give_the_same_bits_on_every_shape) {
    const Outcome reference = one_rank();
    cr_assert_neq(reference.run.loss[0], reference.run.loss[STEPS - 1], "it trains");
    for (int world = 1; world <= 4; world *= 2) {
        world_gives_the_same_bits(world, &reference);
    }
}

Test(bitwise, a_world_of_8_gives_the_same_bits_on_every_shape) {
    const Outcome reference = one_rank();
    world_gives_the_same_bits(8, &reference);
}

// The same comparison sees rounding: usual runs of two meshes differ in bits, though not in more.
Test(bitwise, usual_runs_are_near_and_differ_in_bits) {
    const Outcome exact = one_rank();
    const TrainPlan alone = plan_of((const int[AXIS_COUNT])SIZES(1, 1, 1, 1), 1),
                    cut = plan_of((const int[AXIS_COUNT])SIZES(1, 2, 2, 2), 1);
    const Outcome one = outcome_of(request_of(&alone, false)), eight = outcome_of(request_of(&cut, false));
    cr_expect_not(same(&one, &eight));
    for (int step = 0; step < STEPS; step++) {
        cr_expect(fabs(one.run.loss[step] / exact.run.loss[step] - 1) < 1e-6, "step %d: loss %.9g, exactly %.9g", step,
                  one.run.loss[step], exact.run.loss[step]);
        cr_expect(fabs(one.run.grad_norm[step] / exact.run.grad_norm[step] - 1) < 1e-5,
                  "step %d: norm %.9g, exactly %.9g", step, one.run.grad_norm[step], exact.run.grad_norm[step]);
        cr_expect(exact.run.grad_norm[step] > 0.5, "step %d: norm %g is not clipped", step, exact.run.grad_norm[step]);
    }
}

typedef struct OtherRun {
    const char *target, *mesh, *order;
    int zero, grad_accum;
    CpRotate rotate;
    Recompute recompute;
    LaneMode lanes;
} OtherRun;

static RunRequest request_of_other(const OtherRun *other) {
    Mesh mesh;
    Error error = {0};
    cr_assert(mesh_parse(other->mesh, &mesh, &error) == STATUS_OK, "%s", error.message);
    TrainPlan plan = plan_of(mesh.size, other->grad_accum);
    if (other->order) {
        cr_assert(axis_order_parse(other->order, &plan.mesh.order, &error) == STATUS_OK, "%s", error.message);
    }
    plan.zero = other->zero;
    plan.cp_rotate = other->rotate;
    plan.recompute = other->recompute;
    RunRequest request = request_of(&plan, true);
    cr_assert(target_find(other->target, &request.target, &error) == STATUS_OK, "%s", error.message);
    request.plan.fused = request.target->default_fused;
    request.options.lanes = other->lanes;
    request.options.jitter_seed = other->lanes == LANES_ASYNC ? 3 : 0;
    return request;
}

Test(bitwise, other_targets_orders_and_lanes_give_the_same_bits) {
    static const OtherRun others[] = {
        {"ndtune", "dp_shard=2,cp=2,tp=2", "tp,cp,dp_shard", 3, 2, CP_ROTATE_RING, RECOMPUTE_NONE, LANES_ASYNC},
        {"ndtune", "cp=4", NULL, 3, 2, CP_ROTATE_RING, RECOMPUTE_FULL, LANES_ASYNC},
        {"torchtitan", "cp=2,tp=2", NULL, 3, 1, CP_ROTATE_ALLGATHER, RECOMPUTE_SELECTIVE, LANES_SERIAL},
        {"axolotl", "cp=4", NULL, 3, 1, CP_ROTATE_ALLGATHER, RECOMPUTE_FULL, LANES_SERIAL},
        {"accelerate", "dp_shard=2,cp=2", NULL, 3, 2, CP_ROTATE_ALLGATHER, RECOMPUTE_FULL, LANES_SERIAL},
        {"accelerate", "dp_shard=2,tp=2", NULL, 3, 1, CP_ROTATE_ALLGATHER, RECOMPUTE_NONE, LANES_SERIAL},
        {"fsdp1", "dp_replicate=2,dp_shard=2", NULL, 3, 2, CP_ROTATE_RING, RECOMPUTE_FULL, LANES_SERIAL},
        {"nanotron", "dp_shard=2,tp=2", NULL, 1, 2, CP_ROTATE_RING, RECOMPUTE_FULL, LANES_SERIAL},
        {"deepspeed", "dp_shard=2,tp=2", NULL, 2, 2, CP_ROTATE_RING, RECOMPUTE_FULL, LANES_SERIAL},
    };
    const Outcome own = one_rank();
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const Outcome reference = one_rank_of(others[i].target);  // its file has its own order of tensors
        cr_expect(same_doubles(reference.run.loss, own.run.loss), "%s", others[i].target);
        cr_expect(same_doubles(reference.run.grad_norm, own.run.grad_norm), "%s", others[i].target);
        const RunRequest request = request_of_other(&others[i]);
        expect_same(&request, &reference);
    }
}

// Tied and scaled embeddings, halves side by side, a GELU gate, no grouping of heads, sizes that are no powers of two.
static void change_model(ModelSpec *model) {
    model->tied_embeddings = model->scaled_embeddings = true;
    model->residual = RESIDUAL_PARALLEL;
    model->activation = ACTIVATION_GELU_TANH;
    model->hidden = 40;
    model->heads = model->kv_heads = 6;
    model->ffn = 42;
    model->vocab = 66;
}

Test(bitwise, another_model_on_worlds_of_3_and_6_gives_the_same_bits) {
    static const int sizes[][AXIS_COUNT] = {SIZES(1, 3, 1, 1), SIZES(1, 1, 3, 1), SIZES(1, 1, 1, 3), SIZES(3, 1, 1, 2),
                                            SIZES(1, 2, 3, 1)};
    RunRequest request = request_of(&(TrainPlan){.seq = 18, .micro_batch = 6, .grad_accum = 1}, true);
    memcpy(request.plan.mesh.size, (const int[AXIS_COUNT])SIZES(1, 1, 1, 1), sizeof sizes[0]);
    change_model(&request.model);
    const Outcome reference = outcome_of(request);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memcpy(request.plan.mesh.size, sizes[i], sizeof sizes[i]);
        request.plan.micro_batch = 6 / (sizes[i][AXIS_DP_REPLICATE] * sizes[i][AXIS_DP_SHARD]);
        request.plan.zero = i % 2 ? 3 : 1;
        expect_same(&request, &reference);
    }
}

static const char *refusal_of(void (*change)(RunRequest *)) {
    const TrainPlan plan = plan_of((const int[AXIS_COUNT])SIZES(1, 1, 1, 1), 1);
    RunRequest request = request_of(&plan, true);
    change(&request);
    Error error = {0};
    RunResult result;
    const ExecOptions options = {.worker_path = NDTUNE_BIN_DIR "/ndtune-worker"};
    cr_assert_eq(exec_run(&request, &options, &arena, &result, &error), STATUS_INFEASIBLE, "%s", error.message);
    return arena_text(&arena, error.message);
}

static void with_biases(RunRequest *request) {
    request->model.qkv_bias = true;
}

static void in_bf16(RunRequest *request) {
    request->plan.mesh.size[AXIS_DP_SHARD] = 2;
    request->plan.zero = 3;
    request->plan.reduce_dtype = REDUCE_DTYPE_BF16;
}

Test(bitwise, what_has_no_exact_form_is_refused_in_words) {
    cr_expect(strstr(refusal_of(with_biases), "models of the Llama type"));
    cr_expect(strstr(refusal_of(in_bf16), "not in bf16"));
}
