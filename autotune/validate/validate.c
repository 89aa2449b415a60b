// Which rows are run, in which order, and their results. Shapes are compared by time per token, since their batches may
// differ.

#include "autotune/validate/validate.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <string.h>

#include "autotune/accuracy/statistics.h"

static void add_row(Validation *validation, const TuneResult *result, int entry, ValidateWhy why) {
    validation->rows[validation->row_count++] =
        (ValidateRow){.prediction = &result->entries[entry], .place = entry + 1, .why = why, .noise = NAN};
}

void validate_choose(const TuneResult *result, int top, int spread, Arena *arena, Validation *validation) {
    const int count = result->entry_count;
    validation->request = result->request;
    validation->shapes = count;
    validation->rows = ARENA_ARRAY(arena, ValidateRow, count > 0 ? count : 1);
    const int best = top == 0 || top > count ? count : top, rest = count - best;
    for (int i = 0; i < best; i++) {
        add_row(validation, result, i, VALIDATE_TOP);
    }
    const int more = spread < rest ? spread : rest;
    for (int i = 1; i <= more; i++) {  // the last one is the last of the ranking
        add_row(validation, result, best - 1 + rest * i / more, VALIDATE_SPREAD);
    }
}

static Status run_row(ValidateRow *row, const ValidateMeans *means, Error *error) {
    RunRecord *record = &row->runs[row->run_count];
    TRY(means->run(means->state, row, record, error));
    row->state = record->state ? record->state : "failed";
    row->reason = record->failure;
    row->run_count += record->measured_step_s > 0 && strcmp(row->state, "ok") == 0;
    return STATUS_OK;
}

static bool gives_up(const ValidateRow *row) {
    return row->state && strcmp(row->state, "ok") != 0;
}

// A permutation of the rows for each round, the same in every session.
static const int *order_of_round(int round, int rows, Arena *arena) {
    int *order = ARENA_ARRAY(arena, int, rows + 1);
    gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);  // ends the program when out of memory, as arenas do
    gsl_rng_set(generator, (unsigned long)round + 1);
    for (int i = 0; i < rows; i++) {
        order[i] = i;
    }
    gsl_ran_shuffle(generator, order, (size_t)rows, sizeof *order);
    gsl_rng_free(generator);
    return order;
}

static Status run_round(Validation *validation, int round, const ValidateMeans *means, Arena *arena, Error *error) {
    const int *order = order_of_round(round, validation->row_count, arena);
    for (int i = 0; i < validation->row_count; i++) {
        ValidateRow *row = &validation->rows[order[i]];
        if (row->run_count > round || gives_up(row)) {
            continue;
        }
        TRY(run_row(row, means, error));
        FAIL_IF(means->cancelled(means->state), error, STATUS_ENVIRONMENT, "interrupted; what was measured is stored");
    }
    return STATUS_OK;
}

