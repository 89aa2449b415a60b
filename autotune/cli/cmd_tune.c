// ndtune tune: simulate, run the most informative shape about which one wins, calibrate, repeat. Every run is stored
// with its place in the session before it counts, so that the same call resumes after Ctrl-C or a kill.

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/report_page.h"
#include "autotune/cli/request.h"
#include "autotune/cli/tune_recall.h"
#include "autotune/tune/calibrated_model.h"
#include "autotune/validate/measurement.h"
#include "reports/tuning.h"
#include "sim/base/hash.h"

enum { SEED = 1, RUNS_PER_SHAPE = 3 };  // as many as validate's repeats

static const double PROBABILITY = 0.95, WITHIN_PERCENT = 1;

typedef struct Tuner {
    Cli *cli;
    const TuneRequest *request;
    const TuneResult *result;
    MeasuredRun like;  // every run, but for its plan
    RunOptions options;
    MeasuredRun **of_shape;  // NULL: the executor refuses it
    uint64_t *hashes;        // of the shapes' measurements; 0 where it refuses
    int64_t session;
    CalibratedModel model;
} Tuner;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// ------------------------------------------------------------------------------------------------ what the loop asks

// Where the time of the recorded step went, by kind, as far as it depends on the machine alone.
static Status read_spans(const Tuner *tuner, const Tuning *tuning, TuneRun *run, Error *error) {
    const StepProgram *program = &tuner->of_shape[run->shape]->program;
    const CalibrationCase what = calibrated_model_case(tuning, run->shape);
    const TimelineQuery query = {.run_id = run->id};
    Arena scratch = {0};
    Timeline timeline;
    bool found = false;
    const Status status = store_timeline(tuner->cli->store, &query, program, &scratch, &timeline, &found, error);
    double *span_s = ARENA_ARRAY(&tuner->cli->arena, double, SPAN_KIND_COUNT);
    if (status == STATUS_OK && found && calibration_spans(&what, program, &timeline, &scratch, span_s)) {
        run->span_s = span_s;
    }
    arena_free(&scratch);
    return status;
}

// Measurements from this call and earlier ones look the same to the loop: both are read back.
static Status read_run(const Tuner *tuner, const Tuning *tuning, int shape, const StoredTuneRun *stored, TuneRun *run,
                       Error *error) {
    const bool ok = strcmp(stored->state, "ok") == 0 && stored->measured_step_s > 0;
    *run = (TuneRun){
        .shape = shape,
        .known = stored->known,
        .id = stored->run_id,
        .at_s = stored->at_s,
        .step_s = ok ? stored->measured_step_s : 0,
        .own_sd = measurement_median_sd(stored->step_times_s, stored->steps, stored->warm_up, &tuner->cli->arena),
        .wall_s = stored->wall_s,
        .failure = ok                ? NULL
                   : stored->failure ? stored->failure
                                     : stored->state};
    return ok ? read_spans(tuner, tuning, run, error) : STATUS_OK;
}

static int shape_of(const Tuner *tuner, const Tuning *tuning, const char *measurement_hash) {
    char text[HASH_TEXT_BYTES];
    for (int i = 0; i < tuning->shape_count; i++) {
        if (tuner->of_shape[i] && strcmp(hash_hex(tuner->hashes[i], text), measurement_hash) == 0) {
            return i;
        }
    }
    return -1;
}

static Status recall(void *state, const Tuning *tuning, TuneRun **runs, int *count, Error *error) {
    const Tuner *tuner = state;
    StoredTuneRun *stored = NULL;
    int stored_count = 0;
    TRY(store_tune_runs(tuner->cli->store, tuner->session, &tuner->cli->arena, &stored, &stored_count, error));
    *runs = ARENA_ARRAY(&tuner->cli->arena, TuneRun, stored_count + 1);
    *count = 0;
    for (int i = 0; i < stored_count; i++) {
        const int shape = shape_of(tuner, tuning, stored[i].measurement_hash);
        if (shape >= 0) {
            TRY(read_run(tuner, tuning, shape, &stored[i], &(*runs)[(*count)++], error));
        }
    }
    return STATUS_OK;
}

