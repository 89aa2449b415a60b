// What calibrations read from and write to the store.

#include "autotune/store/store_internal.h"

static void read_measurement(sqlite3_stmt *row, Arena *arena, void *into) {
    StoredMeasurement *of = into;
    StoredRun *run = &of->run;
    *of = (StoredMeasurement){.run.state = "ok"};
    store_take(row, arena, "Issssssssssdnnsss", &run->id, &run->started_at, &run->source, &run->host, &run->model,
               &run->plan, &run->device, &run->transport, &run->command, &run->cluster, &run->target, &run->steps,
               &run->measured_step_s, &run->predicted_step_s, &of->lanes, &of->executor, &of->core_type);
}

Status store_measured_runs(Store *store, int most, Arena *arena, StoredMeasurement **runs, int *count, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error,
                  "SELECT id, started_at, source, host, model, plan, device, transport, command, cluster, target, "
                  "steps, measured_step_s, predicted_step_s, lanes, executor, core_type FROM runs WHERE state = 'ok' "
                  "AND measured_step_s > 0 ORDER BY id DESC LIMIT ?",
                  "d", most > 0 ? most : -1));
    return store_read_all(store, statement, sizeof **runs, read_measurement, arena, runs, count, error);
}

static Status save(Store *store, void *context, Error *error) {
    const StoredCalibration *of = context;
    return store_write(store, error,
                       "INSERT INTO calibrations (command, parent, parent_hash, profile, profile_hash, profile_json, "
                       "run_ids, runs, plans, misfit_sd, noise_sd, fit_before, fit_after, held_out_plans, "
                       "held_out_before, held_out_after) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                       of->held_out_plans > 0 ? "sssssssddnnnndnn" : "sssssssddnnnnd", of->command, of->parent,
                       of->parent_hash, of->profile, of->profile_hash, of->profile_json, of->runs_json, of->runs,
                       of->plans, of->misfit_sd, of->noise_sd, of->fit_before, of->fit_after, of->held_out_plans,
                       of->held_out_before, of->held_out_after);
}

Status store_save_calibration(Store *store, const StoredCalibration *calibration, int64_t *id, Error *error) {
    TRY(store_transaction(store, save, (void *)calibration, error));
    if (id) {
        *id = sqlite3_last_insert_rowid(store->db);
    }
    return STATUS_OK;
}
