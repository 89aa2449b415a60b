// ndtune plan: which mesh shape to run; with a list of worlds, how the best shape scales.

#include <stdio.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/report_page.h"
#include "autotune/cli/request.h"
#include "autotune/explain/cures.h"
#include "autotune/explain/scaling.h"
#include "reports/reports.h"

static Status answer_one(Cli *cli, const TuneRequest *request, SearchKnown *known, Error *error) {
    TuneResult result;
    TRY(cli_search_near(cli, request, NULL, known, &result, error));
    if (result.entry_count == 0) {
        TRY(cures_find(request, &cli->arena, &result.cures, &result.cure_count, error));
    } else if (cli_format(cli) == FORMAT_JSON || (cli_format(cli) == FORMAT_TABLE && cli_given(cli, OPTION_VERBOSE))) {
        TRY(cli_find_formats(cli, &result, error));  // an engine's run each: only for who reads it
    }
    const bool in_full = cli_given(cli, OPTION_VERBOSE);
    const int rows = cli_integer_or(cli, OPTION_TOP, in_full ? TABLE_DEFAULT_ROWS : ANSWER_ROWS_THAT_FIT);
    TRY(cli_answer(cli, &answer_plan, &(PlanReport){&result, in_full, rows}, error));
    TRY(cli_write_option(cli, OPTION_CSV, csv_candidates, &result, error));
    TRY(store_save_result(cli->store, &result, error));
    TRY(report_page_option(cli, &(ReportPage){.result = &result}, error));
    TRY(cli_say_better_batch(cli, &result, known, error));
    TRY(cli_say_idle(cli, &result, error));
    if (cli_given(cli, OPTION_VERBOSE) && result.if_allowed) {
        printf("\nIf you allow %s\n", result.if_allowed);
    }
    return result.entry_count > 0 ? STATUS_OK : cli_say_what_fits(cli, &result, error);
}

static Status plan_one(Cli *cli, const TuneRequest *request, Error *error) {
    SearchKnown known = {0};
    const Status status = answer_one(cli, request, &known, error);
    search_known_free(&known);
    return status;
}

static Status plan_point(Cli *cli, const TuneRequest *first, int world, ScalingPoint *point, Error *error) {
    TuneRequest *request = ARENA_NEW(&cli->arena, TuneRequest);
    *request = *first;
    request_set_world(request, world, &cli->arena);
    TRY(request_check(cli, request, error));
    TuneResult result;
    TRY(cli_search(cli, request, &result, error));
    *point = (ScalingPoint){.request = request, .feasible = result.entry_count > 0, .search = result.search};
    if (point->feasible) {
        point->best = result.entries[0];
    } else {
        Error why = {0};
        cli_nothing_feasible(&result, &why);
        point->reason = arena_text(&cli->arena, why.message);
    }
    return STATUS_OK;
}

static Status plan_curve(Cli *cli, const TuneRequest *first, Error *error) {
    static const OptionId of_one_world[] = {OPTION_BASELINE, OPTION_CSV, OPTION_HTML, OPTION_TOP};
    for (size_t i = 0; i < sizeof of_one_world / sizeof of_one_world[0]; i++) {
        FAIL_WITH(cli_given(cli, of_one_world[i]),
                  cli_refuse(cli, of_one_world[i], error, "--%s belongs to one world, not to a list",
                             option_row(of_one_world[i]).name));
    }
    const int count = cli->options.list_count;
    ScalingCurve curve = {.points = ARENA_ARRAY(&cli->arena, ScalingPoint, count), .count = count};
    for (int i = 0; i < count; i++) {
        TRY(plan_point(cli, first, (int)cli->options.list[i], &curve.points[i], error));
    }
    scaling_finish(&curve, first->objective);
    TRY(cli_answer(cli, &answer_scaling, &curve, error));
    return curve.best >= 0 ? STATUS_OK : error_set(error, STATUS_INFEASIBLE, "no shape of any of the worlds can run");
}

Status cmd_plan(Cli *cli, Error *error) {
    TuneRequest request;
    TRY(request_build(cli, &search_defaults, &request, error));
    TRY(cli_open_store_to_ask(cli, error));
    return cli->options.list_count > 1 ? plan_curve(cli, &request, error) : plan_one(cli, &request, error);
}
