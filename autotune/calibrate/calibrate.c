// From samples to a posterior, in the order in which runs may inform parameters: first the machine and our executor's
// own costs from runs of our executor, then each framework's costs from its runs with the machine held. What the held
// machine's uncertainty does to a framework's costs stays in the covariance (a cut posterior: framework runs never move
// the machine, yet a framework's total is known although neither part is).

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/calibrate/calibrate_internal.h"

typedef struct Fitting {
    const CalibrationInput *input;
    Calibration *out;
    ShapeSet set;
    FitBlock blocks[CALIBRATION_TARGETS];  // per runner of the posterior
    Arena *arena;
} Fitting;

// ---------------------------------------------------------------------------------------------- coordinates

static void add_coordinate(const Fitting *fitting, const CalibrationParameter *parameter, const Target *target) {
    CalibrationPosterior *posterior = &fitting->out->posterior;
    ASSERT(posterior->count < CALIBRATION_MAX);
    CalibrationCoordinate *at = &posterior->at[posterior->count++];
    *at = (CalibrationCoordinate){.parameter = parameter, .target = target};
    at->prior_sd = calibration_prior(parameter, fitting->input->base, fitting->arena, &at->prior_source);
    at->sd = at->prior_sd;
}

static void choose_coordinates(const Fitting *fitting) {
    CalibrationPosterior *posterior = &fitting->out->posterior;
    int count = 0;
    const CalibrationParameter *rows = calibration_parameters(&count);
    for (int i = 0; i < count; i++) {
        if (!rows[i].of_target && rows[i].applies(fitting->input->base, NULL)) {
            add_coordinate(fitting, &rows[i], NULL);
        }
    }
    for (int t = 0; t < posterior->targets; t++) {
        const Target *runner = posterior->target[t];
        for (int i = 0; i < count; i++) {
            const bool meant = rows[i].of_target && !(rows[i].of_framework && target_is_executor(runner));
            if (meant && rows[i].applies(fitting->input->base, &runner->runtime)) {
                add_coordinate(fitting, &rows[i], runner);
            }
        }
    }
}

