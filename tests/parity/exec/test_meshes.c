// Every mesh shape trains as one rank does. Here each shape of worlds 1, 2, 4, 6, 8 and 12 once, with its other choices
// spread over the shapes; test_meshes_product.c runs all choices of all shapes, test_flavours.c the programs of other
// targets.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/parity/exec/exec_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(meshes, .fini = clean);

// A model and a batch that every shape of a world divides.
typedef struct Family {
    int heads, kv_heads, ffn, vocab, seq, batch;
} Family;

static const Family twos = {16, 8, 160, 256, CASE_SEQ, CASE_BATCH};
static const Family threes = {24, 12, 168, 264, 72, 12};  // worlds 6 and 12; 72 = 3 x 24, the zigzag chunks of cp=12

static RunRequest family_request(const Family *family, const TrainPlan *plan) {
    const RunOptions options = case_options();
    RunRequest request = case_request(plan, &options);
    request.model.heads = family->heads;
    request.model.kv_heads = family->kv_heads;
    request.model.ffn = family->ffn;
    request.model.vocab = family->vocab;
    return request;
}

static TrainPlan family_plan(const Family *family, const Mesh *mesh, int grad_accum) {
    const int data_ranks = mesh->size[AXIS_DP_REPLICATE] * mesh->size[AXIS_DP_SHARD];
    const int steps = family->batch % (data_ranks * grad_accum) == 0 ? grad_accum : 1;
    return (TrainPlan){.mesh = *mesh,
                       .seq = family->seq,
                       .micro_batch = family->batch / data_ranks / steps,
                       .grad_accum = steps,
                       .precision = DTYPE_FP32};
}

static RunResult one_rank(const Family *family) {
    const Mesh mesh = {.size = {1, 1, 1, 1}};
    const TrainPlan plan = family_plan(family, &mesh, 1);
    const RunRequest request = family_request(family, &plan);
    return case_run_request(&request, &arena);
}

// Stage, accumulation and recompute walk through their values as the shape index grows.
static TrainPlan spread_plan(const Family *family, const Mesh *mesh, int index) {
    TrainPlan plan = family_plan(family, mesh, index % 2 + 1);
    plan.zero = index % 4;
    plan.reshard = index % 3 ? RESHARD_ALWAYS : RESHARD_NEVER;
    plan.recompute = index / 2 % 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    plan_canonical(&plan);
    return plan;
}

static void world_trains_as_one_rank(const Family *family, int world) {
    enum { CAPACITY = 64 };
    const RunResult reference = one_rank(family);
    Mesh meshes[CAPACITY];
    const int count = mesh_enumerate(world, AXES_FIRST, meshes, CAPACITY);
    cr_assert_leq(count, CAPACITY);
    Deviation worst = {0};
    for (int i = 0; i < count; i++) {
        const TrainPlan plan = spread_plan(family, &meshes[i], i + 3);
        const RunRequest request = family_request(family, &plan);
        const RunResult run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
    }
    cr_log_warn("world %d, %d shapes: step 1 loss %.1e norm %.1e, step 20 loss %.1e norm %.1e", world, count,
                worst.loss_first, worst.norm_first, worst.loss_last, worst.norm_last);
}

Test(meshes, worlds_1_2_and_4_train_as_one_rank) {
    world_trains_as_one_rank(&twos, 1);
    world_trains_as_one_rank(&twos, 2);
    world_trains_as_one_rank(&twos, 4);
}

Test(meshes, world_6_trains_as_one_rank) {
    world_trains_as_one_rank(&threes, 6);
}

Test(meshes, world_8_trains_as_one_rank) {
    world_trains_as_one_rank(&twos, 8);
}

#if defined(__SANITIZE_ADDRESS__)
Test(meshes, world_12_trains_as_one_rank) {
    cr_skip_test("40 shapes of 12 ranks take minutes under a sanitizer; smaller worlds run the same code");
}
#else
Test(meshes, world_12_trains_as_one_rank) {
    world_trains_as_one_rank(&threes, 12);
}
#endif

// Orders in which the axes of the shard group lie apart, tp is slow, replicas are fast.
static void orders_train_as_one_rank(const int size[AXIS_COUNT], const char *const *orders, int count) {
    const RunResult reference = one_rank(&twos);
    Deviation worst = {0};
    for (int i = 0; i < count; i++) {
        Mesh mesh;
        Error error = {0};
        memcpy(mesh.size, size, sizeof mesh.size);
        cr_assert_eq(axis_order_parse(orders[i], &mesh.order, &error), STATUS_OK, "%s", error.message);
        const TrainPlan plan = spread_plan(&twos, &mesh, i + 3);
        cr_assert_not(mesh_has_default_order(&plan.mesh), "%s", orders[i]);
        const RunRequest request = family_request(&twos, &plan);
        const RunResult run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
    }
}

Test(meshes, other_rank_orders_of_world_4_train_as_one_rank) {
    static const char *const tp_slow[] = {"tp,dp_shard,cp"}, *const cp_slow[] = {"cp,dp_shard"};
    orders_train_as_one_rank((const int[]){1, 2, 1, 2}, tp_slow, 1);
    orders_train_as_one_rank((const int[]){1, 1, 2, 2}, tp_slow, 1);
    orders_train_as_one_rank((const int[]){1, 2, 2, 1}, cp_slow, 1);
}

