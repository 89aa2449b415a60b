// Looks up the newest.

#include "autotune/measure/recall.h"

#include <string.h>

#include "autotune/calibrate/calibrate.h"

enum {
    RECALLED_ENTRIES = 64,     // of the ranking, looked up in the store
    RECALLED_RUNS = 16,        // of each
    RECALLED_FAILURES = 200,   // of the newest runs, those that did not end well
    RECALLED_PREFLIGHTS = 200  // the newest
};

static Status recall_row(const Measuring *measuring, const NamedRun *named, ValidateRow *row, Error *error) {
    Arena *arena = measuring->like.arena;
    const Prediction *entry = row->prediction;
    const uint64_t measurement = measuring_hash(measuring, &entry->plan);
    row->runs = ARENA_ARRAY(arena, RunRecord, RECALLED_RUNS);
    if (measurement != 0) {
        TRY(store_measurements(measuring->store, measurement, RECALLED_RUNS, arena, row->runs, &row->run_count, error));
    }
    if (row->run_count == 0) {
        TRY(store_runs_of(measuring->store, entry->content_hash, RECALLED_RUNS, arena, row->runs, &row->run_count,
                          error));
    }
    if (row->run_count == 0 && named->record && strcmp(named->record->state, "ok") == 0 &&
        strcmp(plan_text(&entry->plan, PLAN_BUFFER), named->plan) == 0) {
        row->runs[row->run_count++] = *named->record;
    }
    row->recalled = row->run_count;
    return STATUS_OK;
}

Status recall_validation(const Measuring *measuring, const TuneResult *result, const NamedRun *named,
                         const Validation **validation, Error *error) {
    Arena *arena = measuring->like.arena;
    const int most = result->entry_count < RECALLED_ENTRIES ? result->entry_count : RECALLED_ENTRIES;
    Validation *recalled = ARENA_NEW(arena, Validation);
    *recalled = (Validation){.request = result->request,
                             .source = "executor",
                             .shapes = result->entry_count,
                             .rows = ARENA_ARRAY(arena, ValidateRow, most)};
    for (int i = 0; i < most; i++) {
        ValidateRow *row = &recalled->rows[recalled->row_count];
        *row = (ValidateRow){.prediction = &result->entries[i], .place = i + 1, .state = "ok"};
        TRY(recall_row(measuring, named, row, error));
        if (row->run_count > 0) {
            recalled->source = row->runs[0].source;
            recalled->row_count++;
        }
    }
    validate_summarize(recalled, arena);
    *validation = recalled->row_count > 0 ? recalled : NULL;
    return STATUS_OK;
}

Status recall_failures(Store *store, const TuneRequest *request, Arena *arena, const StoredRun **failed, int *count,
                       Error *error) {
    StoredList list;
    TRY(store_list(store, RECALLED_FAILURES, arena, &list, error));
    StoredRun *rows = ARENA_ARRAY(arena, StoredRun, list.run_count);
    for (int i = 0; i < list.run_count; i++) {
        const StoredRun *run = &list.runs[i];
        if (strcmp(run->state, "ok") != 0 && strcmp(run->model, request->model.name) == 0) {
            rows[(*count)++] = *run;
        }
    }
    *failed = rows;
    return STATUS_OK;
}

Status recall_preflight(Store *store, const TuneRequest *request, const char *mesh, Arena *arena,
                        const StoredPreflight **preflight, bool *of_mesh, Error *error) {
    StoredList list;
    TRY(store_list(store, RECALLED_PREFLIGHTS, arena, &list, error));
    const StoredPreflight *chosen = NULL;
    for (int i = 0; i < list.preflight_count; i++) {
        const StoredPreflight *row = &list.preflights[i];
        const bool same = row->world == request->world && calibration_same_machine(row->cluster, request->cluster.name);
        const bool better = !chosen || (strcmp(chosen->mesh, mesh) != 0 && strcmp(row->mesh, mesh) == 0);
        chosen = same && better ? row : chosen;
    }
    if (!chosen) {
        return STATUS_OK;
    }
    StoredPreflight *full = ARENA_NEW(arena, StoredPreflight);
    bool found = false;
    TRY(store_preflight(store, chosen->id, arena, full, &found, error));
    *preflight = found ? full : NULL;
    *of_mesh = strcmp(chosen->mesh, mesh) == 0;
    return STATUS_OK;
}
