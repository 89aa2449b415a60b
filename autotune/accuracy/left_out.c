// A robust fit (soft L1 at 5 %) of the log errors, linearised around the shipped values: each row is predicted once
// more per number it depends on, so kinks of the model are seen from one side only. In addition to the runs, a prior
// without any run constrains each number, so one that a single source determines falls back to its prior. Sources of
// one family (a framework's logs, papers and benchmarks) are left out one by one, not together.

#include "autotune/accuracy/left_out.h"

#include <math.h>
#include <string.h>

#include "autotune/accuracy/accuracy.h"
#include "autotune/accuracy/fitted.h"
#include "autotune/accuracy/predict_runs.h"
#include "autotune/accuracy/statistics.h"

static const double soft = 0.05;   // in log error: larger errors are weighted linearly
static const double probe = 0.04;  // step of the finite differences

enum { ROUNDS = 40 };

typedef struct Row {
    const RunCase *run;
    int source;
    double error, low, high;  // log of predicted / measured; of the interval's ends over the prediction
    double slope[MOST_FITTED];
    double weight;
} Row;

typedef struct Numbers {
    double of[MOST_FITTED];  // each factor minus 1
} Numbers;

typedef struct Table {
    Row *rows;
    int count;
    const char **sources;
    int *source_rows;
    int source_count;
    Numbers *without;  // fitted without each source
    double *scratch;   // three rows' worth
} Table;

static double moved_error(RunPredictor *predictor, const Row *row, int number, MovedRun *moved) {
    RunCase *run = &moved->run;
    *run = *row->run;
    moved->target = *row->run->request.target;
    run->request.target = &moved->target;
    if (!fitted_numbers[number].apply(1 + probe, moved)) {
        return row->error;
    }
    run_predict(predictor, run, false);
    return run->skipped ? row->error : log(run->prediction.step_s / run->measured_step_s);
}

static int source_of(Table *table, const char *source) {
    int at = 0;
    while (at < table->source_count && strcmp(table->sources[at], source) != 0) {
        at++;
    }
    if (at == table->source_count) {
        table->sources[table->source_count++] = source;
    }
    table->source_rows[at]++;
    return at;
}

static void table_rows(const RunCase *cases, int count, Arena *arena, Table *table) {
    *table = (Table){.rows = ARENA_ARRAY(arena, Row, count),
                     .sources = ARENA_ARRAY(arena, const char *, count),
                     .source_rows = ARENA_ARRAY(arena, int, count),
                     .scratch = ARENA_ARRAY(arena, double, 3 * (size_t)count)};
    for (int i = 0; i < count; i++) {
        const Prediction *prediction = &cases[i].prediction;
        if (accuracy_is_measured(&cases[i])) {
            table->rows[table->count++] = (Row){.run = &cases[i],
                                                .source = source_of(table, cases[i].row->source),
                                                .error = log(prediction->step_s / cases[i].measured_step_s),
                                                .low = log(prediction->step_low_s / prediction->step_s),
                                                .high = log(prediction->step_high_s / prediction->step_s)};
        }
    }
    table->without = ARENA_ARRAY(arena, Numbers, table->source_count + 1);
    for (int i = 0; i < table->count; i++) {  // a source with sixteen times the rows weighs eight times as much
        table->rows[i].weight = 1 / sqrt(sqrt(table->source_rows[table->rows[i].source]));
    }
}

static bool find_slopes(Table *table, Effort effort, const Progress *progress, Arena *arena) {
    RunPredictor *predictor = run_predictor_new(effort, arena);
    MovedRun *moved = ARENA_NEW(arena, MovedRun);
    bool goes_on = true;
    for (int i = 0; i < table->count && goes_on; i++) {
        Row *row = &table->rows[i];
        for (int p = 0; p < fitted_count; p++) {
            row->slope[p] = (moved_error(predictor, row, p, moved) - row->error) / probe;
        }
        goes_on = progress_update(progress, "rows, with what was fitted moved", i + 1, table->count);
    }
    run_predictor_free(predictor);
    return goes_on;
}

static double error_at(const Row *row, const Numbers *numbers) {
    double error = row->error;
    for (int p = 0; p < fitted_count; p++) {
        error += row->slope[p] * numbers->of[p];
    }
    return error;
}

// One Gauss-Newton step on every source but one.
static void improve(const Table *table, int without, Numbers *numbers) {
    double matrix[MOST_FITTED * MOST_FITTED] = {0}, right[MOST_FITTED], log_determinant;
    for (int p = 0; p < fitted_count; p++) {
        const double sure = 1 / (fitted_numbers[p].sd * fitted_numbers[p].sd);
        matrix[p * fitted_count + p] = sure;
        right[p] = sure * (fitted_numbers[p].without - 1 - numbers->of[p]);
    }
    for (int i = 0; i < table->count; i++) {
        const Row *row = &table->rows[i];
        if (row->source == without) {
            continue;
        }
        const double error = error_at(row, numbers);
        const double weight = row->weight / (soft * soft * sqrt(1 + error * error / (soft * soft)));
        for (int p = 0; p < fitted_count; p++) {
            for (int q = 0; q < fitted_count; q++) {
                matrix[p * fitted_count + q] += weight * row->slope[p] * row->slope[q];
            }
            right[p] -= weight * row->slope[p] * error;
        }
    }
    const bool definite = statistics_invert(matrix, fitted_count, &log_determinant);
    ASSERT(definite && "what holds each number is on the diagonal");
    for (int p = 0; p < fitted_count && definite; p++) {
        for (int q = 0; q < fitted_count; q++) {
            numbers->of[p] += matrix[p * fitted_count + q] * right[q];
        }
    }
}

