// Reads the files, predicts row by row, then passes the predicted rows to scoring. Every row ends up scored or skipped
// with a reason. The only constant fitted here is the baseline's; left_out.c does the refits, on request.

#include "autotune/accuracy/accuracy.h"

#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/predict_runs.h"
#include "autotune/accuracy/score.h"

typedef struct Work {
    Accuracy *accuracy;
    Arena *arena;
    RunMapper *mapper;
    RunPredictor *predictor;
    const Progress *progress;
    int done, total;
} Work;

// Maps and predicts every row of a file; false when cancelled.
static bool predict_file(Work *work, const RunFile *file, bool memory_only, RunCase **cases) {
    *cases = ARENA_ARRAY(work->arena, RunCase, file->count);
    for (int i = 0; i < file->count; i++) {
        RunCase *run = &(*cases)[i];
        run_case_build(work->mapper, &file->rows[i], run);
        if (!run->skipped && !memory_only && run->row->says_no_time && run->measured_step_s == 0) {
            run->skipped = "step_time_s is 0";
        }
        if (!run->skipped) {
            run_predict(work->predictor, run, memory_only);
        }
        if (!progress_update(work->progress, "rows", ++work->done, work->total)) {
            return false;
        }
    }
    return true;
}

static const RunCase **predicted_rows(const RunFile *file, const RunCase *cases, Arena *arena, int *count) {
    const RunCase **rows = ARENA_ARRAY(arena, const RunCase *, file->count);
    *count = 0;
    for (int i = 0; i < file->count; i++) {
        if (!cases[i].skipped) {
            rows[(*count)++] = &cases[i];
        }
    }
    return rows;
}

typedef struct Rows {
    const RunCase **of;
    int count;
} Rows;

static Rows rows_that(RunTest holds, const RunCase *const *runs, int count, Arena *arena) {
    Rows rows = {ARENA_ARRAY(arena, const RunCase *, count), 0};
    for (int i = 0; i < count; i++) {
        if (holds(runs[i])) {
            rows.of[rows.count++] = runs[i];
        }
    }
    return rows;
}

static bool has_half(const RunCase *run) {
    return run->row->half;
}

static bool has_software(const RunCase *run) {
    return run->row->software && run->row->software[0];
}

// Per target and over all targets, by half; rows in neither half are left out.
static void score_halves(Accuracy *accuracy, const RunCase *const *timed, int count, Arena *arena) {
    const Rows halved = rows_that(has_half, timed, count, arena);
    const ScoreTable by_target =
        score_table(halved.of, halved.count, (ScoreSplit){.target = true, .half = true}, false, arena);
    const ScoreTable all = score_table(halved.of, halved.count, (ScoreSplit){.half = true}, false, arena);
    accuracy->step_by_half = (ScoreTable){ARENA_ARRAY(arena, ScoreRow, by_target.count + all.count), 0};
    for (int i = 0; i < by_target.count + all.count; i++) {
        accuracy->step_by_half.rows[accuracy->step_by_half.count++] =
            i < by_target.count ? by_target.rows[i] : all.rows[i - by_target.count];
    }
}

// Only rows that state their software.
static void score_software(Accuracy *accuracy, const RunCase *const *runs, int count, Arena *arena) {
    const ScoreSplit split = {.source = true, .software = true, .cluster = true};
    const Rows said = rows_that(has_software, runs, count, arena);
    accuracy->step_by_software = score_table(said.of, said.count, split, false, arena);
}

static void score_steps(Accuracy *accuracy, const RunCase *const *runs, int count, Arena *arena) {
    const Rows timed = rows_that(accuracy_has_step, runs, count, arena);
    const Rows measured = rows_that(accuracy_is_measured, runs, count, arena);
    accuracy->step = score_step(timed.of, timed.count);
    accuracy->step_measured = score_step(measured.of, measured.count);
    accuracy->step_by = score_table(timed.of, timed.count, (ScoreSplit){.target = true, .cluster = true}, false, arena);
    accuracy->step_by_target = score_table(timed.of, timed.count, (ScoreSplit){.target = true}, false, arena);
    accuracy->step_by_source = score_table(timed.of, timed.count, (ScoreSplit){.source = true}, false, arena);
    accuracy->step_by_class =
        score_table(timed.of, timed.count, (ScoreSplit){.target = true, .cluster = true, .class = true}, false, arena);
    accuracy->step_by_machine =
        score_table(timed.of, timed.count, (ScoreSplit){.source = true, .cluster = true}, false, arena);
    score_software(accuracy, timed.of, timed.count, arena);
    score_halves(accuracy, timed.of, timed.count, arena);
}

static void score_memories(Accuracy *accuracy, const RunCase *const *runs, int count, Arena *arena) {
    const RunCase **known = ARENA_ARRAY(arena, const RunCase *, count);
    const RunCase **every = ARENA_ARRAY(arena, const RunCase *, count);
    int known_count = 0, every_count = 0;
    for (int i = 0; i < count; i++) {
        MemoryKind kind;
        double measured, predicted;
        if (accuracy_memory(runs[i], &kind, &measured, &predicted)) {
            every[every_count++] = runs[i];
            known[known_count] = runs[i];
            known_count += kind != MEMORY_KIND_UNKNOWN;
        }
    }
    const ScoreSplit split = {.target = true, .cluster = true, .kind = true};
    accuracy->memory = score_memory(known, known_count);
    accuracy->memory_by = score_table(every, every_count, split, true, arena);
    accuracy->memory_by_kind = score_table(every, every_count, (ScoreSplit){.kind = true}, true, arena);
}

