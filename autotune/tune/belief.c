// Normal-normal conjugacy: given theta, the shapes' own runs (their covariance is R) pull times from the predictions
// towards what was measured by K = misfit^2 (misfit^2 I + R)^-1; theta's covariance is that of a fit whose errors are
// misfit and noise together, so nothing is counted twice (Gelman et al., Bayesian Data Analysis, 5.4: the hierarchical
// normal model with known variances).

#include "autotune/tune/belief.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

#include "autotune/accuracy/statistics.h"

static const double LEAST_SD = 1e-4;  // keeps the covariance positive definite where a fit says 0

// gradient_i' C gradient_j
static double shared(const TuneModel *model, const double *left, const double *right) {
    double sum = 0;
    for (int a = 0; a < model->factors; a++) {
        for (int b = 0; b < model->factors; b++) {
            sum += left[a] * model->covariance[a * model->factors + b] * right[b];
        }
    }
    return sum;
}

// The lower triangle L of matrix = L L', in its place.
static Status factorize(gsl_matrix *matrix, Error *error) {
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    const int code = gsl_linalg_cholesky_decomp1(matrix);
    gsl_set_error_handler(before);
    return code == GSL_SUCCESS
               ? STATUS_OK
               : error_set(error, STATUS_INTERNAL, "the covariance of %zu predicted times is not positive definite",
                           matrix->size1);
}

// What the runs pull each shape by: K = misfit^2 (misfit^2 I + R)^-1 over the shapes that ran, R what is left unknown
// of their measured times. Shapes x shapes; rows and columns of those that did not run are 0.
static Status pull_of(const Drift *drift, const BeliefShape *shapes, int count, double misfit, Arena *arena,
                      double *pull, Error *error) {
    int used = 0, *place = ARENA_ARRAY(arena, int, count + 1);
    for (int i = 0; i < count; i++) {
        if (shapes[i].runs > 0) {
            place[used++] = i;
        }
    }
    if (used == 0) {
        return STATUS_OK;
    }
    double *sum = ARENA_ARRAY(arena, double, used *used), log_determinant;
    for (int i = 0; i < used; i++) {
        for (int j = 0; j < used; j++) {
            sum[i * used + j] = drift->covariance[place[i] * count + place[j]] + (i == j ? misfit * misfit : 0);
        }
    }
    FAIL_IF(!statistics_invert(sum, used, &log_determinant), error, STATUS_INTERNAL,
            "the covariance of %d measured times is not positive definite", used);
    for (int i = 0; i < used; i++) {
        for (int j = 0; j < used; j++) {
            pull[place[i] * count + place[j]] = misfit * misfit * sum[i * used + j];
        }
    }
    return STATUS_OK;
}

// row i of I - K, times the gradients of all shapes: how shape i still moves with theta.
static double *moves_of(const BeliefShape *shapes, int count, int factors, const double *pull, Arena *arena) {
    double *moves = ARENA_ARRAY(arena, double, count *BELIEF_FACTORS + 1);
    for (int i = 0; i < count; i++) {
        for (int factor = 0; factor < factors; factor++) {
            double sum = shapes[i].gradient[factor];
            for (int j = 0; j < count; j++) {
                sum -= pull[i * count + j] * shapes[j].gradient[factor];
            }
            moves[i * BELIEF_FACTORS + factor] = sum;
        }
    }
    return moves;
}

static void take_next_run(const Drift *drift, const BeliefShape *shapes, int count, double noise, Belief *belief) {
    belief->lean = drift->lean;
    belief->run_sd = sqrt(drift->now_sd * drift->now_sd + noise * noise);
    belief->offset = drift->offset;
    for (int i = 0; i < count; i++) {  // the runs are of steps, the belief is of tokens
        belief->offset -= drift->lean[i] * log(shapes[i].tokens);
    }
}

