// Saves the answer to a request: the request, every candidate, and every prediction that the engine made. The same
// request gives the same answer (its hash covers the engine's code), so repeating it only increments a count; nothing
// is written twice.

#include <math.h>
#include <string.h>

#include "autotune/store/store_predictions.h"
#include "sim/base/text.h"

static const char *const state_names[CANDIDATE_STATE_COUNT] = {"rejected", "estimated", "simulated"};

// 0 = none was requested.
static int64_t asked_batch(const TuneRequest *request) {
    return request->batch_assumed ? 0 : request->global_batch;
}

static uint64_t request_hash(const TuneRequest *request) {
    Hash hash = hash_begin();
    hash_text(&hash, tune_engine_version());
    model_hash(&request->model, &hash);
    cluster_hash(&request->cluster, &hash);
    target_hash(request->target, &hash);
    const int64_t asked[] = {request->world,       request->seq,       asked_batch(request),
                             request->micro_batch, request->max_tp,    request->effort,
                             request->objective,   request->any_order, request->serial_lanes};
    hash_ints(&hash, asked, sizeof asked / sizeof asked[0]);
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        hash_int(&hash, request->asked[id]);
    }
    axis_order_hash(&request->order, &hash);
    hash_double(&hash, request->memory_limit_bytes);
    handicap_hash(request, &hash);
    return hash_end(&hash);
}

// Counts one more repeat of a known request; *known says whether there was one.
static Status touch_request(Store *store, const TuneRequest *request, bool *known, Error *error) {
    TRY(store_write(store, error,
                    "UPDATE requests SET times_asked = times_asked + 1, command = ?, "
                    "last_asked_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now') WHERE content_hash = ?",
                    "sh", request->command, request_hash(request)));
    *known = sqlite3_changes(store->db) > 0;
    return STATUS_OK;
}

static Status insert_request(Store *store, const TuneResult *result, Error *error) {
    const TuneRequest *request = result->request;
    const SearchCounts *search = &result->search;
    char target[64];
    store_target_text(request->target, target, sizeof target);
    return store_write(
        store, error,
        "INSERT INTO requests (content_hash, command, world, model, model_hash, cluster, profile_hash, target, seq, "
        "global_batch, memory_limit_bytes, engine_version, shapes, candidate_count, pruned, estimated, simulated, "
        "elapsed_s, objective) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        "hsdshshsdInsdddddns", request_hash(request), request->command, request->world, request->model.name,
        store_model_hash(&request->model), request->cluster.name, store_profile_hash(&request->cluster), target,
        request->seq, asked_batch(request), request->memory_limit_bytes, tune_engine_version(), search->shapes,
        search->candidates, search->pruned, search->estimated, search->simulated, search->elapsed_s,
        objective_names[request->objective]);
}

// Two candidates of one shape rejected for the same reason, one that does not mention what they differ in.
static bool are_alike(const Candidate *left, const Candidate *right) {
    return left->state == CANDIDATE_REJECTED && right->state == CANDIDATE_REJECTED && left->rule && right->rule &&
           text_same(left->rule, right->rule) && text_same(left->reason, right->reason);
}

// The candidates of a shape, consecutively.
static int shape_end(const TuneResult *result, int first) {
    int end = first + 1;
    while (end < result->candidate_count && result->candidates[end].shape == result->candidates[first].shape) {
        end++;
    }
    return end;
}

// What SQLite does once for a statement, as a table of the states that a row may have, costs several rows.
enum { ROWS_AT_ONCE = 32, COLUMNS_OF_CANDIDATE = 13 };

typedef struct CandidateWriter {
    Store *store;
    sqlite3_stmt *one, *many;
    int64_t request_id;
    int waiting;  // rows, in their order
    struct {
        const Candidate *candidate;
        int alike;
    } rows[ROWS_AT_ONCE];
} CandidateWriter;

#define INSERT_CANDIDATES                                                                                              \
    "INSERT INTO candidates (request_id, shape, plan, content_hash, state, feasible, rule, reason, step_s, "           \
    "tokens_per_s, peak_bytes, reserved_bytes, alike) VALUES "
#define ONE_CANDIDATE "(?,?,?,?,?,?,?,?,?,?,?,?,?)"

