// Nonlinear least squares in log space: (log measured - log predicted) / sd and theta / prior sd, by GSL's trust region
// (Levenberg-Marquardt), Jacobian by central differences of predictions. Around it three things are updated
// alternately: robust weights per shape, the misfit sd of each kind of observation (what no theta explains: a shape's
// own, so that repeats of one shape are no independent evidence; method of moments with a weak prior), and theta. Not
// modelled: misfits of neighbouring shapes that resemble each other; that a step's misfit is the sum of its spans'
// (they count as if each erred for itself).

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

#include "autotune/calibrate/calibrate_internal.h"
#include "autotune/calibrate/robust.h"

enum { ROUNDS = 6, SOLVER_STEPS = 4, LINEAR_ROUNDS = 4 };
static const double SETTLED = 1e-3;  // of theta between rounds: a thousandth of a number
static const double LEAST_MISFIT = 0.005;

// Before there is data: held-out errors of calibrated prototypes are about 5 % (sim/SOURCES.md A1); spans of one kind
// hold several kernels and differ by more. Worth two shapes.
static const double USUAL_MISFIT = 0.05, USUAL_SPAN_MISFIT = 0.15, MISFIT_WORTH = 2;

static double usual_misfit(int kind) {
    return kind >= OBSERVE_SPANS && kind < OBSERVE_RESERVED ? USUAL_SPAN_MISFIT : USUAL_MISFIT;
}

typedef struct Problem {
    FitBlock *block;
    Status status;
    Error *error;
} Problem;

static ThetaWork work_of(const FitBlock *block) {
    return (ThetaWork){.coordinates = block->coordinates,
                       .shapes = block->shapes,
                       .chosen = block->chosen,
                       .shape_count = block->chosen_count,
                       .threads = block->threads,
                       .progress = block->progress};
}

static double row_sd(const FitBlock *block, const FitRow *row) {
    return sqrt(row->noise_variance + block->misfit_sd[row->kind] * block->misfit_sd[row->kind]);
}

// A grade's width is a scale with heavy tails: a profile can be wrong by a factor, and runs that agree may say so.
static double prior_sd(const FitBlock *block, int active) {
    return block->coordinates->at[block->active[active]].prior_sd / sqrt(block->prior_weight[active]);
}

static void settle_priors(FitBlock *block) {
    for (int i = 0; i < block->active_count; i++) {
        const double z = block->theta[block->active[i]] / block->coordinates->at[block->active[i]].prior_sd;
        block->prior_weight[i] = fmin(1, robust_weight(z));  // never narrower than said
    }
}

// Predictions of every row at several thetas, row_count numbers each.
static Status predict_rows(const FitBlock *block, const double *thetas, int count, double *out, Error *error) {
    const ThetaWork work = work_of(block);
    Arena arena = {0};
    const size_t per_theta = (size_t)block->chosen_count * OBSERVE_COUNT;
    double *all = ARENA_ARRAY(&arena, double, (size_t)count *per_theta);
    const Status status = theta_predict(&work, thetas, count, all, error);
    for (int t = 0; t < count && status == STATUS_OK; t++) {
        for (int i = 0; i < block->row_count; i++) {
            const FitRow *row = &block->rows[i];
            out[(size_t)t * (size_t)block->row_count + (size_t)i] =
                all[(size_t)t * per_theta + (size_t)row->shape * OBSERVE_COUNT + (size_t)row->kind];
        }
    }
    arena_free(&arena);
    return status;
}

// d log predicted / d theta of every row for some coordinates: out[row * width + place].
static Status differences(const FitBlock *block, const double *theta, const int *coordinates, int count, double *out,
                          Error *error) {
    Arena arena = {0};
    double *thetas = ARENA_ARRAY(&arena, double, (size_t)(2 * count) * CALIBRATION_MAX);
    double *logs = ARENA_ARRAY(&arena, double, (size_t)(2 * count) * (size_t)(block->row_count + 1));
    for (int i = 0; i < 2 * count; i++) {
        double *at = thetas + (size_t)i * CALIBRATION_MAX;
        memcpy(at, theta, CALIBRATION_MAX * sizeof *at);
        at[coordinates[i / 2]] += i % 2 == 0 ? THETA_STEP : -THETA_STEP;
    }
    const Status status = predict_rows(block, thetas, 2 * count, logs, error);
    const size_t rows = (size_t)block->row_count;
    for (size_t row = 0; row < rows && status == STATUS_OK; row++) {
        for (int i = 0; i < count; i++) {
            const double up = logs[(size_t)(2 * i) * rows + row], down = logs[(size_t)(2 * i + 1) * rows + row];
            out[row * (size_t)count + (size_t)i] = (up - down) / (2 * THETA_STEP);
        }
    }
    arena_free(&arena);
    return status;
}

