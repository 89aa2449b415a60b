// Why there is no best plan, of results as a search leaves them.

#include <criterion/criterion.h>

#include "autotune/explain/advice.h"
#include "autotune/search/search.h"

static bool takes(const void *state, const Prediction *prediction) {
    (void)state;
    (void)prediction;
    return false;
}

static const char *lacks(const void *state, const Prediction *prediction) {
    (void)state;
    (void)prediction;
    return "the file cannot say it";
}

#define ILLEGAL(words)                                                                                                 \
    { .state = CANDIDATE_REJECTED, .rule = "tp", .reason = (words) }
#define NOT_HAD                                                                                                        \
    { .state = CANDIDATE_REJECTED, .rule = SEARCH_NOT_HAD, .reason = "who asks cannot have it" }
#define TOO_LARGE                                                                                                      \
    { .state = CANDIDATE_REJECTED, .rule = "memory", .reason = "needs more", .reserved_bytes = 1e12 }

static void expect_reason_of(TuneResult result, const char *reason) {
    TuneRequest request = {.world = 8};
    result.request = &request;
    const AdviceQuestion question = {.result = &result, .filter = {.takes = takes, .lacks = lacks}};
    Arena arena = {0};
    AdviceReport report;
    Error error = {0};
    cr_assert_eq(advise(&question, &arena, &report, &error), STATUS_OK, "%s", error.message);
    cr_assert_not_null(report.no_best);
    cr_expect_str_eq(report.no_best, reason);
    arena_free(&arena);
}

static void expect_reason(Candidate *candidates, int count, const char *reason) {
    expect_reason_of((TuneResult){.candidates = candidates, .candidate_count = count, .search = {.shapes = 20}},
                     reason);
}

#define EXPECT_REASON(reason, ...)                                                                                     \
    expect_reason((Candidate[]){__VA_ARGS__}, (int)(sizeof((Candidate[]){__VA_ARGS__}) / sizeof(Candidate)), reason)

Test(advice, nothing_fits_only_where_memory_was_looked_at) {
    EXPECT_REASON("none of the 20 shapes of 8 ranks fits", TOO_LARGE);
    EXPECT_REASON("none of the 20 shapes of 8 ranks fits", ILLEGAL("tp is odd"), TOO_LARGE);
}

Test(advice, where_every_plan_is_against_a_rule_the_first_reason_stands_there) {
    EXPECT_REASON("none of the 20 shapes of 8 ranks can run: tp is odd", ILLEGAL("tp is odd"), ILLEGAL("tp is large"));
}

Test(advice, where_the_file_cannot_say_a_plan_that_is_the_reason) {
    EXPECT_REASON("the file cannot say it", ILLEGAL("tp is odd"), NOT_HAD);
    EXPECT_REASON("of the 20 shapes of 8 ranks some do not fit, and of the others: the file cannot say it",
                  ILLEGAL("tp is odd"), NOT_HAD, TOO_LARGE);
}

Test(advice, where_there_is_nothing_to_try_what_excluded_it_stands_there) {
    Rejection rejected = {.rule = "batch", .reason = "8 sequences are too few"};
    expect_reason_of((TuneResult){.rejected = &rejected, .rejected_count = 1, .search = {.shapes = 3}},
                     "none of the 3 shapes of 8 ranks has a plan to try, batch: 8 sequences are too few");
    expect_reason_of((TuneResult){0}, "8 ranks make no shape to try");
}