static Status prepare_many(CandidateWriter *writer, Error *error) {
    char sql[sizeof INSERT_CANDIDATES + ROWS_AT_ONCE * sizeof "," ONE_CANDIDATE] = INSERT_CANDIDATES;
    size_t used = strlen(sql);
    for (int row = 0; row < ROWS_AT_ONCE; row++) {
        used = text_put(sql, sizeof sql, used, row > 0 ? "," ONE_CANDIDATE : ONE_CANDIDATE);
    }
    return store_prepare(writer->store, sql, &writer->many, error);
}

static void bind_candidate(CandidateWriter *writer, sqlite3_stmt *statement, int row, int place) {
    const Candidate *candidate = writer->rows[row].candidate;
    store_bind_from(statement, 1 + place * COLUMNS_OF_CANDIDATE, "Isshsdssppppd", writer->request_id,
                    mesh_text(&candidate->plan.mesh, MESH_BUFFER), plan_text(&candidate->plan, PLAN_BUFFER),
                    candidate->content_hash, state_names[candidate->state], candidate->state != CANDIDATE_REJECTED,
                    candidate->rule, candidate->reason, candidate->step_s, candidate->tokens_per_s,
                    round(candidate->peak_bytes), round(candidate->reserved_bytes), writer->rows[row].alike);
}

static Status put_candidate(CandidateWriter *writer, const Candidate *candidate, int alike, Error *error) {
    writer->rows[writer->waiting].candidate = candidate;
    writer->rows[writer->waiting].alike = alike;
    if (++writer->waiting < ROWS_AT_ONCE) {
        return STATUS_OK;
    }
    writer->waiting = 0;
    TRY(writer->many ? STATUS_OK : prepare_many(writer, error));
    for (int row = 0; row < ROWS_AT_ONCE; row++) {
        bind_candidate(writer, writer->many, row, row);
    }
    return store_step(writer->store, writer->many, error);
}

static Status put_waiting(CandidateWriter *writer, Error *error) {
    Status status = STATUS_OK;
    for (int row = 0; row < writer->waiting && status == STATUS_OK; row++) {
        bind_candidate(writer, writer->one, row, 0);
        status = store_step(writer->store, writer->one, error);
    }
    return status;
}

// One row for identical rejections, at the position of the first.
static Status put_shape(CandidateWriter *writer, const Candidate *candidates, int count, Error *error) {
    Status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        int before = 0, alike = 1;
        while (before < i && !are_alike(&candidates[before], &candidates[i])) {
            before++;
        }
        for (int other = i + 1; other < count && before == i; other++) {
            alike += are_alike(&candidates[i], &candidates[other]);
        }
        status = before < i ? STATUS_OK : put_candidate(writer, &candidates[i], alike, error);
    }
    return status;
}

static Status put_candidates(Store *store, const TuneResult *result, int64_t request_id, Error *error) {
    CandidateWriter writer = {.store = store, .request_id = request_id};
    Status status = store_prepare(store, INSERT_CANDIDATES ONE_CANDIDATE, &writer.one, error);
    for (int first = 0, end = 0; first < result->candidate_count && status == STATUS_OK; first = end) {
        end = shape_end(result, first);
        status = put_shape(&writer, result->candidates + first, end - first, error);
    }
    status = status == STATUS_OK ? put_waiting(&writer, error) : status;
    sqlite3_finalize(writer.one);
    sqlite3_finalize(writer.many);
    return status;
}

static Status put_predictions(Store *store, const TuneResult *result, Error *error) {
    PredictionWriter writer;
    Status status = prediction_writer_open(store, result->request, &writer, error);
    for (int i = 0; i < result->candidate_count && status == STATUS_OK; i++) {
        const Prediction *prediction = result->candidates[i].prediction;
        if (prediction && !prediction->cached) {
            status = prediction_write(&writer, prediction, error);
        }
    }
    return status;
}

static Status save_result(Store *store, void *context, Error *error) {
    const TuneResult *result = context;
    TRY(put_predictions(store, result, error));
    bool known = false;
    TRY(touch_request(store, result->request, &known, error));
    if (known) {
        return STATUS_OK;
    }
    TRY(insert_request(store, result, error));
    return put_candidates(store, result, sqlite3_last_insert_rowid(store->db), error);
}

static Status save_predictions(Store *store, void *context, Error *error) {
    return put_predictions(store, context, error);
}

Status store_save_predictions(Store *store, const TuneResult *result, Error *error) {
    return store_transaction(store, save_predictions, (void *)result, error);
}

Status store_save_result(Store *store, const TuneResult *result, Error *error) {
    return store_transaction(store, save_result, (void *)result, error);
}
