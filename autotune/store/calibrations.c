// What calibrations read from the store and leave in it.

#include "autotune/store/store_internal.h"

Status store_measured_runs(Store *store, int most, Arena *arena, StoredMeasurement **runs, int *count, Error *error) {
    sqlite3_stmt *row = NULL;
    TRY(store_prepare(
        store,
        "SELECT id, started_at, source, host, model, plan, device, transport, command, cluster, target, "
        "steps, measured_step_s, predicted_step_s, lanes, executor, core_type FROM runs WHERE state = 'ok' AND "
        "measured_step_s > 0 ORDER BY id DESC LIMIT ?",
        &row, error));
    int place = 1, code;
    bind_int(row, &place, most > 0 ? most : -1);
    size_t capacity = 0;
    *runs = NULL;
    *count = 0;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        *runs = arena_grow(arena, *runs, (size_t)*count, &capacity, sizeof **runs);
        (*runs)[(*count)++] = (StoredMeasurement){.run = {.id = sqlite3_column_int64(row, 0),
                                                          .started_at = text_at(row, 1, arena),
                                                          .source = text_at(row, 2, arena),
                                                          .host = text_at(row, 3, arena),
                                                          .model = text_at(row, 4, arena),
                                                          .plan = text_at(row, 5, arena),
                                                          .device = text_at(row, 6, arena),
                                                          .transport = text_at(row, 7, arena),
                                                          .state = "ok",
                                                          .command = text_at(row, 8, arena),
                                                          .cluster = text_at(row, 9, arena),
                                                          .target = text_at(row, 10, arena),
                                                          .steps = sqlite3_column_int(row, 11),
                                                          .measured_step_s = sqlite3_column_double(row, 12),
                                                          .predicted_step_s = sqlite3_column_double(row, 13)},
                                                  .lanes = text_at(row, 14, arena),
                                                  .executor = text_at(row, 15, arena),
                                                  .core_type = text_at(row, 16, arena)};
    }
    return store_read_end(store, row, code, error);
}

static Status save(Store *store, void *context, Error *error) {
    const StoredCalibration *calibration = context;
    sqlite3_stmt *row = NULL;
    TRY(store_prepare(store,
                      "INSERT INTO calibrations (command, parent, parent_hash, profile, profile_hash, profile_json, "
                      "run_ids, runs, plans, misfit_sd, noise_sd, fit_before, fit_after, held_out_plans, "
                      "held_out_before, held_out_after) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                      &row, error));
    const char *const texts[] = {calibration->command,  calibration->parent,       calibration->parent_hash,
                                 calibration->profile,  calibration->profile_hash, calibration->profile_json,
                                 calibration->runs_json};
    const double numbers[] = {calibration->misfit_sd, calibration->noise_sd, calibration->fit_before,
                              calibration->fit_after};
    int place = 1;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bind_text(row, &place, texts[i]);
    }
    bind_int(row, &place, calibration->runs);
    bind_int(row, &place, calibration->plans);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        bind_double(row, &place, numbers[i]);
    }
    bind_int(row, &place, calibration->held_out_plans);
    if (calibration->held_out_plans > 0) {  // else SQL NULL
        bind_double(row, &place, calibration->held_out_before);
        bind_double(row, &place, calibration->held_out_after);
    }
    const Status status = store_step(store, row, error);
    sqlite3_finalize(row);
    return status;
}

Status store_save_calibration(Store *store, const StoredCalibration *calibration, int64_t *id, Error *error) {
    TRY(store_transaction(store, save, (void *)calibration, error));
    if (id) {
        *id = sqlite3_last_insert_rowid(store->db);
    }
    return STATUS_OK;
}
