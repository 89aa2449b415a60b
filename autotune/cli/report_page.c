// Gathers data for the page: what would change the answer, a simulated step of the best plan, and from the store the
// runs of the ranked plans and the recorded step of the best.

#include "autotune/cli/report_page.h"

#include <string.h>

#include "autotune/cli/executor_options.h"
#include "autotune/cli/other_frameworks.h"
#include "autotune/cli/step_files.h"
#include "autotune/explain/explain.h"
#include "autotune/measure/recall.h"
#include "autotune/predict/predict_timeline.h"
#include "reports/format.h"
#include "reports/html/html.h"

enum { ASKED_CANDIDATES = 20000 };  // beyond, explain's further searches take longer than anybody waits for a page

typedef struct Gathering {
    Cli *cli;
    const ReportPage *page;
    Measuring measuring;  // as validate would
    HtmlReport report;
    Explanation explanation;
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

static Status simulate(const HtmlReport *report, const TrainPlan *plan, HtmlTimeline *step, Error *error) {
    StepProgram *program = ARENA_NEW(report->arena, StepProgram);
    Timeline *timeline = ARENA_NEW(report->arena, Timeline);
    *step = (HtmlTimeline){.program = program, .timeline = timeline};
    return predict_timeline(report->result->request, plan, report->arena, program, timeline, &step->rank, error);
}

static Status gather_timelines(Gathering *gathering, Error *error) {
    HtmlReport *report = &gathering->report;
    if (report->result->entry_count == 0) {
        return STATUS_OK;
    }
    const Prediction *best = &report->result->entries[0];
    const TrainPlan short_plan = memory_step_plan(&best->plan);
    TRY(simulate(report, &best->plan, &report->simulated, error));
    TRY(simulate(report, &short_plan, &report->memory_step, error));
    Timeline *measured = ARENA_NEW(report->arena, Timeline);
    const TimelineQuery query = {.run_id = gathering->page->run.id,
                                 .content_hash = best->content_hash,
                                 .measurement_hash = measuring_hash(&gathering->measuring, &best->plan)};
    bool found = false;
    const StepProgram *program = report->simulated.program;
    TRY(store_timeline(gathering->cli->store, &query, program, report->arena, measured, &found, error));
    if (found) {
        report->measured = (HtmlTimeline){program, measured, report->simulated.rank};
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

// What the store has of the answer.
static Status recall(Gathering *gathering, Error *error) {
    HtmlReport *report = &gathering->report;
    const TuneResult *result = report->result;
    Store *store = gathering->cli->store;
    char best[FORMAT_BYTES] = "";
    if (result->entry_count > 0) {
        format_layout(&result->entries[0].plan.mesh, best);
    }
    if (!report->validation) {
        TRY(recall_validation(&gathering->measuring, result, &gathering->page->run, &report->validation, error));
    }
    TRY(recall_failures(store, result->request, report->arena, &report->failed, &report->failed_count, error));
    return recall_preflight(store, result->request, best, report->arena, &report->preflight, &report->preflight_of_best,
                            error);
}

Status report_page_write(Cli *cli, const ReportPage *page, const Validation **validation, Error *error) {
    Gathering *gathering = ARENA_NEW(&cli->arena, Gathering);
    *gathering = (Gathering){
        .cli = cli, .page = page, .measuring = executor_measuring(cli, page->result->request, page->executed)};
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
    TRY(recall(gathering, error));
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
