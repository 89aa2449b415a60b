// Files that are not ours, damaged, newer or not writable, and a writer that is killed: one sentence, and no data lost.

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "autotune/store/store.h"
#include "autotune/store/store_internal.h"
#include "tests/support/run_program.h"

extern char **environ;

static Arena arena;
static char *folder;
static char path[512];
static Store *store;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
    store = NULL;
    folder = temp_dir_make();
    snprintf(path, sizeof path, "%s/test.db", folder);
}

static void end(void) {
    store_close(store);
    temp_dir_remove(folder);
    arena_free(&arena);
}

TestSuite(store_faults, .init = begin, .fini = end);

// The current schema and one more step; returns the number of steps.
enum { MAX_MIGRATIONS = 32 };
static int migrations_and(Migration out[MAX_MIGRATIONS], const char *name, const char *sql) {
    cr_assert_lt(store_migration_count, MAX_MIGRATIONS);
    memcpy(out, store_migrations, (size_t)store_migration_count * sizeof *out);
    out[store_migration_count] = (Migration){name, sql};
    return store_migration_count + 1;
}

static void write_file(const char *text, size_t bytes) {
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

static long file_bytes(void) {
    struct stat about;
    return stat(path, &about) == 0 ? (long)about.st_size : -1;
}

static void refused(const char *sentence) {
    cr_assert_eq(store_open(path, &store, &error), STATUS_ENVIRONMENT);
    cr_assert_not_null(strstr(error.message, sentence), "%s", error.message);
    cr_assert_not_null(strstr(error.message, path), "%s", error.message);
    cr_assert_null(store);
}

static void execute(const char *sql) {
    sqlite3 *db = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    char *message = NULL;
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &message), SQLITE_OK, "%s", message);
    sqlite3_close(db);
}

