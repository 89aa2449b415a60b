// Which batch size near the requested one is faster.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/explain/alternatives.h"
#include "autotune/predict/predict.h"
#include "autotune/search/expert_cuts.h"
#include "autotune/search/search.h"
#include "autotune/search/space.h"
#include "tests/support/search_all.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static Error error;

static void end(void) {
    arena_free(&arena);
}

TestSuite(alternatives, .fini = end);

static TuneResult search(TuneRequest *request) {
    TuneResult result;
    request->effort = EFFORT_ESTIMATE;
    request->threads = 1;
    cr_assert_eq(search_run(request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
    return result;
}

// 65 = 5 x 13: 8 ranks can only share sequences by cp and tp.
Test(alternatives, a_batch_that_more_shapes_can_make_is_named) {
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    request.global_batch = 65;
    const TuneResult result = search(&request);
    BatchAlternative better;
    cr_assert_eq(alternative_batch(&result, NULL, &arena, &better, &error), STATUS_OK, "%s", error.message);
    cr_expect(better.global_batch == 64 || better.global_batch == 72, "%lld", (long long)better.global_batch);
    cr_expect_gt(better.gain, 0.02);
    cr_expect_eq(better.mesh.size[AXIS_CP] * better.mesh.size[AXIS_TP], 1);
}

// For pipelines the estimate bounds what it knows.
Test(alternatives, what_the_search_learnt_changes_no_batch) {
    TuneRequest request = request_for(&arena, 8, "llama-3-8b", "dgx-h100", "megatron");
    request.global_batch = 65;
    request.effort = EFFORT_ESTIMATE;
    request.threads = 1;
    TuneResult result;
    SearchKnown known = {0};
    cr_assert_eq(search_run_keeping(&request, NULL, NULL, &known, &arena, &result, &error), STATUS_OK, "%s",
                 error.message);
    BatchAlternative fresh, better;
    cr_assert_eq(alternative_batch(&result, NULL, &arena, &fresh, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(alternative_batch(&result, &known, &arena, &better, &error), STATUS_OK, "%s", error.message);
    cr_expect_gt(better.global_batch, 0);
    cr_expect_eq(better.global_batch, fresh.global_batch);
    cr_expect_eq(better.gain, fresh.gain);
    cr_expect(mesh_same_shape(&better.mesh, &fresh.mesh));
    search_known_free(&known);
}

// The closed form takes all ranks to be as fast.
Test(alternatives, no_batch_is_named_where_a_rank_is_slow) {
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    request.global_batch = 65;
    const TuneResult result = search(&request);
    const Handicap slow = {.index = 3, .factor = 2};
    BatchAlternative better;
    request.handicaps = &slow;
    request.handicap_count = 1;
    cr_assert_eq(alternative_batch(&result, NULL, &arena, &better, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(better.global_batch, 0);
}

Test(alternatives, a_batch_that_every_shape_makes_has_none) {
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    request.global_batch = 64;
    const TuneResult result = search(&request);
    BatchAlternative better;
    cr_assert_eq(alternative_batch(&result, NULL, &arena, &better, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(better.global_batch, 0);
}

static int offers(const char *target, Optimizer said, const char *option) {
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", target);
    FormatAlternative formats[ALTERNATIVE_FORMATS];
    int count = 0, offered = 0;
    request.asked[PLAN_OPTIMIZER] = said;
    const TuneResult result = search(&request);
    cr_assert_eq(result.entries[0].plan.optimizer, said, "the search has tried another one");
    cr_assert_eq(alternative_formats(&result, &arena, formats, &count, &error), STATUS_OK, "%s", error.message);
    for (int i = 0; i < count; i++) {
        offered += strncmp(formats[i].option, "--optimizer", strlen("--optimizer")) == 0;
        cr_expect(strncmp(formats[i].option, "--optimizer", strlen("--optimizer")) != 0 ||
                  (strcmp(formats[i].option, option) == 0 && formats[i].saved_bytes > 0));
    }
    return offered;
}

// One line at most: bf16 where the target has it, else 8 bits; none where an optimizer was named.
Test(alternatives, narrower_states_are_named_and_never_tried) {
    cr_expect_eq(offers("accelerate", OPTIMIZER_TARGET, "--optimizer adamw-8bit-torchao"), 1);
    cr_expect_eq(offers("torchtitan@0.3", OPTIMIZER_TARGET, "--optimizer adamw-bf16"), 1);
    cr_expect_eq(offers("torchtitan", OPTIMIZER_TARGET, ""), 0);
    cr_expect_eq(offers("accelerate", OPTIMIZER_SGD, ""), 0);
}

static WhyCuts why_cuts(const char *model, const char *target, int ep) {
    TuneRequest request = request_for(&arena, 16, model, "dgx-h100", target);
    Mesh mesh = mesh_of_one();
    TrainPlan plan;
    Prediction best;
    WhyCuts why;
    mesh.size[AXIS_DP_SHARD] = 16;
    mesh.size[AXIS_EP] = ep;
    space_plain_plan(&request, &mesh, &plan);
    cr_assert_eq(predict_once(&request, NULL, &plan, &arena, &best, &error), STATUS_OK, "%s", error.message);
    const TuneResult result = {.request = &request, .entries = &best, .entry_count = 1};
    cr_assert_eq(expert_cuts_explain(&result, &why, &error), STATUS_OK, "%s", error.message);
    return why;
}

// 2 and 4 of 16 ranks together with ep=4; 8 of them would need 32.
Test(alternatives, experts_cut_by_more_ranks_are_predicted_next_to_the_best) {
    const WhyCuts why = why_cuts("olmoe-1b-7b", "megatron", 4);
    cr_expect(why.offered && !why.asked && why.used == 1);
    cr_assert_eq(why.count, 2);
    cr_expect(why.others[0].cut == 2 && why.others[1].cut == 4);
    cr_expect_gt(why.others[0].step, 0, "%g", why.others[0].step);
    cr_expect_gt(why.others[1].step, why.others[0].step);
}

Test(alternatives, why_experts_are_not_cut_is_the_rules_word) {
    const WhyCuts biased = why_cuts("gpt-oss-20b", "megatron", 4), full = why_cuts("olmoe-1b-7b", "megatron", 16);
    cr_expect(biased.offered && strstr(biased.reason, "bias in MoE is only supported when ETP==1"), "%s",
              biased.reason);
    cr_expect(full.count == 0 && strstr(full.reason, "not divisible"), "%s", full.reason);
    cr_expect_not(why_cuts("olmoe-1b-7b", "torchtitan", 4).offered);
}
