// The probability that the loop states is the fraction of sessions that end with the right shape. Shapes, their
// misfits, the drift of the machine and the noise of runs are drawn from the loop's prior, so that only the loop is
// tested. NDTUNE_SEED repeats a run.

#include <criterion/criterion.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdio.h>

#include "autotune/tune/tune.h"
#include "tests/support/seed.h"
#include "tests/support/sizes.h"

enum { SHAPES = 6, SESSIONS = 300 };

static const double COMMON_SD = 0.50, MISFIT_SD = 0.20;  // of prior_model.c

// One world: what each shape really takes.
typedef struct World {
    gsl_rng *generator;
    Prediction entries[SHAPES];
    TuneRequest request;
    TuneResult result;
    double true_s[SHAPES];
    DriftLaw law;         // of the machine
    double drift, now_s;  // its state, and when
} World;

// As the belief of the machine is before anything ran.
static DriftLaw draw_law(gsl_rng *generator) {
    DriftLaw law = {0};
    double left = gsl_rng_uniform(generator);
    for (int i = 0; left >= 0; i++) {
        const double share = drift_law(i, &law);
        if (share <= 0) {
            break;
        }
        left -= share;
    }
    return law;
}

static void make_world(World *world) {
    const double common = gsl_ran_gaussian(world->generator, COMMON_SD);
    for (int i = 0; i < SHAPES; i++) {
        const double predicted_s = exp(gsl_ran_gaussian(world->generator, 0.15));
        world->entries[i] = (Prediction){
            .plan = {.mesh = {SIZES(1, 2, 1, 1)}, .seq = 8, .micro_batch = 1, .grad_accum = 1}, .step_s = predicted_s};
        world->true_s[i] = predicted_s * exp(common + gsl_ran_gaussian(world->generator, MISFIT_SD));
    }
    world->now_s = 0;
    world->law = draw_law(world->generator);
    world->drift = gsl_ran_gaussian(world->generator, world->law.sd);
    world->result = (TuneResult){.request = &world->request, .entries = world->entries, .entry_count = SHAPES};
}

// An Ornstein-Uhlenbeck process, a run of which takes some of its time.
static void pass_time(World *world) {
    enum { RUN_S = 20 };
    const double kept = exp(-RUN_S / world->law.time_s);
    world->now_s += RUN_S;
    world->drift = kept * world->drift + gsl_ran_gaussian(world->generator, world->law.sd * sqrt(1 - kept * kept));
}

static Status run_shape(void *state, const Tuning *tuning, int shape, TuneRun *run, Error *error) {
    (void)tuning;
    (void)error;
    World *world = state;
    pass_time(world);
    *run = (TuneRun){.shape = shape,
                     .at_s = world->now_s,
                     .step_s = world->true_s[shape] *
                               exp(world->drift + gsl_ran_gaussian(world->generator, world->law.noise_sd))};
    return STATUS_OK;
}

static Status learn(void *state, const Tuning *tuning, TuneModel *model, BeliefShape *shapes, const char **learnt,
                    Error *error) {
    (void)state;
    (void)error;
    (void)learnt;
    tune_model_prior(tuning, model, shapes);
    return STATUS_OK;
}

static bool never(void *state) {
    (void)state;
    return false;
}

static bool is_right(const World *world, const Tuning *tuning) {
    double fastest_s = INFINITY;
    for (int i = 0; i < SHAPES; i++) {
        fastest_s = fmin(fastest_s, world->true_s[i]);
    }
    return world->true_s[tune_last(tuning)->winner] <= fastest_s * (1 + tuning->options.tolerance);
}

// Of that many sessions the share that ends right is within five standard errors of what they state, and 2 % for what
// the loop learns of its own standard deviations: by chance it is not once in a million runs of this test.
static void check_share(double probability) {
    Arena arena = {0};
    World world = {.generator = gsl_rng_alloc(gsl_rng_mt19937)};
    const uint64_t seed = seed_of_run("tune", 20261129);
    gsl_rng_set(world.generator, (unsigned long)seed);
    const TuneMeans means = {.run = run_shape, .learn = learn, .cancelled = never, .state = &world};
    double stated = 0, variance = 0;
    int right = 0, runs = 0;
    for (int i = 0; i < SESSIONS; i++) {
        make_world(&world);
        const TuneOptions options = {
            .probability = probability, .tolerance = 0.01, .max_runs = 24, .seed = seed + (uint64_t)i};
        Tuning tuning;
        Error error = {0};
        tune_begin(&world.result, &options, &arena, &tuning);
        cr_assert_eq(tune_run(&tuning, &means, &arena, &error), STATUS_OK, "%s", error.message);
        const double p = tune_last(&tuning)->probability;
        stated += p;
        variance += p * (1 - p);
        right += is_right(&world, &tuning);
        runs += tuning.runs;
        arena_reset(&arena);
    }
    gsl_rng_free(world.generator);
    arena_free(&arena);
    fprintf(stderr, "wanted %g: stated %.3f, right %.3f, %.1f runs\n", probability, stated / SESSIONS,
            (double)right / SESSIONS, (double)runs / SESSIONS);
    const double margin = 5 * sqrt(variance) + 0.02 * SESSIONS;
    cr_assert_gt(right, stated - margin, "stated %g, right %d of %d", stated, right, SESSIONS);
    cr_assert_lt(right, stated + margin, "stated %g, right %d of %d", stated, right, SESSIONS);
}

Test(tune_probability, sessions_that_ask_for_little_are_as_often_right_as_they_state) {
    check_share(0.6);
}

Test(tune_probability, sessions_that_ask_for_much_are_as_often_right_as_they_state) {
    check_share(0.9);
}
