// The loop with a calibration in it, on runs of a known machine: a profile with numbers off by known factors.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/search/rank.h"
#include "autotune/tune/calibrated_model.h"
#include "tests/support/tune_replay.h"
#include "tests/unit/autotune/calibrate/generated_runs.h"

enum { REPEATS = 4 };

typedef struct Known {
    Replay replay;  // first: replay_run takes this as a replay
    CalibratedModel model;
} Known;

static Arena arena;
static Generated generated;
static TuneRequest request;
static TuneResult result;
static ReplayShape rows[GENERATED_SHAPES];
static double true_s[GENERATED_SHAPES];
static Known known;
static Error error;

static const CalibrationCase *case_of(const TrainPlan *plan) {
    char wanted[PLAN_TEXT_BYTES], text[PLAN_TEXT_BYTES];
    plan_text(plan, wanted);
    for (int i = 0; i < GENERATED_SHAPES; i++) {
        if (strcmp(plan_text(&generated.cases[i].plan, text), wanted) == 0) {
            return &generated.cases[i];
        }
    }
    cr_assert(false, "no case has the plan %s", wanted);
    return NULL;
}

// Collectives cost three times what the profile says: shapes with many of them are not as good as they look.
static const Truth truth[] = {{"collective_overhead", 1.1}, {"gemm_rate", -0.2}};

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
    generated_begin(&generated, "ndtune", &arena);
    request = (TuneRequest){.model = generated.model,
                            .cluster = generated.base,
                            .target = generated.target,
                            .serial_lanes = generated.cases[0].serial_lanes};
    Prediction *entries = ARENA_ARRAY(&arena, Prediction, GENERATED_SHAPES);
    for (int i = 0; i < GENERATED_SHAPES; i++) {
        const TrainPlan *plan = &generated.cases[i].plan;
        const double step_s = generated_step_s(&generated, &generated.cases[i], NULL, 0);
        entries[i] =
            (Prediction){.plan = *plan, .step_s = step_s, .tokens_per_s = (double)plan_tokens_per_step(plan) / step_s};
    }
    result = (TuneResult){.request = &request, .entries = entries, .entry_count = GENERATED_SHAPES};
    rank_entries(result.entries, result.entry_count, OBJECTIVE_THROUGHPUT);
    uint64_t seed = 7;
    for (int i = 0; i < GENERATED_SHAPES; i++) {
        double *steps = ARENA_ARRAY(&arena, double, REPEATS);
        true_s[i] = generated_step_s(&generated, case_of(&result.entries[i].plan), truth, 2);
        for (int k = 0; k < REPEATS; k++) {
            steps[k] = true_s[i] * exp(0.01 * generated_normal(&seed));
        }
        rows[i] = (ReplayShape){.steps_s = steps, .count = REPEATS};
    }
    known = (Known){.replay = {rows, 1}, .model = {.set = "here"}};
}

static void end(void) {
    calibrated_model_free(&known.model);
    arena_free(&arena);
}

TestSuite(calibrated_model, .init = begin, .fini = end);

static Status learn(void *state, const Tuning *tuning, TuneModel *model, BeliefShape *shapes, const char **learnt,
                    Error *why) {
    return calibrated_model_learn(&((Known *)state)->model, tuning, model, shapes, learnt, why);
}

static bool never(void *state) {
    (void)state;
    return false;
}

static Tuning tuned(int max_runs, double probability) {
    const TuneMeans means = {.run = replay_run, .learn = learn, .cancelled = never, .state = &known};
    const TuneOptions options = {.probability = probability, .tolerance = 0.01, .max_runs = max_runs, .seed = 1};
    Tuning tuning;
    tune_begin(&result, &options, &arena, &tuning);
    cr_assert_eq(tune_run(&tuning, &means, &arena, &error), STATUS_OK, "%s", error.message);
    return tuning;
}

static double tokens_of(int shape) {
    return (double)plan_tokens_per_step(&result.entries[shape].plan);
}

static double fastest_per_token(void) {
    double fastest = INFINITY;
    for (int i = 0; i < GENERATED_SHAPES; i++) {
        fastest = fmin(fastest, true_s[i] / tokens_of(i));
    }
    return fastest;
}

Test(calibrated_model, one_run_calibrates_nothing_and_says_so) {
    tuned(1, 1);
    cr_assert_not(known.model.calibrated);
    ClusterProfile profile;
    cr_assert_eq(calibrated_model_profile(&known.model, "2026-11-20", &arena, &profile, &error), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "2 different plans"), "%s", error.message);
}

Test(calibrated_model, a_few_runs_bring_the_predictions_of_the_others_nearer) {
    const Tuning tuning = tuned(6, 1);
    cr_assert(known.model.calibrated);
    double before = 0, after = 0;
    for (int i = 0; i < tuning.shape_count; i++) {
        const TuneShape *shape = &tuning.shapes[i];
        if (shape->runs == 0) {
            before += fabs(log(shape->prediction->step_s / true_s[i]));
            after += fabs(log(shape->calibrated_s / true_s[i]));
        }
    }
    cr_assert_lt(after, 0.5 * before, "%g %g", after, before);
}

Test(calibrated_model, the_session_ends_at_the_best_shape_before_it_has_run_them_all) {
    const Tuning tuning = tuned(100, 0.95);
    const int winner = tune_last(&tuning)->winner;
    cr_assert_eq(tuning.stop, TUNE_CERTAIN);
    cr_assert_leq(true_s[winner] / tokens_of(winner), 1.01 * fastest_per_token());
    int tried = 0;
    for (int i = 0; i < tuning.shape_count; i++) {
        tried += tuning.shapes[i].runs > 0;
    }
    cr_assert_lt(tried, tuning.shape_count, "%d of %d", tried, tuning.shape_count);
}

Test(calibrated_model, the_profile_is_named_after_its_parent_and_taught_by_the_runs) {
    tuned(6, 1);
    ClusterProfile profile;
    cr_assert_eq(calibrated_model_profile(&known.model, "2026-11-20", &arena, &profile, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_not_null(strstr(profile.name, generated.base.name));
    char *text = NULL;
    cr_assert_eq(cluster_write(&profile, &text, &error), STATUS_OK, "%s", error.message);
    cr_assert_not_null(strstr(text, "6 runs"));
    free(text);
}