static void full_theta(const FitBlock *block, const gsl_vector *x, double *theta) {
    memcpy(theta, block->theta, CALIBRATION_MAX * sizeof *theta);
    for (int i = 0; i < block->active_count; i++) {
        theta[block->active[i]] = gsl_vector_get(x, (size_t)i);
    }
}

static int residuals(const gsl_vector *x, void *opaque, gsl_vector *f) {
    Problem *problem = opaque;
    const FitBlock *block = problem->block;
    double theta[CALIBRATION_MAX];
    full_theta(block, x, theta);
    problem->status = predict_rows(block, theta, 1, block->predicted, problem->error);
    if (problem->status != STATUS_OK) {
        return GSL_EFAILED;
    }
    for (int i = 0; i < block->row_count; i++) {
        const FitRow *row = &block->rows[i];
        gsl_vector_set(f, (size_t)i, sqrt(row->weight) * (block->predicted[i] - row->y) / row_sd(block, row));
    }
    for (int i = 0; i < block->active_count; i++) {
        gsl_vector_set(f, (size_t)(block->row_count + i), gsl_vector_get(x, (size_t)i) / prior_sd(block, i));
    }
    return GSL_SUCCESS;
}

static int slopes(const gsl_vector *x, void *opaque, gsl_matrix *jacobian) {
    Problem *problem = opaque;
    const FitBlock *block = problem->block;
    double theta[CALIBRATION_MAX];
    full_theta(block, x, theta);
    const int p = block->active_count;
    problem->status = differences(block, theta, block->active, p, block->jacobian, problem->error);
    if (problem->status != STATUS_OK) {
        return GSL_EFAILED;
    }
    gsl_matrix_set_zero(jacobian);
    for (int i = 0; i < block->row_count; i++) {
        const FitRow *row = &block->rows[i];
        for (int k = 0; k < p; k++) {
            gsl_matrix_set(jacobian, (size_t)i, (size_t)k,
                           sqrt(row->weight) * block->jacobian[(size_t)i * (size_t)p + (size_t)k] / row_sd(block, row));
        }
    }
    for (int k = 0; k < p; k++) {
        gsl_matrix_set(jacobian, (size_t)(block->row_count + k), (size_t)k, 1 / prior_sd(block, k));
    }
    return GSL_SUCCESS;
}

static Status solve(FitBlock *block, Error *error) {
    const size_t p = (size_t)block->active_count, n = (size_t)block->row_count + p;
    Problem problem = {.block = block, .error = error};
    gsl_multifit_nlinear_fdf fdf = {.f = residuals, .df = slopes, .n = n, .p = p, .params = &problem};
    const gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *workspace =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, n, p);
    gsl_vector *x = gsl_vector_alloc(p);
    if (!workspace || !x) {
        gsl_multifit_nlinear_free(workspace);
        gsl_vector_free(x);
        return error_set(error, STATUS_INTERNAL, "calibration: out of memory");
    }
    for (size_t i = 0; i < p; i++) {
        gsl_vector_set(x, i, block->theta[block->active[i]]);
    }
    int info = 0;
    gsl_multifit_nlinear_init(x, &fdf, workspace);
    if (problem.status == STATUS_OK) {  // no progress: at a kink of the cost model, where it is
        gsl_multifit_nlinear_driver(SOLVER_STEPS, SETTLED, SETTLED, 0, NULL, NULL, &info, workspace);
    }
    if (problem.status == STATUS_OK) {
        full_theta(block, gsl_multifit_nlinear_position(workspace), block->theta);
    }
    gsl_multifit_nlinear_free(workspace);
    gsl_vector_free(x);
    return problem.status;
}

// ---------------------------------------------------------------------------------------------- linear algebra

