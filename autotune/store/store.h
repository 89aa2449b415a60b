// The store: one SQLite file that remembers requests, candidates, predictions and runs. The only user of sqlite3.h.
// WAL, foreign keys, one transaction per result: a killed process leaves a readable file. Errors are
// STATUS_ENVIRONMENT and name the file.

#pragma once

#include <stdbool.h>

#include "autotune/predict/predict.h"
#include "autotune/result.h"
#include "autotune/run_record.h"
#include "sim/base/error.h"

typedef struct Store Store;

enum { STORE_PATH_BYTES = 4096 };

// $XDG_DATA_HOME/ndtune/ndtune.db, or under $HOME/.local/share when that is not set.
Status store_default_path(char path[STORE_PATH_BYTES], Error *error);

// Creates the parent folders of the file, as mkdir -p does.
Status store_make_folders(const char *path, Error *error);

// Opens or creates the file and migrates it to the newest schema. A file that is not ours, damaged, newer than this
// program or not writable is refused and left untouched; USAGE where the path names no file ("", ":memory:").
Status store_open(const char *path, Store **store, Error *error);

// The same with an in-memory copy of the file, empty where the path is "": changes are lost. For read-only files, and
// where none can be created.
Status store_open_copy(const char *path, Store **store, Error *error);
void store_close(Store *store);  // NULL is allowed

// A cache over the predictions table; lives as long as the store.
PredictionCache store_cache(Store *store);

// Each is one transaction: all or nothing.
Status store_save_result(Store *store, const TuneResult *result, Error *error);
Status store_save_predictions(Store *store, const TuneResult *result, Error *error);  // these only, for the cache
Status store_save_prediction(Store *store, const TuneRequest *request, const Prediction *prediction, Error *error);
Status store_save_run(Store *store, const RunRecord *run, int64_t *run_id, Error *error);

// Measured costs of work on chips, from all runs, the newest last.
Status store_prices(Store *store, Arena *arena, const ChipPrice **prices, int *count, Error *error);

// The newest requests, runs and preflights, at most `most` of each; 0 = all. Texts in the arena.
Status store_list(Store *store, int most, Arena *arena, StoredList *list, Error *error);

// Successful runs that repeat each other, newest first, with their task totals; *count <= most.
Status store_measurements(Store *store, uint64_t measurement_hash, int most, Arena *arena, RunRecord *runs, int *count,
                          Error *error);

// Successful runs of a prediction, newest first, with their task totals; *count <= most.
Status store_runs_of(Store *store, uint64_t content_hash, int most, Arena *arena, RunRecord *runs, int *count,
                     Error *error);

// The recorded step of a program: of one run, or of the newest run of a prediction or measurement that has one (either
// hash may be 0). *found: there is one, and its spans match the program's tasks.
typedef struct TimelineQuery {
    int64_t run_id;  // 0 = by hash
    uint64_t content_hash, measurement_hash;
} TimelineQuery;
Status store_timeline(Store *store, const TimelineQuery *query, const StepProgram *program, Arena *arena,
                      Timeline *timeline, bool *found, Error *error);

// One run with its steps and tasks; *found says whether that number exists.
Status store_run_in_full(Store *store, int64_t id, Arena *arena, StoredRun *about, RunRecord *run, bool *found,
                         Error *error);

// Successful runs with a step time, newest first, at most `most`; 0 = all.
Status store_measured_runs(Store *store, int most, Arena *arena, StoredMeasurement **runs, int *count, Error *error);

Status store_save_calibration(Store *store, const StoredCalibration *calibration, int64_t *id, Error *error);

Status store_save_preflight(Store *store, const StoredPreflight *preflight, Error *error);

// With all findings and groups, texts in the arena.
Status store_preflight(Store *store, int64_t id, Arena *arena, StoredPreflight *preflight, bool *found, Error *error);

// ---- sessions of the closed loop

typedef struct StoredTuneRun {
    int64_t run_id;
    const char *measurement_hash;  // as text
    bool known;                    // it was measured before the session
    double wall_s;                 // its duration
    double at_s;                   // when it began, in seconds since 1970
    const char *state, *failure;   // of the run
    double measured_step_s;        // 0 = not measured
    const double *step_times_s;    // for all its steps; NAN = not timed
    int steps, warm_up;
} StoredTuneRun;

// Selects the session: the one with the same key, or if there is none a new one with all that is known of its
// measurements; or a fresh one, with nothing.
typedef struct TuneSessionKey {
    uint64_t key;
    const char *command;
    bool afresh;
    const uint64_t *measurement_hashes;  // of its shapes; 0 = not measurable
    int count;
} TuneSessionKey;

Status store_tune_session(Store *store, const TuneSessionKey *key, int64_t *session, Error *error);

// The newest with that key; 0 = none.
Status store_find_tune_session(Store *store, uint64_t key, int64_t *session, Error *error);

// Its runs in order, texts in the arena.
Status store_tune_runs(Store *store, int64_t session, Arena *arena, StoredTuneRun **runs, int *count, Error *error);

// Saves a run and its place in the session, both or neither.
Status store_save_tune_run(Store *store, int64_t session, const RunRecord *run, double wall_s, int64_t *run_id,
                           Error *error);

// ----

// The command line of the last request, of any target or of any but the one named; NULL = none.
Status store_last_request(Store *store, const char *but_target, Arena *arena, const char **command, Error *error);
