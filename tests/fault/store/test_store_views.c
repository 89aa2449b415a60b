// The views that people query by hand hold the numbers of the JSON answer, to the digit; bytes are whole ones there.

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
