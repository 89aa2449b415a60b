// The means of the loop: runs from the store and by the executor, and what a calibration learns from them.

#include "autotune/measure/tune_session.h"

#include <string.h>

#include "autotune/validate/measurement.h"
#include "sim/base/clock.h"

// Where the time of the recorded step went, by kind, as far as it depends on the machine alone.
static Status read_spans(const TuneSession *session, const Tuning *tuning, TuneRun *run, Error *error) {
    const StepProgram *program = &session->of_shape[run->shape]->program;
    const CalibrationCase what = calibrated_model_case(tuning, run->shape);
    const TimelineQuery query = {.run_id = run->id};
    Arena scratch = {0};
    Timeline timeline;
    bool found = false;
    const Status status =
        store_timeline(session->measuring->store, &query, program, &scratch, &timeline, &found, error);
    double *span_s = ARENA_ARRAY(session->measuring->like.arena, double, SPAN_KIND_COUNT);
    if (status == STATUS_OK && found && calibration_spans(&what, program, &timeline, &scratch, span_s)) {
        run->span_s = span_s;
    }
    arena_free(&scratch);
    return status;
}

// Measurements from this call and earlier ones look the same to the loop: both are read back.
static Status read_run(const TuneSession *session, const Tuning *tuning, int shape, const StoredTuneRun *stored,
                       TuneRun *run, Error *error) {
    const bool ok = strcmp(stored->state, "ok") == 0 && stored->measured_step_s > 0;
    *run = (TuneRun){.shape = shape,
                     .known = stored->known,
                     .id = stored->run_id,
                     .at_s = stored->at_s,
                     .step_s = ok ? stored->measured_step_s : 0,
                     .own_sd = measurement_median_sd(stored->step_times_s, stored->steps, stored->warm_up,
                                                     session->measuring->like.arena),
                     .wall_s = stored->wall_s,
                     .failure = ok                ? NULL
                                : stored->failure ? stored->failure
                                                  : stored->state};
    return ok ? read_spans(session, tuning, run, error) : STATUS_OK;
}

static int shape_of(const TuneSession *session, const Tuning *tuning, const char *measurement_hash) {
    for (int i = 0; i < tuning->shape_count; i++) {
        if (session->of_shape[i] && strcmp(hash_hex(session->hashes[i], HASH_BUFFER), measurement_hash) == 0) {
            return i;
        }
    }
    return -1;
}

static Status recall(void *state, const Tuning *tuning, TuneRun **runs, int *count, Error *error) {
    const TuneSession *session = state;
    StoredTuneRun *stored = NULL;
    int stored_count = 0;
    TRY(store_tune_runs(session->measuring->store, session->id, session->measuring->like.arena, &stored, &stored_count,
                        error));
    *runs = ARENA_ARRAY(session->measuring->like.arena, TuneRun, stored_count + 1);
    *count = 0;
    for (int i = 0; i < stored_count; i++) {
        const int shape = shape_of(session, tuning, stored[i].measurement_hash);
        if (shape >= 0) {
            TRY(read_run(session, tuning, shape, &stored[i], &(*runs)[(*count)++], error));
        }
    }
    return STATUS_OK;
}

static Status run_shape(void *state, const Tuning *tuning, int shape, TuneRun *run, Error *error) {
    const TuneSession *session = state;
    const Measuring *measuring = session->measuring;
    MeasuredRun measured = *session->of_shape[shape];
    const char *words =
        arena_format(measured.arena, "run %d: %s ", tuning->runs + 1, mesh_text(&measured.run.plan.mesh, MESH_BUFFER));
    TRY(measuring_find_prices(measuring, &measured, error));
    const double start_s = clock_s();
    Error why = {0};
    const Status status = measuring_execute(measuring, &measured, words, &why);
    FAIL_IF(*measuring->interrupted, error, STATUS_ENVIRONMENT, TUNE_INTERRUPTED);
    if (status == STATUS_USAGE) {  // the request is wrong, for every shape
        *error = why;
        return status;
    }
    int64_t id = 0;
    TRY(store_save_tune_run(measuring->store, session->id, &measured.record, clock_s() - start_s, &id, error));
    StoredTuneRun *all = NULL;
    int count = 0;
    TRY(store_tune_runs(measuring->store, session->id, measured.arena, &all, &count, error));
    for (int i = 0; i < count; i++) {  // another process may be in the same session
        if (all[i].run_id == id) {
            TRY(read_run(session, tuning, shape, &all[i], run, error));
        }
    }
    return STATUS_OK;
}