// Our executor first, the others as they come by shape.
static Status choose_runners(const Fitting *fitting, Error *error) {
    CalibrationPosterior *posterior = &fitting->out->posterior;
    for (int executor = 1; executor >= 0; executor--) {
        for (int s = 0; s < fitting->set.count; s++) {
            const Target *runner = fitting->set.rows[s].what.runner;
            bool known = target_is_executor(runner) != (executor == 1);
            for (int t = 0; t < posterior->targets; t++) {
                known = known || calibration_same_runner(posterior->target[t], runner);
            }
            if (known) {
                continue;
            }
            FAIL_IF(posterior->targets == CALIBRATION_TARGETS, error, STATUS_USAGE,
                    "the runs are of more than %d targets; calibrate one of them with --target", CALIBRATION_TARGETS);
            posterior->target[posterior->targets++] = runner;
        }
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- blocks

static void block_begin(const Fitting *fitting, int runner, FitBlock *block) {
    const CalibrationPosterior *posterior = &fitting->out->posterior;
    const Target *target = posterior->target[runner];
    int *chosen = ARENA_ARRAY(fitting->arena, int, fitting->set.count + 1);
    int *active = ARENA_ARRAY(fitting->arena, int, CALIBRATION_MAX);
    FitRow *rows = ARENA_ARRAY(fitting->arena, FitRow, fitting->set.count * OBSERVE_COUNT + 1);
    *block = (FitBlock){.coordinates = posterior,
                        .shapes = fitting->set.rows,
                        .chosen = chosen,
                        .active = active,
                        .rows = rows,
                        .theta = fitting->out->posterior.mean,
                        .threads = fitting->input->threads,
                        .progress = fitting->input->progress,
                        .arena = fitting->arena};
    for (int i = 0; i < posterior->count; i++) {
        const bool machine = !posterior->at[i].target && target_is_executor(target);
        if (machine || calibration_same_runner(posterior->at[i].target, target)) {
            active[block->active_count++] = i;
        }
    }
    for (int s = 0; s < fitting->set.count; s++) {
        const ShapeData *shape = &fitting->set.rows[s];
        if (!calibration_same_runner(shape->what.runner, target)) {
            continue;
        }
        for (int kind = 0; kind < OBSERVE_COUNT; kind++) {
            if (shape->has[kind]) {
                rows[block->row_count++] = (FitRow){.shape = block->chosen_count,
                                                    .kind = kind,
                                                    .y = shape->mean[kind],
                                                    .noise_variance = shape->variance[kind],
                                                    .weight = 1};
            }
        }
        chosen[block->chosen_count++] = s;
    }
}

// right (rows x width) becomes information^-1 right; information is destroyed.
static Status solve_columns(double *information, double *right, size_t rows, size_t width, Error *error) {
    gsl_matrix_view matrix = gsl_matrix_view_array(information, rows, rows);
    FAIL_IF(gsl_linalg_cholesky_decomp1(&matrix.matrix) != GSL_SUCCESS, error, STATUS_INTERNAL,
            "calibration: the information matrix is not positive");
    gsl_matrix_view columns = gsl_matrix_view_array(right, rows, width);
    for (size_t i = 0; i < width; i++) {
        gsl_vector_view column = gsl_matrix_column(&columns.matrix, i);
        gsl_linalg_cholesky_svx(&matrix.matrix, &column.vector);
    }
    return STATUS_OK;
}

static double *cell(CalibrationPosterior *posterior, int row, int column) {
    return &posterior->covariance[(size_t)row * (size_t)posterior->count + (size_t)column];
}

static bool is_active(const FitBlock *block, int coordinate) {
    bool found = false;
    for (int a = 0; a < block->active_count; a++) {
        found = found || block->active[a] == coordinate;
    }
    return found;
}

// What the held machine does to a framework's costs: with `slopes` = own * shared and the machine's covariance G, own
// grows by slopes * G * slopes', and with whatever else has the covariance H with the machine (the machine itself, the
// frameworks before this one) it has -slopes * H.
static void add_machine(CalibrationPosterior *posterior, const FitBlock *block, const double *slopes) {
    const int p = block->active_count, width = posterior->count;
    for (int a = 0; a < p; a++) {
        double mixed[CALIBRATION_MAX] = {0};
        for (int g = 0; g < width; g++) {
            for (int h = 0; h < width && !is_active(block, g); h++) {
                mixed[g] -= posterior->at[h].target ? 0 : slopes[a * width + h] * *cell(posterior, h, g);
            }
        }
        for (int b = 0; b < p; b++) {
            for (int g = 0; g < width; g++) {
                *cell(posterior, block->active[a], block->active[b]) -=
                    posterior->at[g].target ? 0 : mixed[g] * slopes[b * width + g];
            }
        }
        for (int g = 0; g < width; g++) {
            if (!is_active(block, g)) {
                *cell(posterior, block->active[a], g) = *cell(posterior, g, block->active[a]) = mixed[g];
            }
        }
    }
}

static Status add_covariance(Fitting *fitting, const FitBlock *block, bool executor, Error *error) {
    CalibrationPosterior *posterior = &fitting->out->posterior;
    const size_t p = (size_t)block->active_count, width = (size_t)posterior->count;
    double *information = ARENA_ARRAY(fitting->arena, double, p *p);
    double *again = ARENA_ARRAY(fitting->arena, double, p *p), *own = ARENA_ARRAY(fitting->arena, double, p *p);
    double *slopes = ARENA_ARRAY(fitting->arena, double, p *width);
    fit_information(block, information, slopes);
    memcpy(again, information, p * p * sizeof *again);
    for (size_t i = 0; i < p; i++) {
        own[i * p + i] = 1;
    }
    TRY(solve_columns(information, own, p, p, error));
    TRY(solve_columns(again, slopes, p, width, error));
    for (size_t a = 0; a < p; a++) {
        for (size_t b = 0; b < p; b++) {
            *cell(posterior, block->active[a], block->active[b]) = own[a * p + b];
        }
    }
    if (!executor) {
        add_machine(posterior, block, slopes);
    }
    return STATUS_OK;
}

static void prior_covariance(CalibrationPosterior *posterior) {
    memset(posterior->covariance, 0, sizeof posterior->covariance);
    for (int i = 0; i < posterior->count; i++) {
        *cell(posterior, i, i) = posterior->at[i].prior_sd * posterior->at[i].prior_sd;
    }
}

// ---------------------------------------------------------------------------------------------- what came of it

static void fill_shapes(Fitting *fitting) {
    Calibration *out = fitting->out;
    out->shapes = ARENA_ARRAY(fitting->arena, CalibrationShape, fitting->set.count + 1);
    out->shape_count = fitting->set.count;
    out->shape_of = fitting->set.shape_of;
    out->span_runs = fitting->set.span_runs;
    for (int s = 0; s < fitting->set.count; s++) {
        const ShapeData *shape = &fitting->set.rows[s];
        out->shapes[s] = (CalibrationShape){.what = shape->what,
                                            .set = shape->set,
                                            .runs = shape->runs,
                                            .measured_s = shape->has[OBSERVE_STEP] ? exp(shape->mean[OBSERVE_STEP]) : 0,
                                            .weight = 1};
    }
}

// Step rows of a block: predicted after the fit, and their weight.
static void fill_block(Fitting *fitting, const FitBlock *block) {
    for (int i = 0; i < block->row_count; i++) {
        const FitRow *row = &block->rows[i];
        if (row->kind != OBSERVE_STEP) {
            continue;
        }
        CalibrationShape *shape = &fitting->out->shapes[block->chosen[row->shape]];
        shape->after_s = exp(block->predicted[i]);
        shape->weight = fmin(1, row->weight);
    }
}

static Status predict_before(Fitting *fitting, Error *error) {
    Arena arena = {0};
    const ThetaWork work = {.coordinates = &fitting->out->posterior,
                            .shapes = fitting->set.rows,
                            .shape_count = fitting->set.count,
                            .threads = fitting->input->threads,
                            .progress = fitting->input->progress};
    double *logs = ARENA_ARRAY(&arena, double, (fitting->set.count + 1) * OBSERVE_COUNT);
    const double as_it_is[CALIBRATION_MAX] = {0};
    const Status status = theta_predict(&work, as_it_is, 1, logs, error);
    for (int s = 0; s < fitting->set.count && status == STATUS_OK; s++) {
        fitting->out->shapes[s].before_s = exp(logs[s * OBSERVE_COUNT + OBSERVE_STEP]);
    }
    arena_free(&arena);
    return status;
}

static void score(Fitting *fitting, bool held_out, CalibrationScore *score) {
    const Calibration *out = fitting->out;
    double *before = ARENA_ARRAY(fitting->arena, double, out->shape_count + 1);
    double *after = ARENA_ARRAY(fitting->arena, double, out->shape_count + 1);
    *score = (CalibrationScore){0};
    for (int s = 0; s < out->shape_count; s++) {
        const CalibrationShape *shape = &out->shapes[s];
        const double predicted_s = held_out ? shape->held_out_s : shape->after_s;
        if (shape->measured_s > 0 && predicted_s > 0) {
            before[score->shapes] = fabs(shape->before_s / shape->measured_s - 1);
            after[score->shapes++] = fabs(predicted_s / shape->measured_s - 1);
        }
    }
    score->before_median = statistics_quantile(before, score->shapes, 0.5);
    score->after_median = statistics_quantile(after, score->shapes, 0.5);
    score->before_p90 = statistics_quantile(before, score->shapes, 0.9);
    score->after_p90 = statistics_quantile(after, score->shapes, 0.9);
}

enum { LEAST_HELD_OUT = 3 };

static Status hold_out(Fitting *fitting, const FitBlock *block, Error *error) {
    Arena scratch = {0};
    Status status = STATUS_OK;
    for (int i = 0; i < block->chosen_count && block->chosen_count >= LEAST_HELD_OUT && status == STATUS_OK; i++) {
        const int s = block->chosen[i];
        double theta[CALIBRATION_MAX], logs[OBSERVE_COUNT];
        status = fit_without(block, i, theta, error);
        if (status == STATUS_OK) {
            status = theta_predict_shape(&fitting->out->posterior, &fitting->set.rows[s], theta, &scratch, logs, error);
        }
        if (status == STATUS_OK) {
            fitting->out->shapes[s].held_out_s = exp(logs[OBSERVE_STEP]);
        }
    }
    arena_free(&scratch);
    return status;
}

static const double WILD = 4;                // noise sd of a repeat from the others of its shape
static const double OUTLYING_WEIGHT = 0.35;  // of a shape: over 3 sd from the fit

static void name_outliers(Fitting *fitting) {
    Calibration *out = fitting->out;
    const CalibrationInput *input = fitting->input;
    out->outliers = ARENA_ARRAY(fitting->arena, CalibrationOutlier, input->count + 1);
    for (int i = 0; i < input->count; i++) {
        const CalibrationSample *sample = &input->samples[i];
        const CalibrationShape *shape = &out->shapes[out->shape_of[i]];
        if (sample->step_s <= 0) {
            continue;
        }
        if (shape->runs > 1 && fabs(fitting->set.repeat_residual[i]) > WILD) {
            out->outliers[out->outlier_count++] =
                (CalibrationOutlier){sample->id, sample->step_s / shape->measured_s, true};
        } else if (shape->weight < OUTLYING_WEIGHT && shape->after_s > 0) {
            out->outliers[out->outlier_count++] =
                (CalibrationOutlier){sample->id, sample->step_s / shape->after_s, false};
        }
    }
}

// ---------------------------------------------------------------------------------------------- in order

static Status check_enough(const Fitting *fitting, Error *error) {
    int timed = 0;
    for (int s = 0; s < fitting->set.count; s++) {
        timed += fitting->set.rows[s].has[OBSERVE_STEP];
    }
    return timed >= CALIBRATION_LEAST_SHAPES
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "%d run%s of %d plan%s with a step time: a calibration needs runs of at least %d different "
                           "plans",
                           fitting->input->count, fitting->input->count == 1 ? "" : "s", timed, timed == 1 ? "" : "s",
                           CALIBRATION_LEAST_SHAPES);
}

// Beyond this the numbers of a profile end (ON_TOP of sim/cluster/cluster_fields.c), and what is wrong is the file.
static const double MOST_OFF = 100;

static Status check_likely(const Fitting *fitting, Error *error) {
    const Calibration *out = fitting->out;
    double *logs = ARENA_ARRAY(fitting->arena, double, out->shape_count + 1);
    int count = 0;
    for (int s = 0; s < out->shape_count; s++) {
        if (out->shapes[s].measured_s > 0) {
            logs[count++] = log(out->shapes[s].measured_s / out->shapes[s].before_s);
        }
    }
    const double middle = statistics_median(logs, count);
    if (fabs(middle) < log(MOST_OFF)) {
        return STATUS_OK;
    }
    error_set(error, STATUS_USAGE,
              "the runs took %.2g times what is predicted (median): no calibration makes up for that", exp(middle));
    return error_hint(error, "are these step times in seconds, of that cluster, model and mesh?");
}

static Status fit_all(Fitting *fitting, Error *error) {
    CalibrationPosterior *posterior = &fitting->out->posterior;
    prior_covariance(posterior);
    double misfit = 0;
    for (int t = 0; t < posterior->targets; t++) {
        FitBlock *block = &fitting->blocks[t];
        block_begin(fitting, t, block);
        TRY(fit_block(block, error));
        TRY(add_covariance(fitting, block, target_is_executor(posterior->target[t]), error));
        fill_block(fitting, block);
        misfit = fmax(misfit, block->misfit_sd[OBSERVE_STEP]);
        if (fitting->input->hold_out) {
            TRY(hold_out(fitting, block, error));
        }
    }
    posterior->misfit_sd = misfit;
    posterior->noise_sd = fitting->set.noise_sd;
    for (int i = 0; i < posterior->count; i++) {
        posterior->at[i].sd = sqrt(*cell(posterior, i, i));
    }
    return STATUS_OK;
}

static Status fit(Fitting *fitting, Error *error) {
    TRY(shapes_build(fitting->input, fitting->arena, &fitting->set, error));
    TRY(check_enough(fitting, error));
    TRY(choose_runners(fitting, error));
    choose_coordinates(fitting);
    fill_shapes(fitting);
    TRY(predict_before(fitting, error));
    TRY(check_likely(fitting, error));
    TRY(fit_all(fitting, error));
    for (int t = 0; t < fitting->out->posterior.targets; t++) {
        judge_block(&fitting->blocks[t], fitting->arena, &fitting->out->posterior);
    }
    judge_untaught(&fitting->out->posterior);
    score(fitting, false, &fitting->out->fit);
    score(fitting, true, &fitting->out->held_out);
    name_outliers(fitting);
    return STATUS_OK;
}

Status calibrate_fit(const CalibrationInput *input, Arena *arena, Calibration *calibration, Error *error) {
    *calibration = (Calibration){0};
    Fitting *fitting = ARENA_NEW(arena, Fitting);
    *fitting = (Fitting){.input = input, .out = calibration, .arena = arena};
    Error own = {0};
    gsl_error_handler_t *handler = gsl_set_error_handler_off();  // what GSL refuses is seen in its return codes
    const Status status = fit(fitting, error ? error : &own);
    gsl_set_error_handler(handler);
    return status;
}
