// How a search handles targets that recompute some layers and keep the rest.

#include <criterion/criterion.h>

#include "autotune/predict/predict.h"
#include "autotune/search/space.h"
#include "tests/support/search_all.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;
static TuneResult result;
static Error error;

// Of some shapes recomputing all layers fits, recomputing none does not.
static void begin(void) {
    request = request_for(&arena, 8, "7b", "dgx-h100", "megatron");
    request.memory_limit_bytes = 64.0 * (1 << 30);
    request.global_batch = 64;
    request.max_tp = 1;
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(search_partial, .init = begin, .fini = end);

static const Candidate *fastest(bool keeps_layers) {
    const Candidate *best = NULL;
    cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
    for (int i = 0; i < result.candidate_count; i++) {
        const Candidate *candidate = &result.candidates[i];
        if (candidate->state == CANDIDATE_SIMULATED && plan_keeps_layers(&candidate->plan) == keeps_layers &&
            (!best || candidate->tokens_per_s > best->tokens_per_s)) {
            best = candidate;
        }
    }
    return best;
}

static Prediction predicted(TrainPlan plan) {
    Prediction prediction;
    cr_assert_eq(predict_once(&request, NULL, &plan, &arena, &prediction, &error), STATUS_OK, "%s", error.message);
    return prediction;
}

Test(search_partial, fills_the_memory_that_recomputing_all_layers_leaves) {
    const Candidate *some = fastest(true);
    cr_assert_not_null(some);
    TrainPlan all = some->plan, fewer = some->plan;
    all.recompute_layers = 0;
    fewer.recompute_layers -= 2;  // the estimate of its bytes is within two layers
    cr_assert_leq(some->reserved_bytes, request.memory_limit_bytes);
    cr_assert_gt(some->tokens_per_s, predicted(all).tokens_per_s);
    cr_assert_not(predicted(fewer).fits, "%d layers", some->plan.recompute_layers);
}

Test(search_partial, is_left_out_where_the_framework_or_the_user_says_so) {
    request.asked[PLAN_RECOMPUTE_LAYERS] = 0;
    cr_assert_null(fastest(true));
    request.asked[PLAN_RECOMPUTE_LAYERS] = TUNE_ANY;
    request.asked[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    cr_assert_null(fastest(true));
    request.asked[PLAN_RECOMPUTE] = TUNE_ANY;
    cr_assert_eq(target_find("accelerate", &request.target, &error), STATUS_OK);
    cr_assert_null(fastest(true));
}

// With the slack of estimates: what the replayed allocator leaves of it stays free.
Test(search_partial, finds_the_largest_distance_of_recomputed_layers) {
    cr_assert_eq(target_find("torchtitan@0.2", &request.target, &error), STATUS_OK);
    request.memory_limit_bytes = 50.0 * (1 << 30);
    const Candidate *some = fastest(true);
    cr_assert_not_null(some);
    TrainPlan further = some->plan;
    further.recompute_every++;
    cr_assert_geq(some->plan.recompute_every, 2);
    const MemoryBreakdown more = predicted(further).memory;
    const double outside = more.reserved_bytes - more.allocator_bytes;
    cr_assert_gt(outside + more.peak_bytes * (1 + request.target->runtime.allocator_slack), request.memory_limit_bytes,
                 "every %d", some->plan.recompute_every);
}

// Its chunks carry different numbers of kept layers: three groups of micro-steps hold 2.3 % less than all of them.
Test(search_partial, a_stage_holds_with_few_groups_of_micro_steps_what_it_does_with_all) {
    enum { MICRO_STEPS = 24 };
    request = request_for(&arena, 16, "llama-3-8b", "dgx-h100", "torchtitan");
    request.micro_batch = 1;
    request.asked[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    request.asked[PLAN_RECOMPUTE_EVERY] = 6;
    request.asked[PLAN_PP_SCHEDULE] = PP_INTERLEAVED;
    request.asked[PLAN_VIRTUAL_STAGES] = 8;
    request.asked[PLAN_PP_SPLIT] = SPLIT_EVEN;
    Mesh mesh;
    TrainPlan plan;
    Predictor predictor;
    Prediction whole;
    MemoryBreakdown stage;
    cr_assert_eq(mesh_parse("pp=4,dp_shard=4", &mesh, &error), STATUS_OK);
    space_plain_plan(&request, &mesh, &plan);
    plan.grad_accum = MICRO_STEPS;
    predictor_init(&predictor, &request, NULL);
    cr_assert_eq(predict_memory_of_stage(&predictor, &plan, 0, &arena, &stage, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(predict_once(&request, NULL, &plan, &arena, &whole, &error), STATUS_OK, "%s", error.message);
    const double held = whole.memory.by_stage[0];
    cr_expect_float_eq(stage.reserved_bytes, held, 1e-3 * held, "%g, not %g", stage.reserved_bytes, held);
    predictor_free(&predictor);
}
