// Pipelines of models with one table for embedding and head, which two stages have a copy of: loss and gradient norm of
// one rank, within the planned memory. Every gradient of theirs is in test_every_gradient.c.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/parity/exec/exec_families.h"
#include "tests/parity/exec/pipeline_case.h"

typedef struct Case {
    const char *mesh;
    PipelineChoice choice;
    const char *target;  // NULL: the executor's own
    GradSync sync;
} Case;

static RunRequest request_of(const Case *one) {
    Mesh mesh;
    Error error = {0};
    Arena arena = {0};
    RunRequest request;
    const char *reason = NULL;
    cr_assert(mesh_parse(one->mesh, &mesh, &error) == STATUS_OK, "%s", error.message);
    cr_assert(pipeline_request(&mesh, &one->choice, &request), "%s is refused", one->mesh);
    request.model.tied_embeddings = true;
    request.plan.grad_sync = one->sync;
    if (one->target) {
        cr_assert(target_find(one->target, &request.target, &error) == STATUS_OK, "%s", error.message);
        request.model.vocab = 512;  // a multiple of 128 x tp: not padded
    }
    target_check(request.target, &request.model, &request.plan, &arena, &reason);
    cr_assert_null(reason, "%s: %s", one->mesh, reason);
    arena_free(&arena);
    return request;
}

static void cases_train(const Case *cases, size_t count) {
    Deviation worst = {0};
    for (size_t i = 0; i < count; i++) {
        const RunRequest request = request_of(&cases[i]);
        pipeline_trains(&request, &worst);
    }
    cr_log_warn("%zu plans: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", count, worst.loss_first,
                worst.norm_first, worst.loss_last, worst.norm_last);
}

#define ORDER(order, ...)                                                                                              \
    { .schedule = order, .virtual_stages = 2, __VA_ARGS__ }

Test(tied, every_schedule_trains_as_one_rank) {
    static const Case cases[] = {
        {.mesh = "pp=2", .choice = ORDER(PP_1F1B, .zero = 0)},
        {.mesh = "pp=4", .choice = ORDER(PP_1F1B, .recompute = RECOMPUTE_FULL)},
        {.mesh = "pp=2", .choice = ORDER(PP_GPIPE, .zero = 0)},
        {.mesh = "pp=2", .choice = ORDER(PP_INTERLEAVED, .zero = 0)},
        {.mesh = "pp=4", .choice = ORDER(PP_INTERLEAVED, .zero = 0)},
        {.mesh = "pp=2", .choice = ORDER(PP_ZERO_BUBBLE, .zero = 0)},
        {.mesh = "pp=3", .choice = ORDER(PP_ZERO_BUBBLE, .zero = 0)},
        {.mesh = "pp=2", .choice = ORDER(PP_ZBV, .zero = 0)},
    };
    cases_train(cases, sizeof cases / sizeof *cases);
}

// Reduced once after the last backward, also where the layers are reduced on every micro-step.
Test(tied, every_kind_of_sharding_trains_as_one_rank) {
    static const Case cases[] = {
        {.mesh = "pp=2,dp_shard=2", .choice = ORDER(PP_1F1B, .zero = 0)},
        {.mesh = "pp=2,dp_shard=2", .choice = ORDER(PP_INTERLEAVED, .zero = 1)},
        {.mesh = "pp=2,dp_shard=2", .choice = ORDER(PP_1F1B, .zero = 2)},
        {.mesh = "pp=2,dp_shard=3", .choice = ORDER(PP_1F1B, .zero = 3)},
        {.mesh = "pp=2,dp_shard=2", .choice = ORDER(PP_ZERO_BUBBLE, .zero = 3), .sync = GRAD_SYNC_EACH},
        {.mesh = "pp=2,dp_replicate=2", .choice = ORDER(PP_1F1B, .zero = 0)},
        {.mesh = "pp=2,dp_replicate=2", .choice = ORDER(PP_ZERO_BUBBLE, .zero = 0)},
        {.mesh = "pp=2,dp_replicate=2,dp_shard=2", .choice = ORDER(PP_INTERLEAVED, .zero = 2), .sync = GRAD_SYNC_EACH},
        {.mesh = "pp=2,dp_replicate=2,dp_shard=2", .choice = ORDER(PP_1F1B, .zero = 3), .sync = GRAD_SYNC_LAST},
    };
    cases_train(cases, sizeof cases / sizeof *cases);
}