// Information of the rows (one shape left out, -1 = none) times factor, and of the priors. `others`: the part that the
// active coordinates share with all of them; NULL = not wanted.
static void information(const FitBlock *block, int without, double factor, double *matrix, double *others) {
    const size_t p = (size_t)block->active_count, width = (size_t)block->coordinates->count;
    memset(matrix, 0, p * p * sizeof *matrix);
    if (others) {
        memset(others, 0, p * width * sizeof *others);
    }
    for (int i = 0; i < block->row_count; i++) {
        const FitRow *row = &block->rows[i];
        const double *slope = block->jacobian + (size_t)i * width;
        const double weight = row->shape == without ? 0 : factor * row->weight / pow(row_sd(block, row), 2);
        for (size_t a = 0; a < p; a++) {
            const double left = weight * slope[block->active[a]];
            for (size_t b = 0; b < p; b++) {
                matrix[a * p + b] += left * slope[block->active[b]];
            }
            for (size_t b = 0; others && b < width; b++) {
                others[a * width + b] += left * slope[b];
            }
        }
    }
    for (size_t a = 0; a < p; a++) {
        matrix[a * p + a] += 1 / pow(prior_sd(block, (int)a), 2);
    }
}

void fit_information(const FitBlock *block, double *matrix, double *others) {
    information(block, -1, ROBUST_INFORMATION, matrix, others);
}

// Shares of the observations of each kind that the parameters took up, the trace of the hat matrix; and of their noise.
static void degrees(const FitBlock *block, double taken[OBSERVE_COUNT], double noise[OBSERVE_COUNT]) {
    const size_t p = (size_t)block->active_count, width = (size_t)block->coordinates->count;
    Arena arena = {0};
    double *matrix = ARENA_ARRAY(&arena, double, p *p), *slope = ARENA_ARRAY(&arena, double, p);
    memset(taken, 0, OBSERVE_COUNT * sizeof *taken);
    memset(noise, 0, OBSERVE_COUNT * sizeof *noise);
    information(block, -1, 1, matrix, NULL);
    gsl_matrix_view view = gsl_matrix_view_array(matrix, p, p);
    if (gsl_linalg_cholesky_decomp1(&view.matrix) == GSL_SUCCESS) {
        for (int i = 0; i < block->row_count; i++) {
            const FitRow *row = &block->rows[i];
            for (size_t k = 0; k < p; k++) {
                slope[k] = block->jacobian[(size_t)i * width + (size_t)block->active[k]];
            }
            gsl_vector_view right = gsl_vector_view_array(slope, p);
            gsl_blas_dtrsv(CblasLower, CblasNoTrans, CblasNonUnit, &view.matrix, &right.vector);
            double square = 0;
            for (size_t k = 0; k < p; k++) {
                square += slope[k] * slope[k];
            }
            const double share = row->weight * square / pow(row_sd(block, row), 2);
            taken[row->kind] += share;
            noise[row->kind] += share * row->noise_variance;
        }
    }
    arena_free(&arena);
}

// Weights from residuals, then the misfit of each kind from weights; returns how far the misfits moved.
static double settle_misfit(FitBlock *block) {
    double taken[OBSERVE_COUNT], squares[OBSERVE_COUNT], worth[OBSERVE_COUNT], noise[OBSERVE_COUNT], moved = 0;
    degrees(block, taken, noise);
    for (int kind = 0; kind < OBSERVE_COUNT; kind++) {
        noise[kind] = -noise[kind];  // what the parameters took is in no residual
        squares[kind] = MISFIT_WORTH * pow(usual_misfit(kind), 2);
        worth[kind] = MISFIT_WORTH;
    }
    for (int i = 0; i < block->row_count; i++) {
        FitRow *row = &block->rows[i];
        const double residual = row->y - block->predicted[i];
        row->weight = robust_weight(residual / row_sd(block, row));
        squares[row->kind] += row->weight * residual * residual / ROBUST_CONSISTENCY;
        noise[row->kind] += row->weight * row->noise_variance;
        worth[row->kind] += row->weight;
    }
    for (int kind = 0; kind < OBSERVE_COUNT; kind++) {
        const double left = fmax(worth[kind] - taken[kind], MISFIT_WORTH);
        const double misfit = sqrt(fmax(squares[kind] - fmax(noise[kind], 0), 0) / left);
        moved = fmax(moved, fabs(misfit - block->misfit_sd[kind]));
        block->misfit_sd[kind] = fmax(misfit, LEAST_MISFIT);
    }
    return moved;
}

// Slopes of the coordinates that move, or of all of them, in the columns that the linear algebra reads.
static Status take_slopes(FitBlock *block, bool all, Error *error) {
    const int width = block->coordinates->count;
    int chosen[CALIBRATION_MAX], count = 0;
    for (int i = 0; i < width; i++) {
        bool moves = all;
        for (int k = 0; k < block->active_count && !moves; k++) {
            moves = block->active[k] == i;
        }
        if (moves) {
            chosen[count++] = i;
        }
    }
    Arena arena = {0};
    double *slopes_of = ARENA_ARRAY(&arena, double, (size_t)(block->row_count + 1) * CALIBRATION_MAX);
    const Status status = differences(block, block->theta, chosen, count, slopes_of, error);
    memset(block->jacobian, 0, (size_t)block->row_count * (size_t)width * sizeof *block->jacobian);
    for (int i = 0; i < block->row_count && status == STATUS_OK; i++) {
        for (int k = 0; k < count; k++) {
            block->jacobian[i * width + chosen[k]] = slopes_of[i * count + k];
        }
    }
    arena_free(&arena);
    return status;
}

