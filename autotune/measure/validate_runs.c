// What validate asks of a row: the runs that the store knows of it, and one more.

#include "autotune/measure/validate_runs.h"

#include "autotune/measure/core_clock.h"
#include "autotune/measure/validate_command.h"

typedef struct Runs {
    CommandRuns by;        // command NULL = by our executor
    MeasuredRun **of_row;  // the executor's; NULL until prepared
} Runs;

// The row's plan, checked, lowered and predicted task by task, once.
static Status row_prepare(const Runs *runs, const ValidateRow *row, MeasuredRun **run, Error *error) {
    MeasuredRun **own = &runs->of_row[row - runs->by.validation->rows];
    const Measuring *measuring = runs->by.measuring;
    MeasuredRun *made = *own;
    if (!made) {
        TRY(measured_run_make(&measuring->like, &row->prediction->plan, &measuring->options, &made, error));
    }
    *own = *run = made;
    return STATUS_OK;
}

// Known runs carry the predictions of the profile at that time; today's predictions are shown next to them.
static void predict_known(const MeasuredRun *run, RunRecord *known) {
    RunTask *tasks = (RunTask *)known->tasks;
    int at = 0;
    for (int32_t i = 0; i < run->program.task_count && at < known->task_count; i++) {
        if (run->predicted[i].count > 0) {
            tasks[at++].predicted_s = run->predicted[i].seconds;
        }
    }
}

static int recall(void *state, const ValidateRow *row, RunRecord *known, int most) {
    const Runs *runs = state;
    const Measuring *measuring = runs->by.measuring;
    MeasuredRun *run = NULL;
    int count = 0;
    if (measuring->afresh || (!runs->by.command && row_prepare(runs, row, &run, NULL) != STATUS_OK)) {
        return 0;
    }
    const uint64_t hash = run ? run->record.measurement_hash : command_hash(&runs->by, &row->prediction->plan);
    if (store_measurements(measuring->store, hash, most, measuring->like.arena, known, &count, NULL) != STATUS_OK) {
        return 0;
    }
    for (int i = 0; i < count && run; i++) {
        predict_known(run, &known[i]);
    }
    return count;
}

static Status execute_row(const Runs *runs, const ValidateRow *row, const MeasuredRun *prepared, RunRecord *record,
                          Error *error) {
    const Validation *validation = runs->by.validation;
    MeasuredRun run = *prepared;
    const char *words = arena_format(run.arena, "shape %d of %d, run %d of %d: %s ", (int)(row - validation->rows) + 1,
                                     validation->row_count, row->run_count + 1, validation->repeats,
                                     mesh_text(&run.run.plan.mesh, MESH_BUFFER));
    const Status status = measuring_execute(runs->by.measuring, &run, words, error);
    *record = run.record;
    return status;
}

static Status run_row(void *state, const ValidateRow *row, RunRecord *record, Error *error) {
    const Runs *runs = state;
    const Measuring *measuring = runs->by.measuring;
    MeasuredRun *run = NULL;
    Error why = {0};
    Status status = runs->by.command ? STATUS_OK : row_prepare(runs, row, &run, &why);
    if (status == STATUS_INTERNAL) {
        *error = why;
        return status;
    }
    if (status != STATUS_OK) {
        *record = (RunRecord){.state = status == STATUS_INFEASIBLE ? "refused" : "failed",
                              .failure = arena_text(measuring->like.arena, why.message)};
        return STATUS_OK;
    }
    if (run) {
        TRY(measuring_find_prices(measuring, run, error));
    }
    status = run ? execute_row(runs, row, run, record, &why) : command_run_row(&runs->by, row, record, &why);
    if (*measuring->interrupted) {
        return STATUS_OK;  // the user's doing, not the shape's
    }
    if (status == STATUS_USAGE) {  // the request is wrong, for every shape
        *error = why;
        return status;
    }
    return store_save_run(measuring->store, record, NULL, error);
}

static bool cancelled(void *state) {
    const Runs *runs = state;
    return *runs->by.measuring->interrupted;
}

Status validate_with_runs(const Measuring *measuring, const UserCommand *command, Validation *validation,
                          Error *error) {
    Arena *arena = measuring->like.arena;
    Runs runs = {.by = {measuring, command, validation, measured_host(arena)},
                 .of_row = ARENA_ARRAY(arena, MeasuredRun *, validation->row_count + 1)};
    const ValidateMeans means = {.recall = recall, .run = run_row, .cancelled = cancelled, .state = &runs};
    const CoreClock begin = core_clock_now();
    TRY(validate_run(validation, &means, arena, error));
    validate_summarize(validation, arena);
    if (measured_here(&measuring->like.launch, &measuring->options)) {
        validation->core_use = core_clock_use(&begin, validation->request->world);
    }
    return STATUS_OK;
}
