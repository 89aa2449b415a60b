// ndtune report and --html as users call them: the page of an answer, of the last request, of a run.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autotune/store/store.h"
#include "sim/frameworks/target.h"
#include "tests/cli/cli.h"
#include "tests/support/sizes.h"

static char *folder, db[512], html[512];

static void begin(void) {
    folder = temp_dir_make();
    snprintf(db, sizeof db, "%s/test.db", folder);
    snprintf(html, sizeof html, "%s/page.html", folder);
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(cli_report, .init = begin, .fini = end);

#define PLAN "--world", "4", "--model", "tiny", "--global-batch", "4", "--seq", "128"
#define REAL "--model", "tiny", "--layers", "1", "--steps", "3"

// The page that was written; the caller frees.
static char *text_of_page(void) {
    FILE *file = fopen(html, "rb");
    cr_assert_not_null(file, "%s was not written", html);
    fseek(file, 0, SEEK_END);
    const size_t bytes = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(bytes + 1, 1);
    cr_assert_eq(fread(text, 1, bytes, file), bytes);
    fclose(file);
    return text;
}

static json_t *data_of_page(void) {
    static const char open[] = "id=\"report-data\">";
    char *text = text_of_page();
    char *from = strstr(text, open);
    cr_assert_not_null(from);
    from += strlen(open);
    *strstr(from, "</script>") = '\0';
    json_t *data = json_loads(from, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(data);
    free(text);
    return data;
}

static const json_t *at(const json_t *object, const char *key, size_t place) {
    return json_array_get(json_object_get(object, key), place);
}

Test(cli_report, the_page_of_a_plan_has_the_numbers_of_its_json) {
    json_t *plan = CLI_JSON(0, PLAN, "--html", html, "--db", db, "--format", "json");
    json_t *data = data_of_page();
    const json_t *entries = json_object_get(plan, "entries");
    cr_assert_eq(json_array_size(entries), (size_t)cli_number(data, "entry_count"));
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i), *shown = at(data, "details", i);
        cr_expect_eq(cli_number(shown, "step_time_s"), cli_number(entry, "step_time_s"));
        cr_expect_eq(cli_number(shown, "tokens_per_s"), cli_number(entry, "tokens_per_s"));
        cr_expect(json_equal(json_object_get(shown, "memory"), json_object_get(entry, "memory")));
        cr_expect(json_equal(json_object_get(shown, "time"), json_object_get(entry, "time")));
    }
    cr_assert_eq(json_array_size(json_object_get(json_object_get(data, "shapes"), "tp")),
                 json_array_size(json_object_get(plan, "rejected")));
    const json_t *simulated = json_object_get(json_object_get(data, "timeline"), "simulated");
    cr_assert_float_eq(cli_number(simulated, "step_s"), cli_number(json_array_get(entries, 0), "step_time_s"), 1e-9);
    const json_t *peak = json_object_get(json_object_get(data, "memory_curve"), "peak");
    cr_assert_eq(cli_number(peak, "bytes"),
                 cli_number(json_object_get(json_array_get(entries, 0), "memory"), "peak_bytes"));
    json_decref(data);
    json_decref(plan);
}

