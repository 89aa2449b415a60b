// The recorded step of a run, read back as a Timeline. Spans are stored by rank and in issue order, under the names of
// their tasks; walking the program in parallel maps each back to its task.

#include <string.h>

#include "autotune/store/store_internal.h"

// The run to read; 0 = there is none.
static Status find_run(Store *store, const TimelineQuery *query, int64_t *run_id, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error,
                  "SELECT id FROM runs r WHERE (id = ?1 OR (?1 = 0 AND (content_hash = ?2 OR measurement_hash = ?3 "
                  "AND ?4))) AND EXISTS (SELECT 1 FROM spans s WHERE s.run_id = r.id) ORDER BY id DESC LIMIT 1",
                  "Ihhd", query->run_id, query->content_hash, query->measurement_hash, query->measurement_hash != 0));
    return store_read_id(store, statement, run_id, error);
}

// Reads the spans; false in *matches where one is not the program's next task.
static Status read_spans(Store *store, int64_t run_id, const StepProgram *program, Arena *arena, Timeline *timeline,
                         bool *matches, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error,
                  "SELECT rank, task, layer, micro_batch, start_s, end_s FROM spans WHERE run_id = ? ORDER BY rowid",
                  "I", run_id));
    StepCursor cursor = step_cursor_begin(program);
    size_t capacity = 0;
    int rank = -1, code = SQLITE_ROW;
    *matches = true;
    while (*matches && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        Span span = {.rank = sqlite3_column_int(statement, 0),
                     .layer = sqlite3_column_int(statement, 2),
                     .micro_step = sqlite3_column_int(statement, 3),
                     .start_s = sqlite3_column_double(statement, 4),
                     .end_s = sqlite3_column_double(statement, 5)};
        if (span.rank != rank) {
            cursor = step_cursor_begin(program);
            rank = span.rank;
        }
        StepInstance instance;
        *matches = step_cursor_next(&cursor, &instance) && instance.layer == span.layer &&
                   instance.micro_step == span.micro_step &&
                   strcmp(program->tasks[instance.task].name, (const char *)sqlite3_column_text(statement, 1)) == 0;
        span.task = instance.task;
        ARENA_PUSH(arena, timeline->spans, timeline->span_count, &capacity) = span;
        timeline->step_s = span.end_s > timeline->step_s ? span.end_s : timeline->step_s;
    }
    return store_read_end(store, statement, code, error);
}

Status store_timeline(Store *store, const TimelineQuery *query, const StepProgram *program, Arena *arena,
                      Timeline *timeline, bool *found, Error *error) {
    int64_t run_id = 0;
    *found = false;
    *timeline = (Timeline){.origin = TIMELINE_MEASURED, .complete = true};
    TRY(find_run(store, query, &run_id, error));
    return run_id > 0 ? read_spans(store, run_id, program, arena, timeline, found, error) : STATUS_OK;
}
