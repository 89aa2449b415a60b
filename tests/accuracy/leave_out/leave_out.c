// How well what was fitted on published runs predicts runs of a source that it was not fitted on: for each source the
// parameters are fitted again on all others, and the source is predicted with them.
//
//     leave_out RUNS.csv ...
//
// The fit is a robust one (soft L1 at 5 %) of the log errors, linear around what ships: each row is predicted once, and
// once per parameter. Beside the runs a parameter is held by what one would take without any (parameters.c), so that
// one which a single source determines falls back to that. Errors are predicted / measured - 1.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/accuracy.h"
#include "autotune/accuracy/predict_runs.h"
#include "autotune/accuracy/statistics.h"
#include "tests/accuracy/leave_out/parameters.h"

static const double soft = 0.05;   // of log errors: larger ones weigh by their size only
static const double probe = 0.04;  // step of the differences

enum { ROUNDS = 40, MOST_SOURCES = 64 };

typedef struct Row {
    const char *source;
    const char *class;        // target and accelerator
    double error, low, high;  // log of predicted / measured; of the interval's ends over the prediction
    double slope[MOST_PARAMETERS];
    double weight;
} Row;

typedef struct Table {
    Row *rows;
    int count;
    const char *sources[MOST_SOURCES];
    int source_rows[MOST_SOURCES], source_count;
} Table;

static bool predict_log(RunPredictor *predictor, const RunCase *asked, int parameter, Arena *arena, RunCase *run,
                        double *log_ratio) {
    Target *target = ARENA_NEW(arena, Target);
    *run = *asked;
    *target = *asked->request.target;
    run->request.target = target;
    if (parameter >= 0 && !leave_out_parameters[parameter].apply(1 + probe, run, target)) {
        return false;
    }
    run_predict(predictor, run, false);
    if (run->skipped || run->measured_step_s <= 0) {
        return false;
    }
    *log_ratio = log(run->prediction.step_s / run->measured_step_s);
    return true;
}

static int source_of(Table *table, const char *source) {
    int at = 0;
    while (at < table->source_count && strcmp(table->sources[at], source) != 0) {
        at++;
    }
    if (at == table->source_count && at < MOST_SOURCES) {
        table->sources[table->source_count++] = source;
    }
    return at;
}

static void read_rows(const RunFile *file, Arena *arena, Table *table) {
    RunMapper *mapper = run_mapper_new(arena);
    RunPredictor *predictor = run_predictor_new(EFFORT_SIMULATE, arena);
    table->rows = ARENA_ARRAY(arena, Row, file->count);
    for (int i = 0; i < file->count; i++) {
        RunCase asked, run;
        run_case_build(mapper, &file->rows[i], &asked);
        Row *row = &table->rows[table->count];
        if (asked.skipped || !predict_log(predictor, &asked, -1, arena, &run, &row->error)) {
            continue;
        }
        row->source = file->rows[i].source;
        row->class =
            arena_format(arena, "%s on %s", asked.request.target->name, asked.request.cluster.accelerator.name);
        row->low = log(run.prediction.step_low_s / run.prediction.step_s);
        row->high = log(run.prediction.step_high_s / run.prediction.step_s);
        for (int p = 0; p < leave_out_parameter_count; p++) {
            double moved;
            row->slope[p] = predict_log(predictor, &asked, p, arena, &run, &moved) ? (moved - row->error) / probe : 0;
        }
        table->source_rows[source_of(table, row->source)]++;
        table->count++;
    }
    run_predictor_free(predictor);
    for (int i = 0; i < table->count; i++) {  // a source of four times the rows weighs twice as much
        table->rows[i].weight = 1 / sqrt(sqrt(table->source_rows[source_of(table, table->rows[i].source)]));
    }
}

static double error_at(const Row *row, const double *theta) {
    double error = row->error;
    for (int p = 0; p < leave_out_parameter_count; p++) {
        error += row->slope[p] * theta[p];
    }
    return error;
}

// Gauss elimination without pivots: the matrix is positive definite.
static void solve(double matrix[][MOST_PARAMETERS + 1], int n) {
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            const double factor = matrix[j][i] / matrix[i][i];
            for (int k = i; k <= n; k++) {
                matrix[j][k] -= factor * matrix[i][k];
            }
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) {
            matrix[i][n] -= matrix[i][j] * matrix[j][n];
        }
        matrix[i][n] /= matrix[i][i];
    }
}

// theta: how far each factor is from 1, fitted on every source but one.
static void fit(const Table *table, const char *without, double *theta) {
    const int n = leave_out_parameter_count;
    memset(theta, 0, sizeof(double) * (size_t)n);
    for (int round = 0; round < ROUNDS; round++) {
        double matrix[MOST_PARAMETERS][MOST_PARAMETERS + 1] = {{0}};
        for (int p = 0; p < n; p++) {
            const Parameter *parameter = &leave_out_parameters[p];
            const double sure = 1 / (parameter->sd * parameter->sd);
            matrix[p][p] += sure;
            matrix[p][n] += sure * (parameter->without - 1 - theta[p]);
        }
        for (int i = 0; i < table->count; i++) {
            const Row *row = &table->rows[i];
            if (without && strcmp(row->source, without) == 0) {
                continue;
            }
            const double error = error_at(row, theta);
            const double weight = row->weight / (soft * soft * sqrt(1 + error * error / (soft * soft)));
            for (int p = 0; p < n; p++) {
                for (int q = 0; q < n; q++) {
                    matrix[p][q] += weight * row->slope[p] * row->slope[q];
                }
                matrix[p][n] -= weight * row->slope[p] * error;
            }
        }
        solve(matrix, n);
        for (int p = 0; p < n; p++) {
            theta[p] += matrix[p][n];
        }
    }
}

