// run_predict (-Wl,--wrap) writes down what it leaves in a row, or reads it: the rows come in the order of the files.

#include "tests/support/kept_predictions.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "autotune/accuracy/predict_runs.h"
#include "tests/support/kept.h"

enum { MOST_ROWS = 2048, WHY_BYTES = 512 };

typedef struct KeptRow {
    char why[WHY_BYTES];  // it was skipped; "" = it was not
    ReduceDtype reduce_dtype;
    bool fp8_parameters, logs_reserved;
    Prediction prediction;
    MemoryBreakdown logged;
} KeptRow;

typedef struct KeptRows {
    int count;
    KeptRow rows[MOST_ROWS];
} KeptRows;

typedef struct Call {
    const AccuracyOptions *options;
    Arena *arena;
    Accuracy *accuracy;
    Error *error;
    Status status;
    KeptRows *rows;
    bool made;
    int next;
} Call;

static Call *call;

void __real_run_predict(RunPredictor *predictor, RunCase *run, bool memory_only);
void __wrap_run_predict(RunPredictor *predictor, RunCase *run, bool memory_only);

static void write_down(const RunCase *run, KeptRow *row) {
    cr_assert_lt(snprintf(row->why, sizeof row->why, "%s", run->skipped ? run->skipped : ""), WHY_BYTES);
    row->reduce_dtype = run->plan.reduce_dtype;
    row->fp8_parameters = run->plan.fp8_parameters;
    row->logs_reserved = run->logs_reserved;
    row->prediction = run->prediction;
    row->logged = run->logged;
}

static void read_back(const KeptRow *row, RunCase *run) {
    run->skipped = row->why[0] ? row->why : NULL;
    run->plan.reduce_dtype = row->reduce_dtype;
    run->plan.fp8_parameters = row->fp8_parameters;
    run->logs_reserved = row->logs_reserved;
    run->prediction = row->prediction;
    run->prediction.plan = run->plan;
    run->prediction.warning_count = 0;
    run->logged = row->logged;
    run->prediction.memory.by_stage = run->logged.by_stage = NULL;
}

void __wrap_run_predict(RunPredictor *predictor, RunCase *run, bool memory_only) {
    if (!call) {
        __real_run_predict(predictor, run, memory_only);
    } else if (call->made) {
        cr_assert_lt(call->next, call->rows->count);
        read_back(&call->rows->rows[call->next++], run);
    } else {
        cr_assert_lt(call->rows->count, MOST_ROWS);
        __real_run_predict(predictor, run, memory_only);
        write_down(run, &call->rows->rows[call->rows->count++]);
    }
}

static void make(void *rows) {
    (void)rows;
    call->status = accuracy_run(call->options, NULL, call->arena, call->accuracy, call->error);
    call->made = true;
}

Status accuracy_run_once(const AccuracyOptions *options, Arena *arena, Accuracy *accuracy, Error *error) {
    Call here = {options, arena, accuracy, error, .rows = ARENA_NEW(arena, KeptRows)};
    call = &here;
    kept(options->runs_paths[0] + strlen(NDTUNE_SOURCE_DIR), here.rows, sizeof *here.rows, make);
    if (!here.made) {
        here.made = true;
        here.status = accuracy_run(options, NULL, arena, accuracy, error);
        cr_assert_eq(here.next, here.rows->count, "other options than the first claim's");
    }
    call = NULL;
    return here.status;
}
