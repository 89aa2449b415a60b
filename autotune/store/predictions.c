// The predictions table: the cache that search asks before it simulates, and the row that both plan and predict write.

#include <string.h>

#include "autotune/store/store_predictions.h"

// The numbers that are read back, in the order of read_row; the rest of a Prediction is derived from them and the
// request.
#define NUMBERS                                                                                                        \
    "step_s, compute_s, exposed_dp_replicate_s, exposed_dp_shard_s, exposed_cp_s, exposed_tp_s, optimizer_s, "         \
    "overhead_s, "                                                                                                     \
    "parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, logits_bytes, gathered_parameters_bytes, " \
    "communication_bytes, runtime_bytes, peak_bytes, reserved_bytes, top_bytes, recomputed_flop_per_token"
enum { NUMBER_COUNT = 20 };

static void numbers_of(Prediction *prediction, double *places[NUMBER_COUNT]) {
    MemoryBreakdown *memory = &prediction->memory;
    double *all[NUMBER_COUNT] = {
        &prediction->step_s,
        &prediction->compute_s,
        &prediction->exposed_s[AXIS_DP_REPLICATE],
        &prediction->exposed_s[AXIS_DP_SHARD],
        &prediction->exposed_s[AXIS_CP],
        &prediction->exposed_s[AXIS_TP],
        &prediction->optimizer_s,
        &prediction->overhead_s,
        &memory->parameters,
        &memory->gradients,
        &memory->optimizer,
        &memory->activations,
        &memory->logits,
        &memory->gathered_parameters,
        &memory->communication,
        &memory->runtime,
        &memory->peak_bytes,
        &memory->reserved_bytes,
        &memory->top_bytes,
        &prediction->recomputed_flop_per_token,
    };
    memcpy(places, all, sizeof all);
}

static void read_row(sqlite3_stmt *row, Arena *arena, Prediction *prediction) {
    double *places[NUMBER_COUNT];
    numbers_of(prediction, places);
    for (int i = 0; i < NUMBER_COUNT; i++) {
        *places[i] = sqlite3_column_double(row, i);
    }
    prediction->memory.peak_phase = arena_text(arena, (const char *)sqlite3_column_text(row, NUMBER_COUNT));
    prediction->memory.top_name = arena_text(arena, (const char *)sqlite3_column_text(row, NUMBER_COUNT + 1));
}

// A lookup that fails is a miss: the numbers are then computed, and the write that follows reports what is wrong.
static bool find_prediction(void *state, uint64_t content_hash, Arena *arena, Prediction *prediction) {
    Store *store = state;
    if (!store->find_prediction &&
        store_prepare(store,
                      "SELECT " NUMBERS ", peak_phase, top_name FROM predictions WHERE content_hash = ? "
                      "AND recomputed_flop_per_token IS NOT NULL",  // rows of schema 1 do not know it
                      &store->find_prediction, NULL) != STATUS_OK) {
        return false;
    }
    int place = 1;
    bind_hash(store->find_prediction, &place, content_hash);
    const bool found = sqlite3_step(store->find_prediction) == SQLITE_ROW;
    if (found) {
        read_row(store->find_prediction, arena, prediction);
    }
    sqlite3_reset(store->find_prediction);
    return found;
}

Status store_prepare_prediction(Store *store, sqlite3_stmt **statement, Error *error) {
    return store_prepare(
        store,
        "INSERT OR REPLACE INTO predictions (content_hash, engine_version, model, cluster, profile_hash, target, "
        "plan, step_low_s, step_high_s, tokens_per_s, mfu, peak_phase, top_name, " NUMBERS ") "
        "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?, ?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        statement, error);
}

Status store_put_prediction(Store *store, sqlite3_stmt *statement, const TuneRequest *request,
                            const Prediction *prediction, Error *error) {
    char plan[PLAN_TEXT_BYTES], target[64];
    store_target_text(request->target, target, sizeof target);
    int place = 1;
    bind_hash(statement, &place, prediction->content_hash);
    bind_text(statement, &place, tune_engine_version());
    bind_text(statement, &place, request->model.name);
    bind_text(statement, &place, request->cluster.name);
    bind_hash(statement, &place, store_profile_hash(&request->cluster));
    bind_text(statement, &place, target);
    bind_text(statement, &place, plan_text(&prediction->plan, plan));
    bind_double(statement, &place, prediction->step_low_s);
    bind_double(statement, &place, prediction->step_high_s);
    bind_double(statement, &place, prediction->tokens_per_s);
    bind_double(statement, &place, prediction->mfu);
    bind_text(statement, &place, prediction->memory.peak_phase);
    bind_text(statement, &place, prediction->memory.top_name);
    Prediction copy = *prediction;
    double *places[NUMBER_COUNT];
    numbers_of(&copy, places);
    for (int i = 0; i < NUMBER_COUNT; i++) {
        bind_double(statement, &place, *places[i]);
    }
    return store_step(store, statement, error);
}

typedef struct SavePrediction {
    const TuneRequest *request;
    const Prediction *prediction;
} SavePrediction;

static Status save_prediction(Store *store, void *context, Error *error) {
    const SavePrediction *save = context;
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare_prediction(store, &statement, error));
    const Status status = store_put_prediction(store, statement, save->request, save->prediction, error);
    sqlite3_finalize(statement);
    return status;
}

Status store_save_prediction(Store *store, const TuneRequest *request, const Prediction *prediction, Error *error) {
    if (prediction->cached || prediction->origin != ORIGIN_ENGINE || prediction->step_s <= 0) {
        return STATUS_OK;  // nothing that is not there already
    }
    SavePrediction save = {request, prediction};
    return store_transaction(store, save_prediction, &save, error);
}

// What cannot be kept now is not lost: the result is saved at the end, and that reports what is wrong.
static void keep_prediction(void *state, const TuneRequest *request, const Prediction *prediction) {
    store_save_prediction(state, request, prediction, NULL);
}

PredictionCache store_cache(Store *store) {
    return (PredictionCache){.find = find_prediction, .keep = keep_prediction, .state = store};
}
