// Rows of a run file, grouped by shape and predicted like any request.

#include "tests/accuracy/sweep/sweep.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/predict_runs.h"
#include "autotune/accuracy/statistics.h"
#include "autotune/search/rank.h"

double sweep_regret(const Sweep *sweep, int shape) {
    return sweep->measured_s[shape] / sweep->measured_s[sweep->best];
}

bool sweep_tied(const Sweep *sweep, int shape, Arena *arena) {
    static const double FEW_PERCENT = 1.05, ERRORS = 2;
    double *differences = ARENA_ARRAY(arena, double, sweep->repeats + 1);
    size_t count = 0;
    for (int i = 0; i < sweep->repeats; i++) {
        const double own_s = sweep->shapes[shape].steps_s[i], best_s = sweep->shapes[sweep->best].steps_s[i];
        if (own_s > 0 && best_s > 0) {
            differences[count++] = log(own_s / best_s);
        }
    }
    const double regret = sweep_regret(sweep, shape);
    return regret <= FEW_PERCENT && count > 1 &&
           log(regret) <= ERRORS * gsl_stats_sd(differences, 1, count) / sqrt((double)count);
}

typedef struct Reader {
    const RunFile *file;
    CsvTable table;  // the same file
    RunMapper *mapper;
    RunPredictor *predictor;
    Arena *arena;
} Reader;

static int entry_of(const Sweep *sweep, const TrainPlan *plan) {
    char wanted[PLAN_TEXT_BYTES], text[PLAN_TEXT_BYTES];
    plan_text(plan, wanted);
    for (int i = 0; i < sweep->result.entry_count; i++) {
        if (strcmp(plan_text(&sweep->result.entries[i].plan, text), wanted) == 0) {
            return i;
        }
    }
    return -1;
}

// The shapes, predicted and ranked; times come after.
static Status read_shapes(const Reader *reader, const RunGroup *group, RunCase *cases, Sweep *sweep, Error *error) {
    sweep->result.entries = ARENA_ARRAY(reader->arena, Prediction, group->row_count + 1);
    for (int i = 0; i < group->row_count; i++) {
        RunCase *run = &cases[i];
        run_case_build(reader->mapper, &reader->file->rows[group->rows[i]], run);
        if (!run->skipped && entry_of(sweep, &run->plan) < 0) {
            run_predict(reader->predictor, run, false);
            sweep->result.entries[sweep->result.entry_count++] = run->prediction;
        }
        if (run->skipped) {
            return error_set(error, STATUS_USAGE, "%s: %s", run->row->id, run->skipped);
        }
    }
    sweep->request = cases[0].request;
    sweep->result.request = &sweep->request;
    rank_entries(sweep->result.entries, sweep->result.entry_count, OBJECTIVE_THROUGHPUT);
    return STATUS_OK;
}

// Without what its rounds have in common.
static double noise_of(const ReplayShape *shape, const double *of_round, Arena *arena) {
    double *logs = ARENA_ARRAY(arena, double, shape->count + 1);
    size_t count = 0;
    for (int i = 0; i < shape->count; i++) {
        if (shape->steps_s[i] > 0) {
            logs[count++] = log(shape->steps_s[i]) - of_round[i];
        }
    }
    return count > 1 ? gsl_stats_sd(logs, 1, count) : NAN;
}

// Of PLACE-MODEL-SHAPE-ROUND, from 0.
static int round_of(const char *id) {
    const char *last = strrchr(id, '-');
    return last ? atoi(last + 1) - 1 : 0;
}

// When a run began, as recorded; else its rounds are ten minutes apart and its shapes two seconds, about what they
// took.
static double began_s(const Reader *reader, int row, int round, int in_round) {
    const int column = csv_column(&reader->table, "started_s");
    return column >= 0 ? strtod(csv_field(&reader->table, row, column)->text, NULL) : 600.0 * round + 2.0 * in_round;
}

// As recorded; else not known.
static double own_sd_of(const Reader *reader, int row) {
    const int column = csv_column(&reader->table, "own_sd");
    return column >= 0 ? strtod(csv_field(&reader->table, row, column)->text, NULL) : 0;
}

