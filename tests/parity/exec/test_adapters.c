// Adapters with frozen layers train as on one rank: with every axis, every choice and every type of model. Their B
// begins as zeros, so A's gradients are visible from the second step on. test_meshes_product.c has world 8,
// tests/parity/pytorch compares their gradients with peft's.

#include <criterion/criterion.h>

#include "tests/parity/exec/exec_families.h"
#include "tests/parity/exec/mesh_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(adapters, .fini = clean);

Test(adapters, every_pair_of_axis_size_and_choice_of_worlds_2_and_4_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_adapters, (const int[]){2, 4, 0}, AXES_FIRST | AXIS_BIT(AXIS_SP), AXIS_COUNT);
}

enum { RANK = 4, STEPS = 12 };  // adapters begin at zero: fewer steps lower no loss yet

static Mesh mesh_of(int pp, int dp_shard, int tp) {
    Mesh mesh = mesh_of_one();
    mesh.size[AXIS_PP] = pp;
    mesh.size[AXIS_DP_SHARD] = dp_shard;
    mesh.size[AXIS_TP] = tp;
    return mesh;
}

static RunRequest request_of(const Mesh *mesh, int grad_accum, LoraTargets targets) {
    RunOptions options = case_options();
    TrainPlan plan;
    options.steps = STEPS;
    cr_assert(case_plan(mesh, grad_accum, &plan));
    plan.zero = mesh->size[AXIS_PP] > 1 ? 1 : 3;
    plan.finetune = FINETUNE_LORA;
    plan.lora_rank = RANK;
    plan.lora_targets = targets;
    plan_canonical(&plan);
    return case_request(&plan, &options);
}

static void expect_same(const ModelSpec *model, const Mesh *mesh, int grad_accum, LoraTargets targets) {
    const Mesh one = mesh_of_one();
    Deviation worst = {0};
    RunRequest alone = request_of(&one, grad_accum, targets), request = request_of(mesh, grad_accum, targets);
    alone.model = request.model = *model;
    const RunResult reference = case_run_request(&alone, &arena), run = case_run_request(&request, &arena);
    case_expect_same(&request, &run, &reference, &worst);
    cr_expect_gt(reference.grad_norm[0], 0);
    cr_expect_lt(reference.loss[STEPS - 1], reference.loss[0]);
}

Test(adapters, every_type_of_model_trains_as_one_rank) {
    for (int i = 0; i < EXEC_FAMILIES; i++) {
        const ModelSpec model = exec_family(case_model(), exec_families[i]);
        const bool splits_heads = model.qk_norm != QK_NORM_WHOLE && model.kv_heads % 2 == 0;
        const Mesh cut = splits_heads ? mesh_of(1, 1, 2) : mesh_of(1, 2, 1);
        expect_same(&model, &cut, 1, LORA_ALL);
    }
}

// Of routed experts no linear layer is adapted, of a shared one all.
Test(adapters, those_next_to_frozen_experts_train_as_one_rank) {
    const Mesh sharded = mesh_of(1, 2, 1), cut = mesh_of(1, 1, 2);
    TrainPlan plan;
    cr_assert(mesh_plan(&mesh_twos_experts, &sharded, 1, &plan));
    ModelSpec model = mesh_request(&mesh_twos_experts, &plan).model;
    expect_same(&model, &sharded, 1, LORA_ALL);
    cr_assert(model_set_family(&model, "qwen2_moe"));
    model.experts.shared_gate = true;
    model.experts.shared_ffn = 160;
    expect_same(&model, &cut, 1, LORA_ALL);
}

Test(adapters, those_of_some_layers_train_as_one_rank) {
    const Mesh cut = mesh_of(1, 2, 2);
    const ModelSpec model = case_model();
    expect_same(&model, &cut, 1, LORA_ATTENTION);
    expect_same(&model, &cut, 1, LORA_QUERY_VALUE);
}

Test(adapters, stages_train_as_one_rank) {
    const Mesh stages = mesh_of(2, 1, 2);
    const ModelSpec model = case_model();
    expect_same(&model, &stages, 4, LORA_ALL);
}
