// Models of every type train on meshes as one rank does: each type on a spread of shapes of worlds 2 to 8 and all axes.
// test_models_product.c runs every legal shape.

#include <criterion/criterion.h>

#include "tests/parity/exec/exec_case.h"
#include "tests/parity/exec/exec_families.h"
#include "tests/support/sizes.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(models_on_meshes, .fini = clean);

static void type_trains_as_one_rank(const char *type, const Mesh *meshes, int count) {
    const ModelSpec model = exec_family(case_model(), type);
    RunResult reference = {0};
    Deviation worst = {0};
    for (int i = 0; i < count; i++) {
        TrainPlan plan;
        const RunOptions options = case_options();
        case_plan(&meshes[i], 1 + i % 2, &plan);
        plan.seq = PAIRS_SEQ;
        plan.zero = 3 - i % 4;
        plan.recompute = i % 3 == 1 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        plan_canonical(&plan);
        RunRequest request = case_request(&plan, &options);
        request.model = model;
        const RunResult run = case_run_request(&request, &arena);
        reference = i == 0 ? run : reference;
        case_expect_same(&request, &run, &reference, &worst);
    }
    const double fall = reference.loss[0] - reference.loss[CASE_STEPS - 1];
    cr_expect(fall > 0.5, "%s learns %g nats only", type, fall);
}

Test(models_on_meshes, every_type_trains_as_one_rank) {
    static const Mesh meshes[] = {{.size = SIZES(1, 1, 1, 1)},
                                  {.size = SIZES(1, 1, 1, 2)},
                                  {.size = SIZES(1, 1, 2, 1)},
                                  {.size = SIZES(1, 2, 1, 1)},
                                  {.size = SIZES(1, 2, 2, 2)}};
    for (int i = 0; i < EXEC_FAMILIES; i++) {
        const bool whole_norms = exec_family(case_model(), exec_families[i]).qk_norm == QK_NORM_WHOLE;
        static const Mesh no_tp[] = {{.size = SIZES(1, 1, 1, 1)},
                                     {.size = SIZES(1, 1, 2, 1)},
                                     {.size = SIZES(1, 2, 1, 1)},
                                     {.size = SIZES(2, 1, 2, 1)}};
        if (whole_norms) {
            type_trains_as_one_rank(exec_families[i], no_tp, 4);
        } else {
            type_trains_as_one_rank(exec_families[i], meshes, 5);
        }
    }
}
