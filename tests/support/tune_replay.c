// The order of the rounds is a permutation (GSL's shuffle, seeded), or the recorded order, starting at a seeded round.

#include "tests/support/tune_replay.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

static int rounds_of(const Replay *replay, int shapes) {
    int rounds = 0;
    for (int i = 0; i < shapes; i++) {
        rounds = replay->shapes[i].count > rounds ? replay->shapes[i].count : rounds;
    }
    return rounds;
}

static int *order_of(const Replay *replay, int rounds, Arena *arena) {
    int *order = ARENA_ARRAY(arena, int, rounds + 1);
    gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);  // ends the program when out of memory, as arenas do
    gsl_rng_set(generator, (unsigned long)(replay->seed * 7919u + 1u));
    const int first = replay->in_order ? (int)gsl_rng_uniform_int(generator, (unsigned long)rounds) : 0;
    for (int i = 0; i < rounds; i++) {
        order[i] = (first + i) % rounds;
    }
    if (!replay->in_order) {
        gsl_ran_shuffle(generator, order, (size_t)rounds, sizeof *order);
    }
    gsl_rng_free(generator);
    return order;
}

static bool is_in(const ReplayShape *shape, int round) {
    return round < shape->count && shape->steps_s[round] > 0;
}

// Place in the order of the round that the next run of a shape comes from; from the number of rounds on they come
// again.
static int next_place(const Replay *replay, const Tuning *tuning, const int *order, int rounds, int shape,
                      Arena *arena) {
    int place = 0, *taken = ARENA_ARRAY(arena, int, tuning->shape_count);  // place of a shape's last run, plus 1
    for (int i = 0; i <= tuning->step_count; i++) {
        const int wanted = i < tuning->step_count ? tuning->steps[i].run.shape : shape;
        const ReplayShape *rows = &replay->shapes[wanted];
        while (rows->count > 0 && (taken[wanted] > place || !is_in(rows, order[place % rounds]))) {
            place++;
        }
        taken[wanted] = place + 1;
    }
    return place;
}

Status replay_run(void *state, const Tuning *tuning, int shape, TuneRun *run, Error *error) {
    (void)error;
    const Replay *replay = state;
    const ReplayShape *rows = &replay->shapes[shape];
    *run = (TuneRun){.shape = shape, .failure = rows->count > 0 ? NULL : rows->failure};
    if (rows->count > 0) {
        Arena arena = {0};
        const int rounds = rounds_of(replay, tuning->shape_count);
        const int *order = order_of(replay, rounds, &arena);
        const int round = order[next_place(replay, tuning, order, rounds, shape, &arena) % rounds];
        run->step_s = rows->steps_s[round];
        run->at_s = rows->at_s ? rows->at_s[round] : 0;
        run->own_sd = rows->own_sd ? rows->own_sd[round] : 0;
        arena_free(&arena);
    }
    return STATUS_OK;
}

bool replay_is_over(const Replay *replay, const Tuning *tuning) {
    const int next = tune_last(tuning)->next, rounds = rounds_of(replay, tuning->shape_count);
    if (next < 0 || rounds == 0) {
        return false;
    }
    Arena arena = {0};
    const int *order = order_of(replay, rounds, &arena);
    const bool over = next_place(replay, tuning, order, rounds, next, &arena) >= rounds;
    arena_free(&arena);
    return over;
}
