// Sliding-window attention trains as on one rank: with any split of the sequence, the heads or the layers, some of
// which have no window. tests/parity/pytorch compares it with transformers.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/parity/exec/mesh_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(windows, .fini = clean);

static const char *const meshes[] = {"cp=2", "cp=4", "dp_shard=2,cp=2", "cp=2,tp=2", "sp=2", "pp=2,cp=2", "cp=8"};
enum { MESHES = sizeof meshes / sizeof meshes[0] };

typedef struct Window {
    int tokens, first, every;
} Window;

// Shorter than a chunk of cp, and longer than several; in all layers, in the first of two, in the second.
static const Window windows[] = {{3, 0, 0}, {11, 0, 2}, {20, 1, 0}};
enum { WINDOWS = sizeof windows / sizeof windows[0] };

static RunRequest request_of(const char *text, const Window *window) {
    Mesh mesh;
    Error error = {0};
    TrainPlan plan;
    cr_assert(mesh_parse(text, &mesh, &error) == STATUS_OK, "%s", error.message);
    cr_assert(mesh_plan(&mesh_twos_short, &mesh, mesh.size[AXIS_PP] > 1 ? 4 : 1, &plan));
    plan.zero = mesh.size[AXIS_DP_SHARD] > 1 ? 3 : 0;
    plan_canonical(&plan);
    RunRequest request = mesh_request(&mesh_twos_short, &plan);
    request.model.window = window->tokens;
    request.model.window_first = window->first;
    request.model.window_every = window->every;
    return request;
}

static RunResult run_of(const char *text, const Window *window) {
    const RunRequest request = request_of(text, window);
    return case_run_request(&request, &arena);
}

Test(windows, every_axis_that_cuts_attention_trains_as_one_rank) {
    Deviation worst = {0};
    for (int w = 0; w < WINDOWS; w++) {
        const RunResult reference = run_of("dp_shard=1", &windows[w]);
        for (int i = 0; i < MESHES; i++) {
            const RunRequest request = request_of(meshes[i], &windows[w]);
            const RunResult run = case_run_request(&request, &arena);
            case_expect_same(&request, &run, &reference, &worst);
        }
    }
    cr_log_warn("windows: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", worst.loss_first,
                worst.norm_first, worst.loss_last, worst.norm_last);
}

static void train_between_norms(const char *type) {
    static const char *const on[] = {"dp_shard=1", "cp=2,tp=2", "pp=2,cp=2", "dp_shard=2,sp=2"};
    const bool capped = strcmp(type, "gemma2") == 0;
    Deviation worst = {0};
    RunResult reference = {0};
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        RunRequest request = request_of(on[i], &windows[1]);
        cr_assert(model_set_family(&request.model, type));
        request.model.tied_embeddings = false;  // which no two stages share
        request.model.rope_local = capped ? 0 : 1000;
        request.model.attention_cap = capped ? 0.05 : 0;  // of the size of scores, and of logits
        request.model.logit_cap = capped ? 0.3 : 0;
        const RunResult run = case_run_request(&request, &arena);
        reference = i == 0 ? run : reference;
        case_expect_same(&request, &run, &reference, &worst);
    }
    cr_log_warn("%s: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", type, worst.loss_first,
                worst.norm_first, worst.loss_last, worst.norm_last);
}

// As in Gemma 3: norms before and after each half, sliding layers rotate by their own angles.
Test(windows, norms_on_both_sides_and_local_angles_train_as_one_rank) {
    train_between_norms("gemma3_text");
}

Test(windows, soft_caps_of_scores_and_logits_train_as_one_rank) {
    train_between_norms("gemma2");
}

// In all layers, in some, in none: no two are the same model.
Test(windows, each_window_is_another_model) {
    const Window none = {0};
    double loss[WINDOWS + 1] = {run_of("dp_shard=1", &none).loss[1]};
    for (int w = 0; w < WINDOWS; w++) {
        loss[w + 1] = run_of("dp_shard=1", &windows[w]).loss[1];
        for (int other = 0; other <= w; other++) {
            cr_expect_neq(loss[w + 1], loss[other]);
        }
    }
}

Test(windows, a_window_longer_than_the_sequence_changes_no_bit) {
    const Window none = {0}, longer = {PAIRS_SEQ, 0, 0};
    const RunResult all = run_of("cp=2", &none), run = run_of("cp=2", &longer);
    cr_expect_arr_eq(all.loss, run.loss, (size_t)run.steps * sizeof *run.loss);
}

Test(windows, exact_sums_have_the_same_bits_on_every_mesh) {
    RunRequest alone = request_of("dp_shard=1", &windows[1]);
    RunRequest cut = request_of("dp_shard=2,cp=4", &windows[1]);
    alone.options.bitwise = cut.options.bitwise = true;
    alone.options.steps = cut.options.steps = 3;
    const RunResult one = case_run_request(&alone, &arena), run = case_run_request(&cut, &arena);
    cr_expect_arr_eq(one.loss, run.loss, 3 * sizeof *one.loss);
}

Test(windows, cuda_kernels_refuse_soft_caps_in_a_sentence) {
    RunRequest request = request_of("dp_shard=1", &windows[0]);
    cr_expect_null(exec_check(&request.model, &request.plan, request.target, "cuda", &arena));
    request.model.logit_cap = 30;
    const char *reason = exec_check(&request.model, &request.plan, request.target, "cuda", &arena);
    cr_expect(reason && strstr(reason, "use device cpu"), "%s", reason);
}
