// tests/gpu/measure on a machine without a GPU: no step is left out, each has its reason, and nothing is claimed.

#define _GNU_SOURCE  // memmem

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/run_program.h"

static const char MEASURE[] = NDTUNE_SOURCE_DIR "/tests/gpu/measure";
static char *directory;

static void begin(void) {
    const char *const words[] = {"/usr/bin/env", "python3", "--version", NULL};
    const char *const gpu[] = {"/usr/bin/env", "nvidia-smi", NULL};
    directory = temp_dir_make();
    ProgramRun run = program_run(words, NULL, 30), smi = program_run(gpu, NULL, 30);
    const bool python = run.exit_code == 0, seen = smi.exit_code == 0;
    program_run_free(&run);
    program_run_free(&smi);
    if (!python || seen) {
        cr_skip_test("%s", python ? "this machine has a GPU" : "no python3");
    }
}

static void end(void) {
    temp_dir_remove(directory);
}

TestSuite(gpu_measure, .init = begin, .fini = end);

static ProgramRun measure(const char *option, const char *value) {
    char state[512], results[512];
    snprintf(state, sizeof state, "%s/state", directory);
    snprintf(results, sizeof results, "%s/RESULTS.md", directory);
    const char *const words[] = {"/usr/bin/env", "python3", "-B",   MEASURE, "--state", state,
                                 "--results",    results,   option, value,   NULL};
    return program_run(words, NULL, 50);
}

// The table of steps and what follows.
static const char *results_read(const char *path) {
    static char text[256 << 10];
    FILE *file = fopen(path, "r");
    cr_assert(file, "no %s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *steps = strstr(text, "\n## Steps\n");
    cr_assert(steps, "%s", text);
    return steps;
}

static const char *row_of(const char *results, const char *line) {
    char row[64];
    snprintf(row, sizeof row, "\n| %.*s |", (int)strcspn(line, " "), line);
    const char *found = strstr(results, row);
    cr_assert(found, "no row for %s", line);
    return found + 1;
}

Test(gpu_measure, every_step_is_written_not_run_with_its_reason) {
    ProgramRun list = measure("--list", NULL), run = measure(NULL, NULL);
    cr_assert_eq(list.exit_code, 0);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    char path[512];
    snprintf(path, sizeof path, "%s/RESULTS.md", directory);
    const char *results = results_read(path);
    int steps = 0;
    for (char *line = strtok(list.out, "\n"); line; line = strtok(NULL, "\n"), steps++) {
        const char *row = row_of(results, line);
        const size_t length = strcspn(row, "\n");
        cr_expect(memmem(row, length, "| NOT RUN | no NVIDIA GPU", 25), "%.*s", (int)length, row);
    }
    cr_expect_geq(steps, 12);
    cr_expect(!strstr(results, "| OK |"));
    program_run_free(&list);
    program_run_free(&run);
}

Test(gpu_measure, an_unknown_step_is_refused_with_those_there_are) {
    ProgramRun run = measure("--steps", "abacus");
    cr_expect_eq(run.exit_code, 1);
    cr_expect(strstr(run.err, "no step 'abacus'; there are build, parity"), "%s", run.err);
    program_run_free(&run);
}

// With what comes back of a machine that is gone, a call elsewhere begins where that one ended.
Test(gpu_measure, what_comes_back_is_three_files_at_most_and_has_the_state) {
    char out[512], tar[600];
    snprintf(out, sizeof out, "%s/out", directory);
    ProgramRun run = measure("--out", out);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    snprintf(tar, sizeof tar, "%s/state.tar.gz", out);
    const char *const names[] = {"/bin/ls", out, NULL}, *const state[] = {"/bin/tar", "-tzf", tar, NULL};
    ProgramRun listed = program_run(names, NULL, 30), kept = program_run(state, NULL, 30);
    cr_expect(strstr(listed.out, "RESULTS.md\n") && strstr(listed.out, "state.tar.gz\n"), "%s", listed.out);
    cr_expect(!strstr(listed.out, "state.json") && !strstr(listed.out, ".new"), "%s", listed.out);
    cr_expect(strstr(kept.out, "./state.json\n"), "%s", kept.out);
    program_run_free(&run);
    program_run_free(&listed);
    program_run_free(&kept);
}

Test(gpu_measure, a_command_leaves_nothing_running_and_its_words_are_kept) {
    static const char check[] = NDTUNE_SOURCE_DIR "/tests/gpu/check_ending.py";
    const char *const words[] = {"/usr/bin/env", "python3", "-B", check, directory, NULL};
    ProgramRun run = program_run(words, NULL, 60);
    cr_expect_eq(run.exit_code, 0, "%s%s", run.out, run.err);
    cr_expect(strstr(run.out, "exit 3: error: no more flour\n"), "%s", run.out);
    cr_expect(strstr(run.out, "$ OVEN=hot sh -c echo"), "%s", run.out);
    program_run_free(&run);
}

// The committed file is what the script writes: every step has its row.
Test(gpu_measure, the_committed_results_have_every_step) {
    ProgramRun list = measure("--list", NULL);
    const char *results = results_read(NDTUNE_SOURCE_DIR "/tests/gpu/RESULTS.md");
    for (char *line = strtok(list.out, "\n"); line; line = strtok(NULL, "\n")) {
        row_of(results, line);
    }
    program_run_free(&list);
}

// Half an hour, a third of it reserved for the unplanned; every step is requested, each where the list has it.
Test(gpu_measure, the_calls_of_the_readme_have_every_step_in_two_thirds_of_half_an_hour) {
    enum { LENT_S = 1800 };
    static char text[16 << 10];
    FILE *file = fopen(NDTUNE_SOURCE_DIR "/tests/gpu/README.md", "r");
    cr_assert(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char asked[1024] = "";
    int limits_s = 0, limit_s = 0;
    for (char *call = strstr(text, "--limit "); call; call = strstr(call + 1, "--limit ")) {
        char steps[512];
        if (sscanf(call, "--limit %d --out $OUT --steps build,%511s", &limit_s, steps) == 2) {
            limits_s += limit_s;
            strcat(strcat(asked, steps), ",");
        }
    }
    cr_expect_gt(limits_s, 0);
    cr_expect_leq(3 * limits_s, 2 * LENT_S, "%d s", limits_s);
    char listed[1024] = "";
    ProgramRun list = measure("--list", NULL);
    for (char *line = strtok(list.out, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "build ", 6) != 0) {
            strcat(strncat(listed, line, strcspn(line, " ")), ",");
        }
    }
    char *step = strtok(listed, ","), *rest = asked;
    for (; step; step = strtok(NULL, ",")) {
        char *found = strstr(rest, step);
        cr_expect(found, "%s is not asked for in the order of the list", step);
        rest = found ? found : rest;
    }
    program_run_free(&list);
}

// What the script would give to ndtune is understood by today's ndtune, and ends at the GPU that is not there.
Test(gpu_measure, every_kind_of_command_is_understood) {
    static const char check[] = NDTUNE_SOURCE_DIR "/tests/gpu/check_commands.py", ndtune[] = NDTUNE_BIN_DIR "/ndtune";
    const char *const words[] = {"/usr/bin/env", "python3", "-B", check, ndtune, directory, NULL};
    ProgramRun run = program_run(words, NULL, 240);
    cr_expect_eq(run.exit_code, 0, "%s%s", run.out, run.err);
    program_run_free(&run);
}