static void say_progress(const Tuner *tuner, const Tuning *tuning, int shape) {
    char mesh[MESH_TEXT_BYTES];
    cli_draw(tuner->cli, "run %d: %s ", tuning->runs + 1,
             mesh_text(&tuning->shapes[shape].prediction->plan.mesh, mesh));
}

static Status run_shape(void *state, const Tuning *tuning, int shape, TuneRun *run, Error *error) {
    Tuner *tuner = state;
    MeasuredRun *measured = tuner->of_shape[shape];
    say_progress(tuner, tuning, shape);
    TRY(executor_prices(tuner->cli, measured, error));
    const double start_s = now_s();
    Error why = {0};
    const Status status = executor_execute(tuner->cli, measured, &why);
    FAIL_IF(*tuner->cli->interrupted, error, STATUS_ENVIRONMENT, TUNE_INTERRUPTED);
    if (status == STATUS_USAGE) {  // the request is wrong, for every shape
        *error = why;
        return status;
    }
    int64_t id = 0;
    TRY(store_save_tune_run(tuner->cli->store, tuner->session, &measured->record, now_s() - start_s, &id, error));
    StoredTuneRun *all = NULL;
    int count = 0;
    TRY(store_tune_runs(tuner->cli->store, tuner->session, &tuner->cli->arena, &all, &count, error));
    for (int i = 0; i < count; i++) {  // another process may be in the same session
        if (all[i].run_id == id) {
            TRY(read_run(tuner, tuning, shape, &all[i], run, error));
        }
    }
    return STATUS_OK;
}

static Status learn(void *state, const Tuning *tuning, TuneModel *model, BeliefShape *shapes, const char **learnt,
                    Error *error) {
    Tuner *tuner = state;
    return calibrated_model_learn(&tuner->model, tuning, model, shapes, learnt, error);
}

static void report(void *state, const Tuning *tuning, const TuneStep *step) {
    const Tuner *tuner = state;
    cli_progress_clear(tuner->cli);
    if (cli_format(tuner->cli) == FORMAT_TABLE) {
        table_tuning_step(tuning, step, stdout);
    }
}

static bool cancelled(void *state) {
    const Tuner *tuner = state;
    return *tuner->cli->interrupted;
}

// ----------------------------------------------------------------------------------------------------- the session

// Every shape is lowered and predicted once; those the executor refuses are dropped with the reason.
static Status prepare_shapes(Tuner *tuner, Tuning *tuning, Error *error) {
    Arena *arena = &tuner->cli->arena;
    tuner->of_shape = ARENA_ARRAY(arena, MeasuredRun *, tuning->shape_count);
    tuner->hashes = ARENA_ARRAY(arena, uint64_t, tuning->shape_count);
    for (int i = 0; i < tuning->shape_count; i++) {
        TuneShape *shape = &tuning->shapes[i];
        Error why = {0};
        MeasuredRun *run;
        const Status status = measured_run_make(&tuner->like, &shape->prediction->plan, &tuner->options, &run, &why);
        if (status == STATUS_OK) {
            tuner->of_shape[i] = run;
            tuner->hashes[i] = run->record.measurement_hash;
            tuner->model.set = run->record.host;
        } else if (status == STATUS_INFEASIBLE) {
            shape->out = arena_text(arena, why.message);
        } else {
            *error = why;
            return status;
        }
    }
    return STATUS_OK;
}

// The same shapes, measured the same way, predicted on the same profile, with the same seed.
static uint64_t session_key(const Tuner *tuner, const Tuning *tuning) {
    Hash hash = hash_begin();
    hash_text(&hash, tune_engine_version());
    cluster_hash(&tuner->request->cluster, &hash);
    hash_int(&hash, (int64_t)tuning->options.seed);
    for (int i = 0; i < tuning->shape_count; i++) {
        hash_int(&hash, (int64_t)tuner->hashes[i]);
    }
    return hash_end(&hash);
}

