// The search for near-optimal plans compared with the full search.

#include <criterion/criterion.h>

#include "autotune/search/search.h"
#include "tests/support/search_all.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;
static TuneResult result;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
    request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(search_near, .init = begin, .fini = end);

static void run(void) {
    cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
}

static bool take_all(const void *state, const Prediction *prediction) {
    (void)state;
    (void)prediction;
    return true;
}

static bool take_no_tp(const void *state, const Prediction *prediction) {
    (void)state;
    return prediction->plan.mesh.size[AXIS_TP] == 1;
}

static void run_near(const SearchNear *who, TuneResult *near) {
    cr_assert_eq(search_near(&request, who, NULL, NULL, &arena, near, &error), STATUS_OK, "%s", error.message);
}

Test(search_near, what_is_near_the_best_has_the_best_of_all_with_less_work) {
    static const char *const targets[] = {"accelerate", "torchtitan", "megatron"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        request = request_for(&arena, 8, "7b", "dgx-h100", targets[i]);
        request.global_batch = 64;
        run();
        TuneResult near;
        run_near(&(SearchNear){.like = &result.entries[result.entry_count - 1].plan, .takes = take_all}, &near);
        cr_expect(plans_equal(&near.entries[0].plan, &result.entries[0].plan), "%s", targets[i]);
        cr_expect_eq(near.entries[0].step_s, result.entries[0].step_s, "%s", targets[i]);
        cr_expect_lt(near.search.simulated, result.search.simulated, "%s", targets[i]);
    }
}

static double tokens_per_s_of(const TuneResult *of, const TrainPlan *plan) {
    double found = 0;
    for (int i = 0; i < of->candidate_count; i++) {
        found = plans_equal(&of->candidates[i].plan, plan) ? of->candidates[i].tokens_per_s : found;
    }
    return found;
}

// The plan's own choices on the other shapes, where they are not slower than it: by estimate or by the engine.
Test(search_near, near_the_best_the_same_choices_on_other_shapes_are_known) {
    request.global_batch = 64;
    run();
    const TrainPlan *like = &result.entries[result.entry_count - 1].plan;
    TuneResult near;
    int same = 0;
    run_near(&(SearchNear){.like = like, .takes = take_all}, &near);
    for (int i = 0; i < result.candidate_count; i++) {
        const Candidate *candidate = &result.candidates[i];
        TrainPlan moved = *like;
        moved.mesh = candidate->plan.mesh;
        moved.grad_accum = candidate->plan.grad_accum;
        moved.zero = candidate->plan.zero;
        if (candidate->state == CANDIDATE_ESTIMATED && plans_equal(&moved, &candidate->plan) &&
            candidate->tokens_per_s > result.entries[result.entry_count - 1].tokens_per_s) {
            char text[PLAN_TEXT_BYTES];
            cr_expect_float_eq(tokens_per_s_of(&near, &candidate->plan), candidate->tokens_per_s,
                               0.03 * candidate->tokens_per_s, "%s", plan_text(&candidate->plan, text));
            same++;
        }
    }
    cr_assert_gt(same, 0);
}

Test(search_near, near_the_best_nothing_depends_on_the_number_of_threads) {
    TuneResult one, several;
    const SearchNear who = {.takes = take_all};
    request.world = 16;
    request.threads = 1;
    run_near(&who, &one);
    request.threads = 4;
    run_near(&who, &several);
    cr_assert_eq(one.entry_count, several.entry_count);
    cr_assert_eq(one.candidate_count, several.candidate_count);
    for (int i = 0; i < one.entry_count; i++) {
        cr_assert_eq(one.entries[i].step_s, several.entries[i].step_s, "place %d", i + 1);
    }
    for (int i = 0; i < one.candidate_count; i++) {
        cr_assert_eq(one.candidates[i].state, several.candidates[i].state, "candidate %d", i);
        cr_assert_eq(one.candidates[i].step_s, several.candidates[i].step_s, "candidate %d", i);
    }
}

Test(search_near, near_the_best_is_the_best_of_what_can_be_had) {
    TuneResult near;
    request.max_tp = 1;
    run();
    const Prediction best = result.entries[0];
    request.max_tp = 0;
    run_near(&(SearchNear){.takes = take_no_tp}, &near);
    cr_expect(plans_equal(&near.entries[0].plan, &best.plan));
    for (int i = 0; i < near.candidate_count; i++) {
        const Candidate *candidate = &near.candidates[i];
        cr_expect(candidate->plan.mesh.size[AXIS_TP] == 1 || candidate->state == CANDIDATE_REJECTED, "%d", i);
    }
}
