// Per law: V the covariance of the runs, Z which shape a run is of, S = Z' V^-1 Z the information on the shapes,
//   estimate  S^-1 Z' V^-1 y,  covariance S^-1,
//   likelihood of what no shape explains  -(log|V| + log|S| + r' V^-1 r) / 2,  r = y - Z estimate.

#include "autotune/validate/drift.h"

#include <math.h>
#include <stdbool.h>

#include "autotune/accuracy/statistics.h"

// The grid. Each level of a standard deviation is as likely as any other before anything ran, the levels a factor
// apart: what is not known of a scale (Jeffreys 1961). What was recorded lies all over them: the same shapes in rounds,
// minutes apart, were 1 to 4 % (two nodes) and 11 to 26 % (one machine) apart from round to round, 2 to 5 % within one
// (tests/accuracy/sweep/sweep.csv, after taking shapes and rounds out), and on a machine that others load 27 % within
// one (loaded.csv next to it).
static const double SDS[] = {0.003, 0.012, 0.05, 0.2, 0.8}, TIMES_S[] = {60, 900};
static const double NOISES[] = {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64};
enum { SD_COUNT = sizeof SDS / sizeof *SDS, TIME_COUNT = sizeof TIMES_S / sizeof *TIMES_S };
enum { NOISE_COUNT = sizeof NOISES / sizeof *NOISES, LAWS = SD_COUNT * TIME_COUNT * NOISE_COUNT };

// A run that lies further from the middle of its shape's than this many times the usual deviation is down-weighted by
// its distance (Huber 1964).
static const double FAR = 2.5, LEAST_USUAL = 0.01;
enum { REWEIGHINGS = 2 };

typedef struct Runs {
    const DriftRun *runs;
    int count, shapes;
    int *of_run;  // index of its shape among those that ran
    int *used;    // those
    int used_count;
    double *apart;  // per run: how much more than the noise its own is, 1 and up
    double now_s;
} Runs;

// What one law makes of the runs; the arrays are used_count (x used_count), or count long.
typedef struct Fit {
    DriftLaw law;
    double log_likelihood;          // with what was believed before
    double *covariance, *measured;  // S^-1 and the estimate
    double *effect;                 // d as expected, per run
    double *lean;                   // of d now on the shapes that ran
    double offset, now_variance;
} Fit;

static Runs runs_of(const DriftRun *runs, int count, int shapes, double now_s, Arena *arena) {
    Runs all = {.runs = runs, .count = count, .shapes = shapes, .now_s = now_s};
    int *place = ARENA_ARRAY(arena, int, shapes + 1);
    all.of_run = ARENA_ARRAY(arena, int, count + 1);
    all.used = ARENA_ARRAY(arena, int, shapes + 1);
    all.apart = ARENA_ARRAY(arena, double, count + 1);
    for (int i = 0; i < count; i++) {
        const int shape = runs[i].shape;
        if (place[shape] == 0) {
            all.used[all.used_count++] = shape;
            place[shape] = all.used_count;
        }
        all.of_run[i] = place[shape] - 1;
        all.apart[i] = 1;
    }
    return all;
}

static double shared(const DriftLaw *law, double left_s, double right_s) {
    return law->sd * law->sd * exp(-fabs(left_s - right_s) / law->time_s);
}

static double noise_variance(const DriftLaw *law, const Runs *all, int run) {
    const double own_sd = all->runs[run].own_sd;
    return (law->noise_sd * law->noise_sd + own_sd * own_sd) * all->apart[run] * all->apart[run];
}

static Status invert(double *matrix, int size, double *log_determinant, Error *error) {
    return statistics_invert(matrix, size, log_determinant)
               ? STATUS_OK
               : error_set(error, STATUS_INTERNAL, "the covariance of %d runs is not positive definite", size);
}

