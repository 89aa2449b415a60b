// Gathers data for the page: what would change the answer, a simulated step of the best plan, and from the store the
// runs of the ranked plans and the recorded step of the best.

#include "autotune/cli/report_page.h"

#include <stdio.h>
#include <string.h>

#include "autotune/calibrate/calibrate.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/other_frameworks.h"
#include "autotune/cli/step_files.h"
#include "autotune/explain/explain.h"
#include "autotune/predict/predict_timeline.h"
#include "reports/format.h"
#include "reports/html/html.h"

enum {
    ASKED_CANDIDATES = 20000,  // beyond, the further searches of explain take longer than anybody waits for a page
    RECALLED_ENTRIES = 64,     // of the ranking, looked up in the store
    RECALLED_RUNS = 16,        // of each
    RECALLED_FAILURES = 200,   // of the newest runs, those that did not end well
    RECALLED_PREFLIGHTS = 200  // the newest
};

typedef struct Gathering {
    Cli *cli;
    const ReportPage *page;
    HtmlReport report;
    Explanation explanation;
    StepProgram program, memory_program;
    Timeline simulated, measured, memory_step;
} Gathering;

static Status ask_questions(Gathering *gathering, Error *error) {
    HtmlReport *report = &gathering->report;
    const TuneResult *result = report->result;
    if (gathering->page->one_plan) {
        report->explanation_missing =
            "One plan was predicted, nothing was searched: ndtune explain --world N asks what would change the answer.";
    } else if (result->entry_count == 0) {
        report->explanation_missing = "Nothing runs; a larger world, more memory or shorter sequences would be needed.";
    } else if (result->candidate_count > ASKED_CANDIDATES) {
        report->explanation_missing = arena_format(
            report->arena, "With %d candidates this takes its time and was not asked: ndtune explain answers it.",
            result->candidate_count);
    } else {
        const Progress progress = cli_progress(gathering->cli);
        const Status status = explain_run(result, &progress, &gathering->explanation, error);
        cli_progress_clear(gathering->cli);
        report->explanation = &gathering->explanation;
        return status;
    }
    return STATUS_OK;
}

// By what validate would know a run of this plan again, whatever the profile said on its day; 0 = our executor does not
// run it.
static uint64_t measurement_of(const Gathering *gathering, const Prediction *entry) {
    const Measuring measuring =
        executor_measuring(gathering->cli, gathering->report.result->request, gathering->page->executed);
    return measuring_hash(&measuring, &entry->plan);
}

// The run that was asked about stands here even where another version of ndtune made it, which knows no others by hash.
static void take_asked_run(const ReportPage *page, ValidateRow *row) {
    char plan[PLAN_TEXT_BYTES];
    if (row->run_count == 0 && page->run && strcmp(page->run->state, "ok") == 0 &&
        strcmp(plan_text(&row->prediction->plan, plan), page->run_plan) == 0) {
        row->runs[row->run_count++] = *page->run;
    }
}

static Status recall_row(const Gathering *gathering, int place, ValidateRow *row, Error *error) {
    Arena *arena = gathering->report.arena;
    const Prediction *entry = &gathering->report.result->entries[place];
    *row = (ValidateRow){.prediction = entry, .place = place + 1, .state = "ok"};
    row->runs = ARENA_ARRAY(arena, RunRecord, RECALLED_RUNS);
    const uint64_t measurement = measurement_of(gathering, entry);
    if (measurement != 0) {
        TRY(store_measurements(gathering->cli->store, measurement, RECALLED_RUNS, arena, row->runs, &row->run_count,
                               error));
    }
    if (row->run_count == 0) {
        TRY(store_runs_of(gathering->cli->store, entry->content_hash, RECALLED_RUNS, arena, row->runs, &row->run_count,
                          error));
    }
    take_asked_run(gathering->page, row);
    row->recalled = row->run_count;
    return STATUS_OK;
}

