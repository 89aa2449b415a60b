// Reads a config file as a plan, and searches for a better one with its batch.

#include "autotune/cli/config_file.h"

#include <string.h>

#include "autotune/cli/quote.h"
#include "autotune/cli/request.h"
#include "autotune/search/prune.h"
#include "autotune/search/space.h"
#include "reports/export/export.h"
#include "sim/frameworks/target_choices.h"

// What the command line sets for the file's plan.
static ImportChoices given_choices(const Asked *asked) {
    ImportChoices given = import_nothing_said();
    given.world = asked->world;
    given.seq = asked->seq;
    given.micro_batch = asked->micro_batch;
    given.grad_accum = asked->grad_accum;
    given.global_batch = asked->global_batch;
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        if (plan_fields[id].scope != PLAN_OF_BATCH && asked->choices[id]) {
            given.choice[id] = plan_field_value(id, asked->choices[id]);
        }
    }
    return given;
}

// The training recipe, and the kernels of a target that has no switch for others.
static bool is_of_job(const Asked *asked, PlanFieldId id) {
    const Target *target = NULL;
    Error unknown = {0};
    const bool of_kernels = id == PLAN_FUSED && target_find(asked->target, &target, &unknown) == STATUS_OK;
    return plan_fields[id].scope == PLAN_OF_JOB || (of_kernels && !target_has_choice(target, id));
}

// What the file says, as if it was asked; a shape's own choices are left to the search.
static void say_choices(Asked *asked, const Import *import, Arena *arena) {
    const ImportChoices *said = &import->said;
    char text[PLAN_VALUE_BYTES];
    asked->target = asked->target ? asked->target : import->target;
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        const bool plain = plan_fields[id].printed == PLAN_PRINTED_UNLESS_USUAL;
        if (!is_of_job(asked, id)) {
            asked->choices[id] = NULL;
        } else if (said->choice[id] != IMPORT_UNSAID && !(plain && said->choice[id] == plan_fields[id].usual) &&
                   (id != PLAN_FP8_RECIPE || said->choice[PLAN_PRECISION] == DTYPE_FP8)) {
            asked->choices[id] = arena_text(arena, plan_value_text(id, said->choice[id], text));
        }
    }
    asked->world = said->world;
    asked->seq = said->seq;
    asked->choices[PLAN_SEQ] = said->seq > 0 ? arena_format(arena, "%d", said->seq) : NULL;
    asked->micro_batch = asked->grad_accum = 0;
    asked->global_batch = said->global_batch > 0 ? said->global_batch : asked->global_batch;
}

static void plan_of(const TuneRequest *request, const Import *import, TrainPlan *plan) {
    TrainPlan usual;
    Mesh mesh = mesh_of_one();
    memcpy(mesh.size, import->said.size, sizeof mesh.size);
    request_plan(request, &mesh, &usual);
    import_plan(import, &usual, plan);
    target_canonical(request->target, plan);
}

// A file that names a model of the hub that has a preset, or one that its reader knows, says --model; a flavor alone,
// such as "8B", names several.
static void say_model(Asked *asked, const Import *import, Arena *arena) {
    ModelSpec model;
    Error unknown = {0};
    const char *name = import->preset                                ? import->preset
                       : import->model && strchr(import->model, '-') ? import->model
                                                                     : NULL;
    if (!asked->model && name && model_find(name, arena, &model, &unknown) == STATUS_OK) {
        asked->model = name;
    }
}

static Status import_config(Cli *cli, const char *path, ConfigNode *root, Import *import, Error *error) {
    const char *format = cli_text_or(cli, OPTION_FROM_FORMAT, NULL);
    return root ? import_tree(root, path, format, &cli->arena, import, error)
                : import_load(path, format, &cli->arena, import, error);
}

static Status settle(Cli *cli, ConfigFile *file, Error *error) {
    Import *import = &file->import;
    Asked asked = request_asked(cli);
    const ImportChoices given = given_choices(&asked);
    import_settle(import, &given);
    FAIL_IF(import->said.world == 0, error, STATUS_USAGE, "%s: %s", import->path, import->refusal);
    say_choices(&asked, import, &cli->arena);
    say_model(&asked, import, &cli->arena);
    TRY(request_of(cli, &asked, &search_defaults, &file->request, error));
    import_compare_model(import, file->request.model_asked, (double)model_parameters(&file->request.model));
    if (!import->refusal) {
        plan_of(&file->request, import, &file->plan);
    }
    return STATUS_OK;
}

Status config_file_read(Cli *cli, const char *path, int argument, ConfigFile *file, Error *error) {
    const Status status = import_config(cli, path, NULL, &file->import, error);
    if (status != STATUS_OK) {
        cli->blame = argument;
    }
    return status == STATUS_OK ? settle(cli, file, error) : status;
}

Status config_file_read_tree(Cli *cli, const char *path, ConfigNode *root, ConfigFile *file, Error *error) {
    TRY(import_config(cli, path, root, &file->import, error));
    return settle(cli, file, error);
}

Status config_file_predict(Cli *cli, const ConfigFile *file, OnePlan *one, Error *error) {
    *one = (OnePlan){.prediction = {.plan = file->plan}, .reason = file->import.refusal};
    return one->reason ? STATUS_OK : cli_predict(cli, &file->request, &file->plan, true, one, error);
}

