// Every strategy sees the same repeats of a shape in the same order (tune_replay.h), so that luck is shared.

#include "tests/accuracy/sweep/strategies.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

#include "autotune/tune/tune.h"

static const double GOOD = 1.01;  // by default of the loop

typedef struct Replayed {
    Replay replay;  // first: replay_run takes this as a replay
    const Tuning *tuning;
    Course *course;
} Replayed;

static Status learn(void *state, const Tuning *tuning, TuneModel *model, BeliefShape *shapes, const char **learnt,
                    Error *error) {
    (void)state;
    (void)learnt;
    (void)error;
    tune_model_prior(tuning, model, shapes);
    return STATUS_OK;
}

static void note(void *state, const Tuning *tuning, const TuneStep *step) {
    Replayed *own = state;
    own->course->named[tuning->step_count] = step->winner;
}

// A session that wants more than was measured ends: to hear the same run again would be no news.
static bool is_over(void *state) {
    const Replayed *own = state;
    return replay_is_over(&own->replay, own->tuning);
}

Status course_tuned(const Sweep *sweep, const CourseOptions *asked, Course *course, Error *error) {
    Arena arena = {0};
    Replayed own = {.replay = {sweep->shapes, asked->seed, sweep->in_order}, .course = course};
    const TuneMeans means = {.run = replay_run, .learn = learn, .report = note, .cancelled = is_over, .state = &own};
    const TuneOptions options = {
        .probability = 0.95, .tolerance = asked->tolerance, .max_runs = asked->max_runs, .seed = asked->seed};
    Tuning tuning;
    own.tuning = &tuning;
    tune_begin(&sweep->result, &options, &arena, &tuning);
    Status status = tune_run(&tuning, &means, &arena, error);
    status = replay_is_over(&own.replay, &tuning) ? STATUS_OK : status;
    course->runs = tuning.step_count;
    course->probability = tuning.step_count > 0 ? tuning.steps[tuning.step_count - 1].probability : NAN;
    arena_free(&arena);
    return status;
}

void course_random(const Sweep *sweep, uint64_t seed, Course *course) {
    const int count = sweep->result.entry_count;
    int order[MOST_STEPS];
    for (int i = 0; i < count; i++) {
        order[i] = i;
    }
    gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(generator, (unsigned long)seed + 17);
    gsl_ran_shuffle(generator, order, (size_t)count, sizeof *order);
    gsl_rng_free(generator);
    const Replay replay = {sweep->shapes, seed, sweep->in_order};
    const Tuning nothing_ran = {.shape_count = count};
    double fastest_s = INFINITY;
    *course = (Course){.runs = count, .probability = NAN};
    for (int i = 0; i < count; i++) {
        TuneRun run;
        replay_run((void *)&replay, &nothing_ran, order[i], &run, NULL);
        const bool faster = !run.failure && run.step_s < fastest_s;
        course->named[i + 1] = faster ? order[i] : course->named[i];
        fastest_s = faster ? run.step_s : fastest_s;
    }
}

bool course_right(const Sweep *sweep, const Course *course, double tolerance, Arena *arena) {
    const int named = course->named[course->runs];
    return sweep_regret(sweep, named) <= 1 + tolerance || sweep_tied(sweep, named, arena);
}

int course_found(const Sweep *sweep, const Course *course) {
    int since = -1;
    for (int k = 0; k <= course->runs; k++) {
        const bool good = sweep_regret(sweep, course->named[k]) <= GOOD;
        since = !good ? -1 : since < 0 ? k : since;
    }
    return since;
}

double course_regret(const Sweep *sweep, const Course *course, int runs) {
    return sweep_regret(sweep, course->named[runs < course->runs ? runs : course->runs]);
}