static double *precision_of(const DriftLaw *law, const Runs *all, Arena *arena, double *log_determinant, Error *error) {
    const int count = all->count;
    double *matrix = ARENA_ARRAY(arena, double, count *count);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            matrix[i * count + j] = shared(law, all->runs[i].at_s, all->runs[j].at_s);
        }
        matrix[i * count + i] += noise_variance(law, all, i);
    }
    return invert(matrix, count, log_determinant, error) == STATUS_OK ? matrix : NULL;
}

static void multiply(const double *matrix, const double *vector, int size, double *product) {
    for (int i = 0; i < size; i++) {
        product[i] = 0;
        for (int j = 0; j < size; j++) {
            product[i] += matrix[i * size + j] * vector[j];
        }
    }
}

static double inner(const double *left, const double *right, int size) {
    double sum = 0;
    for (int i = 0; i < size; i++) {
        sum += left[i] * right[i];
    }
    return sum;
}

static void sum_by_shape(const Runs *all, const double *per_run, double *per_shape) {
    for (int i = 0; i < all->count; i++) {
        per_shape[all->of_run[i]] += per_run[i];
    }
}

// S and Z' V^-1 y.
static void inform(const Runs *all, const double *precision, double *information, double *pull) {
    for (int i = 0; i < all->count; i++) {
        for (int j = 0; j < all->count; j++) {
            const double share = precision[i * all->count + j];
            information[all->of_run[i] * all->used_count + all->of_run[j]] += share;
            pull[all->of_run[i]] += share * all->runs[j].log_s;
        }
    }
}

// The effect of the time of a run begun now, given the times of the shapes.
static void foresee(const Runs *all, const double *precision, Arena *arena, Fit *fit) {
    double *with_now = ARENA_ARRAY(arena, double, all->count), *weight = ARENA_ARRAY(arena, double, all->count);
    for (int i = 0; i < all->count; i++) {
        with_now[i] = shared(&fit->law, all->runs[i].at_s, all->now_s);
    }
    multiply(precision, with_now, all->count, weight);
    fit->lean = ARENA_ARRAY(arena, double, all->used_count);
    sum_by_shape(all, weight, fit->lean);
    for (int i = 0; i < all->count; i++) {
        fit->offset += weight[i] * all->runs[i].log_s;
    }
    fit->now_variance = fmax(fit->law.sd * fit->law.sd - inner(weight, with_now, all->count), 0);
}

static Status fit_under(const DriftLaw *law, const Runs *all, Arena *arena, Fit *fit, Error *error) {
    const int count = all->count, used = all->used_count;
    double log_runs, log_shapes;
    *fit = (Fit){.law = *law, .now_variance = law->sd * law->sd};
    if (count == 0) {
        return STATUS_OK;
    }
    const double *precision = precision_of(law, all, arena, &log_runs, error);
    if (!precision) {
        return STATUS_INTERNAL;
    }
    double *pull = ARENA_ARRAY(arena, double, used);
    fit->covariance = ARENA_ARRAY(arena, double, used *used);
    fit->measured = ARENA_ARRAY(arena, double, used);
    inform(all, precision, fit->covariance, pull);
    TRY(invert(fit->covariance, used, &log_shapes, error));
    multiply(fit->covariance, pull, used, fit->measured);
    double *residual = ARENA_ARRAY(arena, double, count), *pulled = ARENA_ARRAY(arena, double, count);
    for (int i = 0; i < count; i++) {
        residual[i] = all->runs[i].log_s - fit->measured[all->of_run[i]];
    }
    multiply(precision, residual, count, pulled);
    fit->log_likelihood = -(log_runs + log_shapes + inner(residual, pulled, count)) / 2;
    fit->effect = ARENA_ARRAY(arena, double, count);
    for (int i = 0; i < count; i++) {
        fit->effect[i] = residual[i] - noise_variance(law, all, i) * pulled[i];
    }
    foresee(all, precision, arena, fit);
    return STATUS_OK;
}

// ------------------------------------------------------------------------------------------------ averages of laws

