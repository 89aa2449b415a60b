// Prints, from measured sweeps alone: how far predictions are from measurements before and after calibration, compared
// with the noise of repeats; and how many runs the closed loop needs to find the best shape, compared with a random
// order and running all. Markdown, on standard output; nothing is run, the same files give the same text.
//
//   sweep_judge RUNS.csv GROUPS.csv [SEEDS [loop|honest]]     loop: without predictions; honest: the last table alone

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/calibrate/calibrate.h"
#include "autotune/validate/measurement.h"
#include "tests/accuracy/sweep/strategies.h"

enum { SEEDS = 20, MOST_SEEDS = 1000, MOST_RUNS = 40, LONG_RUNS = 60 };

static const double PROBABILITY = 0.95;

static Arena arena;

// ------------------------------------------------------------------------------------------- predicted and measured

static Agreement judge_times(const Sweep *sweep, const double *predicted_s) {
    Agreement agreement;
    measurement_agree(predicted_s, sweep->measured_s, sweep->result.entry_count, &arena, &agreement);
    return agreement;
}

// Of a shape drawn blindly.
static double blind_regret(const Sweep *sweep) {
    double sum = 0;
    for (int i = 0; i < sweep->result.entry_count; i++) {
        sum += sweep_regret(sweep, i) / sweep->result.entry_count;
    }
    return sum;
}

static CalibrationCase case_of(const Sweep *sweep, int shape) {
    return calibration_case(&sweep->request, &sweep->result.entries[shape].plan);
}

// Every repeat of the shapes that `taught` says, as samples.
static int add_samples(const Sweep *sweep, const bool *taught, CalibrationSample *samples) {
    int count = 0;
    for (int shape = 0; shape < sweep->result.entry_count; shape++) {
        for (int i = 0; (!taught || taught[shape]) && i < sweep->shapes[shape].count; i++) {
            if (!(sweep->shapes[shape].steps_s[i] > 0)) {
                continue;
            }
            samples[count++] = (CalibrationSample){.what = case_of(sweep, shape),
                                                   .id = arena_format(&arena, "%s-%d-%d", sweep->name, shape, i),
                                                   .set = "sweep",
                                                   .step_s = sweep->shapes[shape].steps_s[i]};
        }
    }
    return count;
}

static Status predict_all(const CalibrationPosterior *posterior, const Sweep *sweep, double *predicted_s,
                          Error *error) {
    Arena scratch = {0};
    Status status = STATUS_OK;
    for (int shape = 0; shape < sweep->result.entry_count && status == STATUS_OK; shape++) {
        const CalibrationCase what = case_of(sweep, shape);
        CalibrationSensitivity at;
        status = calibrate_sensitivity(posterior, &what, &scratch, &at, error);
        predicted_s[shape] = exp(at.log_step);
    }
    arena_free(&scratch);
    return status;
}

// Each shape by a calibration with the other shapes of its sweep.
static Status predict_held_out(const Sweep *sweep, double *predicted_s, Error *error) {
    const int shapes = sweep->result.entry_count;
    bool *taught = ARENA_ARRAY(&arena, bool, shapes);
    double *all_s = ARENA_ARRAY(&arena, double, shapes);
    for (int held = 0; held < shapes; held++) {
        for (int i = 0; i < shapes; i++) {
            taught[i] = i != held;
        }
        CalibrationSample *samples = ARENA_ARRAY(&arena, CalibrationSample, shapes * (sweep->repeats + 1));
        const CalibrationInput input = {&sweep->request.cluster, samples, add_samples(sweep, taught, samples),
                                        .threads = 1};
        Calibration calibration;
        TRY(calibrate_fit(&input, &arena, &calibration, error));
        TRY(predict_all(&calibration.posterior, sweep, all_s, error));
        predicted_s[held] = all_s[held];
    }
    return STATUS_OK;
}

