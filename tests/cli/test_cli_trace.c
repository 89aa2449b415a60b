// --trace and --memory-snapshot as users call them: of a prediction, of a real run, of a stored one.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli.h"

static char *folder, db[512], trace[512], snapshot[512], page[512];

static void begin(void) {
    folder = temp_dir_make();
    snprintf(db, sizeof db, "%s/test.db", folder);
    snprintf(trace, sizeof trace, "%s/step.json", folder);
    snprintf(snapshot, sizeof snapshot, "%s/snapshot.pickle", folder);
    snprintf(page, sizeof page, "%s/page.html", folder);
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(cli_trace, .init = begin, .fini = end);

// Processes of the trace whose name begins so.
static int processes(const json_t *root, const char *beginning) {
    const json_t *event;
    size_t index;
    int count = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), index, event) {
        const char *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
        const bool names = strcmp(json_string_value(json_object_get(event, "name")), "process_name") == 0;
        count += names && strncmp(name, beginning, strlen(beginning)) == 0;
    }
    return count;
}

static json_t *trace_written(void) {
    json_t *root = json_load_file(trace, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(root, "%s is no JSON", trace);
    return root;
}

Test(cli_trace, a_prediction_has_its_step_and_its_memory) {
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=4,tp=2", "--model", "tiny", "--grad-accum", "2", "--trace",
                         trace, "--memory-snapshot", snapshot);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    json_t *root = trace_written();
    cr_expect_eq(processes(root, "simulated rank 0 ("), 1);
    cr_expect_eq(processes(root, "measured"), 0);
    struct stat about;
    cr_assert_eq(stat(snapshot, &about), 0);
    cr_expect_gt(about.st_size, 1000);
    json_decref(root);
    program_run_free(&run);
}

// The last stage has the head and is the slowest here.
Test(cli_trace, a_run_of_stages_lies_over_the_stage_that_is_simulated) {
    ProgramRun run = CLI("run", "--mesh", "pp=2", "--model", "tiny", "--grad-accum", "2", "--seq", "32", "--steps", "2",
                         "--lanes", "async", "--db", db, "--trace", trace);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    json_t *root = trace_written();
    cr_expect_eq(processes(root, "simulated rank 1 ("), 1);
    cr_expect_eq(processes(root, "measured rank 1 ("), 1);
    cr_expect_eq(processes(root, "measured rank 0 ("), 0);
    json_decref(root);
    program_run_free(&run);
}

Test(cli_trace, a_run_lies_over_its_simulation_and_so_does_the_stored_one) {
    ProgramRun run = CLI("run", "--mesh", "dp_shard=2", "--model", "tiny", "--layers", "1", "--steps", "2", "--db", db,
                         "--trace", trace);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    json_t *root = trace_written();
    cr_expect_eq(processes(root, "simulated rank"), 1);
    cr_expect_eq(processes(root, "measured rank"), 2);
    json_decref(root);
    program_run_free(&run);
    unlink(trace);
    ProgramRun report = CLI("report", "--run", "1", "--db", db, "--html", page, "--trace", trace);
    cr_assert_eq(report.exit_code, 0, "%s", report.err);
    root = trace_written();
    cr_expect_eq(processes(root, "simulated rank"), 1);
    cr_expect_eq(processes(root, "measured rank"), 2);
    json_decref(root);
    program_run_free(&report);
}

Test(cli_trace, a_file_that_cannot_be_written_is_said) {
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=2", "--model", "tiny", "--trace", "/nowhere/step.json");
    cr_expect_eq(run.exit_code, 3);
    cr_expect(strstr(run.err, "/nowhere/step.json cannot be written"), "%s", run.err);
    program_run_free(&run);
}

// The pickle as Python itself reads it.
Test(cli_trace, python_reads_the_snapshot) {
    ProgramRun there = program_run((const char *const[]){"/usr/bin/env", "python3", "-c", "print(1)", NULL}, NULL, 60);
    const bool has_python = there.exit_code == 0;
    program_run_free(&there);
    if (!has_python) {
        cr_skip_test("python3 is not installed (package python3)");
    }
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=2", "--model", "tiny", "--memory-snapshot", snapshot);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    static const char script[] = "import pickle,sys; d=pickle.load(open(sys.argv[1],'rb')); "
                                 "print(len(d['segments']), sorted({e['action'] for e in d['device_traces'][0]}))";
    ProgramRun read =
        program_run((const char *const[]){"/usr/bin/env", "python3", "-c", script, snapshot, NULL}, NULL, 60);
    cr_assert_eq(read.exit_code, 0, "%s", read.err);
    cr_expect_str_eq(read.out, "1 ['alloc', 'free_completed', 'free_requested', 'snapshot']\n");
    program_run_free(&read);
}