Test(meshes, other_rank_orders_of_world_8_train_as_one_rank) {
    static const char *const shard_apart[] = {"dp_shard,tp,cp", "cp,tp,dp_shard", "tp,cp,dp_shard"};
    orders_train_as_one_rank((const int[]){1, 2, 2, 2}, shard_apart, 3);
    static const char *const replicas_inside[] = {"dp_shard,dp_replicate,tp", "tp,dp_shard,dp_replicate"};
    orders_train_as_one_rank((const int[]){2, 2, 1, 2}, replicas_inside, 2);
    static const char *const one_ring[] = {"cp,dp_replicate"};
    orders_train_as_one_rank((const int[]){2, 1, 4, 1}, one_ring, 1);
}

Test(meshes, the_loss_falls) {
    const RunResult run = one_rank(&twos);
    cr_assert(run.loss[CASE_STEPS - 1] < run.loss[0] - 1.0, "%g to %g", run.loss[0], run.loss[CASE_STEPS - 1]);
}

// ---------------------------------------------------------------------------------------------- other models and sizes

typedef struct Variety {
    int mesh[AXIS_COUNT], micro_batch, grad_accum, zero;
} Variety;

// All varieties hold the same global batch; the first is the reference.
static void varieties_agree(const RunRequest *base, const Variety *varieties, int count) {
    RunResult reference = {0};
    Deviation worst = {0};
    for (int i = 0; i < count; i++) {
        RunRequest request = *base;
        memcpy(request.plan.mesh.size, varieties[i].mesh, sizeof varieties[i].mesh);
        request.plan.micro_batch = varieties[i].micro_batch;
        request.plan.grad_accum = varieties[i].grad_accum;
        request.plan.zero = varieties[i].zero;
        const RunResult run = case_run_request(&request, &arena);
        reference = i == 0 ? run : reference;
        case_expect_same(&request, &run, &reference, &worst);
    }
}

static RunRequest request_of(int seq) {
    const TrainPlan plan = {.mesh = {.size = {1, 1, 1, 1}}, .seq = seq, .micro_batch = 1, .grad_accum = 1};
    const RunOptions options = case_options();
    return case_request(&plan, &options);
}

// Shares of a third: units are padded, chunks are odd, the tail of a shard belongs to nobody.
Test(meshes, worlds_3_5_6_and_7_train_as_one_rank) {
    RunRequest request = request_of(60);
    static const Variety of_3[] = {{{1, 1, 1, 1}, 6, 1, 0}, {{1, 3, 1, 1}, 2, 1, 3}, {{1, 3, 1, 1}, 1, 2, 1},
                                   {{3, 1, 1, 1}, 1, 2, 0}, {{1, 1, 3, 1}, 3, 2, 2}, {{1, 3, 1, 2}, 2, 1, 3},
                                   {{2, 3, 1, 1}, 1, 1, 2}, {{1, 1, 3, 2}, 6, 1, 3}, {{1, 2, 3, 1}, 3, 1, 3}};
    varieties_agree(&request, of_3, sizeof of_3 / sizeof *of_3);
    request.plan.seq = 70;
    static const Variety of_35[] = {{{1, 1, 1, 1}, 35, 1, 0},
                                    {{1, 5, 1, 1}, 7, 1, 3},
                                    {{1, 7, 1, 1}, 5, 1, 3},
                                    {{1, 1, 5, 1}, 7, 5, 1},
                                    {{1, 1, 7, 1}, 5, 7, 3}};
    varieties_agree(&request, of_35, sizeof of_35 / sizeof *of_35);
}

Test(meshes, a_model_with_tied_embeddings_trains_as_one_rank) {
    RunRequest request = request_of(64);
    request.model.tied_embeddings = true;
    static const Variety varieties[] = {{{1, 1, 1, 1}, 4, 1, 0}, {{1, 2, 1, 1}, 1, 2, 3}, {{1, 2, 1, 1}, 2, 1, 1},
                                        {{1, 1, 1, 2}, 2, 2, 0}, {{1, 1, 2, 2}, 4, 1, 3}, {{2, 2, 1, 2}, 1, 1, 3}};
    varieties_agree(&request, varieties, sizeof varieties / sizeof *varieties);
}

// Grouped-query ratios, a vocabulary and widths that are no powers of two, one layer.
Test(meshes, other_model_shapes_train_as_one_rank) {
    static const Variety varieties[] = {{{1, 1, 1, 1}, 2, 1, 0}, {{1, 2, 1, 1}, 1, 1, 3}, {{1, 1, 1, 3}, 2, 1, 0},
                                        {{1, 1, 2, 1}, 2, 1, 3}, {{1, 1, 2, 3}, 1, 2, 2}, {{2, 1, 1, 3}, 1, 1, 0}};
    for (int layers = 1; layers <= 3; layers += 2) {
        RunRequest request = request_of(36);
        request.model.layers = layers;
        request.model.hidden = 72;
        request.model.heads = 9;
        request.model.kv_heads = 3;
        request.model.head_dim = 24;
        request.model.ffn = 93;
        request.model.vocab = 201;
        varieties_agree(&request, varieties, sizeof varieties / sizeof *varieties);
    }
}
