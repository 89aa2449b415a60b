// Reads a config file as a plan, and searches for a better one with its batch.

#include "autotune/cli/config_file.h"

#include "autotune/cli/quote.h"
#include "autotune/cli/request.h"
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
    import_refuse_choices(import, &file->request);
    if (!import->refusal) {
        import_plan_of(import, &file->request, &file->plan);
    }
    return STATUS_OK;
}

Status config_file_predict(Cli *cli, const ConfigFile *file, OnePlan *one, Error *error) {
    *one = (OnePlan){.prediction = {.plan = file->plan}, .reason = file->import.refusal};
    return one->reason ? STATUS_OK : cli_predict(cli, &file->request, &file->plan, true, one, error);
}

// Can a file of the target express it? A target without a file format can express all.
typedef struct Writable {
    Cli *cli;
    const TuneRequest *request;
    const ExportFormat *format;
} Writable;

static ExportJob job_of(const Writable *writable, const Prediction *prediction, Arena *arena) {
    return (ExportJob){
        .request = writable->request, .prediction = prediction, .command = writable->cli->line, .arena = arena};
}

// Asked by all threads of a search at once.
static bool is_writable(const void *state, const Prediction *prediction) {
    const Writable *writable = state;
    Arena scratch = {0};
    const ExportJob job = job_of(writable, prediction, &scratch);
    Error why = {0};
    const bool writes = !writable->format || export_check(writable->format, &job, &why) == STATUS_OK;
    arena_free(&scratch);
    return writes;
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

static const char *why_not(const void *state, const Prediction *prediction) {
    const Writable *writable = state;
    const ExportJob job = job_of(writable, prediction, &writable->cli->arena);
    Error why = {0};
    export_check(writable->format, &job, &why);
    return arena_text(job.arena, why.message);
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
    const Writable writable = {.cli = cli, .request = request, .format = export_like(import->writes, request->target)};
    if (writable.format) {
        export_narrow(writable.format, request);
    }
    TuneResult *result = ARENA_NEW(&cli->arena, TuneResult);
    TRY(search(cli, file, &writable, result, error));
    const AdviceQuestion question = {.result = result,
                                     .plan = import->refusal ? NULL : &file->plan,
                                     .filter = {is_writable, why_not, &writable},
                                     .successor = import->successor,
                                     .cache = cli_given(cli, OPTION_NO_CACHE) ? NULL : &cache};
    AdviceReport *advice = ARENA_NEW(&cli->arena, AdviceReport);
    TRY(advise(&question, &cli->arena, advice, error));
    *report = (ImportReport){
        .import = import, .request = request, .asked_words = asked_words(cli, request), .advice = advice};
    return STATUS_OK;
}