static void add_fit(const Runs *all, const Fit *fit, double weight, Drift *drift, double *measured) {
    for (int i = 0; i < all->used_count; i++) {
        measured[all->used[i]] += weight * fit->measured[i];
        ((double *)drift->lean)[all->used[i]] += weight * fit->lean[i];
    }
    for (int i = 0; i < all->count; i++) {
        ((double *)drift->effect)[i] += weight * fit->effect[i];
    }
    drift->offset += weight * fit->offset;
    drift->now_sd += weight * fit->now_variance;  // the variance, until all are in
    drift->law.sd += weight * fit->law.sd * fit->law.sd;
    drift->law.time_s += weight * log(fit->law.time_s);
    drift->law.noise_sd += weight * fit->law.noise_sd * fit->law.noise_sd;
}

// Covariances within the laws and between them.
static void add_covariance(const Runs *all, const Fit *fit, double weight, const double *measured, double *covariance) {
    for (int i = 0; i < all->used_count; i++) {
        const double off = fit->measured[i] - measured[all->used[i]];
        for (int j = 0; j < all->used_count; j++) {
            covariance[all->used[i] * all->shapes + all->used[j]] +=
                weight * (fit->covariance[i * all->used_count + j] + off * (fit->measured[j] - measured[all->used[j]]));
        }
    }
}

// The variance of the shapes that ran against their mean, summed.
static double contrast_variance(const Fit *fit, int used) {
    double own = 0, all = 0;
    for (int i = 0; i < used; i++) {
        own += fit->covariance[i * used + i];
        for (int j = 0; j < used; j++) {
            all += fit->covariance[i * used + j];
        }
    }
    return used > 1 ? fmax(own - all / used, 0) : 1;
}

static void note_scales(const Runs *all, const Fit *fits, const double *weights, int count, Arena *arena,
                        Drift *drift) {
    double *weight = ARENA_ARRAY(arena, double, count), *scale = ARENA_ARRAY(arena, double, count), mean = 0;
    for (int i = 0; i < count; i++) {
        weight[i] = weights[i];
        scale[i] = contrast_variance(&fits[i], all->used_count);
        mean += weights[i] * scale[i];
    }
    for (int i = 0; i < count; i++) {
        scale[i] = mean > 0 ? sqrt(scale[i] / mean) : 1;
    }
    drift->laws = count;
    drift->weight = weight;
    drift->scale = scale;
}

static void combine(const Runs *all, const Fit *fits, const double *weights, int count, Arena *arena, Drift *drift) {
    double *measured = ARENA_ARRAY(arena, double, all->shapes + 1);
    double *covariance = ARENA_ARRAY(arena, double, all->shapes * all->shapes + 1);
    *drift = (Drift){.shapes = all->shapes,
                     .measured = measured,
                     .covariance = covariance,
                     .effect = ARENA_ARRAY(arena, double, all->count + 1),
                     .lean = ARENA_ARRAY(arena, double, all->shapes + 1)};
    for (int i = 0; i < count; i++) {
        add_fit(all, &fits[i], weights[i], drift, measured);
    }
    for (int i = 0; i < all->count; i++) {
        drift->own_sd += all->runs[i].own_sd * all->runs[i].own_sd / all->count;
    }
    drift->own_sd = sqrt(drift->own_sd);
    note_scales(all, fits, weights, count, arena, drift);
    for (int i = 0; i < count; i++) {
        add_covariance(all, &fits[i], weights[i], measured, covariance);
    }
    drift->now_sd = sqrt(drift->now_sd);
    drift->law.sd = sqrt(drift->law.sd);
    drift->law.noise_sd = sqrt(drift->law.noise_sd);
    drift->law.time_s = exp(drift->law.time_s);
}

double drift_law(int index, DriftLaw *law) {
    if (index >= LAWS) {
        return 0;
    }
    *law = (DriftLaw){.sd = SDS[index % SD_COUNT],
                      .time_s = TIMES_S[index / SD_COUNT % TIME_COUNT],
                      .noise_sd = NOISES[index / SD_COUNT / TIME_COUNT]};
    return 1.0 / LAWS;
}

static int likeliest(const Fit *fits) {
    int best = 0;
    for (int i = 1; i < LAWS; i++) {
        best = fits[i].log_likelihood > fits[best].log_likelihood ? i : best;
    }
    return best;
}