// Another model on the same machine: what a calibration is worth for what never ran.
static Status predict_from_others(const Sweeps *sweeps, const Sweep *sweep, double *predicted_s, bool *any,
                                  Error *error) {
    CalibrationSample *samples = ARENA_ARRAY(&arena, CalibrationSample, 4096);
    int count = 0;
    for (int i = 0; i < sweeps->count; i++) {
        const Sweep *other = &sweeps->rows[i];
        const int most = other->result.entry_count * (other->repeats + 1);
        if (other != sweep && strcmp(other->request.cluster.name, sweep->request.cluster.name) == 0 &&
            count + most <= 4096) {
            count += add_samples(other, NULL, samples + count);
        }
    }
    *any = count > 0;
    if (!*any) {
        return STATUS_OK;
    }
    const CalibrationInput input = {&sweep->request.cluster, samples, count, .threads = 0};
    Calibration calibration;
    TRY(calibrate_fit(&input, &arena, &calibration, error));
    return predict_all(&calibration.posterior, sweep, predicted_s, error);
}

static double median_noise(const Sweep *sweep) {
    double *values = ARENA_ARRAY(&arena, double, sweep->result.entry_count);
    int count = 0;
    for (int i = 0; i < sweep->result.entry_count; i++) {
        if (isfinite(sweep->noise[i])) {
            values[count++] = sweep->noise[i];
        }
    }
    return count > 0 ? statistics_median(values, count) : NAN;
}

static void print_judged(const Agreement *judged) {
    printf(" %.1f %% | %.2f | %.2f |", 100 * judged->median_abs_error, judged->kendall_tau, judged->regret);
}

