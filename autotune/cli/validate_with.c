// In the command's words {dp_shard} and the like are replaced by the shape's numbers; the environment has the same as
// NDTUNE_DP_SHARD. {config} is a JSON file with model, mesh and plan. Every run is stored, with the command line.

#include "autotune/cli/validate_with.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "autotune/cli/quote.h"
#include "autotune/validate/step_log.h"
#include "exec/launch/command.h"
#include "reports/json_objects.h"
#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/frameworks/target_choices.h"

static const double TIMEOUT_S = 3600;

Status validate_with_check(Cli *cli, Error *error) {
    const OptionValue *with = cli_value(cli, OPTION_WITH);
    OptionValue *target = &cli->options.values[OPTION_TARGET];
    if (!with->given && cli->options.tail_count == 0) {
        return STATUS_OK;
    }
    FAIL_IF(!with->given, error, STATUS_USAGE, "a command behind -- needs --with TARGET: whose framework it starts");
    if (cli->options.tail_count == 0) {
        return cli_refuse(cli, OPTION_WITH, error, "--with needs a command: validate --with %s -- COMMAND...",
                          with->text);
    }
    if (target->given && strcmp(target->text, with->text) != 0) {
        return cli_refuse(cli, OPTION_WITH, error,
                          "--target %s and --with %s: a run can only be measured for its own target", target->text,
                          with->text);
    }
    *target = *with;
    return STATUS_OK;
}

typedef struct Place {
    const char *name, *value;
} Place;

enum { PLACES = 20 + AXIS_COUNT + PLAN_FIELD_COUNT };

typedef struct With {
    Cli *cli;
    Validation *validation;
    const char *host;
} With;

// What is left to the target is told as what it does.
static int value_in_words(const With *with, const TrainPlan *plan, PlanFieldId id) {
    const int told = target_told(with->validation->request->target, plan, id);
    return told != PLAN_ANY ? told : plan_get(plan, id);
}

static int places_fill(const With *with, const TrainPlan *plan, const char *config, Place places[PLACES]) {
    Arena *arena = &with->cli->arena;
    const ModelSpec *model = &with->validation->request->model;
    int count = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        places[count++] = (Place){axis_names[axis], arena_format(arena, "%d", plan->mesh.size[axis])};
    }
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"world", mesh_world(&plan->mesh)},
                   {"global_batch", plan_global_batch(plan)},
                   {"steps", with->validation->steps},
                   {"layers", model->layers},
                   {"hidden", model->hidden},
                   {"heads", model->heads},
                   {"kv_heads", model->kv_heads},
                   {"ffn", model->ffn},
                   {"vocab", model->vocab}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        places[count++] = (Place){numbers[i].name, arena_format(arena, "%lld", (long long)numbers[i].value)};
    }
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        char text[PLAN_VALUE_BYTES];
        places[count++] =
            (Place){plan_fields[id].name, arena_text(arena, plan_value_text(id, value_in_words(with, plan, id), text))};
    }
    places[count++] = (Place){"config", config};
    return count;
}

static const Place *place_find(const Place *places, int count, const char *name, size_t length) {
    for (int i = 0; i < count; i++) {
        if (strlen(places[i].name) == length && strncmp(places[i].name, name, length) == 0) {
            return &places[i];
        }
    }
    return NULL;
}

// "{tp}" in the word becomes its value; a word in braces that is no place is refused, since it is a typing error.
static Status word_fill(Cli *cli, const Place *places, int count, const char *word, const char **filled, Error *error) {
    const char *text = "";
    for (const char *p = word; *p;) {
        const size_t plain = strcspn(p, "{");
        text = arena_format(&cli->arena, "%s%.*s", text, (int)plain, p);
        p += plain;
        if (*p != '{') {
            break;
        }
        const size_t length = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (length == 0 || p[length + 1] != '}') {
            text = arena_format(&cli->arena, "%s{", text);
            p++;
            continue;
        }
        const Place *place = place_find(places, count, p + 1, length);
        if (!place) {
            const char *names = "";
            for (int i = 0; i < count; i++) {
                names = arena_format(&cli->arena, "%s%s%s", names, i > 0 ? ", " : "", places[i].name);
            }
            return error_set(error, STATUS_USAGE, "there is no {%.*s}; there are %s", (int)length, p + 1, names);
        }
        text = arena_format(&cli->arena, "%s%s", text, place->value);
        p += length + 2;
    }
    *filled = text;
    return STATUS_OK;
}

static Status command_fill(Cli *cli, const Place *places, int count, char ***argv, Error *error) {
    const Options *options = &cli->options;
    *argv = ARENA_ARRAY(&cli->arena, char *, options->tail_count + 1);
    for (int i = 0; i < options->tail_count; i++) {
        const char *word = NULL;
        TRY(word_fill(cli, places, count, options->tail[i], &word, error));
        (*argv)[i] = arena_text(&cli->arena, word);
    }
    (*argv)[options->tail_count] = NULL;
    return STATUS_OK;
}

// NDTUNE_DP_SHARD=4 for every placeholder.
static const char *const *environment_fill(Cli *cli, const Place *places, int count) {
    const char **settings = ARENA_ARRAY(&cli->arena, const char *, count + 1);
    for (int i = 0; i < count; i++) {
        char *setting = arena_format(&cli->arena, "NDTUNE_%s=%s", places[i].name, places[i].value);
        for (char *p = setting; *p != '='; p++) {
            *p = (char)toupper((unsigned char)*p);
        }
        settings[i] = setting;
    }
    settings[count] = NULL;
    return settings;
}

