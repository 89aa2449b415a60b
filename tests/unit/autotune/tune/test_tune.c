// The loop on hand-made replays: what it runs, when it stops, what it survives.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/support/sizes.h"
#include "tests/support/tune_replay.h"

enum { MOST = 6, MOST_RUNS = 200 };

typedef struct Bench {
    Replay replay;  // first: replay_run takes the bench as a replay
    int reports, cancel_after;
    int recalled;  // of steps
    TuneRun known[MOST_RUNS];
} Bench;

static Arena arena;
static Prediction entries[MOST];
static TuneRequest request;
static TuneResult result;
static ReplayShape rows[MOST];
static Bench bench;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
    request = (TuneRequest){.world = 4};
    result = (TuneResult){.request = &request, .entries = entries};
    bench = (Bench){.replay = {rows, 1}, .cancel_after = MOST_RUNS};
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(tune, .init = begin, .fini = end);

static void add_shape(double predicted_s, const double *steps_s, int count) {
    const int i = result.entry_count++;
    entries[i] = (Prediction){.plan = {.mesh = {SIZES(1, 1 << i, 1, 1)}, .seq = 10, .micro_batch = 1, .grad_accum = 1},
                              .step_s = predicted_s * (1 << i)};  // the batch grows with the shape
    double *steps = ARENA_ARRAY(&arena, double, count + 1);
    for (int k = 0; k < count; k++) {
        steps[k] = steps_s[k] * (1 << i);
    }
    rows[i] = (ReplayShape){.steps_s = steps, .count = count, .failure = "rank 1 was killed"};
}

static Status learn(void *state, const Tuning *tuning, TuneModel *model, BeliefShape *shapes, const char **learnt,
                    Error *why) {
    (void)state;
    (void)why;
    tune_model_prior(tuning, model, shapes);
    *learnt = "one common factor";
    return STATUS_OK;
}

static void report(void *state, const Tuning *tuning, const TuneStep *step) {
    (void)tuning;
    (void)step;
    ((Bench *)state)->reports++;
}

static bool cancelled(void *state) {
    const Bench *own = state;
    return own->reports > own->cancel_after;
}

static Status recall(void *state, const Tuning *tuning, TuneRun **runs, int *count, Error *why) {
    (void)tuning;
    (void)why;
    Bench *own = state;
    *runs = own->known;
    *count = own->recalled;
    return STATUS_OK;
}

static const TuneMeans means = {recall, replay_run, learn, report, cancelled, &bench};

static Tuning tuned(TuneOptions options, Status expected) {
    Tuning tuning;
    tune_begin(&result, &options, &arena, &tuning);
    cr_assert_eq(tune_run(&tuning, &means, &arena, &error), expected, "%s", error.message);
    return tuning;
}

static const TuneOptions usual = {.probability = 0.95, .tolerance = 0.01, .max_runs = 100, .seed = 1};

static int runs_of(const Tuning *tuning, int shape) {
    int count = 0;
    for (int i = 0; i < tuning->step_count; i++) {
        count += tuning->steps[i].run.shape == shape;
    }
    return count;
}

Test(tune, one_clearly_better_shape_ends_it_after_a_run_or_two) {
    const double fast[] = {1.0}, slow[] = {3.0};
    add_shape(1.0, fast, 1);
    add_shape(3.0, slow, 1);
    const Tuning tuning = tuned(usual, STATUS_OK);
    cr_assert_eq(tuning.stop, TUNE_CERTAIN);
    cr_assert_eq(tune_winner(&tuning), &tuning.shapes[0]);
    cr_assert_leq(tuning.runs, 2);
    cr_assert_geq(tuning.shapes[0].runs, 1, "a winner has run");
}

Test(tune, equal_predictions_make_it_run_both) {
    const double a[] = {1.0, 1.01, 0.99}, b[] = {1.2, 1.21, 1.19};
    add_shape(1.1, b, 3);
    add_shape(1.1, a, 3);
    const Tuning tuning = tuned(usual, STATUS_OK);
    cr_assert_eq(tuning.stop, TUNE_CERTAIN);
    cr_assert_eq(tune_winner(&tuning), &tuning.shapes[1]);
    cr_assert_geq(runs_of(&tuning, 0), 1);
    cr_assert_geq(runs_of(&tuning, 1), 1);
}

