// Every mesh shape trains as one rank does. Here a pairwise covering of the shapes and choices of worlds 1, 2, 4, 6, 8
// and 12; test_meshes_product.c runs all choices of all shapes, test_flavours.c the programs of other targets.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/parity/exec/mesh_case.h"
#include "tests/support/sizes.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(meshes, .fini = clean);

Test(meshes, every_pair_of_axis_size_and_choice_of_worlds_1_2_4_and_8_trains_as_one_rank) {
    mesh_pairs_train(&mesh_twos_short, (const int[]){1, 2, 4, 8, 0});
}

#if defined(__SANITIZE_ADDRESS__)
Test(meshes, every_pair_of_axis_size_and_choice_of_world_6_trains_as_one_rank) {  // 12 ranks run the same code
    mesh_pairs_train(&mesh_threes_short, (const int[]){6, 0});
}
#else
Test(meshes, every_pair_of_axis_size_and_choice_of_worlds_6_and_12_trains_as_one_rank) {
    mesh_pairs_train(&mesh_threes_short, (const int[]){6, 12, 0});
}
#endif

// Orders in which the axes of the shard group are not adjacent, tp is slow, replicas are fast.
static void orders_train_as_one_rank(Mesh mesh, const char *const *orders, int count) {
    const RunResult reference = mesh_one_rank(&mesh_twos_short, &arena);
    Deviation worst = {0};
    for (int i = 0; i < count; i++) {
        Error error = {0};
        cr_assert_eq(axis_order_parse(orders[i], &mesh.order, &error), STATUS_OK, "%s", error.message);
        const TrainPlan plan = mesh_spread_plan(&mesh_twos_short, &mesh, i + 3);
        cr_assert_not(mesh_has_default_order(&plan.mesh), "%s", orders[i]);
        const RunRequest request = mesh_request(&mesh_twos_short, &plan);
        const RunResult run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
    }
}

Test(meshes, other_rank_orders_of_world_4_train_as_one_rank) {
    static const char *const tp_slow[] = {"tp,dp_shard,cp"}, *const cp_slow[] = {"cp,dp_shard"};
    orders_train_as_one_rank((Mesh){.size = SIZES(1, 2, 1, 2)}, tp_slow, 1);
    orders_train_as_one_rank((Mesh){.size = SIZES(1, 1, 2, 2)}, tp_slow, 1);
    orders_train_as_one_rank((Mesh){.size = SIZES(1, 2, 2, 1)}, cp_slow, 1);
}

Test(meshes, other_rank_orders_of_world_8_train_as_one_rank) {
    static const char *const shard_apart[] = {"dp_shard,tp,cp", "cp,tp,dp_shard", "tp,cp,dp_shard"};
    orders_train_as_one_rank((Mesh){.size = SIZES(1, 2, 2, 2)}, shard_apart, 3);
    static const char *const replicas_inside[] = {"dp_shard,dp_replicate,tp", "tp,dp_shard,dp_replicate"};
    orders_train_as_one_rank((Mesh){.size = SIZES(2, 2, 1, 2)}, replicas_inside, 2);
    static const char *const one_ring[] = {"cp,dp_replicate"};
    orders_train_as_one_rank((Mesh){.size = SIZES(2, 1, 4, 1)}, one_ring, 1);
}

Test(meshes, the_loss_falls) {
    const RunResult run = mesh_one_rank(&mesh_twos, &arena);
    cr_assert(run.loss[CASE_STEPS - 1] < run.loss[0] - 1.0, "%g to %g", run.loss[0], run.loss[CASE_STEPS - 1]);
}

// ---------------------------------------------------------------------------------------------- other models and sizes

typedef struct Variety {
    int mesh[AXIS_COUNT], micro_batch, grad_accum, zero;
} Variety;

// Below the address sanitizer workers have kernels that it does not see, but for this one.
#ifndef CHECKED_WORKER
#define CHECKED_WORKER NDTUNE_BIN_DIR "/ndtune-worker"
#endif
static const char *worker = NDTUNE_BIN_DIR "/ndtune-worker";

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
        const RunResult run = case_run_by(worker, &request, &arena);
        reference = i == 0 ? run : reference;
        case_expect_same(&request, &run, &reference, &worst);
    }
}

static RunRequest request_of(int seq) {
    const TrainPlan plan = {.mesh = {.size = SIZES(1, 1, 1, 1)}, .seq = seq, .micro_batch = 1, .grad_accum = 1};
    const RunOptions options = case_options();
    return case_request(&plan, &options);
}

// Shares of a third: units are padded, chunks are odd, the tail of a shard belongs to no rank.
Test(meshes, worlds_3_and_6_train_as_one_rank) {
    const RunRequest request = request_of(30);
    static const Variety varieties[] = {
        {SIZES(1, 1, 1, 1), 6, 1, 0}, {SIZES(1, 3, 1, 1), 2, 1, 3}, {SIZES(1, 3, 1, 1), 1, 2, 1},
        {SIZES(3, 1, 1, 1), 1, 2, 0}, {SIZES(1, 1, 3, 1), 3, 2, 2}, {SIZES(1, 3, 1, 2), 2, 1, 3},
        {SIZES(2, 3, 1, 1), 1, 1, 2}, {SIZES(1, 1, 3, 2), 6, 1, 3}, {SIZES(1, 2, 3, 1), 3, 1, 3}};
    varieties_agree(&request, varieties, sizeof varieties / sizeof *varieties);
}

Test(meshes, worlds_5_and_7_train_as_one_rank) {
    RunRequest request = request_of(30);
    static const Variety of_5[] = {
        {SIZES(1, 1, 1, 1), 10, 1, 0}, {SIZES(1, 5, 1, 1), 2, 1, 3}, {SIZES(1, 1, 5, 1), 2, 5, 1}};
    varieties_agree(&request, of_5, sizeof of_5 / sizeof *of_5);
    request.plan.seq = 42;
    static const Variety of_7[] = {
        {SIZES(1, 1, 1, 1), 14, 1, 0}, {SIZES(1, 7, 1, 1), 2, 1, 3}, {SIZES(1, 1, 7, 1), 2, 7, 3}};
    varieties_agree(&request, of_7, sizeof of_7 / sizeof *of_7);
}

Test(meshes, a_model_with_tied_embeddings_trains_as_one_rank) {
    RunRequest request = request_of(32);
    request.model.tied_embeddings = true;
    static const Variety varieties[] = {{SIZES(1, 1, 1, 1), 4, 1, 0}, {SIZES(1, 2, 1, 1), 1, 2, 3},
                                        {SIZES(1, 2, 1, 1), 2, 1, 1}, {SIZES(1, 1, 1, 2), 2, 2, 0},
                                        {SIZES(1, 1, 2, 2), 4, 1, 3}, {SIZES(2, 2, 1, 2), 1, 1, 3}};
    varieties_agree(&request, varieties, sizeof varieties / sizeof *varieties);
}

// Grouped-query ratios, a vocabulary and widths that are no powers of two, one layer.
Test(meshes, other_model_shapes_train_as_one_rank) {
    static const Variety varieties[] = {{SIZES(1, 1, 1, 1), 2, 1, 0}, {SIZES(1, 2, 1, 1), 1, 1, 3},
                                        {SIZES(1, 1, 1, 3), 2, 1, 0}, {SIZES(1, 1, 2, 1), 2, 1, 3},
                                        {SIZES(1, 1, 2, 3), 1, 2, 2}, {SIZES(2, 1, 1, 3), 1, 1, 0}};
    worker = CHECKED_WORKER;
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
