// The predictions table: the cache that search queries before simulating, and the row that plan and predict write.

#include "autotune/store/store_predictions.h"

// The numbers that are read back: column, field. The rest of a Prediction is derived from them and the request.
#define NUMBERS(ROW)                                                                                                   \
    ROW(step_s, step_s)                                                                                                \
    ROW(compute_s, compute_s)                                                                                          \
    ROW(optimizer_s, optimizer_s)                                                                                      \
    ROW(overhead_s, overhead_s)                                                                                        \
    ROW(parameters_bytes, memory.parameters)                                                                           \
    ROW(gradients_bytes, memory.gradients)                                                                             \
    ROW(optimizer_bytes, memory.optimizer)                                                                             \
    ROW(activations_bytes, memory.activations)                                                                         \
    ROW(logits_bytes, memory.logits)                                                                                   \
    ROW(gathered_parameters_bytes, memory.gathered_parameters)                                                         \
    ROW(communication_bytes, memory.communication)                                                                     \
    ROW(runtime_bytes, memory.runtime)                                                                                 \
    ROW(peak_bytes, memory.peak_bytes)                                                                                 \
    ROW(reserved_bytes, memory.reserved_bytes)                                                                         \
    ROW(top_bytes, memory.top_bytes)                                                                                   \
    ROW(recomputed_flop_per_token, recomputed_flop_per_token)

#define COLUMN(column, field) ", " #column
#define MARK(column, field) ", ?"
#define READ(column, field) prediction->field = sqlite3_column_double(row, next++);
#define VALUE(column, field) , prediction->field
#define KIND(column, field) "n"

static void read_row(sqlite3_stmt *row, Arena *arena, Prediction *prediction) {
    int next = 0;
    prediction->memory.peak_phase = arena_text(arena, (const char *)sqlite3_column_text(row, next++));
    prediction->memory.top_name = arena_text(arena, (const char *)sqlite3_column_text(row, next++));
    NUMBERS(READ)
}

static bool find_exposed(Store *store, uint64_t content_hash, double exposed_s[AXIS_COUNT]) {
    if (!store->find_exposed &&
        store_prepare(store, "SELECT axis, seconds FROM prediction_exposed WHERE content_hash = ?",
                      &store->find_exposed, NULL) != STATUS_OK) {
        return false;
    }
    store_bind(store->find_exposed, "h", content_hash);
    const bool read = store_read_exposed(store->find_exposed, exposed_s) == SQLITE_DONE;
    sqlite3_reset(store->find_exposed);
    return read;
}

// A failed lookup is a miss: the numbers are then computed, and the subsequent write reports the error.
static bool find_prediction(void *state, uint64_t content_hash, Arena *arena, Prediction *prediction) {
    Store *store = state;
    if (!store->find_prediction &&
        store_prepare(store,
                      "SELECT peak_phase, top_name" NUMBERS(
                          COLUMN) " FROM predictions WHERE content_hash = ? "
                                  "AND recomputed_flop_per_token IS NOT NULL",  // rows of schema 1 lack it
                      &store->find_prediction, NULL) != STATUS_OK) {
        return false;
    }
    store_bind(store->find_prediction, "h", content_hash);
    bool found = sqlite3_step(store->find_prediction) == SQLITE_ROW;
    if (found) {
        read_row(store->find_prediction, arena, prediction);
        found = find_exposed(store, content_hash, prediction->exposed_s);
    }
    sqlite3_reset(store->find_prediction);
    return found;
}

Status prediction_writer_open(Store *store, const TuneRequest *request, PredictionWriter *writer, Error *error) {
    *writer =
        (PredictionWriter){.store = store, .request = request, .profile_hash = store_profile_hash(&request->cluster)};
    if (!store->put_prediction) {
        TRY(store_prepare(
            store,
            "INSERT OR REPLACE INTO predictions (content_hash, engine_version, model, cluster, profile_hash, target, "
            "plan, step_low_s, step_high_s, tokens_per_s, mfu, peak_phase, top_name" NUMBERS(
                COLUMN) ") "
                        "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?" NUMBERS(MARK) ")",
            &store->put_prediction, error));
    }
    return store->put_exposed
               ? STATUS_OK
               : store_prepare(store, "INSERT INTO prediction_exposed VALUES (?,?,?)", &store->put_exposed, error);
}

// Deletes the rows of an older prediction with that hash, too.
Status prediction_write(PredictionWriter *writer, const Prediction *prediction, Error *error) {
    const TuneRequest *request = writer->request;
    sqlite3_stmt *statement = writer->store->put_prediction;
    char plan[PLAN_TEXT_BYTES], target[64];
    store_target_text(request->target, target, sizeof target);
    TRY(store_put(writer->store, statement, error, "hssshssnnnnss" NUMBERS(KIND), prediction->content_hash,
                  tune_engine_version(), request->model.name, request->cluster.name, writer->profile_hash, target,
                  plan_text(&prediction->plan, plan), prediction->step_low_s, prediction->step_high_s,
                  prediction->tokens_per_s, prediction->mfu, prediction->memory.peak_phase,
                  prediction->memory.top_name NUMBERS(VALUE)));
    store_bind(writer->store->put_exposed, "h", prediction->content_hash);
    return store_put_exposed(writer->store, writer->store->put_exposed, prediction->exposed_s, error);
}

typedef struct SavePrediction {
    const TuneRequest *request;
    const Prediction *prediction;
} SavePrediction;

static Status save_prediction(Store *store, void *context, Error *error) {
    const SavePrediction *save = context;
    PredictionWriter writer;
    TRY(prediction_writer_open(store, save->request, &writer, error));
    return prediction_write(&writer, save->prediction, error);
}

Status store_save_prediction(Store *store, const TuneRequest *request, const Prediction *prediction, Error *error) {
    if (prediction->cached || prediction->origin != ORIGIN_ENGINE || prediction->step_s <= 0) {
        return STATUS_OK;  // nothing new
    }
    SavePrediction save = {request, prediction};
    return store_transaction(store, save_prediction, &save, error);
}

// A failed write here loses nothing: the result is saved at the end, and that reports the error.
static void keep_prediction(void *state, const TuneRequest *request, const Prediction *prediction) {
    store_save_prediction(state, request, prediction, NULL);
}

PredictionCache store_cache(Store *store) {
    return (PredictionCache){.find = find_prediction, .keep = keep_prediction, .state = store};
}
