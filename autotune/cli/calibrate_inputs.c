// What --runs, --log and the store give a calibration: which file, which command line, which cluster.

#include "autotune/cli/calibrate_inputs.h"

#include <stdio.h>
#include <string.h>

#include "autotune/cli/executor_options.h"
#include "autotune/cli/request.h"
#include "autotune/measure/stored_samples.h"
#include "autotune/predict/handicap.h"
#include "autotune/validate/step_log_file.h"
#include "sim/base/text.h"

enum { MOST_RUNS = 2000 };

static Status load_base(Cli *cli, SampleList *list, const char *text, Error *error) {
    return cli_blame(cli, OPTION_CLUSTER, samples_base(list, text, error));
}

static Status of_file(Cli *cli, SampleList *list, const char *path, Error *error) {
    RunFile file;
    TRY(cli_blame(cli, OPTION_RUNS, run_file_read(path, &cli->arena, &file, error)));
    if (!list->base) {
        const char *cluster = cli_text_or(cli, OPTION_CLUSTER, samples_usual_cluster(&file));
        FAIL_IF(!cluster, error, STATUS_USAGE, "%s names no cluster: say which with --cluster", path);
        TRY(load_base(cli, list, cluster, error));
    }
    samples_of_file(list, &file, path);
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- logs

// A log ran with the mesh of --mesh, unless its own follows the name: run.log@dp_shard=8,tp=2,micro_batch=2.
typedef struct LogRun {
    const char *path, *own;
} LogRun;

static const struct {
    const char *key;
    OptionId id;
} own_keys[] = {{"micro_batch", OPTION_MICRO_BATCH}, {"grad_accum", OPTION_GRAD_ACCUM}, {"seq", OPTION_SEQ}};

static LogRun split_log(const char *text, Arena *arena) {
    const char *at = strrchr(text, '@');
    if (!at || !strchr(at, '=')) {
        return (LogRun){.path = text};
    }
    return (LogRun){.path = arena_format(arena, "%.*s", (int)(at - text), text), .own = at + 1};
}

// What a log says of itself, as options of the command line.
static Status own_options(Cli *own, const LogRun *log, Error *error) {
    const char *mesh = "";
    char *text = arena_text(&own->arena, log->own), *rest = NULL;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        const size_t length = strcspn(word, "=");
        bool taken = false;
        for (size_t i = 0; i < sizeof own_keys / sizeof own_keys[0]; i++) {
            if (strlen(own_keys[i].key) == length && strncmp(own_keys[i].key, word, length) == 0) {
                OptionValue *value = &own->options.values[own_keys[i].id];
                *value = (OptionValue){.given = true, .text = word + length + 1, .argument = -1};
                FAIL_IF(!text_parse_int(value->text, &value->integer) || value->integer < 1, error, STATUS_USAGE,
                        "--log %s: %s is no count", log->path, word);
                taken = true;
            }
        }
        mesh = taken ? mesh : arena_format(&own->arena, "%s%s%s", mesh, mesh[0] ? "," : "", word);
    }
    if (mesh[0]) {
        own->options.values[OPTION_MESH] = (OptionValue){.given = true, .text = mesh, .argument = -1};
    }
    return STATUS_OK;
}

static Status add_log(Cli *cli, SampleList *list, const char *text, Error *error) {
    Cli *own = ARENA_NEW(&cli->arena, Cli);
    const LogRun log = split_log(text, &cli->arena);
    *own = (Cli){
        .argc = cli->argc, .argv = cli->argv, .options = cli->options, .command = cli->command, .line = cli->line};
    own->blame = -1;
    TuneRequest *request = ARENA_NEW(&cli->arena, TuneRequest);
    TrainPlan plan = {0};
    const char *reason = NULL;
    CalibrationSample sample = {.id = arena_format(&cli->arena, "log %s", log.path), .set = "logs"};
    RequestDefaults defaults = search_defaults;
    defaults.single_plan = true;
    Status status = log.own ? own_options(own, &log, error) : STATUS_OK;
    status = status == STATUS_OK ? request_build(own, &defaults, request, error) : status;
    status = status == STATUS_OK ? request_one_plan(own, request, &plan, error) : status;
    if (status == STATUS_OK) {
        target_check(request->target, &request->model, &plan, &own->arena, &reason);
        status = reason ? error_set(error, STATUS_USAGE, "%s", reason)
                        : step_log_file_time(arena_format(&own->arena, "--log %s", log.path), log.path, &plan,
                                             cli_integer_or(cli, OPTION_WARM_UP, STEP_LOG_WARM_UP), &own->arena,
                                             &sample.step_s, error);
    }
    cli->blame = own->blame;
    cli_end_inner(cli, own);
    if (status != STATUS_OK) {
        return log.own || options_repeated(&cli->options, OPTION_LOG, 1) ? error_wrap(error, "--log %s", text) : status;
    }
    if (list->base && !samples_want_cluster(list, request->cluster.name, list->base->name)) {
        return STATUS_OK;
    }
    list->base = list->base ? list->base : &request->cluster;
    list->base_text = list->base->name;
    sample.what = calibration_case(request, &plan);
    sample.what.cluster = list->base;
    samples_add(list, &sample);
    return STATUS_OK;
}

static Status of_logs(Cli *cli, SampleList *list, Error *error) {
    const RepeatedValue *log;
    for (int i = 0; (log = options_repeated(&cli->options, OPTION_LOG, i)); i++) {
        const Status status = add_log(cli, list, log->text, error);
        if (status != STATUS_OK) {
            cli->blame = cli->blame >= 0 ? cli->blame : log->argument;
            return status;
        }
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
        status = executor_takes(old, request, &executed, error);
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