static Status config_write(const With *with, const TrainPlan *plan, const char *path, Error *error) {
    json_t *root =
        json_pack("{s:s, s:o, s:o, s:o, s:i}", "schema", "ndtune.config/1", "model",
                  json_model(&with->validation->request->model), "mesh", json_mesh(&plan->mesh), "plan",
                  json_train_plan(with->validation->request->target, plan), "steps", with->validation->steps);
    const Status status = root ? json_file_save(path, root, error)
                               : error_set(error, STATUS_INTERNAL, "the configuration: out of memory");
    json_decref(root);
    return status;
}

static Status times_read(const With *with, const char *output, RunRecord *record, Error *error) {
    const TrainPlan *plan = &record->prediction.plan;
    Arena *arena = &with->cli->arena;
    StepLog log;
    char formats[STEP_LOG_FORMATS_BYTES];
    step_log_read(output, (double)plan_tokens_per_step(plan) / mesh_world(&plan->mesh), arena, &log);
    FAIL_IF(!log.format, error, STATUS_ENVIRONMENT, "the command printed no step times that ndtune reads: %s",
            step_log_formats(formats));
    FAIL_IF(log.nothing, error, STATUS_ENVIRONMENT, "%s: %s", log.format, log.nothing);
    record->steps = log.count;
    record->step_times_s = log.step_s;
    record->warm_up = log.average ? 0 : with->validation->warm_up;
    FAIL_IF(log.count <= record->warm_up, error, STATUS_ENVIRONMENT,
            "the command printed %d step times (%s), and %d are warm-up", log.count, log.format, record->warm_up);
    double *unknown = ARENA_ARRAY(arena, double, log.count);
    for (int i = 0; i < log.count; i++) {
        unknown[i] = NAN;
    }
    record->losses = record->grad_norms = unknown;
    record->measured_step_s = measurement_median(log.step_s, log.count, record->warm_up, arena);
    return STATUS_OK;
}

static uint64_t measurement_hash(const With *with, const TrainPlan *plan) {
    const TuneRequest *request = with->validation->request;
    Hash hash = hash_begin();
    hash_text(&hash, with->host);
    hash_text(&hash, quote_line(with->cli->options.tail_count + 1, with->cli->options.tail - 1, &with->cli->arena));
    model_hash(&request->model, &hash);
    target_hash(request->target, &hash);
    plan_hash(plan, &hash);
    hash_int(&hash, with->validation->steps);
    hash_int(&hash, with->validation->warm_up);
    return hash_end(&hash);
}

static void record_begin(const With *with, const ValidateRow *row, RunRecord *record) {
    *record = (RunRecord){.request = with->validation->request,
                          .source = "command",
                          .host = with->host,
                          .device = "-",  // known to the command only
                          .transport = "-",
                          .lanes = "-",
                          .state = "ok",
                          .prediction = *row->prediction,
                          .measurement_hash = measurement_hash(with, &row->prediction->plan)};
}

static Status run_command(const With *with, const TrainPlan *plan, RunRecord *record, Error *error) {
    Cli *cli = with->cli;
    char config[] = "/tmp/ndtune-config-XXXXXX";
    const int fd = mkstemp(config);
    FAIL_IF(fd < 0, error, STATUS_ENVIRONMENT, "cannot make the file %s", config);
    close(fd);
    Place places[PLACES];
    char **argv = NULL;
    const int count = places_fill(with, plan, config, places);
    const Progress progress = cli_progress(cli);
    Status status = config_write(with, plan, config, error);
    if (status == STATUS_OK) {
        status = command_fill(cli, places, count, &argv, error);
    }
    const char *output = "";
    if (status == STATUS_OK) {
        const CommandSetup setup = {.argv = argv,
                                    .environment = environment_fill(cli, places, count),
                                    .timeout_s = cli_number_or(cli, OPTION_TIMEOUT, TIMEOUT_S),
                                    .progress = &progress};
        status = command_run(&setup, &cli->arena, &output, error);
        cli_progress_clear(cli);
    }
    unlink(config);
    return status == STATUS_OK ? times_read(with, output, record, error) : status;
}

static Status run_row(void *state, const ValidateRow *row, RunRecord *record, Error *error) {
    const With *with = state;
    record_begin(with, row, record);
    const Status status = run_command(with, &row->prediction->plan, record, error);
    if (*with->cli->interrupted) {
        return status;
    }
    if (status != STATUS_OK) {
        record->state = "failed";
        record->failure = arena_text(&with->cli->arena, error->message);
        record->steps = 0;
        record->measured_step_s = 0;
    }
    Error store_error = {0};
    if (status == STATUS_USAGE) {  // the command line itself is wrong, for every row
        return STATUS_INTERNAL;
    }
    if (store_save_run(with->cli->store, record, NULL, &store_error) != STATUS_OK) {
        *error = store_error;
        return STATUS_INTERNAL;
    }
    return status;
}

static int recall(void *state, const ValidateRow *row, RunRecord *runs, int most) {
    const With *with = state;
    int count = 0;
    const bool wanted = !cli_given(with->cli, OPTION_NO_CACHE);
    return wanted && store_measurements(with->cli->store, measurement_hash(with, &row->prediction->plan), most,
                                        &with->cli->arena, runs, &count, NULL) == STATUS_OK
               ? count
               : 0;
}

static bool cancelled(void *state) {
    const With *with = state;
    return *with->cli->interrupted;
}

Status validate_with(Cli *cli, Validation *validation, Error *error) {
    struct utsname host = {0};
    uname(&host);
    With with = {.cli = cli, .validation = validation, .host = arena_text(&cli->arena, host.nodename)};
    const ValidateMeans means = {.recall = recall, .run = run_row, .cancelled = cancelled, .state = &with};
    return validate_run(validation, &means, &cli->arena, error);
}