static void weigh(const Fit *fits, double *weights) {
    const double most = fits[likeliest(fits)].log_likelihood;
    double sum = 0;
    for (int i = 0; i < LAWS; i++) {
        weights[i] = exp(fits[i].log_likelihood - most);
        sum += weights[i];
    }
    for (int i = 0; i < LAWS; i++) {
        weights[i] /= sum;
    }
}

static Status fit_all(const Runs *all, Arena *arena, Fit fits[LAWS], Error *error) {
    for (int i = 0; i < LAWS; i++) {
        DriftLaw law;
        const double before = drift_law(i, &law);
        TRY(fit_under(&law, all, arena, &fits[i], error));
        fits[i].log_likelihood += log(before);
    }
    return STATUS_OK;
}

// How far each run is from the middle of its shape's, without the effects of their times.
static void distances(const Runs *all, const Fit *fit, Arena *arena, double *off) {
    double *logs = ARENA_ARRAY(arena, double, all->count);
    for (int shape = 0; shape < all->used_count; shape++) {
        int count = 0;
        for (int i = 0; i < all->count; i++) {
            if (all->of_run[i] == shape) {
                logs[count++] = all->runs[i].log_s - fit->effect[i];
            }
        }
        const double middle = statistics_median(logs, count);
        for (int i = 0; i < all->count; i++) {
            if (all->of_run[i] == shape) {
                off[i] = fabs(all->runs[i].log_s - fit->effect[i] - middle);
            }
        }
    }
}

// The middle distance over that of a normal, of shapes that ran more than twice: of one and of two it is no news.
static double usual_distance(const Runs *all, const double *off, Arena *arena) {
    double *some = ARENA_ARRAY(arena, double, all->count);
    int count = 0, *runs_of = ARENA_ARRAY(arena, int, all->used_count);
    for (int i = 0; i < all->count; i++) {
        runs_of[all->of_run[i]]++;
    }
    for (int i = 0; i < all->count; i++) {
        if (runs_of[all->of_run[i]] > 2) {
            some[count++] = off[i];
        }
    }
    return count > 0 ? fmax(statistics_median(some, count) / 0.6745, LEAST_USUAL) : INFINITY;
}

// True where a run's noise changed.
static bool reweigh(const Runs *all, const Fit *fit, Arena *arena) {
    double *off = ARENA_ARRAY(arena, double, all->count + 1);
    distances(all, fit, arena, off);
    const double usual = usual_distance(all, off, arena);
    bool changed = false;
    for (int i = 0; i < all->count; i++) {
        const double apart = fmax(1, off[i] / (FAR * usual));
        changed = changed || apart > 1 || all->apart[i] > 1;
        all->apart[i] = apart;
    }
    return changed;
}

Status drift_learn(const DriftRun *runs, int count, int shapes, double now_s, Arena *arena, Drift *drift,
                   Error *error) {
    const Runs all = runs_of(runs, count, shapes, now_s, arena);
    Fit fits[LAWS] = {0};
    double weights[LAWS];
    Arena scratch = {0};
    Status status = fit_all(&all, &scratch, fits, error);
    for (int i = 0; i < REWEIGHINGS && status == STATUS_OK && reweigh(&all, &fits[likeliest(fits)], arena); i++) {
        arena_reset(&scratch);
        status = fit_all(&all, &scratch, fits, error);
    }
    if (status == STATUS_OK) {
        weigh(fits, weights);
        combine(&all, fits, weights, LAWS, arena, drift);
    }
    arena_free(&scratch);
    return status;
}

Status drift_under(const DriftLaw *law, const DriftRun *runs, int count, int shapes, double now_s, Arena *arena,
                   Drift *drift, Error *error) {
    const Runs all = runs_of(runs, count, shapes, now_s, arena);
    Fit fit;
    const double whole = 1;
    TRY(fit_under(law, &all, arena, &fit, error));
    combine(&all, &fit, &whole, 1, arena, drift);
    return STATUS_OK;
}