static Status recall_runs(Gathering *gathering, Error *error) {
    const TuneResult *result = gathering->report.result;
    Arena *arena = gathering->report.arena;
    const int most = result->entry_count < RECALLED_ENTRIES ? result->entry_count : RECALLED_ENTRIES;
    Validation *validation = ARENA_NEW(arena, Validation);
    *validation = (Validation){.request = result->request,
                               .source = "executor",
                               .shapes = result->entry_count,
                               .rows = ARENA_ARRAY(arena, ValidateRow, most)};
    for (int i = 0; i < most; i++) {
        ValidateRow *row = &validation->rows[validation->row_count];
        TRY(recall_row(gathering, i, row, error));
        if (row->run_count > 0) {
            validation->source = row->runs[0].source;
            validation->row_count++;
        }
    }
    validate_summarize(validation, arena);
    gathering->report.validation = validation->row_count > 0 ? validation : NULL;
    return STATUS_OK;
}

// What went wrong with this model, newest first.
static Status recall_failures(Gathering *gathering, Error *error) {
    HtmlReport *report = &gathering->report;
    StoredList list;
    TRY(store_list(gathering->cli->store, RECALLED_FAILURES, report->arena, &list, error));
    StoredRun *failed = ARENA_ARRAY(report->arena, StoredRun, list.run_count);
    for (int i = 0; i < list.run_count; i++) {
        const StoredRun *run = &list.runs[i];
        if (strcmp(run->state, "ok") != 0 && strcmp(run->model, report->result->request->model.name) == 0) {
            failed[report->failed_count++] = *run;
        }
    }
    report->failed = failed;
    return STATUS_OK;
}

// Of as many ranks on this machine (a calibrated profile is its parent's): the newest of the best shape, else the
// newest.
static Status recall_preflight(Gathering *gathering, Error *error) {
    HtmlReport *report = &gathering->report;
    const TuneResult *result = report->result;
    char best[FORMAT_BYTES] = "";
    if (result->entry_count > 0) {
        format_layout(&result->entries[0].plan.mesh, best);
    }
    StoredList list;
    TRY(store_list(gathering->cli->store, RECALLED_PREFLIGHTS, report->arena, &list, error));
    const StoredPreflight *chosen = NULL;
    for (int i = 0; i < list.preflight_count; i++) {
        const StoredPreflight *row = &list.preflights[i];
        const bool same = row->world == result->request->world &&
                          calibration_same_machine(row->cluster, result->request->cluster.name);
        const bool better = !chosen || (strcmp(chosen->mesh, best) != 0 && strcmp(row->mesh, best) == 0);
        chosen = same && better ? row : chosen;
    }
    if (!chosen) {
        return STATUS_OK;
    }
    StoredPreflight *preflight = ARENA_NEW(report->arena, StoredPreflight);
    bool found = false;
    TRY(store_preflight(gathering->cli->store, chosen->id, report->arena, preflight, &found, error));
    report->preflight = found ? preflight : NULL;
    report->preflight_of_best = strcmp(chosen->mesh, best) == 0;
    return STATUS_OK;
}

static Status gather_timelines(Gathering *gathering, Error *error) {
    HtmlReport *report = &gathering->report;
    if (report->result->entry_count == 0) {
        return STATUS_OK;
    }
    const Prediction *best = &report->result->entries[0];
    HtmlTimeline *simulated = &report->simulated;
    TRY(predict_timeline(report->result->request, &best->plan, report->arena, &gathering->program,
                         &gathering->simulated, &simulated->rank, error));
    simulated->program = &gathering->program;
    simulated->timeline = &gathering->simulated;
    const TrainPlan short_plan = memory_step_plan(&best->plan);
    HtmlTimeline *memory = &report->memory_step;
    TRY(predict_timeline(report->result->request, &short_plan, report->arena, &gathering->memory_program,
                         &gathering->memory_step, &memory->rank, error));
    memory->program = &gathering->memory_program;
    memory->timeline = &gathering->memory_step;
    const TimelineQuery query = {.run_id = gathering->page->run_id,
                                 .content_hash = best->content_hash,
                                 .measurement_hash = measurement_of(gathering, best)};
    bool found = false;
    TRY(store_timeline(gathering->cli->store, &query, &gathering->program, report->arena, &gathering->measured, &found,
                       error));
    if (found) {
        report->measured = (HtmlTimeline){&gathering->program, &gathering->measured, simulated->rank};
    }
    return STATUS_OK;
}

