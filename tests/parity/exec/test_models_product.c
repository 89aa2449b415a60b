// Every legal shape of worlds 2, 4 and 8 for the model types that differ most from a Llama, against one rank.

#include <criterion/criterion.h>

#include "tests/parity/exec/exec_case.h"
#include "tests/parity/exec/exec_families.h"
#include "tests/support/sizes.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(models_product, .fini = clean);

static RunRequest request_of(const ModelSpec *model, const Mesh *mesh, int choice) {
    TrainPlan plan;
    const RunOptions options = case_options();
    case_plan(mesh, 1, &plan);
    plan.zero = choice % 4;
    plan.recompute = choice / 2 % 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    plan_canonical(&plan);
    RunRequest request = case_request(&plan, &options);
    request.model = *model;
    return request;
}

static void check_world(const ModelSpec *model, int world, const RunResult *reference, Deviation *worst) {
    Mesh meshes[32];
    const int count = mesh_enumerate(world, AXES_FIRST, meshes, 32);
    for (int i = 0; i < count; i++) {
        if (model->qk_norm == QK_NORM_WHOLE && meshes[i].size[AXIS_TP] > 1) {
            continue;  // no target cuts a norm over whole queries
        }
        Arena own = {0};
        const RunRequest request = request_of(model, &meshes[i], i);
        const RunResult run = case_run_request(&request, &own);
        case_expect_same(&request, &run, reference, worst);
        arena_free(&own);
    }
}

static void type_product(const char *type) {
    const ModelSpec model = exec_family(case_model(), type);
    const Mesh single = {.size = SIZES(1, 1, 1, 1)};
    const RunRequest request = request_of(&model, &single, 0);
    const RunResult reference = case_run_request(&request, &arena);
    Deviation worst = {0};
    for (int world = 2; world <= 8; world *= 2) {
        check_world(&model, world, &reference, &worst);
    }
    cr_log_warn("%s, all shapes of 2, 4 and 8: step 1 loss %.1e norm %.1e, step 20 loss %.1e norm %.1e", type,
                worst.loss_first, worst.norm_first, worst.loss_last, worst.norm_last);
}

Test(models_product, gpt2_trains_as_one_rank_on_every_shape) {
    type_product("gpt2");
}

Test(models_product, gpt_neox_trains_as_one_rank_on_every_shape) {
    type_product("gpt_neox");
}

Test(models_product, mpt_trains_as_one_rank_on_every_shape) {
    type_product("mpt");
}

Test(models_product, gemma_trains_as_one_rank_on_every_shape) {
    type_product("gemma");
}

Test(models_product, qwen3_trains_as_one_rank_on_every_shape) {
    type_product("qwen3");
}

Test(models_product, olmo2_trains_as_one_rank_on_every_shape) {
    type_product("olmo2");
}
