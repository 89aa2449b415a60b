// Rows of a run file, grouped by shape and predicted as any request would be.

#include "tests/accuracy/sweep/sweep.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/predict_runs.h"
#include "autotune/accuracy/statistics.h"
#include "autotune/rank.h"

double sweep_regret(const Sweep *sweep, int shape) {
    return sweep->measured_s[shape] / sweep->measured_s[sweep->best];
}

typedef struct Reader {
    const RunFile *file;
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

static double noise_of(const ReplayShape *shape, Arena *arena) {
    double *logs = ARENA_ARRAY(arena, double, shape->count + 1);
    for (int i = 0; i < shape->count; i++) {
        logs[i] = log(shape->steps_s[i]);
    }
    return shape->count > 1 ? gsl_stats_sd(logs, 1, (size_t)shape->count) : NAN;
}

static void read_times(const Reader *reader, const RunCase *cases, int count, Sweep *sweep) {
    const int shapes = sweep->result.entry_count;
    sweep->shapes = ARENA_ARRAY(reader->arena, ReplayShape, shapes);
    sweep->measured_s = ARENA_ARRAY(reader->arena, double, shapes);
    sweep->noise = ARENA_ARRAY(reader->arena, double, shapes);
    for (int shape = 0; shape < shapes; shape++) {
        double *steps = ARENA_ARRAY(reader->arena, double, count + 1);
        double *sorted = ARENA_ARRAY(reader->arena, double, count + 1);
        ReplayShape *row = &sweep->shapes[shape];
        for (int i = 0; i < count; i++) {
            if (entry_of(sweep, &cases[i].plan) == shape) {
                sorted[row->count] = steps[row->count] = cases[i].measured_step_s;
                row->count++;
            }
        }
        row->steps_s = steps;
        sweep->measured_s[shape] = statistics_median(sorted, row->count);
        sweep->noise[shape] = noise_of(row, reader->arena);
        sweep->repeats = row->count > sweep->repeats ? row->count : sweep->repeats;
        sweep->best = sweep->measured_s[shape] < sweep->measured_s[sweep->best] ? shape : sweep->best;
    }
}

Status sweeps_read(const char *runs_path, const char *groups_path, Arena *arena, Sweeps *sweeps, Error *error) {
    RunFile *file = ARENA_NEW(arena, RunFile);
    RunGroups groups;
    TRY(run_file_read(runs_path, arena, file, error));
    TRY(run_groups_read(groups_path, file, arena, &groups, error));
    const Reader reader = {file, run_mapper_new(arena), run_predictor_new(EFFORT_SIMULATE, arena), arena};
    *sweeps = (Sweeps){ARENA_ARRAY(arena, Sweep, groups.count + 1), 0};
    Status status = STATUS_OK;
    for (int i = 0; i < groups.count && status == STATUS_OK; i++) {
        const RunGroup *group = &groups.groups[i];
        Sweep *sweep = &sweeps->rows[sweeps->count++];
        sweep->name = group->name;
        RunCase *cases = ARENA_ARRAY(arena, RunCase, group->row_count + 1);
        status = read_shapes(&reader, group, cases, sweep, error);
        if (status == STATUS_OK) {
            read_times(&reader, cases, group->row_count, sweep);
        }
    }
    run_predictor_free(reader.predictor);
    return status;
}
