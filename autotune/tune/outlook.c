// Statistics over samples of a joint normal. In log seconds a factor is a difference.

#include "autotune/tune/outlook.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <string.h>

// Below the resolution of this many samples: among those runs, prefer the likeliest winner's.
static const double EQUAL_BITS = 0.02;

// This many draws cannot resolve more.
static const double MOST_CERTAIN = 1 - 1.0 / OUTLOOK_DRAWS;

// The fastest shape of a draw; -1 where all are out.
static int fastest(const Belief *belief, const double *draw) {
    int best = -1;
    for (int i = 0; i < belief->count; i++) {
        if (!belief->out[i] && (best < 0 || draw[i] < draw[best])) {
            best = i;
        }
    }
    return best;
}

static double entropy_bits(const double *share, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum -= share[i] > 0 ? share[i] * log2(share[i]) : 0;
    }
    return sum;
}

// regrets: of each shape, its time over that of the fastest, minus one, as expected.
static void count_draws(const Belief *belief, double margin, const double *draws, double *good, double *best,
                        double *regrets) {
    const int count = belief->count;
    for (int draw = 0; draw < OUTLOOK_DRAWS; draw++) {
        const double *values = &draws[(size_t)draw * (size_t)count];
        const int first = fastest(belief, values);
        if (first < 0) {
            return;
        }
        best[first] += 1.0 / OUTLOOK_DRAWS;
        for (int i = 0; i < count; i++) {
            good[i] += !belief->out[i] && values[i] <= values[first] + margin ? 1.0 / OUTLOOK_DRAWS : 0;
            regrets[i] += expm1(values[i] - values[first]) / OUTLOOK_DRAWS;
        }
    }
}

Status outlook_take(const Belief *belief, double tolerance, uint64_t seed, Arena *arena, Outlook *outlook,
                    Error *error) {
    const int count = belief->count;
    double *draws = ARENA_ARRAY(arena, double, (size_t)count *OUTLOOK_DRAWS);
    double *good = ARENA_ARRAY(arena, double, count), *best = ARENA_ARRAY(arena, double, count);
    TRY(belief_draw(belief, seed, OUTLOOK_DRAWS, draws, error));
    double *regrets = ARENA_ARRAY(arena, double, count);
    count_draws(belief, log1p(tolerance), draws, good, best, regrets);
    *outlook = (Outlook){.winner = -1, .good = good, .best = best, .draws = draws};
    for (int i = 0; i < count; i++) {
        const bool leads = !belief->out[i] && (outlook->winner < 0 || regrets[i] < regrets[outlook->winner]);
        outlook->winner = leads ? i : outlook->winner;
    }
    if (outlook->winner >= 0) {
        outlook->probability = fmin(good[outlook->winner], MOST_CERTAIN);
        outlook->regret = regrets[outlook->winner];
        outlook->entropy = entropy_bits(best, count);
    }
    return STATUS_OK;
}

// The samples of a run of each shape begun now are its time and what these say of the effect of now.
static void draw_effects(const Belief *belief, const Outlook *outlook, const double *noise, double *effects) {
    for (int draw = 0; draw < OUTLOOK_ACQUIRE_DRAWS; draw++) {
        const double *values = &outlook->draws[(size_t)draw * (size_t)belief->count];
        effects[draw] = belief->offset + belief->run_sd * noise[draw];
        for (int i = 0; i < belief->count; i++) {
            effects[draw] -= belief->lean[i] * values[i];
        }
    }
}

// A run of a candidate, as its samples have it.
typedef struct Trial {
    int shape;
    double expected, variance;
    const double *covariance;  // with all shapes
    const double *effects;     // per draw
} Trial;

// Entropy of which one is fastest, once the run has reported `surprise` more than expected.
static double entropy_after(const Belief *belief, const Outlook *outlook, const Trial *trial, double surprise,
                            double *share) {
    const int count = belief->count;
    const double measured = trial->expected + surprise * sqrt(trial->variance);
    memset(share, 0, (size_t)count * sizeof *share);
    for (int draw = 0; draw < OUTLOOK_ACQUIRE_DRAWS; draw++) {
        const double *values = &outlook->draws[(size_t)draw * (size_t)count];
        const double step = (measured - values[trial->shape] - trial->effects[draw]) / trial->variance;
        int best = -1;
        double least = INFINITY;
        for (int i = 0; i < count; i++) {
            const double value = values[i] + trial->covariance[i] * step;
            if (!belief->out[i] && value < least) {
                least = value;
                best = i;
            }
        }
        share[best] += 1.0 / OUTLOOK_ACQUIRE_DRAWS;
    }
    return entropy_bits(share, count);
}

// By the same samples as entropy_after, so that their difference is that of the run.
static double entropy_before(const Belief *belief, const Outlook *outlook, double *share) {
    memset(share, 0, (size_t)belief->count * sizeof *share);
    for (int draw = 0; draw < OUTLOOK_ACQUIRE_DRAWS; draw++) {
        share[fastest(belief, &outlook->draws[(size_t)draw * (size_t)belief->count])] += 1.0 / OUTLOOK_ACQUIRE_DRAWS;
    }
    return entropy_bits(share, belief->count);
}

static void draw_noise(uint64_t seed, double noise[OUTLOOK_ACQUIRE_DRAWS]) {
    gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);  // ends the program when out of memory, as arenas do
    gsl_rng_set(generator, (unsigned long)seed + 1);
    for (int i = 0; i < OUTLOOK_ACQUIRE_DRAWS; i++) {
        noise[i] = gsl_ran_gaussian_ziggurat(generator, 1.0);
    }
    gsl_rng_free(generator);
}

// Bits that are expected to be left of which is the fastest.
static double entropy_expected(const Belief *belief, const Outlook *outlook, const Trial *trial, double *share) {
    double left = 0;
    for (int k = 0; k < OUTLOOK_OUTCOMES; k++) {
        const double surprise = gsl_cdf_ugaussian_Pinv((k + 0.5) / OUTLOOK_OUTCOMES);
        left += entropy_after(belief, outlook, trial, surprise, share) / OUTLOOK_OUTCOMES;
    }
    return left;
}

int outlook_next(const Belief *belief, const Outlook *outlook, uint64_t seed, Arena *arena, double *gain) {
    double noise[OUTLOOK_ACQUIRE_DRAWS], effects[OUTLOOK_ACQUIRE_DRAWS], least = INFINITY;
    double *share = ARENA_ARRAY(arena, double, belief->count), *left = ARENA_ARRAY(arena, double, belief->count);
    double *covariance = ARENA_ARRAY(arena, double, belief->count);
    *gain = 0;
    if (outlook->winner < 0) {
        return -1;
    }
    draw_noise(seed, noise);
    draw_effects(belief, outlook, noise, effects);
    for (int i = 0; i < belief->count; i++) {
        if (!belief->out[i]) {
            Trial trial = {.shape = i, .covariance = covariance, .effects = effects};
            trial.expected = belief_next_run(belief, i, covariance, &trial.variance);
            left[i] = entropy_expected(belief, outlook, &trial, share);
            least = fmin(least, left[i]);
        }
    }
    int next = -1;
    for (int i = 0; i < belief->count; i++) {
        const bool tells = !belief->out[i] && left[i] <= least + EQUAL_BITS;
        next = tells && (next < 0 || outlook->best[i] > outlook->best[next]) ? i : next;
    }
    *gain = fmax(entropy_before(belief, outlook, share) - left[next], 0);
    return next;
}