enum { NO_SOURCE = -1, EVERY_SOURCE = -1 };

static Numbers fit(const Table *table, int without) {
    Numbers numbers = {{0}};
    for (int round = 0; round < ROUNDS; round++) {
        improve(table, without, &numbers);
    }
    return numbers;
}

typedef struct Score {
    int n;
    double median, p90, bias, inside, width;
} Score;

static const char *target_name(const Row *row) {
    return row->run->request.target->name;
}

static const char *chip_name(const Row *row) {
    return row->run->request.cluster.accelerator.name;
}

// Selects rows: of a source, of a class, or all; by the shipped numbers, or those fitted without the row's source.
static Score score(const Table *table, int source, const Row *class, bool left) {
    static const Numbers ships = {{0}};
    double *sizes = table->scratch, *signs = sizes + table->count, *widths = signs + table->count;
    Score result = {0};
    int inside = 0;
    for (int i = 0; i < table->count; i++) {
        const Row *row = &table->rows[i];
        const bool other_class = class && (strcmp(target_name(row), target_name(class)) != 0 ||
                                           strcmp(chip_name(row), chip_name(class)) != 0);
        if ((source != EVERY_SOURCE && row->source != source) || other_class) {
            continue;
        }
        const double error = error_at(row, left ? &table->without[row->source] : &ships);
        sizes[result.n] = fabs(expm1(error));
        widths[result.n] = error > 0 ? -error / row->low : -error / row->high;
        signs[result.n++] = expm1(error);
        inside += -error >= row->low && -error <= row->high;
    }
    result.median = statistics_median(sizes, result.n);
    result.p90 = statistics_quantile(sizes, result.n, 0.9);
    result.bias = statistics_median(signs, result.n);
    result.width = statistics_quantile(widths, result.n, 0.8);
    result.inside = result.n > 0 ? (double)inside / result.n : 0;
    return result;
}

static LeftOutScore score_both(const Table *table, int source, const Row *class) {
    const Score ships = score(table, source, class, false), left = score(table, source, class, true);
    return (LeftOutScore){.source = source != EVERY_SOURCE ? table->sources[source] : NULL,
                          .target = class ? target_name(class) : NULL,
                          .accelerator = class ? chip_name(class) : NULL,
                          .n = ships.n,
                          .median_abs = ships.median,
                          .p90_abs = ships.p90,
                          .bias = ships.bias,
                          .in_interval = ships.inside,
                          .left_median_abs = left.median,
                          .left_p90_abs = left.p90,
                          .left_bias = left.bias,
                          .left_in_interval = left.inside,
                          .left_width = left.width};
}

static bool class_seen(const LeftOut *out, const Row *row) {
    int at = 0;
    while (at < out->class_count && (strcmp(out->classes[at].target, target_name(row)) != 0 ||
                                     strcmp(out->classes[at].accelerator, chip_name(row)) != 0)) {
        at++;
    }
    return at < out->class_count;
}

static LeftOutParameter describe(const Table *table, int number, double fitted) {
    const Fitted *of = &fitted_numbers[number];
    LeftOutParameter result = {
        .name = of->name, .basis = of->basis, .without = of->without, .fitted = fitted, .left = fitted};
    for (int s = 0; s < table->source_count; s++) {
        const double left = 1 + table->without[s].of[number];
        if (fabs(left - fitted) > fabs(result.left - fitted)) {
            result.left = left;
            result.rests_on = table->sources[s];
        }
    }
    double *ships = table->scratch, *without = ships + table->count;
    for (int i = 0; i < table->count; i++) {
        const Row *row = &table->rows[i];
        if (row->slope[number] != 0) {
            ships[result.n] = fabs(expm1(row->error));
            without[result.n++] = fabs(expm1(row->error + row->slope[number] * (of->without - 1)));
        }
    }
    result.median_abs = statistics_median(ships, result.n);
    result.p90_abs = statistics_quantile(ships, result.n, 0.9);
    result.without_median_abs = statistics_median(without, result.n);
    result.without_p90_abs = statistics_quantile(without, result.n, 0.9);
    return result;
}

bool left_out_run(const RunCase *cases, int count, Effort effort, const Progress *progress, Arena *arena,
                  LeftOut *left_out) {
    Table table;
    table_rows(cases, count, arena, &table);
    if (!find_slopes(&table, effort, progress, arena)) {
        return false;
    }
    for (int s = 0; s < table.source_count; s++) {
        table.without[s] = fit(&table, s);
    }
    *left_out = (LeftOut){.sources = ARENA_ARRAY(arena, LeftOutScore, table.source_count + 1),
                          .classes = ARENA_ARRAY(arena, LeftOutScore, table.count + 1),
                          .parameters = ARENA_ARRAY(arena, LeftOutParameter, fitted_count),
                          .all = score_both(&table, EVERY_SOURCE, NULL)};
    for (int s = 0; s < table.source_count; s++) {
        left_out->sources[left_out->source_count++] = score_both(&table, s, NULL);
    }
    for (int i = 0; i < table.count; i++) {
        if (!class_seen(left_out, &table.rows[i])) {
            left_out->classes[left_out->class_count++] = score_both(&table, EVERY_SOURCE, &table.rows[i]);
        }
    }
    const Numbers all = fit(&table, NO_SOURCE);
    for (int p = 0; p < fitted_count; p++) {
        left_out->parameters[left_out->parameter_count++] = describe(&table, p, 1 + all.of[p]);
    }
    return true;
}
