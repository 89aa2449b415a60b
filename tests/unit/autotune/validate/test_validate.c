// Which shapes are run, in which order, and that one that fails does not stop the others. The runs are made-up numbers:
// real ones are in tests/cli.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "autotune/validate/validate.h"
#include "tests/support/sizes.h"

enum { ENTRIES = 10, REPEATS = 3, MOST_CALLS = 64 };

static Arena arena;
static Prediction entries[ENTRIES];
static TuneRequest request;
static TuneResult result;
static Validation validation;
static Error error;

// What the runner by hand does.
static int order[MOST_CALLS], calls, failing, refusing, known, cancel_after;

static void begin(void) {
    arena = (Arena){0};
    request = (TuneRequest){.world = 2};
    for (int i = 0; i < ENTRIES; i++) {
        entries[i] = (Prediction){.plan = {.mesh = {SIZES(1, 2, 1, 1)}, .seq = 10, .micro_batch = 1, .grad_accum = 1},
                                  .step_s = 1 + i,
                                  .step_low_s = 0.9 * (1 + i),
                                  .step_high_s = 1.1 * (1 + i)};
    }
    result = (TuneResult){.request = &request, .entries = entries, .entry_count = ENTRIES};
    validation = (Validation){.source = "executor", .steps = 4, .warm_up = 1, .repeats = REPEATS};
    calls = known = 0;
    failing = refusing = -1;
    cancel_after = MOST_CALLS;
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(validate, .init = begin, .fini = end);

static RunRecord record_of(const ValidateRow *row, double factor) {
    double *steps = ARENA_ARRAY(&arena, double, 4);
    for (int i = 0; i < 4; i++) {
        steps[i] = factor * row->prediction->step_s * (i == 0 ? 9 : 1);
    }
    return (RunRecord){.state = "ok", .steps = 4, .warm_up = 1, .step_times_s = steps, .measured_step_s = steps[1]};
}

static Status run_row(void *state, const ValidateRow *row, RunRecord *record, Error *why) {
    (void)state;
    order[calls++] = row->place;
    if (row->place == failing) {
        *record = (RunRecord){.state = "failed", .failure = "rank 1 was killed"};
        return STATUS_OK;
    }
    if (row->place == refusing) {
        return error_set(why, STATUS_ENVIRONMENT, "the store is full");
    }
    *record = record_of(row, 1 + 0.01 * row->run_count);
    return STATUS_OK;
}

static int recall(void *state, const ValidateRow *row, RunRecord *runs, int most) {
    (void)state;
    for (int i = 0; i < known && i < most; i++) {
        runs[i] = record_of(row, 1);
    }
    return known < most ? known : most;
}

static bool cancelled(void *state) {
    (void)state;
    return calls >= cancel_after;
}

static Status run(int top, int spread) {
    static const ValidateMeans means = {.recall = recall, .run = run_row, .cancelled = cancelled};
    validate_choose(&result, top, spread, &arena, &validation);
    const Status status = validate_run(&validation, &means, &arena, &error);
    validate_summarize(&validation, &arena);
    return status;
}

Test(validate, the_best_and_some_over_the_rest_are_chosen) {
    validate_choose(&result, 3, 2, &arena, &validation);
    cr_assert_eq(validation.row_count, 5);
    const int places[] = {1, 2, 3, 6, 10};  // halfway and at the end of the seven others
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(validation.rows[i].place, places[i]);
        cr_assert_eq(validation.rows[i].why, i < 3 ? VALIDATE_TOP : VALIDATE_SPREAD);
    }
}

Test(validate, no_shape_is_chosen_twice) {
    validate_choose(&result, 8, 9, &arena, &validation);
    cr_assert_eq(validation.row_count, ENTRIES);
    for (int i = 0; i < ENTRIES; i++) {
        cr_assert_eq(validation.rows[i].place, i + 1);
    }
}

Test(validate, zero_is_all) {
    validate_choose(&result, 0, 2, &arena, &validation);
    cr_assert_eq(validation.row_count, ENTRIES);
}

