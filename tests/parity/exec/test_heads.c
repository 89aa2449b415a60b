// Sequence parallelism by heads (Ulysses) trains as one rank does: with every other axis, every choice, every type of
// model, and bit for bit. test_meshes_product.c has worlds 6 and 8.

#include <criterion/criterion.h>

#include "tests/parity/exec/exec_families.h"
#include "tests/parity/exec/mesh_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(heads, .fini = clean);

Test(heads, every_pair_of_axis_size_and_choice_of_worlds_2_and_4_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_short, (const int[]){2, 4, 0}, AXES_FIRST | AXIS_BIT(AXIS_SP), AXIS_SP);
}

static Mesh mesh_of(int pp, int dp_shard, int cp, int sp) {
    Mesh mesh = mesh_of_one();
    mesh.size[AXIS_PP] = pp;
    mesh.size[AXIS_DP_SHARD] = dp_shard;
    mesh.size[AXIS_CP] = cp;
    mesh.size[AXIS_SP] = sp;
    return mesh;
}

static RunRequest request_of(const Mesh *mesh, int grad_accum, const RunOptions *options) {
    TrainPlan plan;
    cr_assert(case_plan(mesh, grad_accum, &plan));
    plan.zero = mesh->size[AXIS_PP] > 1 ? 1 : 3;
    plan_canonical(&plan);
    return case_request(&plan, options);
}

// The middle rank's tokens are in both zigzag chunks.
Test(heads, three_ranks_in_a_ring_train_as_one_rank) {
    Mesh mesh = mesh_of(1, 1, 2, 3);
    Deviation worst = {0};
    const TrainPlan plan = mesh_spread_plan(&mesh_threes_short, &mesh, 3);
    const RunRequest request = mesh_request(&mesh_threes_short, &plan);
    const RunResult reference = mesh_one_rank(&mesh_threes_short, &arena), run = case_run_request(&request, &arena);
    case_expect_same(&request, &run, &reference, &worst);
}

Test(heads, every_type_of_model_trains_as_one_rank) {
    RunOptions options = case_options();
    options.steps = PAIRS_STEPS;
    for (int i = 0; i < EXEC_FAMILIES; i++) {
        const ModelSpec model = exec_family(case_model(), exec_families[i]);
        const Mesh one = mesh_of_one(), cut = mesh_of(1, 1, 1, 2);
        Deviation worst = {0};
        if (model.kv_heads % 2 != 0) {
            continue;  // one key head for all: nothing to cut
        }
        RunRequest alone = request_of(&one, 1, &options), request = request_of(&cut, 1, &options);
        alone.model = request.model = model;
        const RunResult reference = case_run_request(&alone, &arena), run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
    }
}

Test(heads, stages_train_as_one_rank) {
    const RunOptions options = case_options();
    const Mesh one = mesh_of_one(), stages = mesh_of(2, 1, 1, 2);
    Deviation worst = {0};
    const RunRequest alone = request_of(&one, 4, &options), request = request_of(&stages, 4, &options);
    const RunResult reference = case_run_request(&alone, &arena), run = case_run_request(&request, &arena);
    case_expect_same(&request, &run, &reference, &worst);
}

Test(heads, a_bitwise_run_has_the_bits_of_one_rank) {
    RunOptions options = case_options();
    options.bitwise = true;
    options.steps = 3;
    const Mesh one = mesh_of_one(), meshes[] = {mesh_of(1, 1, 1, 4), mesh_of(1, 1, 2, 2)};
    const RunRequest alone = request_of(&one, 1, &options);
    const RunResult reference = case_run_request(&alone, &arena);
    for (int m = 0; m < 2; m++) {
        const RunRequest request = request_of(&meshes[m], 1, &options);
        const RunResult run = case_run_request(&request, &arena);
        for (int step = 0; step < options.steps; step++) {
            cr_expect_eq(run.loss[step], reference.loss[step], "mesh %d, step %d", m, step);
            cr_expect_eq(run.grad_norm[step], reference.grad_norm[step], "mesh %d, step %d", m, step);
        }
    }
}
