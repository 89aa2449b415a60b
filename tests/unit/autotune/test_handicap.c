// Slow ranks, nodes and links: what is reported, and the effect on predictions and searches.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/predict/handicap.h"
#include "autotune/predict/predict.h"
#include "tests/support/search_all.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;
static Error error;
static Handicap handicaps[8];

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
    request = request_for(&arena, 16, "7b", "dgx-h100", "accelerate");
    request.handicaps = handicaps;
    request.handicap_count = 0;
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(handicap, .init = begin, .fini = end);

static void say(const char *assignment) {
    Handicap *handicap = &handicaps[request.handicap_count++];
    cr_assert(handicap_named(assignment));
    cr_assert_eq(handicap_parse(assignment, handicap, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(handicap_check(handicap, &request, &error), STATUS_OK, "%s", error.message);
}

static void refuse(const char *assignment, const char *says) {
    Handicap handicap;
    Status status = handicap_parse(assignment, &handicap, &error);
    status = status == STATUS_OK ? handicap_check(&handicap, &request, &error) : status;
    cr_assert_eq(status, STATUS_USAGE, "%s was taken", assignment);
    cr_assert_not_null(strstr(error.message, says), "%s: %s", assignment, error.message);
}

Test(handicap, profile_fields_are_not_handicaps) {
    cr_assert(!handicap_named("node.gpus=4"));
    cr_assert(!handicap_named("fabric.node_gbps=800"));
    cr_assert(!handicap_named(""));
    cr_assert(handicap_named("rank.x.slowdown=2"));
    cr_assert(handicap_named("node.-1.slowdown=2"));
}

Test(handicap, refusals_name_what_is_wrong) {
    refuse("rank.16.slowdown=2", "there is no rank 16: a world of 16 has 16 ranks");
    refuse("node.2.link_slowdown=2", "there is no node 2: a world of 16 has 2 nodes");
    refuse("rank.-1.slowdown=2", "-1 is not the number of a rank");
    refuse("node.99999999999999999999.slowdown=2", "99999999999999999999 is not the number of a node");
    refuse("rank..slowdown=2", "not the number");
    refuse("rank.3.slowdown=0.99", "not 0.99");
    refuse("rank.3.slowdown=-2", "not -2");
    refuse("rank.3.slowdown=nan", "not nan");
    refuse("rank.3.slowdown=inf", "not inf");
    refuse("rank.3.link_slowdown=", "not nothing");
    refuse("rank.3.slowdown=2x", "not 2x");
    refuse("rank.3.speed=2", "has no \"speed\"");
    refuse("rank.3.slowdown", "must be rank.N.slowdown=FACTOR");
    refuse("rank.3=1.5", "must be rank.N.slowdown=FACTOR");
}

Test(handicap, a_node_is_all_its_ranks_and_later_words_hold) {
    say("node.1.link_slowdown=3");
    say("rank.9.link_slowdown=2");
    say("rank.4.slowdown=1.5");
    const float *links = handicap_factors(&request, true, &arena), *ranks = handicap_factors(&request, false, &arena);
    for (int rank = 0; rank < 16; rank++) {
        cr_assert_eq(links[rank], rank == 9 ? 2 : rank >= 8 ? 3 : 1, "rank %d", rank);
        cr_assert_eq(ranks[rank], rank == 4 ? 1.5f : 1, "rank %d", rank);
    }
}

Test(handicap, the_last_node_may_be_smaller) {
    request.world = 12;
    say("node.1.slowdown=2");
    const float *ranks = handicap_factors(&request, false, &arena);
    cr_assert_eq(ranks[7], 1);
    cr_assert_eq(ranks[11], 2);
    cr_assert_null(handicap_factors(&request, true, &arena));
}

static Prediction predict(void) {
    TrainPlan plan = {.mesh = {SIZES(1, 8, 1, 2)},
                      .seq = 2048,
                      .micro_batch = 1,
                      .grad_accum = 2,
                      .zero = 3,
                      .precision = DTYPE_BF16};
    plan_canonical(&plan);
    Predictor predictor;
    Prediction prediction;
    predictor_init(&predictor, &request, NULL);
    cr_assert_eq(predict_plan(&predictor, &plan, false, &arena, &prediction, &error), STATUS_OK, "%s", error.message);
    predictor_free(&predictor);
    return prediction;
}

Test(handicap, predictions_are_slower_and_are_told_apart) {
    static const char *const words[] = {"rank.3.slowdown=1.2", "rank.3.slowdown=1.3", "rank.3.link_slowdown=1.2",
                                        "node.1.link_slowdown=1.2", "node.1.slowdown=1.2"};
    enum { COUNT = sizeof words / sizeof words[0] };
    const Prediction sound = predict();
    uint64_t hashes[COUNT + 1] = {sound.content_hash};
    for (int i = 0; i < COUNT; i++) {
        request.handicap_count = 0;
        say(words[i]);
        const Prediction slow = predict();
        cr_assert_gt(slow.step_s, sound.step_s, "%s", words[i]);
        hashes[i + 1] = slow.content_hash;
        for (int j = 0; j <= i; j++) {
            cr_assert_neq(hashes[j], slow.content_hash, "%s is taken for another", words[i]);
        }
    }
    request.handicap_count = 0;
    cr_assert_eq(predict().content_hash, sound.content_hash);
}

// Every rank k times slower in all that it does but not in its host and fixed costs: between 1 and k times the step.
Test(handicap, a_machine_that_is_twice_as_slow_takes_at_most_twice_as_long) {
    const double sound_s = predict().step_s;
    say("node.0.slowdown=2");
    say("node.1.slowdown=2");
    say("node.0.link_slowdown=2");
    say("node.1.link_slowdown=2");
    const double slow_s = predict().step_s;
    cr_assert_gt(slow_s, 1.5 * sound_s);
    cr_assert_leq(slow_s, 2 * sound_s * (1 + 1e-9));
}

Test(handicap, every_entry_of_a_search_is_simulated_and_ranked_by_that) {
    request = request_for(&arena, 8, "1.3b", "dgx-h100", "fsdp1");
    request.handicaps = handicaps;
    say("rank.3.slowdown=1.5");
    request.effort = EFFORT_ESTIMATE;  // as explain asks: brief, but never without the engine
    TuneResult result;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
        cr_assert_gt(result.entry_count, 0);
        for (int k = 0; k < result.entry_count; k++) {
            cr_assert_eq(result.entries[k].origin, ORIGIN_ENGINE, "place %d", k);
            cr_assert(k == 0 || result.entries[k].tokens_per_s <= result.entries[k - 1].tokens_per_s, "place %d", k);
        }
        request.effort = EFFORT_SIMULATE;
    }
}
