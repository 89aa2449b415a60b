// Pipelines whose gradients of weights are due later than those of inputs, against one rank; test_pipelines_product.c
// runs all choices.

#include <criterion/criterion.h>

#include "tests/parity/exec/exec_families.h"
#include "tests/parity/exec/pipeline_case.h"

// Weights are due later than inputs: every kind of sharding, with and without recompute, over tp and cp.
Test(pipelines_apart, gradients_of_weights_apart_train_as_one_rank) {
    static const char *const shapes[] = {"pp=4",      "pp=3",     "pp=2,dp_shard=2", "pp=2,dp_shard=2",
                                         "pp=2,tp=2", "pp=2,cp=2"};
    Deviation worst = {0};
    for (int i = 0; i < 6; i++) {
        const PipelineChoice choice = pipeline_spread(i % 2 ? PP_ZBV : PP_ZERO_BUBBLE, i);
        Mesh mesh;
        Error error = {0};
        RunRequest request;
        cr_assert(mesh_parse(shapes[i], &mesh, &error) == STATUS_OK, "%s", error.message);
        cr_assert(pipeline_request(&mesh, &choice, &request), "%s", shapes[i]);
        pipeline_trains(&request, &worst);
    }
}

// Pre- and post-norms, of both kinds, biases, positions, parallel halves: the weight gradients are computed separately.
Test(pipelines_apart, gradients_of_weights_apart_train_as_one_rank_in_every_type_of_model) {
    Arena arena = {0};
    Deviation worst = {0};
    Mesh mesh;
    Error error = {0};
    cr_assert(mesh_parse("pp=2", &mesh, &error) == STATUS_OK, "%s", error.message);
    for (int i = 0; i < EXEC_FAMILIES; i++) {
        const PipelineChoice choice = pipeline_spread(i % 2 ? PP_ZERO_BUBBLE : PP_ZBV, 2 * i);
        RunRequest request;
        cr_assert(pipeline_request(&mesh, &choice, &request));
        request.model = exec_family(request.model, exec_families[i]);
        request.model.tied_embeddings = false;
        const RunRequest one = pipeline_one_rank(&request);
        const RunResult reference = case_run_request(&one, &arena), run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
    }
    arena_free(&arena);
}