static Status learn(void *state, const Tuning *tuning, TuneModel *model, BeliefShape *shapes, const char **learnt,
                    Error *error) {
    TuneSession *session = state;
    return calibrated_model_learn(&session->model, tuning, model, shapes, learnt, error);
}

static void report(void *state, const Tuning *tuning, const TuneStep *step) {
    const TuneSession *session = state;
    session->report(session->measuring->context, tuning, step);
}

static bool cancelled(void *state) {
    const TuneSession *session = state;
    return *session->measuring->interrupted;
}

// Every shape is lowered and predicted once; those the executor refuses are dropped with the reason.
static Status prepare_shapes(TuneSession *session, const TuneResult *result, const TuneOptions *options, Tuning *tuning,
                             Error *error) {
    const Measuring *measuring = session->measuring;
    Arena *arena = measuring->like.arena;
    tune_begin(result, options, arena, tuning);
    session->of_shape = ARENA_ARRAY(arena, MeasuredRun *, tuning->shape_count);
    session->hashes = ARENA_ARRAY(arena, uint64_t, tuning->shape_count);
    for (int i = 0; i < tuning->shape_count; i++) {
        TuneShape *shape = &tuning->shapes[i];
        Error why = {0};
        MeasuredRun *run;
        const Status status =
            measured_run_make(&measuring->like, &shape->prediction->plan, &measuring->options, &run, &why);
        if (status == STATUS_OK) {
            session->of_shape[i] = run;
            session->hashes[i] = run->record.measurement_hash;
            session->model.set = run->record.host;
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
static uint64_t session_key(const TuneSession *session, const Tuning *tuning) {
    Hash hash = hash_begin();
    hash_text(&hash, tune_engine_version());
    cluster_hash(&tuning->request->cluster, &hash);
    hash_int(&hash, (int64_t)tuning->options.seed);
    for (int i = 0; i < tuning->shape_count; i++) {
        hash_int(&hash, (int64_t)session->hashes[i]);
    }
    return hash_end(&hash);
}

Status tune_session_begin(TuneSession *session, const TuneResult *result, const TuneOptions *options, Tuning *tuning,
                          Error *error) {
    const Measuring *measuring = session->measuring;
    TRY(prepare_shapes(session, result, options, tuning, error));
    const TuneSessionKey key = {.key = session_key(session, tuning),
                                .command = result->request->command,
                                .afresh = measuring->afresh,
                                .measurement_hashes = session->hashes,
                                .count = tuning->shape_count};
    return store_tune_session(measuring->store, &key, &session->id, error);
}

Status tune_session_run(TuneSession *session, Tuning *tuning, Error *error) {
    const TuneMeans means = {
        .recall = recall, .run = run_shape, .learn = learn, .report = report, .cancelled = cancelled, .state = session};
    return tune_run(tuning, &means, session->measuring->like.arena, error);
}

Status tune_session_recall(const Measuring *measuring, const TuneResult *result, const TuneOptions *options,
                           const Tuning **tuning, Error *error) {
    TuneSession session = {.measuring = measuring};
    const TuneMeans means = {.recall = recall, .learn = learn, .state = &session};
    Tuning *recalled = ARENA_NEW(measuring->like.arena, Tuning);
    *tuning = NULL;
    if (result->entry_count == 0) {
        return STATUS_OK;
    }
    TRY(prepare_shapes(&session, result, options, recalled, error));
    TRY(store_find_tune_session(measuring->store, session_key(&session, recalled), &session.id, error));
    const Status status = session.id > 0 ? tune_run(recalled, &means, measuring->like.arena, error) : STATUS_OK;
    for (int i = 0; i < recalled->step_count; i++) {
        recalled->steps[i].learnt = NULL;  // goes with the model
    }
    calibrated_model_free(&session.model);
    *tuning = recalled->step_count > 0 ? recalled : NULL;
    return status;
}