static Status open_session(Tuner *tuner, const Tuning *tuning, Error *error) {
    const TuneSessionKey key = {.key = session_key(tuner, tuning),
                                .command = tuner->request->command,
                                .afresh = cli_given(tuner->cli, OPTION_NO_CACHE),
                                .measurement_hashes = tuner->hashes,
                                .count = tuning->shape_count};
    return store_tune_session(tuner->cli->store, &key, &tuner->session, error);
}

// What was learnt from the runs, as a profile for the next plan.
static Status save_profile(const Tuner *tuner, Error *error) {
    Cli *cli = tuner->cli;
    if (!cli_given(cli, OPTION_OUT)) {
        return STATUS_OK;
    }
    const char *path = cli_value(cli, OPTION_OUT)->text, *text;
    ClusterProfile profile;
    TRY(calibrated_model_profile(&tuner->model, cli_today(cli), &cli->arena, &profile, error));
    TRY(cli_write_profile(cli, path, &profile, &text, error));
    fprintf(stderr, "calibrated profile: %s\n", path);
    return STATUS_OK;
}

// Why, in the words of the last run, or of the first shape that the executor refuses.
static Status none_measured(const Tuning *tuning, Error *error) {
    const char *why = tune_last(tuning)->run.failure;
    for (int i = 0; i < tuning->shape_count && !why; i++) {
        why = tuning->shapes[i].out;
    }
    error_set(error, STATUS_ENVIRONMENT, "no run ended well: %s", why ? why : "none was made");
    return tuning->step_count > 0
               ? error_hint(error, "shapes that failed stay out of this session; --no-cache begins a new one")
               : STATUS_ENVIRONMENT;
}

static Status tune_and_print(Tuner *tuner, Tuning *tuning, Error *error) {
    Cli *cli = tuner->cli;
    const TuneMeans means = {
        .recall = recall, .run = run_shape, .learn = learn, .report = report, .cancelled = cancelled, .state = tuner};
    TRY(open_session(tuner, tuning, error));
    cli_warn_if_busy("steps will be slow and repeats will differ");
    if (cli_format(cli) == FORMAT_TABLE) {
        table_tuning_begin(tuning, stdout);
    }
    const Status ended = tune_run(tuning, &means, &cli->arena, error);
    cli_progress_clear(cli);
    if (ended != STATUS_OK && *cli->interrupted && cli_given(cli, OPTION_NO_CACHE)) {
        error_hint(error, "--no-cache begins anew: leave it out to go on");
    }
    TRY(ended);
    TRY(cli_answer(cli, &answer_tuning, tuning, error));
    TRY(save_profile(tuner, error));
    const ReportPage page = {.result = tuner->result, .tuning = tuning, .executed = tuner->like.target};
    TRY(report_page_option(cli, &page, error));
    return tuning->step_count > tuning->failures ? STATUS_OK : none_measured(tuning, error);
}

static TuneOptions options_of(const Cli *cli, int shapes) {
    return (TuneOptions){.probability = cli_number_or(cli, OPTION_PROBABILITY, PROBABILITY),
                         .tolerance = cli_number_or(cli, OPTION_WITHIN, WITHIN_PERCENT) / 100,
                         .max_runs = cli_integer_or(cli, OPTION_MAX_RUNS, RUNS_PER_SHAPE * shapes),
                         .max_time_s = cli_number_or(cli, OPTION_MAX_TIME, 0),
                         .seed = cli_given(cli, OPTION_SEED) ? (uint64_t)cli_value(cli, OPTION_SEED)->integer : SEED};
}

