// ndtune export: a plan as the config file of a framework. The plan is the one that --mesh names, the best of a world,
// or the best of the last request.

#include <stdio.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/request.h"
#include "reports/export/export.h"
#include "reports/format.h"

typedef struct ExportCall {
    const ExportFormat *format;
    ExportJob job;
    bool json;  // the file inside an object
} ExportCall;

// --as without --target: the format's own target.
static Status choose_format(Cli *cli, const ExportFormat **format, Error *error) {
    OptionValue *target = &cli->options.values[OPTION_TARGET];
    *format = NULL;
    if (!cli_given(cli, OPTION_AS)) {
        return STATUS_OK;
    }
    char as[40];
    option_word(option_row(OPTION_AS).value, (int)cli_value(cli, OPTION_AS)->integer, as, sizeof as);
    TRY(cli_blame(cli, OPTION_AS, export_find(as, format, error)));
    if (!target->given && (*format)->target) {
        *target = (OptionValue){.given = true, .text = (*format)->target, .argument = -1};
    }
    return STATUS_OK;
}

static Status one_plan(Cli *cli, TuneRequest *request, Prediction *prediction, Error *error) {
    TRY(request_build(cli, &predict_defaults, request, error));
    FAIL_WITH(cli_given(cli, OPTION_WORLD) && cli_value(cli, OPTION_WORLD)->integer != request->world,
              cli_refuse(cli, OPTION_WORLD, error, "--mesh has %d ranks: leave --world away", request->world));
    TrainPlan plan;
    request_plan(request, &request->mesh, &plan);
    OnePlan one;
    TRY(cli_predict(cli, request, &plan, false, &one, error));
    FAIL_IF(!one.legal, error, STATUS_USAGE, "this plan is not legal: %s", one.reason);
    FAIL_IF(one.reason, error, STATUS_INFEASIBLE, "this plan %s", one.reason);
    *prediction = one.prediction;
    return STATUS_OK;
}

// The search excludes what no file of the format can express, so that its best choice of a shape can be written.
static Status narrow(Cli *cli, const ExportFormat *format, TuneRequest *request, Error *error) {
    if (!format->target) {  // a file that wraps the usual one
        TRY(cli_blame(cli, OPTION_TARGET, export_usual(request->target, &format, error)));
    }
    const bool open = request->asked[PLAN_RESHARD] == TUNE_ANY && request->target->max_zero == 3 &&
                      (request->asked[PLAN_ZERO] == TUNE_ANY || request->asked[PLAN_ZERO] == 3);
    export_narrow(format, request);
    if (open && request->asked[PLAN_RESHARD] == RESHARD_ALWAYS && !request->target->always_reshards) {
        fprintf(stderr, "ndtune: a file of %s has no --reshard never: plans with it are left out\n", format->name);
    }
    if (!cli_given(cli, OPTION_RANK_ORDER)) {
        request->any_order = false;
    }
    return STATUS_OK;
}

enum { PASSED_OVER_MOST = 3 };  // that are named; of a model that no file can hold there are hundreds

static void say_passed_over(int count) {
    const int more = count - PASSED_OVER_MOST;
    if (more > 0) {
        fprintf(stderr, "ndtune: %d more %s passed over\n", more, more == 1 ? "is" : "are");
    }
}

// The best entry that the format can write; better ones are named with what prevents them.
static Status take_first(Cli *cli, const TuneResult *result, ExportCall *call, Prediction *prediction, Error *error) {
    Error best = {0};
    for (int i = 0; i < result->entry_count; i++) {
        const ExportJob job = {
            .request = result->request, .prediction = &result->entries[i], .command = cli->line, .arena = &cli->arena};
        Error why = {0};
        if (export_check(call->format, &job, &why) == STATUS_OK) {
            say_passed_over(i);
            *prediction = result->entries[i];
            return STATUS_OK;
        }
        best = i == 0 ? why : best;
        if (i < PASSED_OVER_MOST) {
            fprintf(stderr, "ndtune: place %d, %s, is passed over: %s\n", i + 1,
                    mesh_text(&result->entries[i].plan.mesh, MESH_BUFFER), why.message);
        }
    }
    say_passed_over(result->entry_count);
    return error_set(error, STATUS_USAGE, "no shape that fits can be written; of the best: %s", best.message);
}

static Status best_plan(Cli *cli, ExportCall *call, TuneRequest *request, Prediction *prediction, Error *error) {
    TRY(cli_one_world(cli, error));
    TRY(request_build(cli, &search_defaults, request, error));
    if (!call->format) {
        TRY(cli_blame(cli, OPTION_TARGET, export_usual(request->target, &call->format, error)));
    }
    TRY(narrow(cli, call->format, request, error));
    TuneResult result;
    TRY(cli_search(cli, request, &result, error));
    FAIL_WITH(result.entry_count == 0, cli_say_what_fits(cli, &result, error));
    return take_first(cli, &result, call, prediction, error);
}

static Status write_file(const void *what, FILE *out, Error *error) {
    const ExportCall *call = what;
    return call->json ? export_json(call->format, &call->job, out, error)
                      : export_write(call->format, &call->job, out, error);
}

Status cmd_export(Cli *cli, Error *error) {
    TRY(cli_open_store_to_ask(cli, error));
    FAIL_WITH(cli_format(cli) == FORMAT_CSV,
              cli_refuse(cli, OPTION_FORMAT, error, "a config file is no table: --format csv has nothing to write"));
    const bool named = cli_given(cli, OPTION_MESH) || cli_given(cli, OPTION_WORLD) || cli_given(cli, OPTION_MODEL);
    if (!named) {
        TRY(last_request_take(cli, error));
    }
    ExportCall call;
    TRY(choose_format(cli, &call.format, error));
    TuneRequest request;
    Prediction prediction = {0};
    TRY(cli_given(cli, OPTION_MESH) ? one_plan(cli, &request, &prediction, error)
                                    : best_plan(cli, &call, &request, &prediction, error));
    if (!call.format) {
        TRY(cli_blame(cli, OPTION_TARGET, export_usual(request.target, &call.format, error)));
    }
    format_assumptions(&request, stderr);
    const char *path = cli_text_or(cli, OPTION_OUT, NULL);
    call.json = cli_format(cli) == FORMAT_JSON;
    call.job = (ExportJob){
        .request = &request, .prediction = &prediction, .command = cli->line, .file_name = path, .arena = &cli->arena};
    return path ? cli_write_file(cli, path, write_file, &call, error) : write_file(&call, stdout, error);
}