static void begin(FitBlock *block) {
    for (int kind = 0; kind < OBSERVE_COUNT; kind++) {
        block->misfit_sd[kind] = usual_misfit(kind);
    }
    for (int i = 0; i < block->active_count; i++) {
        block->prior_weight[i] = 1;
    }
    block->predicted = ARENA_ARRAY(block->arena, double, block->row_count + 1);
    block->jacobian = ARENA_ARRAY(block->arena, double, (size_t)(block->row_count + 1) * CALIBRATION_MAX);
}

Status fit_block(FitBlock *block, Error *error) {
    double moved = 1;
    begin(block);
    for (int round = 0; round < ROUNDS && moved > SETTLED; round++) {
        double before[CALIBRATION_MAX];
        memcpy(before, block->theta, sizeof before);
        TRY(solve(block, error));
        TRY(predict_rows(block, block->theta, 1, block->predicted, error));
        TRY(take_slopes(block, false, error));
        settle_priors(block);
        moved = 0;
        for (int inner = 0; inner < LINEAR_ROUNDS; inner++) {
            moved = settle_misfit(block);
        }
        for (int i = 0; i < block->coordinates->count; i++) {
            moved = fmax(moved, fabs(block->theta[i] - before[i]));
        }
    }
    return take_slopes(block, true, error);
}

// Moves theta by the linear problem's solution; weights of the rows as they are.
static Status solve_linear(const FitBlock *block, int without, double *shift, Error *error) {
    const size_t p = (size_t)block->active_count, width = (size_t)block->coordinates->count;
    double matrix[CALIBRATION_MAX * CALIBRATION_MAX];
    information(block, without, 1, matrix, NULL);
    for (size_t a = 0; a < p; a++) {
        shift[a] = -block->theta[block->active[a]] / pow(prior_sd(block, (int)a), 2);
    }
    for (int i = 0; i < block->row_count; i++) {
        const FitRow *row = &block->rows[i];
        const double pull = row->weight * (row->y - block->predicted[i]) / pow(row_sd(block, row), 2);
        for (size_t a = 0; a < p && row->shape != without; a++) {
            shift[a] += pull * block->jacobian[(size_t)i * width + (size_t)block->active[a]];
        }
    }
    gsl_matrix_view view = gsl_matrix_view_array(matrix, p, p);
    gsl_vector_view solution = gsl_vector_view_array(shift, p);
    FAIL_IF(gsl_linalg_cholesky_decomp1(&view.matrix) != GSL_SUCCESS ||
                gsl_linalg_cholesky_svx(&view.matrix, &solution.vector) != GSL_SUCCESS,
            error, STATUS_INTERNAL, "calibration: the information matrix is not positive");
    return STATUS_OK;
}

Status fit_without(const FitBlock *block, int shape, double *theta, Error *error) {
    const size_t width = (size_t)block->coordinates->count;
    double shift[CALIBRATION_MAX] = {0};
    Arena arena = {0};
    FitBlock linear = *block;
    linear.rows = ARENA_ARRAY(&arena, FitRow, block->row_count + 1);
    memcpy(linear.rows, block->rows, (size_t)block->row_count * sizeof *linear.rows);
    Status status = STATUS_OK;
    for (int round = 0; round < LINEAR_ROUNDS && status == STATUS_OK; round++) {
        status = solve_linear(&linear, shape, shift, error);
        for (int i = 0; i < block->row_count; i++) {
            double predicted = block->predicted[i];
            for (int a = 0; a < block->active_count; a++) {
                predicted += shift[a] * block->jacobian[(size_t)i * width + (size_t)block->active[a]];
            }
            linear.rows[i].weight = robust_weight((linear.rows[i].y - predicted) / row_sd(block, &linear.rows[i]));
        }
    }
    memcpy(theta, block->theta, CALIBRATION_MAX * sizeof *theta);
    for (int a = 0; a < block->active_count; a++) {
        theta[block->active[a]] += shift[a];
    }
    arena_free(&arena);
    return status;
}