static void read_times(const Reader *reader, const RunGroup *group, const RunCase *cases, Sweep *sweep) {
    const int shapes = sweep->result.entry_count;
    sweep->shapes = ARENA_ARRAY(reader->arena, ReplayShape, shapes);
    for (int i = 0; i < group->row_count; i++) {
        const int rounds = round_of(cases[i].row->id) + 1;
        sweep->repeats = rounds > sweep->repeats ? rounds : sweep->repeats;
    }
    double **steps_s = ARENA_ARRAY(reader->arena, double *, shapes),
           **at_s = ARENA_ARRAY(reader->arena, double *, shapes),
           **own_sd = ARENA_ARRAY(reader->arena, double *, shapes);
    for (int shape = 0; shape < shapes; shape++) {
        steps_s[shape] = ARENA_ARRAY(reader->arena, double, sweep->repeats);
        at_s[shape] = ARENA_ARRAY(reader->arena, double, sweep->repeats);
        own_sd[shape] = ARENA_ARRAY(reader->arena, double, sweep->repeats);
        sweep->shapes[shape] = (ReplayShape){
            .steps_s = steps_s[shape], .count = sweep->repeats, .at_s = at_s[shape], .own_sd = own_sd[shape]};
    }
    for (int i = 0; i < group->row_count; i++) {
        const int shape = entry_of(sweep, &cases[i].plan), round = round_of(cases[i].row->id);
        steps_s[shape][round] = cases[i].measured_step_s;
        at_s[shape][round] = began_s(reader, group->rows[i], round, i % shapes);
        own_sd[shape][round] = own_sd_of(reader, group->rows[i]);
    }
}

// Median polish of the logs (Tukey 1977): alternates between shapes and rounds until they converge.
static void polish(const Reader *reader, Sweep *sweep) {
    enum { TURNS = 50 };
    const int shapes = sweep->result.entry_count, rounds = sweep->repeats;
    double *of_shape = ARENA_ARRAY(reader->arena, double, shapes),
           *of_round = ARENA_ARRAY(reader->arena, double, rounds);
    double *some = ARENA_ARRAY(reader->arena, double, shapes + rounds);
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        const bool by_shape = turn % 2 == 0;
        for (int i = 0; i < (by_shape ? shapes : rounds); i++) {
            int count = 0;
            for (int k = 0; k < (by_shape ? rounds : shapes); k++) {
                const int shape = by_shape ? i : k, round = by_shape ? k : i;
                const double step_s = sweep->shapes[shape].steps_s[round];
                if (step_s > 0) {
                    some[count++] = log(step_s) - (by_shape ? of_round[round] : of_shape[shape]);
                }
            }
            *(by_shape ? &of_shape[i] : &of_round[i]) = statistics_median(some, count);
        }
    }
    sweep->measured_s = ARENA_ARRAY(reader->arena, double, shapes);
    sweep->noise = ARENA_ARRAY(reader->arena, double, shapes);
    for (int shape = 0; shape < shapes; shape++) {
        sweep->measured_s[shape] = exp(of_shape[shape]);
        sweep->noise[shape] = noise_of(&sweep->shapes[shape], of_round, reader->arena);
        sweep->best = sweep->measured_s[shape] < sweep->measured_s[sweep->best] ? shape : sweep->best;
    }
}

Status sweeps_read(const char *runs_path, const char *groups_path, Arena *arena, Sweeps *sweeps, Error *error) {
    RunFile *file = ARENA_NEW(arena, RunFile);
    RunGroups groups = {0};
    TRY(run_file_read(runs_path, arena, file, error));
    TRY(run_groups_read(groups_path, file, arena, &groups, error));
    Reader reader = {.file = file, .arena = arena};
    TRY(csv_load(runs_path, arena, &reader.table, error));
    reader.mapper = run_mapper_new(arena);
    reader.predictor = run_predictor_new(EFFORT_SIMULATE, arena);
    *sweeps = (Sweeps){ARENA_ARRAY(arena, Sweep, groups.count + 1), 0};
    Status status = STATUS_OK;
    for (int i = 0; i < groups.count && status == STATUS_OK; i++) {
        const RunGroup *group = &groups.groups[i];
        Sweep *sweep = &sweeps->rows[sweeps->count++];
        sweep->name = group->name;
        RunCase *cases = ARENA_ARRAY(arena, RunCase, group->row_count + 1);
        status = read_shapes(&reader, group, cases, sweep, error);
        if (status == STATUS_OK) {
            sweep->in_order = csv_column(&reader.table, "started_s") >= 0;
            read_times(&reader, group, cases, sweep);
            polish(&reader, sweep);
        }
    }
    run_predictor_free(reader.predictor);
    return status;
}
