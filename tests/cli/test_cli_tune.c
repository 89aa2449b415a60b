// ndtune tune: sessions of real runs of a tiny model on this machine. The winner depends on the machine; these checks
// hold for any winner.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli.h"

#define WHAT "--world", "2", "--model", "tiny", "--layers", "1", "--steps", "3", "--warm-up", "1", "--db", db
#define JSON "--format", "json"

static char *folder, db[512];

static void begin(void) {
    folder = temp_dir_make();
    snprintf(db, sizeof db, "%s/test.db", folder);
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(cli_tune, .init = begin, .fini = end);

static const json_t *array(const json_t *root, const char *key) {
    const json_t *value = json_object_get(root, key);
    cr_assert(json_is_array(value), "%s", key);
    return value;
}

static bool file_says(const char *path, const char *words) {
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    char *line = NULL;
    size_t bytes = 0;
    bool said = false;
    while (getline(&line, &bytes, file) > 0) {
        said = said || strstr(line, words);
    }
    free(line);
    fclose(file);
    return said;
}

Test(cli_tune, one_object_keeps_the_contract) {
    json_t *root = CLI_JSON(0, "tune", WHAT, "--max-runs", "4", JSON);
    cr_assert_str_eq(cli_text(root, "schema"), "ndtune.tune/1");
    cr_assert_eq(json_array_size(array(root, "shapes")), 5);  // dp_replicate, dp_shard, cp, sp, tp
    cr_assert_eq(json_array_size(array(root, "steps")), cli_number(root, "runs"));
    double fastest = 0;
    size_t i;
    json_t *row;
    json_array_foreach(array(root, "shapes"), i, row) {
        fastest += cli_number(row, "probability_fastest");
        cr_assert_leq(cli_number(row, "believed_low_s"), cli_number(row, "believed_high_s"));
        cr_assert_geq(cli_number(row, "probability_good"), cli_number(row, "probability_fastest"));
    }
    cr_assert_float_eq(fastest, 1, 1e-9);
    json_array_foreach(array(root, "steps"), i, row) {
        cr_assert_gt(cli_number(row, "measured_step_time_s"), 0);
        cr_assert_gt(cli_number(row, "run_id"), 0);
        cr_assert_leq(cli_number(row, "probability"), 1);
    }
    cr_assert(json_is_object(json_object_get(root, "winner")));
    json_decref(root);
}

Test(cli_tune, the_budget_of_runs_is_kept_and_a_later_report_tells_the_session) {
    json_t *root = CLI_JSON(0, "tune", WHAT, "--max-runs", "2", "--probability", "1", JSON);
    cr_assert_eq(cli_number(root, "runs"), 2);
    cr_assert_str_eq(cli_text(root, "stopped_by"), "max-runs");
    json_decref(root);
    char html[512];
    snprintf(html, sizeof html, "%s/page.html", folder);
    ProgramRun run = CLI("report", "--html", html, "--db", db);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    cr_expect(file_says(html, "the budget of runs is spent. ndtune tune took 2 runs"));
}

Test(cli_tune, the_budget_of_time_is_kept) {
    json_t *root = CLI_JSON(0, "tune", WHAT, "--max-time", "0.0001", "--probability", "1", JSON);
    cr_assert_eq(cli_number(root, "runs"), 1, "the run that passes it is the last");
    cr_assert_str_eq(cli_text(root, "stopped_by"), "max-time");
    json_decref(root);
}

Test(cli_tune, a_shape_that_fails_is_out_with_its_reason_and_the_others_go_on) {
    cli_worker_that_dies(folder, "tp=2");
    json_t *root = CLI_JSON(0, "tune", WHAT, "--max-runs", "6", "--probability", "1", JSON);
    cr_assert_eq(cli_number(root, "failed"), 1, "it is not tried again");
    size_t i;
    json_t *row;
    json_array_foreach(array(root, "shapes"), i, row) {
        const bool tp = cli_number(json_object_get(row, "mesh"), "tp") == 2;
        cr_assert_eq(json_is_string(json_object_get(row, "out")), tp);
    }
    cr_assert_eq(cli_number(json_object_get(root, "winner"), "tp"), 1);
    json_decref(root);
}

Test(cli_tune, where_nothing_ran_it_says_why_and_how_to_try_again) {
    cli_worker_that_dies(folder, "steps");  // every request
    ProgramRun run = CLI("tune", WHAT, "--max-runs", "1");
    cr_assert_eq(run.exit_code, 3, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "no run ended well: "), "%s", run.err);
    cr_assert_not_null(strstr(run.err, "rank 1"), "%s", run.err);
    cr_assert_not_null(strstr(run.err, "--no-cache begins a new one"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_tune, an_interrupt_says_how_to_go_on) {
    cli_worker(folder, "[ \"$3\" = 0 ] && kill -INT $PPID");
    ProgramRun run = CLI("tune", WHAT, "--no-cache");
    cr_assert_eq(run.exit_code, 128 + 2, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "interrupted; the same call goes on"), "%s", run.err);
    cr_assert_not_null(strstr(run.err, "--no-cache begins anew"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_tune, what_validate_measured_is_known_unless_it_begins_anew) {
    json_t *validated = CLI_JSON(0, "validate", WHAT, "--top", "2", "--spread", "0", "--repeats", "1", JSON);
    json_t *root = CLI_JSON(0, "tune", WHAT, "--max-runs", "1", "--probability", "1", JSON);
    cr_assert_eq(cli_number(root, "known"), 2);
    cr_assert_eq(cli_number(root, "runs"), 1);
    json_t *anew = CLI_JSON(0, "tune", WHAT, "--max-runs", "1", "--probability", "1", "--no-cache", JSON);
    cr_assert_eq(cli_number(anew, "known"), 0);
    cr_assert_eq(cli_number(anew, "runs"), 1);
    json_decref(validated);
    json_decref(root);
    json_decref(anew);
}

Test(cli_tune, what_its_runs_taught_is_a_profile_that_plans) {
    char path[600];
    snprintf(path, sizeof path, "%s/mine.json", folder);
    json_t *validated = CLI_JSON(0, "validate", WHAT, "--top", "2", "--spread", "0", "--repeats", "1", JSON);
    json_t *root = CLI_JSON(0, "tune", WHAT, "--max-runs", "1", "--probability", "1", "--out", path, JSON);
    json_t *plan = CLI_JSON(0, "--world", "2", "--model", "tiny", "--target", "ndtune", "--cluster", path, JSON);
    cr_assert_gt(json_array_size(array(plan, "entries")), 0);
    json_decref(validated);
    json_decref(root);
    json_decref(plan);
}

Test(cli_tune, one_run_teaches_no_profile_and_it_says_why) {
    char path[600];
    snprintf(path, sizeof path, "%s/mine.json", folder);
    ProgramRun run = CLI("tune", WHAT, "--max-runs", "1", "--probability", "1", "--out", path);
    cr_assert_eq(run.exit_code, 1, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "no calibrated profile"), "%s", run.err);
    cr_assert_not_null(strstr(run.out, "Best:"), "what it found is said all the same: %s", run.out);
    program_run_free(&run);
}

Test(cli_tune, its_csv_has_a_line_per_run) {
    ProgramRun run = CLI("tune", WHAT, "--max-runs", "2", "--probability", "1", "--format", "csv");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    int lines = 0;
    for (const char *at = run.out; *at; at++) {
        lines += *at == '\n';
    }
    cr_assert_eq(lines, 3, "%s", run.out);
    program_run_free(&run);
}

Test(cli_tune, lists_of_worlds_other_aims_and_sessions_without_an_end_are_refused_in_words) {
    ProgramRun worlds = CLI("tune", "--world", "2,4", "--model", "tiny", "--db", db);
    cr_assert_eq(worlds.exit_code, 1, "%s", worlds.err);
    program_run_free(&worlds);
    ProgramRun memory = CLI("tune", WHAT, "--objective", "memory");
    cr_assert_eq(memory.exit_code, 1, "%s", memory.err);
    cr_assert_not_null(strstr(memory.err, "fastest"), "%s", memory.err);
    program_run_free(&memory);
    ProgramRun endless = CLI("tune", WHAT, "--probability", "1", "--max-runs", "0");
    cr_assert_eq(endless.exit_code, 1, "%s", endless.err);
    cr_assert_not_null(strstr(endless.err, "without bounds"), "%s", endless.err);
    program_run_free(&endless);
}

Test(cli_tune, a_profile_that_cannot_be_written_is_refused_before_the_first_run) {
    ProgramRun run = CLI("tune", WHAT, "--out", "/nowhere/mine.json");
    cr_assert_eq(run.exit_code, 3, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "/nowhere/mine.json cannot be written"), "%s", run.err);
    json_t *stored = CLI_JSON(0, "runs", "--db", db, JSON);
    cr_assert_eq(json_array_size(array(stored, "runs")), 0);
    json_decref(stored);
    program_run_free(&run);
}

// ------------------------------------------------------------------------------------------------ killed and resumed

// The whole log, by lines as they are printed.
static ProgramRun session(void) {
    return CLI("tune", WHAT, "--max-runs", "5", "--probability", "1");
}

// In the run of this number the worker of rank 0 has the ndtune that started it killed: at once, or when ndtune has
// taken note of the worker's end, so while it reads what was measured, stores it, or is already further on.
static void kill_in_run(int number, bool at_once) {
    char before[1500];
    snprintf(before, sizeof before,
             "launcher=$PPID self=$$\n[ \"$3\" = 0 ] && echo >>%s/runs\n"
             "if [ \"$3\" = 0 ] && [ $(wc -l <%s/runs) = %d ]; then\n%s\nfi",
             folder, folder, number,
             at_once ? "kill -9 $launcher; exit 1"
                     : "(while kill -0 $self; do sleep 0.002; done; kill -9 $launcher) >/dev/null 2>&1 &");
    cli_worker(folder, before);
}

enum { RUNS = 5, HEAD_LINES = 5 };  // the head, the headings, and the line of the beginning

static void check_resumed(const ProgramRun *killed) {
    ProgramRun resumed = session(), again = session();
    cr_assert_eq(resumed.exit_code, 0, "%s", resumed.err);
    // every line that was printed is printed again as it was: the stored runs lead to the same state
    cr_assert_eq(strncmp(resumed.out, killed->out, strlen(killed->out)), 0, "killed:\n%s\nresumed:\n%s", killed->out,
                 resumed.out);
    cr_assert_str_eq(again.out, resumed.out, "nothing is left to run");
    json_t *stored = CLI_JSON(0, "runs", "--db", db, JSON);
    cr_assert_eq(json_array_size(array(stored, "runs")), RUNS, "none is lost and none is counted twice:\n%s",
                 resumed.out);
    json_decref(stored);
    program_run_free(&resumed);
    program_run_free(&again);
}

static void check_killed_at_once(int number) {
    kill_in_run(number, true);
    ProgramRun killed = session();
    cr_assert_eq(killed.exit_code, 128 + 9, "%s", killed.err);
    cr_assert_eq(cli_lines(killed.out), HEAD_LINES + number - 1, "%s", killed.out);
    check_resumed(&killed);
    program_run_free(&killed);
}

Test(cli_tune, killed_before_its_first_run_it_begins_again) {
    check_killed_at_once(1);
}

Test(cli_tune, killed_in_a_run_it_goes_on_from_the_one_before) {
    check_killed_at_once(3);
}

Test(cli_tune, killed_somewhere_after_a_run_it_loses_none_and_counts_none_twice) {
    kill_in_run(2, false);
    ProgramRun killed = session();
    cr_assert_geq(cli_lines(killed.out), HEAD_LINES + 1, "%s", killed.out);
    check_resumed(&killed);
    program_run_free(&killed);
}
