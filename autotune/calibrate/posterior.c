// What a posterior says of its coordinates, as text, and the time of any plan under it.

#include <math.h>
#include <string.h>

#include "autotune/calibrate/calibrate_internal.h"

static const double MOVES = 0.01;      // d log time / d theta of a shape that can teach a parameter
static const double IDENTIFIED = 0.5;  // posterior over prior sd
static const double WEAK = 0.9;

// ---------------------------------------------------------------------------------------------- verdicts

static void count_teachers(const FitBlock *block, int coordinate, CalibrationCoordinate *at) {
    const size_t width = (size_t)block->coordinates->count;
    const char *sets[8];
    int last = -1;
    for (int i = 0; i < block->row_count; i++) {
        const FitRow *row = &block->rows[i];
        if (fabs(block->jacobian[(size_t)i * width + (size_t)coordinate]) < MOVES || row->shape == last) {
            continue;
        }
        const ShapeData *shape = &block->shapes[block->chosen[row->shape]];
        bool known = false;
        for (int s = 0; s < at->sets; s++) {
            known = known || strcmp(sets[s], shape->set) == 0;
        }
        if (!known && at->sets < (int)(sizeof sets / sizeof sets[0])) {
            sets[at->sets++] = shape->set;
        }
        at->shapes++;
        at->runs += shape->runs;
        last = row->shape;
    }
}

void judge_block(const FitBlock *block, Arena *arena, CalibrationPosterior *posterior) {
    for (int i = 0; i < block->active_count; i++) {
        CalibrationCoordinate *at = &posterior->at[block->active[i]];
        count_teachers(block, block->active[i], at);
        const double left = at->sd / at->prior_sd * sqrt(block->prior_weight[i]);  // of the prior where the fit ended
        at->verdict = at->shapes == 0 || left > WEAK ? VERDICT_UNTAUGHT
                      : left > IDENTIFIED            ? VERDICT_WEAK
                                                     : VERDICT_IDENTIFIED;
        const char *once = at->sets == 1 ? ", one run set only" : "";
        at->verdict_words = at->shapes == 0 ? "no run that may teach it moves with it: left at its prior"
                            : at->verdict == VERDICT_UNTAUGHT ? "the runs cannot tell it from the others"
                            : at->verdict == VERDICT_WEAK
                                ? arena_format(arena, "partly, by %d plans%s", at->shapes, once)
                                : arena_format(arena, "identified by %d plans%s", at->shapes, once);
    }
}

void judge_untaught(CalibrationPosterior *posterior) {
    for (int i = 0; i < posterior->count; i++) {
        if (!posterior->at[i].verdict_words) {
            posterior->at[i].verdict = VERDICT_UNTAUGHT;
            posterior->at[i].verdict_words =
                "only runs of our executor teach the machine, and there are none: left as it is";
        }
    }
}

// ---------------------------------------------------------------------------------------------- of any plan

Status calibrate_sensitivity(const CalibrationPosterior *posterior, const CalibrationCase *what, Arena *scratch,
                             CalibrationSensitivity *sensitivity, Error *error) {
    *sensitivity = (CalibrationSensitivity){0};
    Arena engine = {0};
    ShapeData shape = {.what = *what};
    double logs[OBSERVE_COUNT], theta[CALIBRATION_MAX];
    memcpy(theta, posterior->mean, sizeof theta);
    arena_reset(scratch);
    Status status = step_lower(what->model, &what->plan, what->target, scratch, &shape.program, error);
    if (status == STATUS_OK) {
        status = theta_predict_shape(posterior, &shape, theta, &engine, logs, error);
        sensitivity->log_step = logs[OBSERVE_STEP];
    }
    for (int i = 0; i < posterior->count && status == STATUS_OK; i++) {
        const CalibrationCoordinate *at = &posterior->at[i];
        if (at->target && !calibration_same_runner(at->target, what->runner)) {
            continue;
        }
        double sides[2];
        for (int side = 0; side < 2 && status == STATUS_OK; side++) {
            theta[i] = posterior->mean[i] + (side == 0 ? THETA_STEP : -THETA_STEP);
            status = theta_predict_shape(posterior, &shape, theta, &engine, logs, error);
            sides[side] = logs[OBSERVE_STEP];
        }
        theta[i] = posterior->mean[i];
        sensitivity->gradient[i] = (sides[0] - sides[1]) / (2 * THETA_STEP);
    }
    arena_free(&engine);
    return status;
}

double calibration_log_sd(const CalibrationPosterior *posterior, const CalibrationSensitivity *sensitivity) {
    double variance = posterior->misfit_sd * posterior->misfit_sd;
    const int n = posterior->count;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            variance += sensitivity->gradient[i] * posterior->covariance[i * n + j] * sensitivity->gradient[j];
        }
    }
    return sqrt(fmax(variance, 0));
}
