// The n-th run of a shape is the n-th of a permutation of its repeats (GSL's shuffle, seeded per shape and round).

#include "autotune/tune/replay.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

static int repeat_of(const Replay *replay, int shape, int number) {
    const int count = replay->shapes[shape].count;
    Arena arena = {0};
    int *order = ARENA_ARRAY(&arena, int, count);
    for (int i = 0; i < count; i++) {
        order[i] = i;
    }
    gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);
    const uint64_t round = (uint64_t)(number / count);
    gsl_rng_set(generator, (unsigned long)(replay->seed * 7919u + (uint64_t)shape * 104729u + round * 1299709u + 1u));
    gsl_ran_shuffle(generator, order, (size_t)count, sizeof *order);
    const int chosen = order[number % count];
    gsl_rng_free(generator);
    arena_free(&arena);
    return chosen;
}

Status replay_run(void *state, const Tuning *tuning, int shape, TuneRun *run, Error *error) {
    (void)error;
    const Replay *replay = state;
    const ReplayShape *rows = &replay->shapes[shape];
    *run = (TuneRun){.shape = shape, .failure = rows->count > 0 ? NULL : rows->failure};
    int before = 0;
    for (int i = 0; i < tuning->step_count; i++) {
        before += tuning->steps[i].run.shape == shape;
    }
    if (rows->count > 0) {
        run->step_s = rows->steps_s[repeat_of(replay, shape, before)];
    }
    return STATUS_OK;
}
