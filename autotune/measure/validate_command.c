// The command's words and environment of a shape, and what the command printed as a RunRecord.

#include "autotune/measure/validate_command.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/validate/step_log.h"
#include "exec/launch/command.h"
#include "sim/frameworks/target_choices.h"

typedef struct Place {
    const char *name, *value;
} Place;

enum { PLACES = 20 + AXIS_COUNT + PLAN_FIELD_COUNT };

// What is left to the target is told as what it does.
static int value_in_words(const CommandRuns *runs, const TrainPlan *plan, PlanFieldId id) {
    const int told = target_told(runs->validation->request->target, plan, id);
    return told != PLAN_ANY ? told : plan_get(plan, id);
}

static int places_fill(const CommandRuns *runs, const TrainPlan *plan, const char *config, Place places[PLACES]) {
    Arena *arena = runs->measuring->like.arena;
    const ModelSpec *model = &runs->validation->request->model;
    int count = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        places[count++] = (Place){axis_names[axis], arena_format(arena, "%d", plan->mesh.size[axis])};
    }
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"world", mesh_world(&plan->mesh)},
                   {"global_batch", plan_global_batch(plan)},
                   {"steps", runs->validation->steps},
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
        places[count++] = (Place){plan_fields[id].name,
                                  arena_text(arena, plan_value_text(id, value_in_words(runs, plan, id), VALUE_BUFFER))};
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
static Status word_fill(Arena *arena, const Place *places, int count, const char *word, const char **filled,
                        Error *error) {
    const char *text = "";
    for (const char *p = word; *p;) {
        const size_t plain = strcspn(p, "{");
        text = arena_format(arena, "%s%.*s", text, (int)plain, p);
        p += plain;
        if (*p != '{') {
            break;
        }
        const size_t length = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (length == 0 || p[length + 1] != '}') {
            text = arena_format(arena, "%s{", text);
            p++;
            continue;
        }
        const Place *place = place_find(places, count, p + 1, length);
        if (!place) {
            const char *names = "";
            for (int i = 0; i < count; i++) {
                names = arena_format(arena, "%s%s%s", names, i > 0 ? ", " : "", places[i].name);
            }
            return error_set(error, STATUS_USAGE, "there is no {%.*s}; there are %s", (int)length, p + 1, names);
        }
        text = arena_format(arena, "%s%s", text, place->value);
        p += length + 2;
    }
    *filled = text;
    return STATUS_OK;
}

static Status command_fill(const UserCommand *command, const Place *places, int count, Arena *arena, char ***argv,
                           Error *error) {
    *argv = ARENA_ARRAY(arena, char *, command->word_count + 1);
    for (int i = 0; i < command->word_count; i++) {
        const char *word = NULL;
        TRY(word_fill(arena, places, count, command->words[i], &word, error));
        (*argv)[i] = arena_text(arena, word);
    }
    (*argv)[command->word_count] = NULL;
    return STATUS_OK;
}

// NDTUNE_DP_SHARD=4 for every placeholder.
static const char *const *environment_fill(const Place *places, int count, Arena *arena) {
    const char **settings = ARENA_ARRAY(arena, const char *, count + 1);
    for (int i = 0; i < count; i++) {
        char *setting = arena_format(arena, "NDTUNE_%s=%s", places[i].name, places[i].value);
        for (char *p = setting; *p != '='; p++) {
            *p = (char)toupper((unsigned char)*p);
        }
        settings[i] = setting;
    }
    settings[count] = NULL;
    return settings;
}

static Status times_read(const CommandRuns *runs, const char *output, RunRecord *record, Error *error) {
    const TrainPlan *plan = &record->prediction.plan;
    Arena *arena = runs->measuring->like.arena;
    StepLog log;
    char formats[STEP_LOG_FORMATS_BYTES];
    step_log_read(output, (double)plan_tokens_per_step(plan) / mesh_world(&plan->mesh), arena, &log);
    FAIL_IF(!log.format, error, STATUS_ENVIRONMENT, "the command printed no step times that ndtune reads: %s",
            step_log_formats(formats));
    FAIL_IF(log.nothing, error, STATUS_ENVIRONMENT, "%s: %s", log.format, log.nothing);
    record->steps = log.count;
    record->step_times_s = log.step_s;
    record->warm_up = log.average ? 0 : runs->validation->warm_up;
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

uint64_t command_hash(const CommandRuns *runs, const TrainPlan *plan) {
    const TuneRequest *request = runs->validation->request;
    Hash hash = hash_begin();
    hash_text(&hash, runs->host);
    hash_text(&hash, runs->command->line);
    model_hash(&request->model, &hash);
    target_hash(request->target, &hash);
    plan_hash(plan, &hash);
    hash_int(&hash, runs->validation->steps);
    hash_int(&hash, runs->validation->warm_up);
    return hash_end(&hash);
}

static Status run_once(const CommandRuns *runs, const char *config, RunRecord *record, Error *error) {
    const Measuring *measuring = runs->measuring;
    const UserCommand *command = runs->command;
    const TrainPlan *plan = &record->prediction.plan;
    Arena *arena = measuring->like.arena;
    Place places[PLACES];
    char **argv = NULL;
    const char *output = "";
    const int count = places_fill(runs, plan, config, places);
    TRY(command->configure(runs->validation, plan, config, error));
    TRY(command_fill(command, places, count, arena, &argv, error));
    const Progress progress = measuring->begin(measuring->context, NULL, NULL);
    const CommandSetup setup = {.argv = argv,
                                .environment = environment_fill(places, count, arena),
                                .timeout_s = command->timeout_s,
                                .progress = &progress};
    TRY(command_run(&setup, arena, &output, error));
    return times_read(runs, output, record, error);
}

static Status run_with_file(const CommandRuns *runs, RunRecord *record, Error *error) {
    char config[] = "/tmp/ndtune-config-XXXXXX";
    const int fd = mkstemp(config);
    FAIL_IF(fd < 0, error, STATUS_ENVIRONMENT, "cannot make the file %s", config);
    close(fd);
    const Status status = run_once(runs, config, record, error);
    unlink(config);
    return status;
}

Status command_run_row(const CommandRuns *runs, const ValidateRow *row, RunRecord *record, Error *error) {
    *record = (RunRecord){.request = runs->validation->request,
                          .source = "command",
                          .host = runs->host,
                          .device = "-",  // known to the command only
                          .transport = "-",
                          .lanes = "-",
                          .state = "ok",
                          .prediction = *row->prediction,
                          .measurement_hash = command_hash(runs, &row->prediction->plan)};
    const Status status = run_with_file(runs, record, error);
    if (status != STATUS_OK) {
        record->state = "failed";
        record->failure = arena_text(runs->measuring->like.arena, error->message);
        record->steps = 0;
        record->measured_step_s = 0;
    }
    return status;
}