typedef struct Score {
    int n, inside;
    double median, p90, bias;
    double width;  // intervals so many times as wide would hold 80 %
} Score;

// Of one source or class, or of all; with each source's own parameters.
static Score score(const Table *table, const char *source, const char *class, double (*thetas)[MOST_PARAMETERS]) {
    double *sizes = calloc((size_t)table->count, sizeof *sizes), *signs = calloc((size_t)table->count, sizeof *signs);
    double *widths = calloc((size_t)table->count, sizeof *widths);
    Score result = {0};
    for (int i = 0; i < table->count; i++) {
        const Row *row = &table->rows[i];
        if ((source && strcmp(row->source, source) != 0) || (class && strcmp(row->class, class) != 0)) {
            continue;
        }
        int at = 0;
        while (strcmp(table->sources[at], row->source) != 0) {
            at++;
        }
        const double error = error_at(row, thetas[at]);
        sizes[result.n] = fabs(expm1(error));
        widths[result.n] = error > 0 ? -error / row->low : -error / row->high;
        signs[result.n++] = expm1(error);
        result.inside += -error >= row->low && -error <= row->high;
    }
    result.median = statistics_median(sizes, result.n);
    result.p90 = statistics_quantile(sizes, result.n, 0.9);
    result.bias = statistics_median(signs, result.n);
    result.width = statistics_quantile(widths, result.n, 0.8);
    free(sizes);
    free(signs);
    free(widths);
    return result;
}

static void print_line(const Table *table, const char *source, double (*ships)[MOST_PARAMETERS],
                       double (*left)[MOST_PARAMETERS]) {
    const Score a = score(table, source, NULL, ships), b = score(table, source, NULL, left);
    printf("| %.44s | %d | %.1f / %.1f, %+.1f | %.0f | %.1f / %.1f, %+.1f | %.0f |\n", source ? source : "all", a.n,
           100 * a.median, 100 * a.p90, 100 * a.bias, 100.0 * a.inside / a.n, 100 * b.median, 100 * b.p90, 100 * b.bias,
           100.0 * b.inside / b.n);
}

static bool seen_before(const Table *table, int row) {
    int i = 0;
    while (i < row && strcmp(table->rows[i].class, table->rows[row].class) != 0) {
        i++;
    }
    return i < row;
}

// What the widths of intervals rest on: errors of rows whose source had no part in any constant.
static void print_classes(const Table *table, double (*left)[MOST_PARAMETERS]) {
    puts("\n| target and accelerator | rows | source left out: median / 90th, bias % | in interval % | 80 % by times "
         "the "
         "width |\n|---|---|---|---|---|");
    for (int i = 0; i < table->count; i++) {
        if (!seen_before(table, i)) {
            const Score of = score(table, NULL, table->rows[i].class, left);
            printf("| %s | %d | %.1f / %.1f, %+.1f | %.0f | %.2f |\n", table->rows[i].class, of.n, 100 * of.median,
                   100 * of.p90, 100 * of.bias, 100.0 * of.inside / of.n, of.width);
        }
    }
}

int main(int count, char **words) {
    Arena arena = {0};
    Error error = {0};
    RunFile file;
    if (count < 2 || run_files_read((const char *const *)words + 1, &arena, &file, &error) != STATUS_OK) {
        fprintf(stderr, "leave_out: %s\n", count < 2 ? "give files of runs" : error.message);
        return 1;
    }
    Table table = {0};
    read_rows(&file, &arena, &table);
    static double ships[MOST_SOURCES][MOST_PARAMETERS], left[MOST_SOURCES][MOST_PARAMETERS];
    puts("| source | rows | as it ships: median / 90th, bias % | in interval % | source left out | in interval % |\n"
         "|---|---|---|---|---|---|");
    for (int s = 0; s < table.source_count; s++) {
        fit(&table, table.sources[s], left[s]);
    }
    for (int s = 0; s < table.source_count; s++) {
        print_line(&table, table.sources[s], ships, left);
    }
    print_line(&table, NULL, ships, left);
    print_classes(&table, left);
    double all[MOST_PARAMETERS];
    fit(&table, NULL, all);
    puts(
        "\n| parameter, over what ships | without any run | fitted on all | least and most with one source left out |\n"
        "|---|---|---|---|");
    for (int p = 0; p < leave_out_parameter_count; p++) {
        double least = INFINITY, most = -INFINITY;
        const char *by = "", *up = "";
        for (int s = 0; s < table.source_count; s++) {
            by = left[s][p] < least ? table.sources[s] : by;
            up = left[s][p] > most ? table.sources[s] : up;
            least = fmin(least, left[s][p]);
            most = fmax(most, left[s][p]);
        }
        printf("| %s | %.2f | %.2f | %.2f (without %.20s), %.2f (without %.20s) |\n", leave_out_parameters[p].name,
               leave_out_parameters[p].without, 1 + all[p], 1 + least, by, 1 + most, up);
    }
    arena_free(&arena);
    return 0;
}