static int query_int(const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
    const int value = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

Test(store_faults, a_text_file_is_refused_and_left_alone) {
    static const char text[] =
        "this is somebody's thesis, not a database, and it is long enough to have a header in it. "
        "this is somebody's thesis, not a database, and it is long enough to have a header in it.";
    write_file(text, sizeof text);
    refused("not a database");
    cr_assert_eq(file_bytes(), (long)sizeof text);
}

Test(store_faults, another_programs_database_is_refused_and_left_alone) {
    execute("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('one')");
    refused("another program");
    cr_assert_eq(query_int("SELECT count(*) FROM songs"), 1);
    cr_assert_eq(query_int("SELECT count(*) FROM sqlite_master"), 1);
}

Test(store_faults, a_database_that_marks_itself_as_another_programs_is_refused) {
    execute("PRAGMA application_id = 1234; PRAGMA user_version = 1");
    refused("another program");
}

Test(store_faults, a_newer_schema_is_refused_and_kept) {
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    store_close(store);
    store = NULL;
    execute("PRAGMA user_version = 999");
    refused("newer ndtune");
    cr_assert_eq(query_int("PRAGMA user_version"), 999);
}

Test(store_faults, a_damaged_database_is_refused) {
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    store_close(store);
    store = NULL;
    FILE *file = fopen(path, "r+b");
    cr_assert_not_null(file);
    fseek(file, 100, SEEK_SET);  // the first page after the file header: the table of tables
    for (int i = 0; i < 3900; i++) {
        fputc(0xff, file);
    }
    fclose(file);
    cr_assert_eq(store_open(path, &store, &error), STATUS_ENVIRONMENT);
    cr_assert_not_null(strstr(error.message, "damaged"), "%s", error.message);
}

Test(store_faults, a_folder_in_place_of_the_file_is_refused) {
    cr_assert_eq(mkdir(path, 0777), 0);
    refused("is a folder");
}

Test(store_faults, a_file_in_place_of_a_folder_is_refused) {
    write_file("x", 1);
    char below[600];
    snprintf(below, sizeof below, "%s/sub/test.db", path);
    cr_assert_eq(store_make_folders(below, &error), STATUS_ENVIRONMENT);
    cr_assert_not_null(strstr(error.message, "cannot create the folder"), "%s", error.message);
}

Test(store_faults, a_place_where_nothing_can_be_made_is_refused) {
    cr_assert_eq(store_make_folders("/proc/ndtune/test.db", &error),
                 STATUS_ENVIRONMENT);  // root cannot write there either
    cr_assert_not_null(strstr(error.message, "cannot create the folder"), "%s", error.message);
}

Test(store_faults, a_folder_that_is_not_there_is_refused_and_not_made) {
    char above[600], below[700];
    snprintf(above, sizeof above, "%s/mistyped", folder);
    snprintf(below, sizeof below, "%s/test.db", above);
    cr_assert_eq(store_open(below, &store, &error), STATUS_ENVIRONMENT);
    cr_expect_not_null(strstr(error.message, "mistyped: No such file or directory"), "%s", error.message);
    cr_expect_neq(access(above, F_OK), 0);
}

Test(store_faults, a_name_that_sqlite_takes_for_no_file_is_refused) {
    static const char *const names[] = {"", ":memory:", ":x"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_expect_eq(store_open(names[i], &store, &error), STATUS_USAGE);
        cr_expect_not_null(strstr(error.message, "nothing would be kept"), "%s", error.message);
    }
}

Test(store_faults, a_schema_number_that_nobody_wrote_is_refused) {
    static const char *const numbers[] = {"PRAGMA user_version = -5", "PRAGMA user_version = -1000000"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
        store_close(store);
        store = NULL;
        execute(numbers[i]);
        refused("which no ndtune wrote");
        char known[64];
        snprintf(known, sizeof known, "PRAGMA user_version = %d", store_migration_count);
        execute(known);
    }
}

// A read-only copy of a store: of a closed one, and of one whose log is not merged yet.
Test(store_faults, a_copy_in_memory_has_the_rows_and_keeps_nothing) {
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    execute("INSERT INTO requests (content_hash, command, world, model, model_hash, cluster, profile_hash, target, "
            "seq, global_batch, "
            "memory_limit_bytes, engine_version, shapes, candidate_count, pruned, estimated, simulated, elapsed_s) "
            "VALUES ('h', 'c', 1, 'm', 'h', 'c', 'h', 't', 1, 0, 1, 'v', 1, 1, 0, 1, 1, 0.1)");
    for (int closed = 0; closed < 2; closed++) {
        Store *copy = NULL;
        StoredList list;
        cr_assert_eq(store_open_copy(path, &copy, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(store_list(copy, 0, &arena, &list, &error), STATUS_OK, "%s", error.message);
        cr_expect_eq(list.request_count, 1);
        store_close(copy);
        store_close(closed == 0 ? store : NULL);
        store = NULL;
    }
    cr_assert_eq(store_open_copy("", &store, &error), STATUS_OK, "%s", error.message);
}

Test(store_faults, a_read_only_folder_is_refused) {
    if (geteuid() == 0) {
        temp_dir_remove(folder);  // a skipped test gets no .fini
        cr_skip_test("root writes everywhere");
    }
    cr_assert_eq(chmod(folder, 0555), 0);
    const Status status = store_open(path, &store, &error);
    chmod(folder, 0755);
    cr_assert_eq(status, STATUS_ENVIRONMENT);
    cr_assert_not_null(strstr(error.message, "not writable"), "%s", error.message);
}

Test(store_faults, an_older_schema_is_brought_up_and_keeps_its_rows) {
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    store_close(store);
    store = NULL;
    execute("INSERT INTO requests (content_hash, command, world, model, model_hash, cluster, profile_hash, target, "
            "seq, global_batch, "
            "memory_limit_bytes, engine_version, shapes, candidate_count, pruned, estimated, simulated, elapsed_s) "
            "VALUES ('h', 'c', 1, 'm', 'h', 'c', 'h', 't', 1, 0, 1, 'v', 1, 1, 0, 1, 1, 0.1)");
    Migration migrations[MAX_MIGRATIONS];
    const int count =
        migrations_and(migrations, "note", "ALTER TABLE requests ADD COLUMN note TEXT NOT NULL DEFAULT 'old'");
    sqlite3 *db = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(store_migrate(db, path, migrations, count, &error), STATUS_OK, "%s", error.message);
    sqlite3_close(db);
    cr_assert_eq(query_int("PRAGMA user_version"), count);
    cr_assert_eq(query_int("SELECT count(*) FROM requests WHERE note = 'old'"), 1);
}

Test(store_faults, a_file_of_schema_1_is_brought_up_and_keeps_its_rows) {
    sqlite3 *db = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(store_migrate(db, path, store_migrations, 1, &error), STATUS_OK, "%s", error.message);
    sqlite3_close(db);
    execute("INSERT INTO requests (content_hash, command, world, model, model_hash, cluster, profile_hash, target, "
            "seq, global_batch, memory_limit_bytes, engine_version, shapes, candidate_count, pruned, estimated, "
            "simulated, elapsed_s) VALUES ('h', 'c', 1, 'm', 'h', 'c', 'h', 't', 1, 0, 1, 'v', 1, 1, 0, 1, 1, 0.1)");
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(query_int("PRAGMA user_version"), store_migration_count);
    cr_assert_eq(query_int("SELECT count(*) FROM requests WHERE objective = 'throughput'"), 1);
}

// Schema 8 had a column per axis.
Test(store_faults, exposed_seconds_in_columns_become_rows_by_axis) {
    sqlite3 *db = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(store_migrate(db, path, store_migrations, 8, &error), STATUS_OK, "%s", error.message);
    sqlite3_close(db);
    execute("INSERT INTO predictions VALUES ('h', 't', 'v', 'm', 'c', 'h', 't', 'p', 1, 1, 1, 1, 0.5, 0.5, "
            "0.125, 0.25, 0, 0.0625, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 'forward', 'logits', 1, 0)");
    execute(
        "INSERT INTO runs (id, host, command, model, plan, content_hash, target, cluster, device, transport, lanes, "
        "seed, steps, state, losses, grad_norms, step_times_s, exposed_cp_s, exposed_tp_s) VALUES (7, 'a', 'c', "
        "'m', 'p', 'h', 't', 'c', 'cpu', 'shm', 'serial', 1, 1, 'ok', '[]', '[]', '[]', 0.5, 0)");
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(query_int("SELECT count(*) FROM prediction_exposed"), 3);
    cr_assert_eq(query_int("SELECT count(*) FROM prediction_exposed WHERE content_hash = 'h' AND (axis, seconds) IN "
                           "(VALUES ('dp_replicate', 0.125), ('dp_shard', 0.25), ('tp', 0.0625))"),
                 3);
    cr_assert_eq(query_int("SELECT count(*) FROM run_exposed WHERE run_id = 7 AND axis = 'cp' AND seconds = 0.5"), 1);
    cr_assert_eq(query_int("SELECT count(*) FROM run_exposed"), 1);
    cr_assert_eq(query_int("SELECT count(*) FROM v_ranking"), 0);  // the views are whole
    cr_assert_eq(query_int("SELECT count(*) FROM v_best"), 0);
}

Test(store_faults, a_file_that_an_older_ndtune_wrote_keeps_its_rows_and_gains_their_middles) {
    char script[8192 * 2];
    FILE *file = fopen(NDTUNE_SOURCE_DIR "/tests/fault/store/schema_2.sql", "r");
    cr_assert_not_null(file);
    const size_t bytes = fread(script, 1, sizeof script - 1, file);
    cr_assert(feof(file));
    fclose(file);
    script[bytes] = '\0';
    execute(script);
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(query_int("PRAGMA user_version"), store_migration_count);
    cr_assert_eq(query_int("SELECT count(*) FROM runs WHERE source = 'executor'"), 2);
    // steps 11.4, 2.712, 2.595, 3.031 ms: the first warms up
    cr_assert_eq(query_int("SELECT abs(measured_step_s - 0.0027120648883) < 1e-12 FROM runs WHERE id = 1"), 1);
    cr_assert_eq(query_int("SELECT measured_step_s IS NULL FROM runs WHERE id = 2"), 1);  // failed
    cr_assert_eq(query_int("SELECT count(*) FROM v_accuracy"), 1);
    cr_assert_eq(query_int("SELECT count(*) FROM v_best WHERE runs = 0"), 1);  // it ran another model
}

// Every statement of the file's schema as SQLite keeps it, comments and space left out: migrations put them elsewhere.
static const char *schema_of(const char *file) {
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    cr_assert_eq(sqlite3_open(file, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name", -1,
                                    &row, NULL),
                 SQLITE_OK);
    const char *all = "";
    while (sqlite3_step(row) == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(row, 3);
        char *out = arena_text(&arena, sql ? sql : ""), *end = out;
        for (const char *at = out; *at; at++) {
            if (at[0] == '-' && at[1] == '-') {
                at += strcspn(at, "\n") - 1;
            } else if (!strchr(" \n", *at)) {
                *end++ = *at;
            }
        }
        *end = '\0';
        all = arena_format(&arena, "%s%s %s of %s: %s\n", all, sqlite3_column_text(row, 0), sqlite3_column_text(row, 1),
                           sqlite3_column_text(row, 2), out);
    }
    sqlite3_finalize(row);
    sqlite3_close(db);
    return all;
}

Test(store_faults, a_store_made_anew_has_the_schema_that_the_migrations_lead_to) {
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    const char *stepped = arena_format(&arena, "%s/stepped.db", folder);
    sqlite3 *db = NULL;
    cr_assert_eq(sqlite3_open(stepped, &db), SQLITE_OK);
    for (int count = 1; count <= store_migration_count; count++) {
        cr_assert_eq(store_migrate(db, stepped, store_migrations, count, &error), STATUS_OK, "%s", error.message);
    }
    sqlite3_close(db);
    cr_assert_gt(store_migration_count, 1);
    cr_assert_str_eq(schema_of(path), schema_of(stepped));
    cr_assert_eq(query_int("PRAGMA user_version"), store_migration_count);
}

Test(store_faults, a_migration_that_fails_leaves_the_older_schema_whole) {
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    store_close(store);
    store = NULL;
    Migration migrations[MAX_MIGRATIONS];
    const int count = migrations_and(migrations, "bad", "CREATE TABLE half (x); INSERT INTO no_such_table VALUES (1)");
    sqlite3 *db = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(store_migrate(db, path, migrations, count, &error), STATUS_ENVIRONMENT);
    sqlite3_close(db);
    cr_assert_not_null(strstr(error.message, "bad"), "%s", error.message);
    cr_assert_eq(query_int("PRAGMA user_version"), count - 1);
    cr_assert_eq(query_int("SELECT count(*) FROM sqlite_master WHERE name = 'half'"), 0);
}

static void wait_s(double seconds) {
    const struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&pause, NULL);
}

// Starts ndtune and discards its answer.
static pid_t start(char *const *words) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    cr_assert_eq(posix_spawn(&child, words[0], &actions, NULL, words, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

// Makes a new request on this store, kills the program after delay_s, and returns whether it was still running.
static bool kill_a_writer(int seq, double delay_s) {
    char seq_word[16];
    snprintf(seq_word, sizeof seq_word, "%d", seq);
    char *const words[] = {NDTUNE_BIN_DIR "/ndtune",
                           "--world",
                           "16",
                           "--model",
                           "tiny",
                           "--seq",
                           seq_word,
                           "--db",
                           path,
                           "--format",
                           "csv",
                           NULL};
    const pid_t child = start(words);
    wait_s(delay_s);
    kill(child, SIGKILL);
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

enum { KILLS = 12, SEQ_STEP = 64 };

Test(store_faults, a_killed_writer_leaves_whole_results_only) {
    const char *const words[] = {"ndtune", "--world", "16", "--model", "tiny", "--db", path, NULL};
    ProgramRun whole = program_run(words, NULL, 60);
    cr_assert_eq(whole.exit_code, 0, "%s", whole.err);
    int killed = 0;
    for (int i = 0; i < KILLS; i++) {  // from the middle of the search to after the answer is saved
        killed += kill_a_writer(SEQ_STEP * (i + 1), whole.seconds * (0.4 + 0.8 * i / KILLS));
    }
    program_run_free(&whole);
    cr_assert_gt(killed, 0, "every writer was done before it could be killed");
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    store_close(store);
    store = NULL;
    cr_assert_eq(query_int("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
    cr_assert_eq(query_int("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    // a stored request has all of its candidates
    cr_assert_eq(query_int("SELECT count(*) FROM requests r WHERE r.candidate_count <> "
                           "(SELECT sum(c.alike) FROM candidates c WHERE c.request_id = r.id)"),
                 0);
}

// Of 1,000 ranks many shapes suit no choice, and the search makes one plan for each: there is little to put together.
Test(store_faults, choices_rejected_for_one_reason_are_one_row_that_says_how_many) {
    const char *const words[] = {"ndtune", "--world", "1024", "--model", "7b", "--db", path, NULL};
    ProgramRun run = program_run(words, NULL, 60);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    cr_assert_eq(query_int("SELECT sum(alike) FROM candidates"), query_int("SELECT candidate_count FROM requests"));
    cr_assert_lt(10 * query_int("SELECT count(*) FROM candidates"), query_int("SELECT candidate_count FROM requests"));
    cr_assert_eq(query_int("SELECT count(*) FROM candidates WHERE alike > 1 AND state <> 'rejected'"), 0);
    cr_assert_eq(query_int("SELECT count(DISTINCT shape) FROM candidates"), query_int("SELECT shapes FROM requests"));
}

Test(store_faults, after_a_kill_the_next_call_answers) {
    kill_a_writer(512, 0.02);
    const char *const words[] = {"ndtune", "--world", "4", "--model", "7b", "--db", path, NULL};
    ProgramRun run = program_run(words, NULL, 30);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
}

// Predictions that another process has committed so far; 0 while the file is not ready.
static int predictions_so_far(void) {
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int count = 0;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "SELECT count(*) FROM predictions", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        count = sqlite3_column_int(statement, 0);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return count;
}

Test(store_faults, a_killed_search_goes_on_from_what_it_had) {
    char *const words[] = {
        NDTUNE_BIN_DIR "/ndtune", "--world", "1024", "--model", "llama-3-70b", "--db", path, "--verbose", NULL};
    const pid_t child = start(words);
    while (predictions_so_far() < 3) {
        cr_assert_eq(waitpid(child, NULL, WNOHANG), 0, "the search ended before it could be killed");
        wait_s(0.002);
    }
    kill(child, SIGKILL);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    ProgramRun run = program_run((const char *const *)words, NULL, 120);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    const char *known = strstr(run.out, " simulations and ");
    cr_assert_not_null(known, "%s", run.out);
    cr_assert_geq(atoi(known + strlen(" simulations and ")), 3);
    program_run_free(&run);
}

Test(store_faults, an_interrupt_ends_the_program_and_leaves_the_store_whole) {
    char *const words[] = {
        NDTUNE_BIN_DIR "/ndtune", "--world", "1024", "--model", "llama-3-70b", "--db", path, "--format", "csv", NULL};
    const pid_t child = start(words);
    while (file_bytes() < 0) {  // the handler is installed before the store is opened
        wait_s(0.001);
    }
    kill(child, SIGINT);
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT, "status %d", status);
    cr_assert_eq(query_int("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
}