Test(cli_report, goes_on_with_the_last_request_and_says_which) {
    ProgramRun plan = CLI(PLAN, "--db", db);
    cr_assert_eq(plan.exit_code, 0, "%s", plan.err);
    program_run_free(&plan);
    ProgramRun run = CLI("report", "--html", html, "--db", db, "--format", "json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "of the last request: ndtune --world 4 --model tiny"), "%s", run.err);
    json_t *root = json_loads(run.out, 0, NULL);
    program_run_free(&run);
    cr_assert_str_eq(json_string_value(json_object_get(root, "schema")), "ndtune.report/1");
    struct stat about;
    cr_assert_eq(stat(html, &about), 0);
    cr_assert_eq(cli_number(root, "bytes"), (double)about.st_size);
    cr_assert_eq(cli_number(root, "measured"), 0);
    json_decref(root);
    json_t *data = data_of_page();
    cr_assert_eq(cli_number(json_object_get(data, "request"), "global_batch"), 4);
    json_decref(data);
    ProgramRun changed = CLI("report", "--html", html, "--db", db, "--set", "node.gpus=4");
    cr_assert_eq(changed.exit_code, 1);
    cr_assert_not_null(strstr(changed.err, "--set would change what was asked"), "%s", changed.err);
    program_run_free(&changed);
}

Test(cli_report, one_predicted_plan_is_a_page) {
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=8", "--model", "tiny", "--html", html, "--db", db);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    json_t *data = data_of_page();
    cr_assert_eq(cli_number(data, "candidate_count"), 1);
    json_decref(data);
}

Test(cli_report, a_plan_that_does_not_fit_is_a_page_and_exit_2) {
    ProgramRun run = CLI("predict", "--mesh", "dp_replicate=8", "--model", "70b", "--html", html, "--db", db);
    cr_assert_eq(run.exit_code, 2, "%s", run.err);
    program_run_free(&run);
    json_t *data = data_of_page();
    cr_assert_eq(cli_number(data, "entry_count"), 0);
    json_decref(data);
}

Test(cli_report, a_file_that_cannot_be_written_is_said_in_words) {
    ProgramRun run =
        CLI("predict", "--mesh", "dp_shard=8", "--model", "tiny", "--html", "/no/such/folder/page.html", "--db", db);
    cr_assert_eq(run.exit_code, 3);
    cr_assert_not_null(strstr(run.err, "/no/such/folder/page.html"), "%s", run.err);
    cr_assert_not_null(strstr(run.err, "cannot be written"), "%s", run.err);
    cr_assert_not_null(strstr(run.out, "step"), "the answer itself is printed: %s", run.out);
    program_run_free(&run);
}

Test(cli_report, what_cannot_be_meant_is_refused) {
    static const struct {
        const char *words[12];
        const char *says;
    } cases[] = {{{"report", "--db", db}, "the store has no request to go on with"},
                 {{"report", "--run", "7", "--db", db}, "the store has no run 7"},
                 {{"report", "--run", "7", "--world", "8", "--db", db}, "--world does not go with --run"},
                 {{"report", "--world", "8", "--model", "tiny", "--format", "csv"}, "a page is no table"},
                 {{"--world", "8,16", "--model", "tiny", "--html", "x"}, "--html belongs to one world"},
                 {{"report", "--world", "8,16", "--model", "tiny", "--html", "x"}, "a page is of one world"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ProgramRun run = cli_words(cases[i].words);
        cr_expect_eq(run.exit_code, 1, "%s", run.err);
        cr_expect_not_null(strstr(run.err, cases[i].says), "%s", run.err);
        program_run_free(&run);
    }
}

Test(cli_report, the_page_of_a_run_lays_its_measured_step_under_the_simulated_one) {
    ProgramRun run = CLI("run", "--mesh", "dp_shard=2", REAL, "--db", db);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    json_t *root = CLI_JSON(0, "report", "--run", "1", "--html", html, "--db", db, "--format", "json");
    cr_assert_eq(cli_number(root, "measured"), 1);
    json_decref(root);
    json_t *data = data_of_page();
    const json_t *timeline = json_object_get(data, "timeline");
    const json_t *measured = json_object_get(timeline, "measured"), *simulated = json_object_get(timeline, "simulated");
    const json_t *lane = json_object_get(json_object_get(measured, "blocks"), "lane");
    cr_assert_gt(json_array_size(lane), 20);
    cr_assert_eq(json_array_size(lane), json_array_size(json_object_get(json_object_get(simulated, "blocks"), "lane")),
                 "the same tasks, simulated and measured");
    cr_assert_gt(cli_number(at(data, "validation", 0), "measured_s"), 0);
    json_decref(data);
    setenv("PATH", folder, 1);
    run = CLI("report", "--run", "1", "--html", html, "--open", "--db", db);
    cr_assert_eq(run.exit_code, 3);
    cr_assert_not_null(strstr(run.err, "the page is written, but xdg-open could not be started"), "%s", run.err);
    cr_assert_not_null(strstr(run.out, "page.html: "), "%s", run.out);
    program_run_free(&run);
}

static void save_preflight(const char *cluster, const char *mesh) {
    Error error = {0};
    Store *store = NULL;
    const StoredPreflight preflight = {.command = "ndtune preflight",
                                       .cluster = cluster,
                                       .hosts = "elsewhere",
                                       .device = "cpu",
                                       .transport = "shm",
                                       .mesh = mesh,
                                       .world = 2};
    cr_assert_eq(store_open(db, &store, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_save_preflight(store, &preflight, &error), STATUS_OK, "%s", error.message);
    store_close(store);
}

// Of this machine, whatever its profile was calibrated to, and of the best shape where there is one.
Test(cli_report, a_preflight_of_the_same_machine_stands_on_the_page_and_in_the_list_of_runs) {
    ProgramRun checked =
        CLI("preflight", "--mesh", "tp=2", "--model", "tiny", "--layers", "1", "--timeout", "60", "--db", db);
    cr_assert(checked.exit_code == 0 || strstr(checked.err, "slow"), "exit %d: %s", checked.exit_code, checked.err);
    program_run_free(&checked);
    save_preflight("local-cpu-calibrated", "dp_replicate=2");
    save_preflight("another", "tp=2");
    ProgramRun run = CLI("report", "--world", "2", "--model", "tiny", "--cluster", "local-cpu", "--effort", "estimate",
                         "--html", html, "--db", db);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    char *text = text_of_page();
    cr_expect(strstr(text, "Preflight of 2 ranks: "));
    const char *first = strstr(text, "dp_replicate=2 on elsewhere"), *second = strstr(text, "tp=2 on ");
    cr_expect(first || (second && strstr(text, "id=\"table-preflight\"")), "neither");
    cr_expect(strstr(text, "id=\"other-frameworks\""));
    free(text);
    json_t *root = CLI_JSON(0, "runs", "--db", db, "--format", "json");
    const json_t *rows = json_object_get(root, "preflights");
    cr_assert_eq(json_array_size(rows), 3);
    cr_expect_str_eq(cli_text(json_array_get(rows, 0), "cluster"), "another");
    cr_expect_str_eq(cli_text(json_array_get(rows, 2), "mesh"), "tp=2");
    json_decref(root);
    run = CLI("runs", "--db", db);
    cr_expect(strstr(run.out, "Preflights") && strstr(run.out, "dp_replicate=2"), "%s", run.out);
    program_run_free(&run);
}

// Its hashes are those of no plan that this version makes.
Test(cli_report, a_run_of_another_version_stands_on_the_page_that_asks_for_it) {
    static const double steps_s[] = {0.5, 0.5, 0.5};
    Error error = {0};
    Store *store = NULL;
    TuneRequest request = {.command = "ndtune run --mesh dp_shard=2 --model tiny",
                           .model = {.name = "tiny"},
                           .cluster = {.name = "local-cpu"}};
    cr_assert_eq(target_find("ndtune", &request.target, &error), STATUS_OK, "%s", error.message);
    RunRecord record = {.request = &request,
                        .source = "executor",
                        .host = "elsewhere",
                        .device = "cpu",
                        .transport = "shm",
                        .lanes = "serial",
                        .seed = 1,
                        .steps = 3,
                        .losses = steps_s,
                        .grad_norms = steps_s,
                        .step_times_s = steps_s,
                        .measured_step_s = 0.5,
                        .measurement_hash = 1,
                        .state = "ok",
                        .prediction = {.content_hash = 1,
                                       .step_s = 0.1,
                                       .plan = {.mesh = {.size = SIZES(1, 2, 1, 1)},
                                                .seq = 128,
                                                .micro_batch = 1,
                                                .grad_accum = 1,
                                                .zero = 3,
                                                .precision = DTYPE_FP32}}};
    cr_assert_eq(store_open(db, &store, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_save_run(store, &record, NULL, &error), STATUS_OK, "%s", error.message);
    store_close(store);
    json_t *root = CLI_JSON(0, "report", "--run", "1", "--html", html, "--db", db, "--format", "json");
    cr_expect_eq(cli_number(root, "measured"), 1);
    json_decref(root);
    json_t *data = data_of_page();
    cr_expect_eq(cli_number(at(data, "validation", 0), "measured_s"), 0.5);
    json_decref(data);
}

Test(cli_report, runs_of_somebody_elses_command_are_measurements) {
    ProgramRun run = CLI("validate", "--world", "2", "--model", "tiny", "--top", "1", "--spread", "0", "--repeats", "1",
                         "--warm-up", "0", "--db", db, "--with", "torchtitan", "--", "echo", "step_time_s: 0.25");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    json_t *root = CLI_JSON(0, "report", "--html", html, "--db", db, "--format", "json");
    cr_assert_eq(cli_number(root, "measured"), 1);
    json_decref(root);
    json_t *data = data_of_page();
    cr_assert_eq(cli_number(at(data, "validation", 0), "measured_s"), 0.25);
    json_decref(data);
}

Test(cli_report, a_validated_request_is_one_command_and_the_store_has_it_again) {
    json_t *root = CLI_JSON(0, "validate", "--world", "2", "--top", "2", "--spread", "0", REAL, "--repeats", "1",
                            "--warm-up", "1", "--html", html, "--db", db, "--format", "json");
    json_t *data = data_of_page();
    cr_assert_eq(json_array_size(json_object_get(data, "validation")), 2);
    json_t *again = CLI_JSON(0, "report", "--html", html, "--db", db, "--format", "json");
    cr_assert_eq(cli_number(again, "measured"), 2);
    json_t *second = data_of_page();
    cr_assert_eq(cli_number(at(data, "validation", 0), "measured_s"),
                 cli_number(at(second, "validation", 0), "measured_s"));
    json_decref(second);
    json_decref(again);
    json_decref(data);
    json_decref(root);
}
