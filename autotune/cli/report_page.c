// The page that a command's options ask for, with the files of its step.

#include "autotune/cli/report_page.h"

#include <string.h>

#include "autotune/cli/executor_options.h"
#include "autotune/cli/other_frameworks.h"
#include "autotune/cli/step_files.h"
#include "autotune/page/page_facts.h"

static Status ask_questions(Cli *cli, HtmlReport *report, Error *error) {
    report->explanation_missing = page_unasked(report);
    if (report->explanation_missing) {
        return STATUS_OK;
    }
    const Progress progress = cli_progress(cli);
    const Status status = page_explain(report, &progress, error);
    cli_progress_clear(cli);
    return status;
}

// Of the best plan; the recorded step lies over the simulated one.
static Status write_step_files(Cli *cli, const HtmlReport *report, Error *error) {
    if (report->result->entry_count == 0) {
        return STATUS_OK;
    }
    const TraceStep measured = {report->measured.program, report->measured.timeline};
    return step_files_write(cli, report->result->request, &report->result->entries[0].plan,
                            &(MeasuredSteps){&measured, measured.program != NULL}, error);
}

Status report_page_write(Cli *cli, const ReportPage *page, const Validation **validation, Error *error) {
    HtmlReport *report = ARENA_NEW(&cli->arena, HtmlReport);
    const Measuring measuring = executor_measuring(cli, page->result->request, page->executed);
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
    TRY(ask_questions(cli, report, error));
    HtmlOther *others = NULL;
    TRY(other_frameworks(cli, page->result, &others, &report->other_count, error));
    report->others = others;
    TRY(page_gather(report, &(PageRuns){&measuring, page->run}, error));
    if (cli->command == COMMAND_REPORT) {
        TRY(write_step_files(cli, report, error));
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
