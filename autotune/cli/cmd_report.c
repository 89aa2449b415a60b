// ndtune report: one HTML page of the last request, of a stored run, or of the request given here.

#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/report_page.h"
#include "autotune/cli/request.h"
#include "autotune/cli/tune_recall.h"
#include "reports/html/html.h"
#include "reports/json_objects.h"
#include "sim/base/text.h"

extern char **environ;

static const char usual_path[] = "ndtune-report.html";

// Asks again what `command` asked, with the options as they are now.
static Status ask(Cli *cli, CommandId command, TuneRequest *request, ReportPage *page, Error *error) {
    const bool validates = command == COMMAND_VALIDATE || command == COMMAND_TUNE;
    page->one_plan = command == COMMAND_RUN || command == COMMAND_PREDICT;
    const RequestDefaults *defaults = command == COMMAND_RUN       ? &run_defaults
                                      : validates                  ? &validate_defaults
                                      : command == COMMAND_PREDICT ? &predict_defaults
                                                                   : &search_defaults;
    if (command == COMMAND_VALIDATE) {
        TRY(executor_check_with(cli, error));  // --with names the target, too
    }
    TRY(request_build(cli, defaults, request, error));
    if (cli->options.list_count > 1) {
        error_set(error, STATUS_USAGE, "a page is of one world, not of a list: %s", cli->line);
        return error_hint(error, "ndtune report --world N --model NAME");
    }
    if ((validates || command == COMMAND_RUN) && !cli_given(cli, OPTION_WITH)) {
        TRY(measuring_takes(request, executor_lanes(cli), &cli->arena, &page->executed, error));
    }
    TuneResult *result = ARENA_NEW(&cli->arena, TuneResult);
    page->result = result;
    if (page->one_plan) {
        OnePlan one;
        TrainPlan plan;
        request_plan(request, &request->mesh, &plan);
        TRY(cli_predict(cli, request, &plan, false, &one, error));
        one_plan_result(request, &one, &cli->arena, result);
        return STATUS_OK;
    }
    TRY(cli_search(cli, request, result, error));
    return command == COMMAND_TUNE ? tune_recall(cli, result, page->executed, &page->tuning, error) : STATUS_OK;
}

static Status become_run(Cli *cli, CommandId *command, ReportPage *page, Error *error) {
    const int64_t id = cli_value(cli, OPTION_RUN)->integer;
    StoredRun about;
    RunRecord *run = ARENA_NEW(&cli->arena, RunRecord);
    bool found = false;
    TRY(store_run_in_full(cli->store, id, &cli->arena, &about, run, &found, error));
    if (!found) {
        cli_refuse(cli, OPTION_RUN, error, "the store has no run %lld", (long long)id);
        return error_hint(error, "ndtune runs lists them");
    }
    page->run = (NamedRun){id, run, about.plan};
    page->again = arena_format(&cli->arena, "ndtune report --run %lld", (long long)id);
    return last_request_read(cli, about.command, command, error);
}

static Status refuse_beside_run(Cli *cli, Error *error) {
    static const OptionId asked[] = {OPTION_WORLD, OPTION_MODEL};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        FAIL_WITH(cli_given(cli, OPTION_RUN) && cli_given(cli, asked[i]),
                  cli_refuse(cli, asked[i], error,
                             "a stored run says itself what was asked: --%s does not go with --run",
                             option_row(asked[i]).name));
    }
    FAIL_WITH(cli_format(cli) == FORMAT_CSV,
              cli_refuse(cli, OPTION_FORMAT, error, "a page is no table: --format csv has nothing to write"));
    return STATUS_OK;
}

static Status say(const Cli *cli, const ReportPage *page, const Validation *validation, Error *error) {
    struct stat about = {0};
    stat(page->path, &about);
    const TuneResult *result = page->result;
    const int measured = validation ? validation->agreement.count : 0;
    if (cli_format(cli) == FORMAT_JSON) {
        return json_print(json_pack("{s:s, s:s, s:I, s:b, s:o, s:i, s:i, s:i}", "schema", "ndtune.report/1", "html",
                                    page->path, "bytes", (json_int_t)about.st_size, "charts", html_has_charts(),
                                    "request", json_request(result->request), "entries", result->entry_count,
                                    "candidates", result->candidate_count, "measured", measured),
                          stdout, error);
    }
    printf("%s: %s, %d shape%s ranked, %d measured\n", page->path, text_bytes(UNIT_BUFFER, (double)about.st_size),
           result->entry_count, result->entry_count == 1 ? "" : "s", measured);
    return STATUS_OK;
}

static Status open_page(const char *path, Error *error) {
    char *const words[] = {"xdg-open", (char *)path, NULL};
    pid_t browser;
    const int code = posix_spawnp(&browser, words[0], NULL, NULL, words, environ);
    FAIL_IF(code != 0, error, STATUS_ENVIRONMENT, "the page is written, but xdg-open could not be started: %s",
            strerror(code));
    return STATUS_OK;
}

Status cmd_report(Cli *cli, Error *error) {
    TRY(cli_open_store_to_ask(cli, error));
    TRY(refuse_beside_run(cli, error));
    ReportPage page = {.path = cli_given(cli, OPTION_HTML) ? cli_value(cli, OPTION_HTML)->text : usual_path};
    CommandId command = COMMAND_PLAN;
    if (cli_given(cli, OPTION_RUN)) {
        TRY(become_run(cli, &command, &page, error));
    } else if (!cli_given(cli, OPTION_WORLD) && !cli_given(cli, OPTION_MODEL)) {
        const char *typed = cli->line;
        const bool adds = cli_given(cli, OPTION_TOKENS) || cli_given(cli, OPTION_BASELINE);
        TRY(last_request_become(cli, &command, error));
        page.again = adds ? arena_format(&cli->arena, "%s, after: %s", typed, cli->line) : NULL;
    }
    TuneRequest request;
    const Validation *validation = NULL;
    TRY(ask(cli, command, &request, &page, error));
    TRY(report_page_write(cli, &page, &validation, error));
    TRY(say(cli, &page, validation, error));
    if (cli_given(cli, OPTION_OPEN)) {
        TRY(open_page(page.path, error));
    }
    return page.result->entry_count > 0 ? STATUS_OK : cli_nothing_feasible(page.result, error);
}
