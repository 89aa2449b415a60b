// Every mesh shape trains as one rank does. Here each shape of worlds 1 to 8 once, with its other choices spread over
// the shapes; test_meshes_product.c runs all choices of all shapes. Bounds: DESIGN section 13, 2e-6 at step 1 (rounding
// of fp32 sums in another order), 1e-4 after 20 steps (that rounding, grown by training). fmax ignores NAN, so a
// diverged run is caught by its state.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/parity/exec/exec_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(meshes, .fini = clean);

static RunResult one_rank(void) {
    TrainPlan plan;
    const RunOptions options = case_options();
    const Mesh mesh = {{1, 1, 1, 1}};
    case_plan(&mesh, 1, &plan);
    return case_run(&plan, &options, &arena);
}

// Stage, accumulation and recompute walk through their values as the shape index grows.
static TrainPlan spread_plan(const Mesh *mesh, int index) {
    TrainPlan plan;
    if (!case_plan(mesh, index % 2 + 1, &plan)) {
        case_plan(mesh, 1, &plan);
    }
    plan.zero = index % 4;
    plan.reshard = index % 3 ? RESHARD_ALWAYS : RESHARD_NEVER;
    plan.recompute = index / 2 % 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    plan_canonical(&plan);
    return plan;
}

static void world_trains_as_one_rank(int world) {
    const RunResult reference = one_rank();
    const RunOptions options = case_options();
    Mesh meshes[32];
    const int count = mesh_enumerate(world, meshes, 32);
    Deviation worst = {0};
    for (int i = 0; i < count; i++) {
        const TrainPlan plan = spread_plan(&meshes[i], i + 3);
        const RunResult run = case_run(&plan, &options, &arena);
        const Deviation deviation = case_deviation(&run, &reference);
        char text[PLAN_TEXT_BYTES];
        plan_text(&plan, text);
        deviation_widen(&worst, &deviation);
        cr_expect(strcmp(run.state, "ok") == 0, "%s: %s", text, run.state);
        cr_expect(deviation.loss_first <= 2e-6 && deviation.norm_first <= 2e-6, "%s: step 1 loss %.2e norm %.2e", text,
                  deviation.loss_first, deviation.norm_first);
        cr_expect(deviation.loss_last <= 1e-4 && deviation.norm_last <= 1e-4, "%s: step 20 loss %.2e norm %.2e", text,
                  deviation.loss_last, deviation.norm_last);
        cr_expect(run.peak_bytes == run.planned_peak_bytes, "%s: peak %lld of %lld planned", text,
                  (long long)run.peak_bytes, (long long)run.planned_peak_bytes);
    }
    cr_log_warn("world %d, %d shapes: step 1 loss %.1e norm %.1e, step 20 loss %.1e norm %.1e", world, count,
                worst.loss_first, worst.norm_first, worst.loss_last, worst.norm_last);
}

Test(meshes, world_1_trains_as_one_rank) {
    world_trains_as_one_rank(1);
}

Test(meshes, world_2_trains_as_one_rank) {
    world_trains_as_one_rank(2);
}

Test(meshes, world_4_trains_as_one_rank) {
    world_trains_as_one_rank(4);
}

Test(meshes, world_8_trains_as_one_rank) {
    world_trains_as_one_rank(8);
}

Test(meshes, the_loss_falls) {
    const RunResult run = one_rank();
    cr_assert(run.loss[CASE_STEPS - 1] < run.loss[0] - 1.0, "%g to %g", run.loss[0], run.loss[CASE_STEPS - 1]);
}

// ---------------------------------------------------------------------------------------------- other models and sizes

typedef struct Variety {
    int mesh[AXIS_COUNT], micro_batch, grad_accum, zero;
} Variety;

// All varieties hold the same global batch; the first is the reference.
static void varieties_agree(const RunRequest *base, const Variety *varieties, int count) {
    RunResult reference = {0};
    for (int i = 0; i < count; i++) {
        RunRequest request = *base;
        memcpy(request.plan.mesh.size, varieties[i].mesh, sizeof varieties[i].mesh);
        request.plan.micro_batch = varieties[i].micro_batch;
        request.plan.grad_accum = varieties[i].grad_accum;
        request.plan.zero = varieties[i].zero;
        const RunResult run = case_run_request(&request, &arena);
        reference = i == 0 ? run : reference;
        const Deviation deviation = case_deviation(&run, &reference);
        char text[PLAN_TEXT_BYTES];
        plan_text(&request.plan, text);
        cr_expect(deviation.loss_first <= 2e-6 && deviation.norm_first <= 2e-6, "%s: step 1 loss %.2e norm %.2e", text,
                  deviation.loss_first, deviation.norm_first);
        cr_expect(deviation.loss_last <= 1e-4 && deviation.norm_last <= 1e-4, "%s: step 20 loss %.2e norm %.2e", text,
                  deviation.loss_last, deviation.norm_last);
        cr_expect(run.peak_bytes == run.planned_peak_bytes, "%s", text);
    }
}

static RunRequest request_of(int seq) {
    const TrainPlan plan = {.mesh = {{1, 1, 1, 1}}, .seq = seq, .micro_batch = 1, .grad_accum = 1};
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