Status belief_form(const TuneModel *model, const BeliefShape *shapes, int count, const Drift *drift, Arena *arena,
                   Belief *belief, Error *error) {
    const double misfit = fmax(model->misfit_sd, LEAST_SD), noise = hypot(drift->law.noise_sd, drift->own_sd);
    bool *out = ARENA_ARRAY(arena, bool, count), *ran = ARENA_ARRAY(arena, bool, count);
    double *pull = ARENA_ARRAY(arena, double, count *count + 1);
    *belief = (Belief){.count = count,
                       .mean = ARENA_ARRAY(arena, double, count),
                       .covariance = ARENA_ARRAY(arena, double, count *count),
                       .out = out,
                       .ran = ran,
                       .laws = drift->laws,
                       .weight = drift->weight,
                       .scale = drift->scale};
    TRY(pull_of(drift, shapes, count, misfit, arena, pull, error));
    take_next_run(drift, shapes, count, noise, belief);
    const double *moves = moves_of(shapes, count, model->factors, pull, arena);
    for (int i = 0; i < count; i++) {
        out[i] = shapes[i].out;
        ran[i] = shapes[i].runs > 0;
        belief->mean[i] = shapes[i].predicted;
        for (int j = 0; j < count; j++) {
            const double measured = shapes[j].runs > 0 ? drift->measured[j] - log(shapes[j].tokens) : 0;
            belief->mean[i] += pull[i * count + j] * (measured - shapes[j].predicted);
            belief->covariance[i * count + j] = shared(model, &moves[i * BELIEF_FACTORS], &moves[j * BELIEF_FACTORS]) +
                                                misfit * misfit * ((i == j ? 1 : 0) - pull[i * count + j]);
        }
    }
    return STATUS_OK;
}

double belief_next_run(const Belief *belief, int shape, double *covariance, double *variance) {
    const int count = belief->count;
    double expected = belief->mean[shape] + belief->offset, own = 0, all = 0;
    for (int i = 0; i < count; i++) {
        double with = belief->covariance[shape * count + i];
        for (int j = 0; j < count; j++) {
            with -= belief->lean[j] * belief->covariance[j * count + i];
        }
        own = i == shape ? with : own;
        all += belief->lean[i] * with;
        expected -= belief->lean[i] * belief->mean[i];
        if (covariance) {
            covariance[i] = with;
        }
    }
    *variance = own - all + belief->run_sd * belief->run_sd;
    return expected;
}

static Status factorize_belief(const Belief *belief, gsl_matrix *lower, Error *error) {
    const size_t count = (size_t)belief->count;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            gsl_matrix_set(lower, i, j, belief->covariance[i * count + j]);
        }
    }
    return factorize(lower, error);
}

// What the errors of shapes that ran are larger by, under a law drawn by its weight.
static double draw_scale(const Belief *belief, gsl_rng *generator) {
    double left = belief->laws > 1 ? gsl_rng_uniform(generator) : 0;
    for (int i = 0; i < belief->laws; i++) {
        left -= belief->weight[i];
        if (left < 0) {
            return belief->scale[i];
        }
    }
    return 1;
}

static void fill_draws(const Belief *belief, const gsl_matrix *lower, gsl_rng *generator, int draws, double *values,
                       double *normal) {
    const int count = belief->count;
    for (int draw = 0; draw < draws; draw++) {
        const double scale = draw_scale(belief, generator);
        for (int i = 0; i < count; i++) {
            normal[i] = gsl_ran_gaussian_ziggurat(generator, 1.0);
        }
        for (int i = 0; i < count; i++) {
            const double *row = gsl_matrix_const_ptr(lower, (size_t)i, 0);
            double off = 0;
            for (int j = 0; j <= i; j++) {
                off += row[j] * normal[j];
            }
            values[(size_t)draw * (size_t)count + (size_t)i] =
                belief->mean[i] + (scale != 1 && belief->ran[i] ? scale : 1) * off;
        }
    }
}

Status belief_draw(const Belief *belief, uint64_t seed, int draws, double *values, Error *error) {
    Arena arena = {0};
    gsl_matrix *lower = gsl_matrix_alloc((size_t)belief->count, (size_t)belief->count);
    gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);
    double *normal = ARENA_ARRAY(&arena, double, belief->count);
    Status status = lower && generator ? factorize_belief(belief, lower, error)
                                       : error_set(error, STATUS_ENVIRONMENT, "out of memory");
    if (status == STATUS_OK) {
        gsl_rng_set(generator, (unsigned long)seed);
        fill_draws(belief, lower, generator, draws, values, normal);
    }
    gsl_rng_free(generator);
    gsl_matrix_free(lower);
    arena_free(&arena);
    return status;
}
