// Samples from a run file (the columns of `ndtune accuracy`), and from logs of a framework.

#include "autotune/cli/calibrate_samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/run_case.h"
#include "autotune/cli/request.h"
#include "autotune/validate/step_log_file.h"
#include "sim/base/text.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

void samples_add(SampleList *list, const CalibrationSample *sample) {
    ARENA_PUSH(&list->cli->arena, list->rows, list->count, &list->capacity) = *sample;
}

void samples_leave_out(SampleList *list, const char *reason) {
    int at = 0;
    while (at < list->left_out_count && strcmp(list->left_out[at].reason, reason) != 0) {
        at++;
    }
    if (at == LEFT_OUT_MOST) {
        at--;
        reason = "other reasons, too";
    }
    list->left_out[at].reason = reason;
    list->left_out[at].runs++;
    list->left_out_count += at == list->left_out_count;
}

bool samples_want(SampleList *list, const char *target) {
    const Target *wanted = list->target;
    if (!wanted) {
        return true;
    }
    const size_t name = strlen(wanted->name);
    const bool same = strncmp(target, wanted->name, name) == 0 && target[name] == '@' &&
                      (list->any_version || strcmp(target + name + 1, wanted->version) == 0);
    if (!same) {
        samples_leave_out(list, arena_format(&list->cli->arena, "target %s is not %s", target, wanted->name));
    }
    return same;
}

Status samples_load_base(SampleList *list, const char *text, Error *error) {
    ClusterProfile *base = ARENA_NEW(&list->cli->arena, ClusterProfile);
    TRY(cli_blame(list->cli, OPTION_CLUSTER, cluster_find(text, &list->cli->arena, base, error)));
    list->base = base;
    list->base_text = text;
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- a file of runs

// The cluster that most rows name.
static const char *usual_cluster(const RunFile *file) {
    const char *best = NULL;
    int most = 0;
    for (int i = 0; i < file->count; i++) {
        int same = 0;
        for (int j = 0; j < file->count; j++) {
            same += strcmp(file->rows[i].cluster, file->rows[j].cluster) == 0;
        }
        if (same > most && file->rows[i].cluster[0] != '\0') {
            most = same;
            best = file->rows[i].cluster;
        }
    }
    return best;
}

static void add_case(SampleList *list, const RunCase *run) {
    const Target *target = run->request.target;
    if (run->skipped) {
        samples_leave_out(list, run->skipped);
    } else if (run->measured_step_s <= 0) {
        samples_leave_out(list, "no step time");
    } else if (calibration_is_executor(target) ||
               samples_want(list, arena_format(&list->cli->arena, "%s@%s", target->name, target->version))) {
        const bool reserved = strcmp(run->row->mem_kind, "reserved") == 0;
        samples_add(list, &(CalibrationSample){.what = calibration_case(&run->request, &run->plan),
                                               .id = run->row->id,
                                               .set = run->row->source,
                                               .step_s = run->measured_step_s,
                                               .reserved_bytes = reserved ? run->row->peak_mem_gb * GIB : 0});
    }
}

Status samples_of_file(SampleList *list, const char *path, Error *error) {
    Cli *cli = list->cli;
    RunFile file;
    TRY(cli_blame(cli, OPTION_RUNS, run_file_read(path, &cli->arena, &file, error)));
    const char *usual = usual_cluster(&file);
    FAIL_IF(!list->base && !cli_given(cli, OPTION_CLUSTER) && !usual, error, STATUS_USAGE,
            "%s names no cluster: say which with --cluster", path);
    if (!list->base) {
        TRY(samples_load_base(list, cli_text_or(cli, OPTION_CLUSTER, usual), error));
    }
    RunMapper *mapper = run_mapper_new(&cli->arena);
    for (int i = 0; i < file.count; i++) {
        const RunRow *row = &file.rows[i];
        if (!calibration_same_machine(row->cluster, list->base->name) && strcmp(row->cluster, list->base_text) != 0) {
            samples_leave_out(list, arena_format(&cli->arena, "cluster %s is not %s", row->cluster, list->base_text));
            continue;
        }
        RunCase *run = ARENA_NEW(&cli->arena, RunCase);
        run_mapper_give(mapper, row->cluster, list->base);
        run_case_build(mapper, row, run);
        add_case(list, run);
    }
    list->from = list->from ? arena_format(&cli->arena, "%s, %s", list->from, path) : path;
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

static Status add_log(SampleList *list, const char *text, Error *error) {
    Cli *cli = list->cli;
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
    if (list->base && !calibration_same_machine(list->base->name, request->cluster.name)) {
        samples_leave_out(list,
                          arena_format(&cli->arena, "cluster %s is not %s", request->cluster.name, list->base->name));
        return STATUS_OK;
    }
    list->base = list->base ? list->base : &request->cluster;
    list->base_text = list->base->name;
    sample.what = calibration_case(request, &plan);
    sample.what.cluster = list->base;
    samples_add(list, &sample);
    return STATUS_OK;
}

Status samples_of_logs(SampleList *list, Error *error) {
    const RepeatedValue *log;
    for (int i = 0; (log = options_repeated(&list->cli->options, OPTION_LOG, i)); i++) {
        const Status status = add_log(list, log->text, error);
        if (status != STATUS_OK) {
            list->cli->blame = list->cli->blame >= 0 ? list->cli->blame : log->argument;
            return status;
        }
    }
    list->from = list->from ? arena_format(&list->cli->arena, "%s and logs", list->from) : "logs";
    return STATUS_OK;
}
