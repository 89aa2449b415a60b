// What --runs, --log and the store give a calibration: which file, which command line, which cluster.

#include "autotune/cli/calibrate_inputs.h"

#include <stdio.h>
#include <string.h>

#include "autotune/cli/executor_options.h"
#include "autotune/cli/request.h"
#include "autotune/measure/stored_samples.h"
#include "autotune/predict/handicap.h"
#include "autotune/request/named_log.h"
#include "autotune/search/prune.h"
#include "autotune/validate/step_log_file.h"

enum { MOST_RUNS = 2000 };

static Status load_base(Cli *cli, SampleList *list, const char *text, Error *error) {
    return cli_blame(cli, OPTION_CLUSTER, samples_base(list, text, error));
}

static Status of_file(Cli *cli, SampleList *list, const char *path, Error *error) {
    RunFile file;
    TRY(cli_blame(cli, OPTION_RUNS, run_file_read(path, &cli->arena, &file, error)));
    if (!list->base) {
        const char *cluster = cli_text_or(cli, OPTION_CLUSTER, samples_usual_cluster(&file, &cli->arena));
        FAIL_IF(!cluster, error, STATUS_USAGE, "%s names no cluster: say which with --cluster", path);
        TRY(load_base(cli, list, cluster, error));
    }
    samples_of_file(list, &file, path);
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- logs

static Status read_log(Cli *cli, const NamedLog *log, TuneRequest *request, CalibrationSample *sample, Error *error) {
    Arena *arena = &cli->arena;
    Asked asked = request_asked(cli);
    TrainPlan plan;
    const char *reason = NULL;
    TRY(named_log_ask(log, &asked, arena, error));
    TRY(request_of(cli, &asked, &predict_defaults, request, error));
    request_plan(request, &request->mesh, &plan);
    prune_given(request, &plan, NULL, arena, &reason);
    FAIL_IF(reason, error, STATUS_USAGE, "%s", reason);
    sample->what = calibration_case(request, &plan);
    return step_log_file_time(arena_format(arena, "--log %s", log->path), log->path, &plan,
                              cli_integer_or(cli, OPTION_WARM_UP, STEP_LOG_WARM_UP), arena, &sample->step_s, error);
}

static Status add_log(Cli *cli, SampleList *list, const RepeatedValue *value, Error *error) {
    const NamedLog log = named_log(value->text, list->arena);
    TuneRequest *request = ARENA_NEW(list->arena, TuneRequest);
    CalibrationSample sample = {.id = arena_format(list->arena, "log %s", log.path), .set = "logs"};
    const Status status = read_log(cli, &log, request, &sample, error);
    if (status != STATUS_OK) {
        cli->blame = cli->blame >= 0 ? cli->blame : value->argument;
        return log.own || options_repeated(&cli->options, OPTION_LOG, 1) ? error_wrap(error, "--log %s", value->text)
                                                                         : status;
    }
    if (list->base && !samples_want_cluster(list, request->cluster.name, list->base->name)) {
        return STATUS_OK;
    }
    list->base = list->base ? list->base : &request->cluster;
    list->base_text = list->base->name;
    sample.what.cluster = list->base;
    samples_add(list, &sample);
    return STATUS_OK;
}

static Status of_logs(Cli *cli, SampleList *list, Error *error) {
    const RepeatedValue *log;
    for (int i = 0; (log = options_repeated(&cli->options, OPTION_LOG, i)); i++) {
        TRY(add_log(cli, list, log, error));
    }
    list->from = list->from ? arena_format(list->arena, "%s and logs", list->from) : "logs";
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- the store

// What is asked of the machine, not of one rank: a real rank was as slow as it was.
static void drop_handicaps(Options *options) {
    int kept = 0;
    for (int i = 0; i < options->set_count; i++) {
        if (!handicap_named(options->sets[i])) {
            options->sets[kept] = options->sets[i];
            options->set_argument[kept++] = -1;
        }
    }
    options->set_count = kept;
}

// A command line is parsed again, so that model and overrides are the same.
static Status ask_again(void *context, const StoredRun *run, const char *cluster, TuneRequest *request, Error *error) {
    Cli *cli = context, *old = ARENA_NEW(&cli->arena, Cli);
    *old = (Cli){.blame = -1};
    Status status = last_request_read(old, run->command, &old->command, error);
    OptionValue *values = old->options.values;
    if (status == STATUS_OK) {
        drop_handicaps(&old->options);
        values[OPTION_CLUSTER] = (OptionValue){.given = true, .text = cluster, .argument = -1};
        values[OPTION_TARGET] = (OptionValue){.given = true, .text = run->target, .argument = -1};
        status = request_build(old, old->command == COMMAND_RUN ? &run_defaults : &validate_defaults, request, error);
    }
    if (status == STATUS_OK && strcmp(run->source, "executor") == 0) {
        const Target *executed;
        status = measuring_takes(request, executor_lanes(old), &old->arena, &executed, error);
    }
    cli_end_inner(cli, old);
    return status;
}

// The cluster of the newest run, as its command line says it.
static Status cluster_of_newest(Cli *cli, const StoredRun *run, const char **text, Error *error) {
    Cli *old = ARENA_NEW(&cli->arena, Cli);
    *old = (Cli){.blame = -1};
    const Status status = last_request_read(old, run->command, &old->command, error);
    cli_end_inner(cli, old);
    TRY(status);
    *text = cli_text_or(old, OPTION_CLUSTER, run_defaults.cluster);
    fprintf(stderr, "ndtune: cluster %s, that of the newest run in the store; change it with --cluster\n", *text);
    return STATUS_OK;
}

static Status of_store(Cli *cli, SampleList *list, Error *error) {
    StoredMeasurement *runs = NULL;
    int count = 0;
    TRY(store_measured_runs(cli->store, MOST_RUNS + 1, &cli->arena, &runs, &count, error));
    if (count == 0) {
        error_set(error, STATUS_USAGE, "the store has no run with a step time to calibrate on");
        return error_hint(error, "ndtune validate --world 2 --model tiny --top 0 makes some; --runs FILE.csv and --log "
                                 "FILE take what was measured elsewhere");
    }
    const char *cluster = cli_text_or(cli, OPTION_CLUSTER, NULL);
    if (!cluster) {
        TRY(cluster_of_newest(cli, &runs[0].run, &cluster, error));
    }
    TRY(load_base(cli, list, cluster, error));
    if (count > MOST_RUNS) {
        fprintf(stderr, "ndtune: the store has more runs; the newest %d are read\n", MOST_RUNS);
        count = MOST_RUNS;
    }
    const StoredLines lines = {.request = ask_again, .context = cli};
    return samples_of_store(list, cli->store, runs, count, cli_text_or(cli, OPTION_TRANSPORT, NULL), &lines, error);
}

Status calibrate_inputs(Cli *cli, SampleList *list, Error *error) {
    const RepeatedValue *file;
    *list = (SampleList){.arena = &cli->arena};
    if (cli_given(cli, OPTION_TARGET)) {
        const char *text = cli_value(cli, OPTION_TARGET)->text;
        TRY(cli_blame(cli, OPTION_TARGET, target_find(text, &list->target, error)));
        list->any_version = !strchr(text, '@');
    }
    if (!cli_given(cli, OPTION_RUNS) && !cli_given(cli, OPTION_LOG)) {
        return of_store(cli, list, error);
    }
    for (int i = 0; (file = options_repeated(&cli->options, OPTION_RUNS, i)); i++) {
        TRY(of_file(cli, list, file->text, error));
    }
    return cli_given(cli, OPTION_LOG) ? of_logs(cli, list, error) : STATUS_OK;
}