// Everything but the shapes.
static void set_up(Tuner *tuner, const Target *executed) {
    Cli *cli = tuner->cli;
    tuner->like = (MeasuredRun){
        .arena = &cli->arena, .request = tuner->request, .target = executed, .launch = executor_launch(cli)};
    executor_options_repeated(cli, &tuner->options, &tuner->like.warm_up);
}

static Status begin(Tuner *tuner, const TuneResult *result, Tuning *tuning, Error *error) {
    Cli *cli = tuner->cli;
    const int top = cli_integer_or(cli, OPTION_TOP, 0);
    const TuneOptions options = options_of(cli, top > 0 && top < result->entry_count ? top : result->entry_count);
    tuner->result = result;
    tune_begin(result, &options, top, &cli->arena, tuning);
    return prepare_shapes(tuner, tuning, error);
}

static Status check_options(const Tuner *tuner, Error *error) {
    Cli *cli = tuner->cli;
    if (cli->options.list_count > 1) {
        return cli_refuse(cli, OPTION_WORLD, error, "tune runs one world, not a list of them");
    }
    if (tuner->request->objective == OBJECTIVE_MEMORY) {
        return cli_refuse(cli, OPTION_OBJECTIVE, error,
                          "tune finds the fastest shape; memory needs no runs: ndtune plan --objective memory");
    }
    const double wanted = cli_number_or(cli, OPTION_PROBABILITY, PROBABILITY);
    if (cli_integer_or(cli, OPTION_MAX_RUNS, 1) == 0 && cli_number_or(cli, OPTION_MAX_TIME, 0) <= 0 &&
        wanted > 1 - 1.0 / OUTLOOK_DRAWS) {
        cli_refuse(cli, OPTION_MAX_RUNS, error, "a session without bounds never reaches probability %g", wanted);
        return error_hint(error, "give --max-runs or --max-time, or less of --probability");
    }
    return executor_check_warm_up(cli, tuner->options.steps, tuner->like.warm_up, error);
}

Status cmd_tune(Cli *cli, Error *error) {
    TuneRequest request;
    const Target *executed;
    TRY(cli_open_store(cli, error));
    TRY(last_request_take(cli, error));
    TRY(request_build(cli, &validate_defaults, &request, error));
    TRY(executor_takes(cli, &request, &executed, error));
    Tuner tuner = {.cli = cli, .request = &request};
    set_up(&tuner, executed);
    TRY(check_options(&tuner, error));
    TRY(cli_check_output(cli, OPTION_OUT, error));
    TRY(cli_check_output(cli, OPTION_HTML, error));
    TuneResult result;
    TRY(cli_search(cli, &request, &result, error));
    if (result.entry_count == 0) {
        return cli_nothing_feasible(&result, error);
    }
    Tuning tuning;
    TRY(begin(&tuner, &result, &tuning, error));
    const Status status = tune_and_print(&tuner, &tuning, error);
    calibrated_model_free(&tuner.model);
    return status;
}

Status tune_recall(Cli *cli, const TuneResult *result, const Target *executed, const Tuning **tuning, Error *error) {
    Tuner tuner = {.cli = cli, .request = result->request};
    const TuneMeans means = {.recall = recall, .learn = learn, .state = &tuner};
    Tuning *recalled = ARENA_NEW(&cli->arena, Tuning);
    *tuning = NULL;
    if (result->entry_count == 0) {
        return STATUS_OK;
    }
    set_up(&tuner, executed);
    TRY(begin(&tuner, result, recalled, error));
    TRY(store_find_tune_session(cli->store, session_key(&tuner, recalled), &tuner.session, error));
    const Status status = tuner.session > 0 ? tune_run(recalled, &means, &cli->arena, error) : STATUS_OK;
    for (int i = 0; i < recalled->step_count; i++) {
        recalled->steps[i].learnt = NULL;  // goes with the model
    }
    calibrated_model_free(&tuner.model);
    *tuning = recalled->step_count > 0 ? recalled : NULL;
    return status;
}
