// Head and loss on an eighth of the tokens at a time, the MLP on a tile of them: only the order of sums differs, so
// training matches one rank with all of them at once, within the planned memory.

#include <criterion/criterion.h>

#include "tests/parity/exec/flavour_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(loss_form, .fini = clean);

enum { MICRO_STEPS = 2 };

static RunRequest request_with(const char *mesh_words, int zero, LossForm loss, int tiles) {
    Mesh mesh;
    TrainPlan plan;
    const Target *target;
    Error error = {0};
    cr_assert(mesh_parse(mesh_words, &mesh, &error) == STATUS_OK && case_plan(&mesh, MICRO_STEPS, &plan));
    cr_assert(target_find("ndtune", &target, &error) == STATUS_OK, "%s", error.message);
    plan.zero = zero;
    plan.loss = loss;
    plan.mlp_tiles = tiles;
    return flavour_request(target, &plan);
}

static RunRequest request_of(const char *mesh_words, int zero, LossForm loss) {
    return request_with(mesh_words, zero, loss, 0);
}

// A vocabulary that is split, slices of sequences, gradients in shards and whole.
Test(loss_form, parts_of_the_tokens_train_as_all_at_once) {
    static const struct {
        const char *mesh;
        int zero;
    } cases[] = {{"dp_shard=1", 0}, {"dp_shard=2", 3}, {"dp_shard=2,tp=2", 3}, {"dp_shard=2,cp=2", 2}};
    const RunRequest one = request_of("dp_shard=1", 0, LOSS_WHOLE);
    const RunResult reference = case_run_request(&one, &arena);
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const RunRequest request = request_of(cases[i].mesh, cases[i].zero, LOSS_CHUNKED);
        const RunResult run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
    }
    cr_log_warn("losses off by %.1e, at the last step by %.1e", worst.loss_first, worst.loss_last);
}

// So do the parts of the tokens that an MLP runs on; layers that are recomputed run it three times.
Test(loss_form, tiles_of_the_mlp_train_as_all_tokens_at_once) {
    static const struct {
        const char *mesh;
        int zero, tiles;
        Recompute recompute;
    } cases[] = {{"dp_shard=2", 3, 4, RECOMPUTE_NONE}, {"dp_shard=2,sp=2", 3, 2, RECOMPUTE_FULL}};
    const RunRequest one = request_of("dp_shard=1", 0, LOSS_WHOLE);
    const RunResult reference = case_run_request(&one, &arena);
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RunRequest request = request_with(cases[i].mesh, cases[i].zero, LOSS_WHOLE, cases[i].tiles);
        request.plan.recompute = cases[i].recompute;
        const RunResult run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
    }
    cr_log_warn("losses off by %.1e, at the last step by %.1e", worst.loss_first, worst.loss_last);
}