static Status print_predictions(const Sweeps *sweeps, Error *error) {
    printf(
        "\n## Predicted and measured\n\n"
        "Median error of the step time, Kendall's tau of the order, and regret: the measured time of the shape "
        "predicted fastest over that\nof the fastest. \"Held out\": each shape by a calibration with the other "
        "shapes of its sweep. \"Other models\": by a calibration with\nthe other models' runs on the same cluster. "
        "\"One rate\":\nthe same time for every shape, the middle "
        "of these very runs; \"blind regret\": of a shape drawn blindly. Repeat noise: standard deviation of the\nlogs "
        "of a shape's repeats, median over the shapes.\n\n"
        "| sweep | shapes | repeats | repeat noise | one rate: error | blind regret | as probed: error | tau | "
        "regret | held out: error | tau | regret | other models: error | tau | regret |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < sweeps->count; i++) {
        const Sweep *sweep = &sweeps->rows[i];
        const int shapes = sweep->result.entry_count;
        double *probed_s = ARENA_ARRAY(&arena, double, shapes), *held_s = ARENA_ARRAY(&arena, double, shapes);
        double *others_s = ARENA_ARRAY(&arena, double, shapes);
        bool any = false;
        for (int shape = 0; shape < shapes; shape++) {
            probed_s[shape] = sweep->result.entries[shape].step_s;
        }
        TRY(predict_held_out(sweep, held_s, error));
        TRY(predict_from_others(sweeps, sweep, others_s, &any, error));
        const Agreement probed = judge_times(sweep, probed_s), held = judge_times(sweep, held_s);
        const double noise = median_noise(sweep);
        printf("| %s | %d | %d | %s | %.1f %% | %.2f |", sweep->name, shapes, sweep->repeats,
               isfinite(noise) ? arena_format(&arena, "%.1f %%", 100 * noise) : "-",
               100 * probed.constant_median_abs_error, blind_regret(sweep));
        print_judged(&probed);
        print_judged(&held);
        if (any) {
            const Agreement others = judge_times(sweep, others_s);
            print_judged(&others);
        } else {
            printf(" - | - | - |");
        }
        printf("\n");
        fflush(stdout);
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------------- the closed loop

static const int after[] = {0, 1, 2, 3, 4, 6, 8, 10};
enum { AFTER = sizeof after / sizeof after[0] };

typedef struct Strategy {
    const char *name;
    int courses, good;         // at the end: within 1 % of the best
    int sure, sure_and_good;   // that state the probability which was asked for
    int sure_and_tied;         // with one that the record does not tell from the best, or good
    double runs[MOST_SEEDS];   // before it stopped
    double found[MOST_SEEDS];  // only of those that are good at the end
    double stated, regret_sum[AFTER], end_regret;
} Strategy;

static void count_course(const Sweep *sweep, const Course *course, Strategy *strategy) {
    const int found = course_found(sweep, course);
    const bool sure = course->probability >= PROBABILITY;
    strategy->sure += sure;
    strategy->sure_and_good += sure && found >= 0;
    strategy->sure_and_tied += sure && (found >= 0 || sweep_tied(sweep, course->named[course->runs], &arena));
    strategy->runs[strategy->courses++] = course->runs;
    if (found >= 0) {
        strategy->found[strategy->good++] = found;
    }
    strategy->stated += course->probability;
    strategy->end_regret += course_regret(sweep, course, MOST_STEPS);
    for (int k = 0; k < AFTER; k++) {
        strategy->regret_sum[k] += course_regret(sweep, course, after[k]);
    }
}

static void print_strategy(const Sweep *sweep, Strategy *strategy) {
    const int courses = strategy->courses;
    printf("| %s | %s | %.0f (%.0f) |", sweep->name, strategy->name, statistics_quantile(strategy->runs, courses, 0.5),
           statistics_quantile(strategy->runs, courses, 0.9));
    printf(" %.0f (%.0f) |", statistics_quantile(strategy->found, strategy->good, 0.5),
           statistics_quantile(strategy->found, strategy->good, 0.9));
    printf(" %d of %d |", strategy->good, courses);
    if (isfinite(strategy->stated)) {
        printf(" %d (%d) of %d |", strategy->sure_and_good, strategy->sure_and_tied, strategy->sure);
    } else {
        printf(" - |");
    }
    if (isfinite(strategy->stated)) {
        printf(" %.2f |", strategy->stated / courses);
    } else {
        printf(" - |");
    }
    printf(" %.3f |", strategy->end_regret / courses);
    for (int k = 0; k < AFTER; k++) {
        printf(" %.2f |", strategy->regret_sum[k] / courses);
    }
    printf("\n");
    fflush(stdout);
}

static Status judge_loop(const Sweep *sweep, int seeds, Error *error) {
    static Strategy tuned, random;
    tuned = (Strategy){.name = "tune"};
    random = (Strategy){.name = "all once, random order"};
    for (int seed = 1; seed <= seeds; seed++) {
        Course course = {0};
        const CourseOptions options = {.tolerance = 0.01, .max_runs = MOST_RUNS, .seed = (uint64_t)seed};
        TRY(course_tuned(sweep, &options, &course, error));
        count_course(sweep, &course, &tuned);
        course_random(sweep, (uint64_t)seed, &course);
        count_course(sweep, &course, &random);
    }
    print_strategy(sweep, &tuned);
    print_strategy(sweep, &random);
    return STATUS_OK;
}

static Status print_loop(const Sweeps *sweeps, int seeds, Error *error) {
    printf(
        "\n## How many runs it takes\n\n"
        "Replays: a session is in one round of the measurements until it wants a shape again, then in the next, so "
        "that "
        "what the machine did\nto the rounds it does to the sessions; the order of the rounds is drawn, %d times. "
        "`tune` "
        "ends when the winner is within 1 %% of the fastest with\nprobability 0.95, after %d runs, or when it wants "
        "more of a shape than was measured. Found: runs after which it names a shape within 1 %% of\nthe best (over "
        "all "
        "rounds, without what a round has in common) and stays with such; only of the replays that end so. Median, in "
        "brackets the\n90th percentile. Of those sure: of the replays that state 0.95 or more, how many are right, in "
        "brackets\nright or tied: within 5 %% of the best and within two standard errors of their difference round by "
        "round, so that the record does not tell\nthem apart; the others say that it is too close to call. The last "
        "columns: mean regret of what it names\nafter so many runs.\n\n"
        "| sweep | how | runs | found after | right | of those sure | stated | regret at its end |",
        seeds, MOST_RUNS);
    for (int k = 0; k < AFTER; k++) {
        printf(" %d |", after[k]);
    }
    printf("\n|---|---|---|---|---|---|---|---|");
    for (int k = 0; k < AFTER; k++) {
        printf("---|");
    }
    printf("\n");
    for (int i = 0; i < sweeps->count; i++) {
        TRY(judge_loop(&sweeps->rows[i], seeds, error));
    }
    return STATUS_OK;
}

// ------------------------------------------------------------------------------------------ is what it states honest

// Sessions of one sweep and one tolerance.
typedef struct Honesty {
    int sessions, sure, right, right_or_tied;
    double stated, runs;  // sums
    double sure_stated;   // of the sure ones
} Honesty;

static Status judge_session(const Sweep *sweep, const CourseOptions *options, Honesty *honesty, Error *error) {
    Course course = {0};
    TRY(course_tuned(sweep, options, &course, error));
    const bool sure = course.probability >= PROBABILITY;
    honesty->sessions++;
    honesty->runs += course.runs;
    honesty->stated += course.probability;
    honesty->sure += sure;
    honesty->sure_stated += sure ? course.probability : 0;
    honesty->right += sure && sweep_regret(sweep, course.named[course.runs]) <= 1 + options->tolerance;
    honesty->right_or_tied += sure && course_right(sweep, &course, options->tolerance, &arena);
    return STATUS_OK;
}

static void add_honesty(Honesty *all, const Honesty *own) {
    all->sessions += own->sessions;
    all->sure += own->sure;
    all->right += own->right;
    all->right_or_tied += own->right_or_tied;
    all->stated += own->stated;
    all->runs += own->runs;
    all->sure_stated += own->sure_stated;
}

static void print_honesty(const char *name, double tolerance, const Honesty *all) {
    printf("| %s | %.0f %% | %d | %.0f | %.2f | %d |", name, 100 * tolerance, all->sessions, all->runs / all->sessions,
           all->stated / all->sessions, all->sure);
    if (all->sure > 0) {
        printf(" %.3f | %d | %d | %.2f |\n", all->sure_stated / all->sure, all->right, all->right_or_tied,
               (double)all->right_or_tied / all->sure);
    } else {
        printf(" - | - | - | - |\n");
    }
    fflush(stdout);
}

// Sure sessions of any sweep count alike; where the winner of a sweep is within the tolerance of none, few are.
static Status print_honest(const Sweeps *sweeps, int seeds, Error *error) {
    static const double tolerances[] = {0.01, 0.03, 0.1};
    printf("\n## Is the probability that it states honest?\n\n"
           "The same sessions, of at most %d runs, asked for a shape within 1, 3 or 10 %% of the fastest: how many "
           "state 0.95 or more, what those state\nin the mean, and how many of them name such a shape (or one that the "
           "record does not tell from the fastest).\n\n"
           "| sweep | within | sessions | runs | stated | sure | these state | right | or tied | share |\n"
           "|---|---|---|---|---|---|---|---|---|---|\n",
           LONG_RUNS);
    for (size_t k = 0; k < sizeof tolerances / sizeof *tolerances; k++) {
        Honesty all = {0};
        for (int i = 0; i < sweeps->count; i++) {
            Honesty own = {0};
            for (int seed = 1; seed <= seeds; seed++) {
                const CourseOptions options = {
                    .tolerance = tolerances[k], .max_runs = LONG_RUNS, .seed = (uint64_t)seed};
                TRY(judge_session(&sweeps->rows[i], &options, &own, error));
            }
            print_honesty(sweeps->rows[i].name, tolerances[k], &own);
            add_honesty(&all, &own);
        }
        print_honesty("all", tolerances[k], &all);
    }
    return STATUS_OK;
}

int main(int argc, char **argv) {
    const char *runs = argc > 1 ? argv[1] : NDTUNE_SOURCE_DIR "/tests/accuracy/sweep/sweep.csv";
    const char *groups = argc > 2 ? argv[2] : NDTUNE_SOURCE_DIR "/tests/accuracy/sweep/groups.csv";
    const int asked = argc > 3 ? atoi(argv[3]) : SEEDS, seeds = asked < MOST_SEEDS ? asked : MOST_SEEDS;
    Error error = {0};
    Sweeps sweeps;
    Status status = sweeps_read(runs, groups, &arena, &sweeps, &error);
    const char *part = argc > 4 ? argv[4] : "all";
    const bool loop = strcmp(part, "loop") == 0, honest = strcmp(part, "honest") == 0;
    if (status == STATUS_OK && !loop && !honest) {
        status = print_predictions(&sweeps, &error);
    }
    if (status == STATUS_OK && !honest) {
        status = print_loop(&sweeps, seeds, &error);
    }
    if (status == STATUS_OK) {
        status = print_honest(&sweeps, seeds, &error);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "sweep_judge: %s\n", error.message);
    }
    arena_free(&arena);
    return status == STATUS_OK ? 0 : 1;
}