Test(tied, slices_of_the_table_train_as_one_rank) {
    static const Case cases[] = {
        {.mesh = "pp=2,tp=2", .choice = ORDER(PP_1F1B, .zero = 0)},
        {.mesh = "pp=2,tp=2", .choice = ORDER(PP_INTERLEAVED, .zero = 1)},
        {.mesh = "pp=2,tp=2", .choice = ORDER(PP_ZERO_BUBBLE, .zero = 0)},
        {.mesh = "pp=2,dp_shard=2,tp=2", .choice = ORDER(PP_1F1B, .zero = 3)},
        {.mesh = "pp=2,cp=2,tp=2", .choice = ORDER(PP_1F1B, .zero = 1)},
    };
    cases_train(cases, sizeof cases / sizeof *cases);
}

Test(tied, other_targets_programs_train_as_one_rank) {
    static const Case cases[] = {
        {.mesh = "pp=2,dp_shard=2,tp=2", .choice = ORDER(PP_1F1B, .zero = 1), .target = "megatron"},
        {.mesh = "pp=2,dp_shard=2", .choice = ORDER(PP_INTERLEAVED, .zero = 1), .target = "megatron"},
        {.mesh = "pp=2,dp_shard=2,tp=2", .choice = ORDER(PP_1F1B, .zero = 1), .target = "nanotron"},
        {.mesh = "pp=2,dp_shard=2", .choice = ORDER(PP_1F1B, .zero = 0), .target = "nanotron"},
        {.mesh = "pp=2,dp_shard=2", .choice = ORDER(PP_1F1B, .zero = 1), .target = "deepspeed"},
    };
    cases_train(cases, sizeof cases / sizeof *cases);
}

// With learned positions, which the norm counts and the table that follows them not; with scaled embeddings.
Test(tied, other_types_of_models_train_as_one_rank) {
    static const char *const types[] = {"gpt2", "mpt", "gemma"};
    Arena arena = {0};
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const Case one = {.mesh = "pp=2,dp_shard=2",
                          .choice = ORDER(i == 1 ? PP_ZERO_BUBBLE : PP_1F1B, .zero = (int)i + 1)};
        RunRequest request = request_of(&one);
        request.model = exec_family(request.model, types[i]);
        cr_assert(request.model.tied_embeddings);
        const RunRequest single = pipeline_one_rank(&request);
        const RunResult reference = case_run_request(&single, &arena), run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
    }
    arena_free(&arena);
}

// Lanes in threads, held up at random; memory that is not a number before it is written.
Test(tied, races_and_poison_change_no_bit) {
    static const Case cases[] = {{.mesh = "pp=3", .choice = ORDER(PP_1F1B, .zero = 0)},
                                 {.mesh = "pp=2,dp_shard=2", .choice = ORDER(PP_INTERLEAVED, .zero = 3)}};
    Arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const RunRequest serial = request_of(&cases[i]);
        RunRequest other = serial;
        other.options.lanes = LANES_ASYNC;
        other.options.jitter_seed = i + 1;
        other.options.poison = true;
        const RunResult a = case_run_request(&serial, &arena), b = case_run_request(&other, &arena);
        const size_t bytes = (size_t)a.steps * sizeof *a.loss;
        cr_expect(memcmp(a.loss, b.loss, bytes) == 0 && memcmp(a.grad_norm, b.grad_norm, bytes) == 0, "%s",
                  cases[i].mesh);
    }
    arena_free(&arena);
}

// Exact sums: both copies of the table are what one rank's is, step after step, to the bit.
Test(tied, a_bitwise_run_has_the_bits_of_one_rank) {
    static const Case cases[] = {{.mesh = "pp=2,dp_shard=2", .choice = ORDER(PP_1F1B, .zero = 1)},
                                 {.mesh = "pp=2,tp=2", .choice = ORDER(PP_ZERO_BUBBLE, .zero = 0)}};
    Arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RunRequest request = request_of(&cases[i]);
        request.options.bitwise = true;
        RunRequest single = pipeline_one_rank(&request);
        char *own, *reference;
        int64_t bytes, expected;
        const RunResult a = case_run_keeping(&request, &request.options.weights_path, &arena, &own, &bytes);
        const RunResult b = case_run_keeping(&single, &single.options.weights_path, &arena, &reference, &expected);
        const size_t of_steps = (size_t)a.steps * sizeof *a.loss;
        cr_assert_eq(bytes, expected, "%s", cases[i].mesh);
        cr_expect(memcmp(own, reference, (size_t)bytes) == 0, "%s: other weights", cases[i].mesh);
        cr_expect(memcmp(a.loss, b.loss, of_steps) == 0 && memcmp(a.grad_norm, b.grad_norm, of_steps) == 0,
                  "%s: other losses or norms", cases[i].mesh);
    }
    arena_free(&arena);
}