// What a newer version of the framework does with the same plan.
static Status predict_successor(Cli *cli, const TuneRequest *request, ImportReport *report, Error *error) {
    TuneRequest *newer = ARENA_NEW(&cli->arena, TuneRequest);
    *newer = *request;
    TRY(target_find(report->import->successor, &newer->target, error));
    const char *reason = NULL;
    TrainPlan plan = report->advice->own.plan;
    newer->asked[PLAN_MASTER_WEIGHTS] = space_master_of_other(request, newer->target);
    plan.bf16_master = newer->asked[PLAN_MASTER_WEIGHTS];
    if (prune(newer, &plan, NULL, &cli->arena, &reason)) {
        return STATUS_OK;
    }
    report->successor = ARENA_NEW(&cli->arena, Prediction);
    report->successor_target = newer->target;
    return predict_once(newer, NULL, &plan, &cli->arena, report->successor, error);
}

// Can a file of the target express it? A target without a file format can express all.
typedef struct Writable {
    Cli *cli;
    const TuneRequest *request;
    const ExportFormat *format;
} Writable;

static bool is_writable(const void *state, const Prediction *prediction) {
    const Writable *writable = state;
    const ExportJob job = {.request = writable->request,
                           .prediction = prediction,
                           .command = writable->cli->line,
                           .arena = &writable->cli->arena};
    Error why = {0};
    return !writable->format || export_check(writable->format, &job, &why) == STATUS_OK;
}

// Model and cluster as command-line options, with every --set.
static const char *asked_words(Cli *cli, const TuneRequest *request) {
    const char *cluster = cli_text_or(cli, OPTION_CLUSTER, search_defaults.cluster);
    const char *words = arena_format(&cli->arena, "--model %s --cluster %s",
                                     quote_word(request->model_asked, &cli->arena), quote_word(cluster, &cli->arena));
    for (int i = 0; i < cli->options.set_count; i++) {
        words = arena_format(&cli->arena, "%s --set %s", words, quote_word(cli->options.sets[i], &cli->arena));
    }
    return words;
}

// The first plan that no file says, where none that a file says was looked at; NULL.
static const Candidate *never_said(const TuneResult *result) {
    const Candidate *found = NULL;
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        const bool is_unsaid = candidate->rule && strcmp(candidate->rule, SEARCH_NOT_HAD) == 0;
        if (candidate->state != CANDIDATE_REJECTED || candidate->reserved_bytes > 0) {
            return NULL;
        }
        found = is_unsaid && !found ? candidate : found;
    }
    return found;
}

// Why there is no best plan: nothing fits, or no file of the target can express what might.
static const char *why_no_best(const Writable *writable, const TuneResult *result) {
    Arena *arena = &writable->cli->arena;
    const Candidate *unsaid = never_said(result);
    if (!unsaid) {
        return arena_format(arena, "none of the %d shapes of %d ranks fits", result->search.shapes,
                            writable->request->world);
    }
    Error why = {0};
    const Prediction bare = {.plan = unsaid->plan};
    const ExportJob job = {
        .request = writable->request, .prediction = &bare, .command = writable->cli->line, .arena = arena};
    export_check(writable->format, &job, &why);
    return arena_text(arena, why.message);
}

static Status search(Cli *cli, const ConfigFile *file, const Writable *writable, TuneResult *result, Error *error) {
    const SearchNear near = {file->import.refusal ? NULL : &file->plan, is_writable, writable};
    TRY(cli_search_near(cli, &file->request, &near, NULL, result, error));
    return store_save_predictions(cli->store, result, error);
}

Status config_file_advise(Cli *cli, ConfigFile *file, ImportReport *report, Error *error) {
    TRY(cli_open_store_to_ask(cli, error));
    const Import *import = &file->import;
    TuneRequest *request = &file->request;
    const PredictionCache cache = store_cache(cli->store);
    Writable writable = {.cli = cli, .request = request};
    Error none = {0};
    if (export_usual(request->target, &writable.format, &none) != STATUS_OK) {
        writable.format = NULL;
    } else {
        export_narrow(writable.format, request);
    }
    const AdviceFilter filter = {is_writable, &writable};
    TuneResult *result = ARENA_NEW(&cli->arena, TuneResult);
    TRY(search(cli, file, &writable, result, error));
    const AdviceQuestion question = {.result = result,
                                     .plan = import->refusal ? NULL : &file->plan,
                                     .filter = filter,
                                     .cache = cli_given(cli, OPTION_NO_CACHE) ? NULL : &cache};
    AdviceReport *advice = ARENA_NEW(&cli->arena, AdviceReport);
    TRY(advise(&question, &cli->arena, advice, error));
    *report = (ImportReport){
        .import = import, .request = request, .asked_words = asked_words(cli, request), .advice = advice};
    if (!advice->best) {
        report->no_best = why_no_best(&writable, result);
    }
    return import->successor && advice->legal ? predict_successor(cli, request, report, error) : STATUS_OK;
}

static bool leaves_out(const Import *import) {
    bool any = false;
    for (int i = 0; i < import->finding_count; i++) {
        any |= import->findings[i].kind == FINDING_UNMODELLED;
    }
    return any;
}

Status config_file_verdict(const ImportReport *report, Error *error) {
    const Import *import = report->import;
    const AdviceReport *advice = report->advice;
    if (!import->refusal && !advice->reason) {
        return STATUS_OK;
    }
    const bool runs = !import->refusal && advice->legal;  // then the reason says that it does not fit
    error_set(error, STATUS_INFEASIBLE, "the plan of %s %s%s", import->path,
              runs                      ? ""
              : import->refusal_is_ours ? "is not predicted: "
                                        : "cannot run: ",
              import->refusal ? import->refusal : advice->reason);
    return runs && leaves_out(import) ? error_hint(error, "the file also says what the prediction leaves out "
                                                          "(above): your run may need less")
                                      : error->status;
}