Test(tune, shapes_that_are_equally_fast_do_not_take_for_ever) {
    const double a[] = {1.0, 1.002, 0.998, 1.001, 0.999}, b[] = {1.0, 1.001, 0.999, 1.002, 0.998};
    add_shape(1.0, a, 5);
    add_shape(1.0, b, 5);
    TuneOptions options = usual;
    options.tolerance = 0.02;
    const Tuning tuning = tuned(options, STATUS_OK);
    cr_assert_eq(tuning.stop, TUNE_CERTAIN);
    cr_assert_lt(tuning.runs, 60);
}

Test(tune, a_wrong_prediction_is_found_out) {
    const double slow[] = {1.5, 1.52}, fast[] = {1.0, 1.01}, middle[] = {1.2, 1.22};
    add_shape(1.00, slow, 2);
    add_shape(1.05, middle, 2);
    add_shape(1.10, fast, 2);
    const Tuning tuning = tuned(usual, STATUS_OK);
    cr_assert_eq(tuning.stop, TUNE_CERTAIN);
    cr_assert_eq(tune_winner(&tuning), &tuning.shapes[2]);
}

Test(tune, a_shape_that_fails_is_out_with_its_reason_and_the_others_go_on) {
    const double fast[] = {1.0}, slow[] = {2.0};
    add_shape(0.5, NULL, 0);
    add_shape(1.0, fast, 1);
    add_shape(2.0, slow, 1);
    const Tuning tuning = tuned(usual, STATUS_OK);
    cr_assert_eq(tuning.stop, TUNE_CERTAIN);
    cr_assert_str_eq(tuning.shapes[0].out, "rank 1 was killed");
    cr_assert_eq(runs_of(&tuning, 0), 1, "once is enough");
    cr_assert_eq(tuning.failures, 1);
    cr_assert_eq(tune_winner(&tuning), &tuning.shapes[1]);
}

Test(tune, nothing_is_left_where_all_fail) {
    add_shape(1.0, NULL, 0);
    add_shape(2.0, NULL, 0);
    const Tuning tuning = tuned(usual, STATUS_OK);
    cr_assert_eq(tuning.stop, TUNE_NONE_LEFT);
    cr_assert_null(tune_winner(&tuning));
    cr_assert_eq(tuning.runs, 2);
}

Test(tune, the_budget_of_runs_ends_it) {
    const double a[] = {1.0, 1.03, 0.97}, b[] = {1.0, 1.03, 0.97};
    add_shape(1.0, a, 3);
    add_shape(1.0, b, 3);
    TuneOptions options = usual;
    options.max_runs = 3;
    options.tolerance = 0.0001;
    const Tuning tuning = tuned(options, STATUS_OK);
    cr_assert_eq(tuning.stop, TUNE_MAX_RUNS);
    cr_assert_eq(tuning.runs, 3);
    cr_assert_not_null(tune_winner(&tuning), "the best known is named all the same");
}

Test(tune, runs_that_were_known_before_cost_nothing) {
    const double a[] = {1.0, 1.03, 0.97}, b[] = {1.0, 1.03, 0.97};
    add_shape(1.0, a, 3);
    add_shape(1.0, b, 3);
    bench.recalled = 2;
    bench.known[0] = (TuneRun){.shape = 0, .known = true, .step_s = 1.0};
    bench.known[1] = (TuneRun){.shape = 1, .known = true, .step_s = 2.0};
    TuneOptions options = usual;
    options.max_runs = 1;
    options.tolerance = 0.0001;
    const Tuning tuning = tuned(options, STATUS_OK);
    cr_assert_eq(tuning.stop, TUNE_MAX_RUNS);
    cr_assert_eq(tuning.known, 2);
    cr_assert_eq(tuning.runs, 1);
}