static void score_failures(Accuracy *accuracy, const RunCase *const *runs, int count) {
    OomScore *oom = &accuracy->oom;
    for (int i = 0; i < accuracy->failures.count; i++) {
        const RunCase *run = &accuracy->failure_cases[i];
        if (run->skipped) {
            continue;
        }
        oom->n++;
        oom->called_infeasible += !run->prediction.fits;
        oom->certain += run->row->oom_certain == 1;
        oom->certain_called_infeasible += run->row->oom_certain == 1 && !run->prediction.fits;
    }
    for (int i = 0; i < count; i++) {
        if (runs[i]->row->gpu_mem_gb > 0) {
            oom->feasible_rows++;
            oom->called_feasible += runs[i]->prediction.fits;
        }
    }
}

static void count_skip(Accuracy *accuracy, const RunCase *run, bool failure, size_t *capacity, Arena *arena) {
    if (!run->skipped) {
        return;
    }
    int at = 0;
    while (at < accuracy->skip_count && strcmp(accuracy->skips[at].reason, run->skipped) != 0) {
        at++;
    }
    if (at == accuracy->skip_count) {
        ARENA_PUSH(arena, accuracy->skips, accuracy->skip_count, capacity) = (SkipReason){.reason = run->skipped};
    }
    accuracy->skips[at].runs += !failure;
    accuracy->skips[at].failures += failure;
}

static int compare_skips(const void *a, const void *b) {
    const SkipReason *left = a, *right = b;
    const int by_rows = right->runs + right->failures - left->runs - left->failures;
    return by_rows != 0 ? by_rows : strcmp(left->reason, right->reason);
}

static void count_rest(Accuracy *accuracy, Arena *arena) {
    size_t capacity = 0;
    int loss_count = 0;
    run_case_losses(&loss_count);
    accuracy->loss_rows = ARENA_ARRAY(arena, int, loss_count);
    for (int i = 0; i < accuracy->runs.count; i++) {
        count_skip(accuracy, &accuracy->cases[i], false, &capacity, arena);
        for (int loss = 0; loss < loss_count; loss++) {
            const bool holds = !accuracy->cases[i].skipped && (accuracy->cases[i].not_expressed >> loss & 1);
            accuracy->loss_rows[loss] += holds;
        }
    }
    for (int i = 0; i < accuracy->failures.count; i++) {
        count_skip(accuracy, &accuracy->failure_cases[i], true, &capacity, arena);
    }
    if (accuracy->skip_count > 0) {
        qsort(accuracy->skips, (size_t)accuracy->skip_count, sizeof *accuracy->skips, compare_skips);
    }
}

static Status read_and_predict(Work *work, RunGroups *groups, Error *error) {
    Accuracy *accuracy = work->accuracy;
    const AccuracyOptions *options = &accuracy->options;
    TRY(run_files_read(options->runs_paths, work->arena, &accuracy->runs, error));
    if (options->oom_paths) {
        TRY(run_files_read(options->oom_paths, work->arena, &accuracy->failures, error));
    }
    run_file_split(&accuracy->runs, &accuracy->failures, work->arena);
    for (int i = 0; options->groups_paths && options->groups_paths[i]; i++) {
        TRY(run_groups_read(options->groups_paths[i], &accuracy->runs, work->arena, groups, error));
    }
    work->total = accuracy->runs.count + accuracy->failures.count;
    FAIL_IF(!predict_file(work, &accuracy->runs, false, &accuracy->cases) ||
                !predict_file(work, &accuracy->failures, true, &accuracy->failure_cases),
            error, STATUS_ENVIRONMENT, "interrupted after %d of %d rows", work->done, work->total);
    return STATUS_OK;
}

Status accuracy_run(const AccuracyOptions *options, const Progress *progress, Arena *arena, Accuracy *accuracy,
                    Error *error) {
    *accuracy = (Accuracy){.options = *options};
    Work work = {.accuracy = accuracy,
                 .arena = arena,
                 .mapper = run_mapper_new(arena),
                 .predictor = run_predictor_new(options->effort, arena),
                 .progress = progress};
    RunGroups groups = {0};
    const Status status = read_and_predict(&work, &groups, error);
    run_predictor_free(work.predictor);
    if (status != STATUS_OK) {
        return status;
    }
    const RunCase **runs = predicted_rows(&accuracy->runs, accuracy->cases, arena, &accuracy->scored);
    score_steps(accuracy, runs, accuracy->scored, arena);
    score_memories(accuracy, runs, accuracy->scored, arena);
    score_failures(accuracy, runs, accuracy->scored);
    score_ranking(accuracy->cases, &groups, accuracy_has_step, arena, &accuracy->ranking);
    score_ranking(accuracy->cases, &groups, accuracy_is_measured, arena, &accuracy->ranking_measured);
    count_rest(accuracy, arena);
    FAIL_IF(options->leave_out && !left_out_run(accuracy->cases, accuracy->runs.count, options->effort, progress, arena,
                                                &accuracy->left_out),
            error, STATUS_ENVIRONMENT, "interrupted while sources were left out");
    return STATUS_OK;
}