Test(validate, repeats_go_round_after_round) {
    cr_assert_eq(run(2, 0), STATUS_OK);
    cr_assert_eq(calls, 6);
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(order[2 * round] + order[2 * round + 1], 1 + 2, "both, once");
    }
}

Test(validate, rounds_have_orders_of_their_own) {
    cr_assert_eq(run(8, 0), STATUS_OK);
    cr_assert_eq(calls, 3 * 8);
    cr_assert_neq(memcmp(order, order + 8, 8 * sizeof *order), 0);
    cr_assert_neq(memcmp(order + 8, order + 16, 8 * sizeof *order), 0);
}

// Both rows are known from an hour ago, when the machine was twice as slow; since then only the slower one ran again.
Test(validate, an_hour_when_the_machine_was_slow_is_not_held_against_a_shape) {
    validate_choose(&result, 2, 0, &arena, &validation);
    for (int i = 0; i < 2; i++) {
        ValidateRow *row = &validation.rows[i];
        row->runs = ARENA_ARRAY(&arena, RunRecord, REPEATS);
        row->state = "ok";
        for (int k = 0; k < (i == 0 ? 1 : 3); k++) {
            const bool slow = k == 0;
            row->runs[row->run_count] = record_of(row, (slow ? 2.0 : 1.0) * (i == 0 ? 1 : 0.6));  // 1 s, 1.2 s
            row->runs[row->run_count++].at_s = slow ? i : 3600 + 2 * k;
        }
    }
    validate_summarize(&validation, &arena);
    cr_assert_lt(validation.rows[1].measured_s, validation.rows[0].measured_s, "the medians are misled");
    cr_assert_eq(validation.agreement.best_measured, 0);
}

Test(validate, a_shape_that_fails_is_left_and_the_others_go_on) {
    failing = 2;
    cr_assert_eq(run(3, 0), STATUS_OK);
    cr_assert_eq(calls, 1 + 3 + 3);  // the failing one once
    cr_assert_str_eq(validation.rows[1].state, "failed");
    cr_assert_str_eq(validation.rows[1].reason, "rank 1 was killed");
    cr_assert_eq(validation.agreement.count, 2);
}

Test(validate, an_error_that_concerns_every_shape_ends_it) {
    refusing = 2;
    cr_assert_eq(run(3, 0), STATUS_ENVIRONMENT);
    cr_assert_leq(calls, 3);
    cr_assert_str_eq(error.message, "the store is full");
}

Test(validate, what_is_known_is_not_run_again) {
    known = 2;
    cr_assert_eq(run(2, 0), STATUS_OK);
    cr_assert_eq(calls, 2);  // the third repeat of both
    cr_assert_eq(validation.rows[0].recalled, 2);
    cr_assert_eq(validation.rows[0].run_count, 3);
}

Test(validate, an_interruption_ends_it_with_what_there_is) {
    cancel_after = 3;
    cr_assert_eq(run(2, 0), STATUS_ENVIRONMENT);
    cr_assert_eq(calls, 3);
    cr_assert_eq(validation.rows[0].run_count + validation.rows[1].run_count, 3);
}

Test(validate, the_summary_takes_medians_after_the_warm_up) {
    cr_assert_eq(run(2, 0), STATUS_OK);
    cr_assert_leq(validation.rows[0].low_s, validation.rows[0].measured_s);
    cr_assert_geq(validation.rows[0].high_s, validation.rows[0].measured_s);
    cr_assert_float_eq(validation.rows[0].measured_s, 1.01, 1e-12);  // runs of 1.00, 1.01 and 1.02 s
    cr_assert_float_eq(validation.rows[0].noise, 0.02, 1e-12);
    cr_assert_float_eq(validation.agreement.regret, 1, 1e-12);
    cr_assert_eq(validation.in_interval, 2);
}

Test(validate, indices_of_the_agreement_skip_rows_without_a_measurement) {
    failing = 1;
    cr_assert_eq(run(3, 0), STATUS_OK);
    cr_assert_eq(validation.agreement.best_measured, 1);
    cr_assert_eq(validation.agreement.best_predicted, 1);
}
