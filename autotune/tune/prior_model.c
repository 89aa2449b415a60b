// The model where no calibration helps: predictions as they are, off by one common factor, each shape by a misfit of
// its own. Its two standard deviations are learnt from the runs, as far as there are any: scaled inverse chi-squared
// priors, each worth PRIOR_RUNS observations (Gelman et al., Bayesian Data Analysis, 3.3). Also the way in: a
// calibration needs runs of two shapes.

#include <math.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/tune/tune.h"

static const double COMMON_SD = 0.50;  // all predictions by one factor: nine of ten published runs are within 48 % of
                                       // an unfitted prediction (sim/SOURCES.md A1), a busy machine is slower
static const double MISFIT_SD = 0.20;  // shapes among each other: predicted over measured is 0.73 to 1.05 on a probed
                                       // machine (tests/accuracy/two_node/RESULTS.md); many profiles were never probed
static const double PRIOR_RUNS = 4;
static const double FAR = 4;  // standard deviations

// Log of measured over predicted, and the mean of it over the shapes that ran.
static double ratio_of(const TuneShape *shape) {
    return log(shape->measured_s / shape->prediction->step_s);
}

static double mean_ratio(const Tuning *tuning, int *measured) {
    double sum = 0;
    *measured = 0;
    for (int i = 0; i < tuning->shape_count; i++) {
        if (tuning->shapes[i].runs > 0) {
            sum += ratio_of(&tuning->shapes[i]);
            ++*measured;
        }
    }
    return *measured > 0 ? sum / *measured : 0;
}

// A shape's distance from the mean, and the standard deviation of that for the noise of its runs alone.
typedef struct Distance {
    double off, noise_sd;
} Distance;

// Root mean square of the misfits with the prior's. One that lies far from most of them counts as far and not for
// all of itself: far from the usual, or from what most of these say is usual here (their median over that of a normal).
// What noise explains is no misfit: of each, its expected square given a misfit_sd, which is then that of these, until
// it stands (expectation and maximisation: Dempster, Laird, Rubin 1977).
static double spread(const Distance *all, int count, double usual, double freedom) {
    enum { TURNS = 30 };
    const double freely = count > 0 ? freedom / count : 0;
    double squared = MISFIT_SD * MISFIT_SD;
    for (int turn = 0; turn < TURNS; turn++) {
        double squares = PRIOR_RUNS * MISFIT_SD * MISFIT_SD, worth = PRIOR_RUNS;
        for (int i = 0; i < count; i++) {
            const double near = fmin(all[i].off, FAR * usual), noise = all[i].noise_sd * all[i].noise_sd;
            const double pull = squared / (squared + noise);
            squares += pull * pull * near * near + freely * (1 - pull) * squared;
            worth += freely;
        }
        squared = squares / worth;
    }
    return sqrt(squared);
}

static double misfit_sd(const Tuning *tuning, Arena *arena) {
    Distance *all = ARENA_ARRAY(arena, Distance, tuning->shape_count + 1);
    double *off = ARENA_ARRAY(arena, double, tuning->shape_count + 1);
    int measured, count = 0;
    const double mean = mean_ratio(tuning, &measured);
    for (int i = 0; i < tuning->shape_count; i++) {
        const TuneShape *shape = &tuning->shapes[i];
        if (shape->runs > 0) {
            off[count] = fabs(ratio_of(shape) - mean);
            all[count] = (Distance){off[count], shape->measured_sd};
            count++;
        }
    }
    const double usual = fmax(MISFIT_SD, count > 2 ? statistics_median(off, count) / 0.6745 : 0);
    return spread(all, count, usual, fmax(measured - 1, 0));
}

void tune_model_prior(const Tuning *tuning, TuneModel *model, BeliefShape *shapes) {
    Arena arena = {0};
    *model = (TuneModel){.factors = 1, .misfit_sd = misfit_sd(tuning, &arena)};
    arena_free(&arena);
    int measured;
    const double mean = mean_ratio(tuning, &measured), noise = tuning->law.noise_sd;
    const double error = model->misfit_sd * model->misfit_sd + noise * noise;
    const double precision = 1 / (COMMON_SD * COMMON_SD) + measured / error;
    model->covariance[0] = 1 / precision;
    for (int i = 0; i < tuning->shape_count; i++) {
        const TuneShape *shape = &tuning->shapes[i];
        shapes[i].predicted = log(shape->prediction->step_s / tune_tokens(shape)) + measured * mean / error / precision;
        shapes[i].calibrated = shapes[i].predicted;
        shapes[i].gradient[0] = 1;
    }
}