Status validate_run(Validation *validation, const ValidateMeans *means, Arena *arena, Error *error) {
    for (int i = 0; i < validation->row_count; i++) {
        ValidateRow *row = &validation->rows[i];
        row->runs = ARENA_ARRAY(arena, RunRecord, validation->repeats);
        row->recalled = means->recall ? means->recall(means->state, row, row->runs, validation->repeats) : 0;
        row->run_count = row->recalled;
        row->state = row->recalled > 0 ? "ok" : NULL;
    }
    for (int round = 0; round < validation->repeats; round++) {
        TRY(run_round(validation, round, means, arena, error));
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- what came of it

static double per_token(const ValidateRow *row, double step_s) {
    return step_s / (double)plan_tokens_per_step(&row->prediction->plan);
}

// The steps of a row's runs after their warm-ups, each run's without the effect of its time (NULL: with it).
static int steps_of(const ValidateRow *row, const double *effect, double *all) {
    int count = 0;
    for (int i = 0; i < row->run_count; i++) {
        const RunRecord *run = &row->runs[i];
        for (int step = run->warm_up; step < run->steps; step++) {
            if (isfinite(run->step_times_s[step])) {
                all[count++] = run->step_times_s[step] * (effect ? exp(-effect[i]) : 1);
            }
        }
    }
    return count;
}

static double *room_for_steps(const ValidateRow *row, Arena *arena) {
    int steps = 0;
    for (int i = 0; i < row->run_count; i++) {
        steps += row->runs[i].steps;
    }
    return ARENA_ARRAY(arena, double, steps + 1);
}

static void summarize_row(ValidateRow *row, Arena *arena) {
    double *medians = ARENA_ARRAY(arena, double, row->run_count + 1);
    for (int i = 0; i < row->run_count; i++) {
        medians[i] = row->runs[i].measured_step_s;
    }
    row->noise = measurement_spread(medians, row->run_count);
    double *all = room_for_steps(row, arena);
    const int count = steps_of(row, NULL, all);
    measurement_interval(all, count, arena, &row->low_s, &row->high_s);
    row->measured_s = row->steady_s = measurement_median(all, count, 0, arena);
    row->parts = row->run_count > 0 ? row->runs[row->run_count - 1].parts : (StepParts){0};
}

// All runs of all rows, one machine.
static void take_drift_out(Validation *validation, Arena *arena) {
    int count = 0;
    for (int i = 0; i < validation->row_count; i++) {
        count += validation->rows[i].run_count;
    }
    DriftRun *runs = ARENA_ARRAY(arena, DriftRun, count + 1);
    int at = 0;
    for (int i = 0; i < validation->row_count; i++) {
        for (int k = 0; k < validation->rows[i].run_count; k++) {
            const RunRecord *run = &validation->rows[i].runs[k];
            runs[at++] = (DriftRun){i, log(run->measured_step_s), run->at_s,
                                    measurement_median_sd(run->step_times_s, run->steps, run->warm_up, arena)};
        }
    }
    Drift drift;
    Error unknown;
    if (drift_learn(runs, count, validation->row_count, 0, arena, &drift, &unknown) != STATUS_OK) {
        return;
    }
    validation->law = drift.law;
    const double *effect = drift.effect;
    for (int i = 0; i < validation->row_count; effect += validation->rows[i++].run_count) {
        ValidateRow *row = &validation->rows[i];
        double *steps = room_for_steps(row, arena);
        row->steady_s = measurement_median(steps, steps_of(row, effect, steps), 0, arena);
    }
}

static ValidateKind *kind_of(Validation *validation, const RunTask *task, size_t *capacity, Arena *arena) {
    for (int i = 0; i < validation->kind_count; i++) {
        ValidateKind *kind = &validation->kinds[i];
        if (strcmp(kind->kind, task->kind) == 0 && strcmp(kind->lane, task->lane) == 0) {
            return kind;
        }
    }
    ValidateKind *kind = &ARENA_PUSH(arena, validation->kinds, validation->kind_count, capacity);
    *kind = (ValidateKind){.kind = task->kind, .lane = task->lane};
    return kind;
}

static void summarize_kinds(Validation *validation, Arena *arena) {
    size_t capacity = 0;
    validation->kinds = NULL;
    validation->kind_count = 0;
    for (int i = 0; i < validation->row_count; i++) {
        const ValidateRow *row = &validation->rows[i];
        const RunRecord *run = row->run_count > 0 ? &row->runs[row->run_count - 1] : NULL;
        for (int t = 0; run && t < run->task_count; t++) {
            ValidateKind *kind = kind_of(validation, &run->tasks[t], &capacity, arena);
            kind->count += run->tasks[t].count;
            kind->measured_s += run->tasks[t].measured_s;
            kind->predicted_s += run->tasks[t].predicted_s;
        }
    }
}

void validate_summarize(Validation *validation, Arena *arena) {
    const int most = validation->row_count + 1;
    double *predicted = ARENA_ARRAY(arena, double, most), *measured = ARENA_ARRAY(arena, double, most);
    double *noises = ARENA_ARRAY(arena, double, most);
    int *row_of = ARENA_ARRAY(arena, int, most), count = 0, noise_count = 0;
    validation->in_interval = 0;
    for (int i = 0; i < validation->row_count; i++) {
        summarize_row(&validation->rows[i], arena);
    }
    take_drift_out(validation, arena);
    for (int i = 0; i < validation->row_count; i++) {
        const ValidateRow *row = &validation->rows[i];
        if (row->measured_s <= 0) {
            continue;
        }
        const Prediction *prediction = row->prediction;
        predicted[count] = per_token(row, prediction->step_s);
        measured[count] = per_token(row, row->steady_s);
        row_of[count++] = i;
        validation->in_interval +=
            row->measured_s >= prediction->step_low_s && row->measured_s <= prediction->step_high_s;
        if (isfinite(row->noise)) {
            noises[noise_count++] = row->noise;
        }
    }
    Agreement *agreement = &validation->agreement;
    measurement_agree(predicted, measured, count, arena, agreement);
    agreement->best_predicted = count > 0 ? row_of[agreement->best_predicted] : -1;
    agreement->best_measured = count > 0 ? row_of[agreement->best_measured] : -1;
    validation->noise = noise_count > 0 ? statistics_median(noises, noise_count) : NAN;
    summarize_kinds(validation, arena);
}