// What the charts divide further: the compute of the fastest shapes, the stages of the best.
static Status gather_parts(Gathering *gathering, Error *error) {
    HtmlReport *report = &gathering->report;
    const TuneResult *result = report->result;
    if (result->entry_count == 0) {
        return STATUS_OK;
    }
    report->split_count = result->entry_count < HTML_SPLIT ? result->entry_count : HTML_SPLIT;
    ComputeSplit *splits = ARENA_ARRAY(report->arena, ComputeSplit, report->split_count);
    for (int i = 0; i < report->split_count; i++) {
        TRY(compute_split(result->request, &result->entries[i], &splits[i], error));
    }
    report->splits = splits;
    return predict_stages(result->request, &result->entries[0].plan, report->arena, &report->stages, error);
}

// Of the best plan; the recorded step lies over the simulated one.
static Status write_step_files(Gathering *gathering, Error *error) {
    const HtmlReport *report = &gathering->report;
    if (report->result->entry_count == 0) {
        return STATUS_OK;
    }
    const TraceStep measured = {report->measured.program, report->measured.timeline};
    return step_files_write(gathering->cli, report->result->request, &report->result->entries[0].plan,
                            &(MeasuredSteps){&measured, measured.program != NULL}, error);
}

Status report_page_write(Cli *cli, const ReportPage *page, const Validation **validation, Error *error) {
    Gathering *gathering = ARENA_NEW(&cli->arena, Gathering);
    *gathering = (Gathering){.cli = cli, .page = page};
    HtmlReport *report = &gathering->report;
    const char *command = page->result->request->command;
    const bool has_html = strstr(command, "--html");
    *report = (HtmlReport){
        .result = page->result,
        .validation = page->validation,
        .tuning = page->tuning,
        .one_plan = page->one_plan,
        .again = page->again ? page->again
                             : arena_format(&cli->arena, "%s%s", command, has_html ? "" : " --html report.html"),
        .arena = &cli->arena};
    TRY(ask_questions(gathering, error));
    if (!page->validation) {
        TRY(recall_runs(gathering, error));
    }
    TRY(recall_failures(gathering, error));
    TRY(recall_preflight(gathering, error));
    HtmlOther *others = NULL;
    TRY(other_frameworks(cli, page->result, &others, &report->other_count, error));
    report->others = others;
    TRY(gather_timelines(gathering, error));
    TRY(gather_parts(gathering, error));
    if (cli->command == COMMAND_REPORT) {
        TRY(write_step_files(gathering, error));
    }
    if (validation) {
        *validation = report->validation;
    }
    return cli_blame(cli, OPTION_HTML, cli_write_file(cli, page->path, html_report, report, error));
}

Status report_page_option(Cli *cli, const ReportPage *page, Error *error) {
    ReportPage named = *page;
    named.path = cli_value(cli, OPTION_HTML)->text;
    return cli_given(cli, OPTION_HTML) ? report_page_write(cli, &named, NULL, error) : STATUS_OK;
}

void report_page_single(Cli *cli, const TuneRequest *request, const Prediction *prediction, const char *rule,
                        const char *reason, TuneResult *result) {
    Candidate *candidate = ARENA_NEW(&cli->arena, Candidate);
    const MemoryBreakdown *memory = &prediction->memory;
    *candidate = (Candidate){.plan = prediction->plan,
                             .state = reason ? CANDIDATE_REJECTED : CANDIDATE_SIMULATED,
                             .rule = rule,
                             .reason = reason,
                             .step_s = prediction->step_s,
                             .tokens_per_s = prediction->tokens_per_s,
                             .peak_bytes = memory->peak_bytes,
                             .reserved_bytes = memory->reserved_bytes,
                             .content_hash = prediction->content_hash,
                             .prediction = reason ? NULL : prediction};
    *result = (TuneResult){.request = request,
                           .candidates = candidate,
                           .candidate_count = 1,
                           .search = {.shapes = 1, .candidates = 1, .pruned = reason != NULL, .simulated = !reason}};
    if (reason) {
        result->rejected = ARENA_NEW(&cli->arena, Rejection);
        result->rejected[0] = (Rejection){prediction->plan, rule, reason};
        result->rejected_count = 1;
    } else {
        result->entries = ARENA_NEW(&cli->arena, Prediction);
        result->entries[0] = *prediction;
        result->entry_count = 1;
    }
}
