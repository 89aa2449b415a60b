// The views for manual queries hold the numbers of the JSON answer, to the digit; bytes are integers there.

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>

#include "tests/support/run_program.h"

static char *folder, path[512];
static json_t *answer;
static sqlite3 *db;

static void begin(void) {
    folder = temp_dir_make();
    snprintf(path, sizeof path, "%s/test.db", folder);
    const char *const words[] = {"ndtune", "--world", "8", "--model", "tiny", "--format", "json", "--db", path, NULL};
    ProgramRun run = program_run(words, NULL, 120);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    answer = json_loads(run.out, 0, NULL);
    cr_assert_not_null(answer);
    program_run_free(&run);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
}

static void end(void) {
    sqlite3_close(db);
    json_decref(answer);
    temp_dir_remove(folder);
}

TestSuite(store_views, .init = begin, .fini = end);

static double number(const json_t *entry, const char *key) {
    const json_t *value = json_object_get(entry, key);
    cr_assert(json_is_number(value), "%s", key);
    return json_number_value(value);
}

// Rows of the view with these numbers.
static int rows_like(const char *sql, const json_t *entry) {
    const json_t *memory = json_object_get(entry, "memory");
    const double values[] = {number(entry, "step_time_s"),
                             number(entry, "step_time_low_s"),
                             number(entry, "step_time_high_s"),
                             number(entry, "tokens_per_s"),
                             number(entry, "mfu"),
                             number(memory, "peak_bytes"),
                             number(memory, "reserved_bytes")};
    sqlite3_stmt *statement = NULL;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    for (int i = 0; i < (int)(sizeof values / sizeof values[0]); i++) {
        sqlite3_bind_double(statement, i + 1, values[i]);
    }
    cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
    const int count = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return count;
}

#define NUMBERS                                                                                                        \
    "step_s = ?1 AND step_low_s = ?2 AND step_high_s = ?3 AND tokens_per_s = ?4 AND mfu = ?5 AND "                     \
    "abs(peak_bytes - ?6) < 1 AND abs(reserved_bytes - ?7) < 1"

Test(store_views, every_entry_of_the_answer_is_a_row_of_the_ranking) {
    const json_t *entries = json_object_get(answer, "entries"), *entry;
    size_t i;
    cr_assert_gt(json_array_size(entries), 5);
    json_array_foreach(entries, i, entry) {
        cr_expect_geq(rows_like("SELECT count(*) FROM v_ranking WHERE state = 'simulated' AND " NUMBERS, entry), 1,
                      "entry %zu", i);
    }
}

Test(store_views, the_best_is_the_fastest_of_the_answer) {
    const json_t *entries = json_object_get(answer, "entries"), *entry, *fastest = json_array_get(entries, 0);
    size_t i;
    json_array_foreach(entries, i, entry) {
        fastest = number(entry, "tokens_per_s") > number(fastest, "tokens_per_s") ? entry : fastest;
    }
    cr_expect_eq(rows_like("SELECT count(*) FROM v_best WHERE " NUMBERS, fastest), 1);
}

Test(store_views, bytes_of_the_ranking_are_whole) {
    const json_t *first = json_array_get(json_object_get(answer, "entries"), 0);
    cr_expect_eq(rows_like("SELECT count(*) FROM v_ranking WHERE ?1 + ?2 + ?3 + ?4 + ?5 + ?6 + ?7 > 0 AND "
                           "(peak_bytes != round(peak_bytes) OR reserved_bytes != round(reserved_bytes))",
                           first),
                 0);
}

// ---- what was measured: a session of tune, by the views and by its JSON

static void begin_tuned(void) {
    folder = temp_dir_make();
    snprintf(path, sizeof path, "%s/test.db", folder);
    const char *const words[] = {"ndtune",   "tune",    "--world", "2",         "--model", "tiny",       "--seq",
                                 "32",       "--steps", "2",       "--warm-up", "1",       "--max-runs", "2",
                                 "--format", "json",    "--db",    path,        NULL};
    ProgramRun run = program_run(words, NULL, 120);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    answer = json_loads(run.out, 0, NULL);
    cr_assert_not_null(answer);
    program_run_free(&run);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
}

TestSuite(store_views_of_runs, .init = begin_tuned, .fini = end);

static int rows_with(const char *sql, const double *values, int count) {
    sqlite3_stmt *statement = NULL;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    for (int i = 0; i < count; i++) {
        sqlite3_bind_double(statement, i + 1, values[i]);
    }
    cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
    const int rows = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return rows;
}

Test(store_views_of_runs, the_steps_of_a_session_are_its_rows) {
    const json_t *step;
    size_t i;
    cr_assert_eq(json_array_size(json_object_get(answer, "steps")), 2);
    json_array_foreach(json_object_get(answer, "steps"), i, step) {
        const double values[] = {(double)i + 1, number(step, "run_id"), number(step, "measured_step_time_s"),
                                 number(step, "wall_s")};
        cr_expect_eq(rows_with("SELECT count(*) FROM v_tune WHERE place = ?1 AND run_id = ?2 AND measured_step_s = ?3 "
                               "AND wall_s = ?4 AND NOT known",
                               values, 4),
                     1, "step %zu", i);
    }
}

Test(store_views_of_runs, predicted_next_to_measured_is_that_of_the_session) {
    const json_t *shape;
    size_t i;
    int measured = 0;
    json_array_foreach(json_object_get(answer, "shapes"), i, shape) {
        if (json_is_number(json_object_get(shape, "measured_step_time_s"))) {
            const double predicted_s = number(shape, "predicted_step_time_s");
            cr_expect_eq(rows_with("SELECT count(*) FROM v_accuracy WHERE predicted_step_s = ?1 AND "
                                   "step_error = predicted_step_s / measured_step_s - 1 AND peak_bytes > 0",
                                   &predicted_s, 1),
                         1, "shape %zu", i);
            measured++;
        }
    }
    cr_expect_eq(measured, rows_with("SELECT count(*) FROM v_accuracy", NULL, 0));
}