// One of five repeats of the best shape was disturbed. Whichever comes first, it decides nothing alone.
Test(tune, one_disturbed_run_of_the_best_shape_does_not_lose_it) {
    const double disturbed[] = {1.0, 2.5, 1.01, 0.99, 1.0};
    add_shape(1.0, disturbed, 5);
    for (int i = 1; i < MOST; i++) {
        const double others[] = {1.1 + 0.05 * i, 1.11 + 0.05 * i, 1.09 + 0.05 * i};
        add_shape(1.1 + 0.05 * i, others, 3);
    }
    for (uint64_t seed = 1; seed <= 20; seed++) {
        bench.replay.seed = seed;
        TuneOptions options = usual;
        options.seed = seed;
        const Tuning tuning = tuned(options, STATUS_OK);
        cr_expect_eq(tune_winner(&tuning), &tuning.shapes[0], "seed %d", (int)seed);
    }
}

static void compare_steps(const Tuning *a, const Tuning *b, int count) {
    for (int i = 0; i < count; i++) {
        const TuneStep *left = &a->steps[i], *right = &b->steps[i];
        cr_assert_eq(left->run.shape, right->run.shape, "run %d", i);
        cr_assert_eq(left->probability, right->probability, "run %d", i);
        cr_assert_eq(left->expected_s, right->expected_s, "run %d", i);
        cr_assert_eq(left->gain, right->gain, "run %d", i);
        cr_assert_eq(left->next, right->next, "run %d", i);
    }
}

static void add_three_close_shapes(void) {
    const double a[] = {1.0, 1.03, 0.97}, b[] = {1.02, 1.05, 0.99}, c[] = {1.03, 1.0, 1.06};
    add_shape(1.0, a, 3);
    add_shape(1.0, b, 3);
    add_shape(1.0, c, 3);
}

Test(tune, the_same_seed_and_runs_give_the_same_session) {
    add_three_close_shapes();
    TuneOptions options = usual;
    options.max_runs = 8;
    const Tuning first = tuned(options, STATUS_OK), again = tuned(options, STATUS_OK);
    cr_assert_eq(first.step_count, again.step_count);
    compare_steps(&first, &again, first.step_count);
}

Test(tune, a_session_resumed_after_any_run_goes_on_as_if_it_had_not_stopped) {
    add_three_close_shapes();
    TuneOptions options = usual;
    options.max_runs = 8;
    const Tuning whole = tuned(options, STATUS_OK);
    cr_assert_gt(whole.step_count, 3);
    for (int kept = 0; kept <= whole.step_count; kept++) {
        bench.recalled = kept;
        for (int i = 0; i < kept; i++) {
            bench.known[i] = whole.steps[i].run;
        }
        const Tuning resumed = tuned(options, STATUS_OK);
        cr_assert_eq(resumed.step_count, whole.step_count, "resumed after %d", kept);
        compare_steps(&resumed, &whole, whole.step_count);
        cr_assert_eq(resumed.stop, whole.stop);
    }
}

// What report shows of a session: nothing may run.
Test(tune, without_a_runner_the_session_is_told_as_far_as_it_came) {
    add_three_close_shapes();
    TuneOptions options = usual;
    options.max_runs = 8;
    const Tuning whole = tuned(options, STATUS_OK);
    TuneMeans told = means;
    told.run = NULL;
    for (int kept = 0; kept <= whole.step_count; kept++) {
        bench.recalled = kept;
        for (int i = 0; i < kept; i++) {
            bench.known[i] = whole.steps[i].run;
        }
        Tuning tuning;
        tune_begin(&result, &options, &arena, &tuning);
        cr_assert_eq(tune_run(&tuning, &told, &arena, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(tuning.step_count, kept);
        compare_steps(&tuning, &whole, kept);
        cr_assert_eq(tuning.stop, kept == whole.step_count ? whole.stop : TUNE_LEFT);
    }
}

Test(tune, an_interrupt_ends_it_after_the_run_in_progress) {
    add_three_close_shapes();
    bench.cancel_after = 2;  // the beginning and the first run are reported
    TuneOptions options = usual;
    options.tolerance = 0.0001;
    const Tuning tuning = tuned(options, STATUS_ENVIRONMENT);
    cr_assert_eq(tuning.step_count, 2);
    cr_assert_not_null(strstr(error.message, "goes on"), "%s", error.message);
}
