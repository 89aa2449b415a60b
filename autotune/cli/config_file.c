// Reads a config file as a plan, and searches for a better one with its batch.

#include "autotune/cli/config_file.h"

#include <string.h>

#include "autotune/cli/quote.h"
#include "autotune/cli/request.h"
#include "autotune/search/prune.h"
#include "autotune/search/space.h"
#include "reports/export/export.h"

Status config_file_read(Cli *cli, const char *path, int argument, ConfigNode *root, ConfigFile *file, Error *error) {
    const char *format = cli_text_or(cli, OPTION_FROM_FORMAT, NULL);
    Import *import = &file->import;
    Asked asked = request_asked(cli);
    const Status status = root ? import_tree(root, path, format, &cli->arena, import, error)
                               : import_load(path, format, &cli->arena, import, error);
    if (status != STATUS_OK) {
        cli->blame = argument;
        return status;
    }
    TRY(import_ask(import, &asked, error));
    TRY(request_of(cli, &asked, &search_defaults, &file->request, error));
    import_compare_model(import, file->request.model_asked, (double)model_parameters(&file->request.model));
    if (!import->refusal) {
        import_plan_of(import, &file->request, &file->plan);
    }
    return STATUS_OK;
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
