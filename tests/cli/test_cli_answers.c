// The answers besides the ranking: baseline, scaling curve, explanation, what the store remembers, files, and the pages
// generated from the option table.

#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli.h"

static const json_t *entry_of(const json_t *root, size_t place) {
    return json_array_get(json_object_get(root, "entries"), place);
}

static double reserved_of(const json_t *entry) {
    return cli_number(json_object_get(entry, "memory"), "reserved_bytes");
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    rewind(file);
    char *text = calloc((size_t)bytes + 1, 1);
    cr_assert_eq(fread(text, 1, (size_t)bytes, file), (size_t)bytes);
    fclose(file);
    return text;
}

Test(cli_answers, the_gain_over_the_baseline_is_that_of_the_two_entries) {
    json_t *root = CLI_JSON(0, "--world", "8", "--model", "7b", "--baseline", "dp_shard=4,tp=2", "--effort", "estimate",
                            "--format", "json");
    const json_t *baseline = json_object_get(root, "baseline");
    const size_t place = (size_t)cli_number(baseline, "place");
    const json_t *entry = entry_of(root, place - 1);
    cr_assert_eq(cli_number(json_object_get(entry, "mesh"), "tp"), 2);
    const double ratio = cli_number(entry_of(root, 0), "tokens_per_s") / cli_number(entry, "tokens_per_s");
    cr_assert_float_eq(cli_number(baseline, "gain_of_best_percent"), 100 * (ratio - 1), 1e-9);
    json_decref(root);
}

Test(cli_answers, a_baseline_that_cannot_run_has_the_reason_of_its_shape) {
    json_t *root = CLI_JSON(0, "--world", "8", "--model", "7b", "--baseline", "dp_replicate=8", "--effort", "estimate",
                            "--format", "json");
    const json_t *baseline = json_object_get(root, "baseline");
    cr_assert(json_is_false(json_object_get(baseline, "feasible")));
    cr_assert_not_null(strstr(json_string_value(json_object_get(baseline, "reason")), "does not fit"));
    json_decref(root);
}

Test(cli_answers, the_objective_memory_ranks_by_memory) {
    json_t *root = CLI_JSON(0, "--world", "8", "--model", "7b", "--objective", "memory", "--effort", "estimate",
                            "--format", "json");
    for (size_t i = 1; i < json_array_size(json_object_get(root, "entries")); i++) {
        cr_assert_leq(reserved_of(entry_of(root, i - 1)), reserved_of(entry_of(root, i)), "place %zu", i);
    }
    json_decref(root);
}

Test(cli_answers, the_scaling_curve_has_a_point_for_each_world) {
    json_t *root = CLI_JSON(0, "--world", "1,8,24", "--model", "7b", "--effort", "estimate", "--tokens", "1e12",
                            "--set", "price=2.5", "--format", "json");
    const json_t *worlds = json_object_get(root, "worlds");
    cr_assert_eq(json_array_size(worlds), 3);
    cr_assert(json_is_false(json_object_get(json_array_get(worlds, 0), "feasible")));  // 7b does not fit on one
    const json_t *eight = json_array_get(worlds, 1), *more = json_array_get(worlds, 2);
    cr_assert_eq(cli_number(eight, "efficiency"), 1);
    const double tokens_per_s = cli_number(json_object_get(more, "best"), "tokens_per_s");
    const double each = cli_number(json_object_get(eight, "best"), "tokens_per_s") / 8;
    cr_assert_float_eq(cli_number(more, "efficiency"), tokens_per_s / 24 / each, 1e-12);
    cr_assert_float_eq(cli_number(more, "training_s"), 1e12 / tokens_per_s, 1e-3);
    cr_assert_float_eq(cli_number(more, "training_usd"), 1e12 / tokens_per_s / 3600 * 24 * 2.5, 1e-3);
    json_decref(root);
}

Test(cli_answers, an_explanation_compares_the_two_best_and_its_terms_sum) {
    json_t *root = CLI_JSON(0, "explain", "--world", "4", "--model", "tiny", "--seq", "1024", "--effort", "estimate",
                            "--format", "json");
    const json_t *best = json_object_get(root, "best"), *next = json_object_get(root, "next");
    cr_assert_geq(cli_number(best, "tokens_per_s"), cli_number(next, "tokens_per_s"));
    const json_t *times = json_object_get(root, "seconds_per_million_tokens");
    const size_t last = json_array_size(times) - 1;
    double sum = 0;
    for (size_t i = 0; i < last; i++) {
        sum += cli_number(json_array_get(times, i), "difference");
    }
    cr_assert_float_eq(sum, cli_number(json_array_get(times, last), "difference"), 1e-9);
    cr_assert_float_eq(1e-6 * cli_number(json_array_get(times, last), "best"), 1 / cli_number(best, "tokens_per_s"),
                       1e-15);
    const json_t *questions = json_object_get(root, "what_if");
    cr_assert_eq(json_array_size(questions), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *question = json_array_get(questions, i);
        const json_t *factor = json_object_get(question, "break_even_factor");
        cr_assert(json_is_null(factor) || json_number_value(factor) > 1);
        cr_assert(json_is_null(factor) || json_number_value(factor) <= cli_number(question, "searched_to_factor"));
    }
    const json_t *rows = json_object_get(root, "sensitivities");
    cr_assert_gt(json_array_size(rows), 4);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *less = json_object_get(json_array_get(rows, i), "less");
        cr_assert(json_is_null(less) || (cli_number(less, "factor") < 1 && cli_number(less, "change") > -1));
    }
    json_decref(root);
}

Test(cli_answers, the_store_lists_what_was_asked) {
    char *folder = temp_dir_make();
    char path[512];
    snprintf(path, sizeof path, "%s/here.db", folder);
    for (int i = 0; i < 2; i++) {
        ProgramRun run = CLI("--world", "4", "--model", "tiny", "--db", path);
        cr_assert_eq(run.exit_code, 0, "%s", run.err);
        program_run_free(&run);
    }
    json_t *root = CLI_JSON(0, "runs", "--db", path, "--format", "json");
    const json_t *requests = json_object_get(root, "requests");
    cr_assert_eq(json_array_size(requests), 1);
    cr_assert_eq(cli_number(json_array_get(requests, 0), "times_asked"), 2);
    cr_assert_eq(cli_number(json_array_get(requests, 0), "world"), 4);
    cr_assert(json_is_string(json_object_get(json_array_get(requests, 0), "best_plan")));
    json_decref(root);
    temp_dir_remove(folder);
}

Test(cli_answers, an_empty_store_says_so) {
    ProgramRun run = CLI("runs");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_assert_str_eq(run.out, "The store is empty.\n");
    program_run_free(&run);
}

Test(cli_answers, the_csv_file_has_a_line_for_every_choice) {
    char *folder = temp_dir_make();
    char path[512];
    snprintf(path, sizeof path, "%s/all.csv", folder);
    json_t *root =
        CLI_JSON(0, "--world", "8", "--model", "7b", "--csv", path, "--effort", "estimate", "--format", "json");
    char *text = read_text(path);
    cr_assert_eq(cli_lines(text), 1 + cli_number(json_object_get(root, "search"), "candidates"));
    free(text);
    json_decref(root);
    temp_dir_remove(folder);
}

Test(cli_answers, an_eager_attention_keeps_more_and_takes_longer) {
    json_t *flash = CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "7b", "--format", "json");
    json_t *eager =
        CLI_JSON(2, "predict", "--mesh", "dp_shard=8", "--model", "7b", "--attention", "eager", "--format", "json");
    cr_assert_gt(cli_number(eager, "step_time_s"), cli_number(flash, "step_time_s"));
    cr_assert_gt(reserved_of(eager), reserved_of(flash));
    json_decref(flash);
    json_decref(eager);
}

Test(cli_answers, selective_recompute_lies_between_none_and_full) {
    static const char *const kinds[] = {"none", "selective", "full"};
    double hfu[3], memory[3];
    for (int i = 0; i < 3; i++) {
        json_t *root = CLI_JSON(0, "predict", "--mesh", "dp_shard=8,tp=4", "--model", "7b", "--target", "megatron",
                                "--attention", "eager", "--recompute", kinds[i], "--format", "json");
        hfu[i] = cli_number(root, "hfu") / cli_number(root, "mfu");
        memory[i] = reserved_of(root);
        json_decref(root);
    }
    cr_assert_eq(hfu[0], 1);
    cr_assert(hfu[1] > 1 && hfu[1] < hfu[2], "%g %g", hfu[1], hfu[2]);
    cr_assert(memory[2] < memory[1] && memory[1] < memory[0]);
}

Test(cli_answers, overlapped_tp_exposes_less) {
    json_t *off = CLI_JSON(0, "predict", "--mesh", "dp_shard=8,tp=4", "--model", "7b", "--target", "megatron",
                           "--format", "json");
    json_t *on = CLI_JSON(0, "predict", "--mesh", "dp_shard=8,tp=4", "--model", "7b", "--target", "megatron",
                          "--tp-overlap", "on", "--format", "json");
    cr_assert_lt(cli_number(on, "step_time_s"), cli_number(off, "step_time_s"));
    json_decref(off);
    json_decref(on);
}

Test(cli_answers, no_colours_where_nobody_looks) {
    ProgramRun run = CLI("--world", "4", "--model", "tiny");
    cr_assert_null(strchr(run.out, '\033'));
    cr_assert_null(strchr(run.err, '\033'));
    program_run_free(&run);
}

Test(cli_answers, a_terminal_sees_colours_unless_it_refuses_them) {
    if (access("/usr/bin/script", X_OK) != 0) {
        cr_skip("script is not installed");
    }
    static const char *const settings[] = {"TERM=xterm", "TERM=dumb", "NO_COLOR=1"};
    for (int i = 0; i < 3; i++) {
        char *folder = temp_dir_make();
        char data[512];
        snprintf(data, sizeof data, "XDG_DATA_HOME=%s", folder);
        const char *const words[] = {"/usr/bin/script", "-qec", NDTUNE_BIN_DIR "/ndtune --world 2 --model tiny",
                                     "/dev/null", NULL};
        const char *const environment[] = {data, i == 2 ? "TERM=xterm" : settings[i],
                                           i == 2 ? settings[2] : "NO_COLOR=", NULL};
        ProgramRun run = program_run(words, environment, 60);
        cr_expect_eq(strstr(run.out, "\033[1;32mBest") != NULL, i == 0, "%s: %s", settings[i], run.out);
        program_run_free(&run);
        temp_dir_remove(folder);
    }
}

// ---- pages

Test(cli_pages, the_options_page_has_the_option_table) {
    ProgramRun run = CLI("help", "--markdown");
    char *page = read_text(NDTUNE_SOURCE_DIR "/autotune/cli/OPTIONS.md");
    cr_assert_not_null(strstr(page, run.out),
                       "put the output of `ndtune help --markdown` into autotune/cli/OPTIONS.md");
    free(page);
    program_run_free(&run);
}

// Words of one line, a path into tests/ made absolute; nothing of "2>/dev/null".
static ProgramRun readme_call(char *line) {
    static char paths[4][512];
    const char *words[CLI_MAX_WORDS] = {NULL};
    int count = 0, path = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strncmp(word, "tests/", 6) == 0 && path < 4) {
            snprintf(paths[path], sizeof paths[path], "%s/%s", NDTUNE_SOURCE_DIR, word);
            word = paths[path++];
        }
        if (strcmp(word, "2>/dev/null") != 0 && count + 1 < CLI_MAX_WORDS) {
            words[count++] = word;
        }
    }
    return cli_words(words);
}

// A README line after a call that shows its output; "..." stands for omitted text, or for the rest of a line.
static bool is_sample(char *line) {
    char *end = strstr(line, " ...");
    if (end && end > line + 4 && end[4] == '\0') {
        *end = '\0';
    }
    return strncmp(line, "    ", 4) == 0 && strncmp(line, "    $ ", 6) != 0 && strcmp(line, "    ...") != 0;
}

// Runs of the executor have tests of their own.
Test(cli_pages, what_the_readme_shows_is_what_is_printed) {
    char *readme = read_text(NDTUNE_SOURCE_DIR "/README.md"), *rest = NULL;
    int calls = 0, samples = 0;
    ProgramRun run = {0};
    for (char *line = strtok_r(readme, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *program = strncmp(line, "    $ ", 6) == 0 ? strstr(line, "ndtune ") : NULL;
        if (run.out && is_sample(line)) {
            samples++;
            cr_expect_not_null(strstr(run.out, line + 4), "'%s' is not in\n%s", line + 4, run.out);
        } else if (strncmp(line, "    ", 4) != 0 || program) {
            program_run_free(&run);
            run = (ProgramRun){0};
        }
        if (program && strncmp(program, "ndtune run ", 11) != 0) {
            const int expected = strncmp(program, "ndtune blame", 12) == 0 ? 2 : 0;  // blame finds a culprit
            run = readme_call(program + strlen("ndtune "));
            cr_expect_eq(run.exit_code, expected, "%s: %s", line, run.err);
            calls++;
        }
    }
    program_run_free(&run);
    cr_assert_geq(calls, 4);
    cr_assert_geq(samples, 18, "%d", samples);
    free(readme);
}

// The number that stands before these words in the README.
static int readme_count(const char *readme, const char *words) {
    const char *at = strstr(readme, words);
    cr_assert_not_null(at, "the README counts no%s", words);
    while (at > readme && isdigit((unsigned char)at[-1])) {
        at--;
    }
    return atoi(at);
}

static int list_length(const char *command, const char *key) {
    json_t *root = CLI_JSON(0, command, "--format", "json");
    const int length = (int)json_array_size(json_object_get(root, key));
    json_decref(root);
    return length;
}

Test(cli_pages, what_the_readme_counts_is_there) {
    char *readme = read_text(NDTUNE_SOURCE_DIR "/README.md");
    cr_expect_eq(readme_count(readme, " cluster profiles"), list_length("clusters", "clusters"));
    cr_expect_eq(readme_count(readme, " model presets"), list_length("models", "models"));
    free(readme);
}

// How often it errs by how much is printed by `ndtune accuracy` and recorded in RESULTS.md next to the runs.
Test(cli_pages, the_readme_is_as_accurate_as_the_results) {
    char *readme = read_text(NDTUNE_SOURCE_DIR "/README.md");
    char *results = read_text(NDTUNE_SOURCE_DIR "/tests/accuracy/runs/RESULTS.md");
    const char *all = strstr(results, "\nall         all clusters");
    cr_assert_not_null(all);
    int rows = 0;
    float median, most, constant, constant_most;
    cr_assert_eq(sscanf(all, " all all clusters %d %f %% %f %% %*f %% %*f %% %f %% %f %%", &rows, &median, &most,
                        &constant, &constant_most),
                 5);
    char line[200];
    snprintf(line, sizeof line, "median error %.1f %%, 90th percentile %.1f %%; one constant MFU: %.1f %%, %.1f %%",
             (double)median, (double)most, (double)constant, (double)constant_most);
    cr_expect_not_null(strstr(readme, line), "the README should say: %s", line);
    cr_expect_eq(readme_count(readme, " published runs"), rows);
    free(readme);
    free(results);
}

Test(cli_pages, the_manual_is_clean_troff) {
    if (access("/usr/bin/groff", X_OK) != 0) {
        cr_skip("groff is not installed");
    }
    const char *const words[] = {"/bin/sh", "-c", "\"$0\" help --man | groff -man -Tascii -ww -P-cbu",
                                 NDTUNE_BIN_DIR "/ndtune", NULL};
    ProgramRun run = program_run(words, NULL, 60);
    cr_assert_eq(run.exit_code, 0);
    cr_assert_str_empty(run.err, "%s", run.err);
    cr_assert_not_null(strstr(run.out, "--objective"));
    cr_assert_not_null(strstr(run.out, "EXIT STATUS"));
    program_run_free(&run);
}

Test(cli_pages, bash_completes_values_and_options) {
    static const char script[] =
        "eval \"$(\"$0\" help --completion bash)\"\n"
        "COMP_WORDS=(ndtune plan --recompute sel); COMP_CWORD=3; _ndtune; echo ${COMPREPLY[*]}\n"
        "COMP_WORDS=(ndtune predict --grad); COMP_CWORD=2; _ndtune; echo ${COMPREPLY[*]}\n"
        "COMP_WORDS=(ndtune expl); COMP_CWORD=1; _ndtune; echo ${COMPREPLY[*]}\n"
        "COMP_WORDS=(ndtune help ba); COMP_CWORD=2; _ndtune; echo ${COMPREPLY[*]}\n";
    const char *const words[] = {"/bin/bash", "-c", script, NDTUNE_BIN_DIR "/ndtune", NULL};
    ProgramRun run = program_run(words, NULL, 60);
    cr_assert_str_eq(run.out, "selective\n--grad-accum --grad-sync\nexplain\nbatch\n", "%s%s", run.out, run.err);
    program_run_free(&run);
}

// flag: read no file of the user's.
static void check_script(const char *shell, const char *flag, const char *script, const char *says) {
    if (access(shell, X_OK) != 0) {
        cr_skip("%s is not installed", shell);
    }
    const char *const words[] = {shell, flag, "-c", script, NDTUNE_BIN_DIR "/ndtune", NULL};
    ProgramRun run = program_run(words, NULL, 60);
    cr_assert_str_eq(run.out, says, "%s%s", run.out, run.err);
    program_run_free(&run);
}

// What zsh's completion system gets, without its terminal.
Test(cli_pages, zsh_completes_values_and_options) {
    check_script("/usr/bin/zsh", "-f",
                 "compdef() { }; compadd() { shift; print -rl -- $@ | grep -- \"^$words[CURRENT]\" }\n"
                 "eval \"$(\"$0\" help --completion zsh)\"\n"
                 "words=(ndtune plan --recompute sel); CURRENT=4; _ndtune\n"
                 "words=(ndtune predict --grad); CURRENT=3; _ndtune\n"
                 "words=(ndtune expl); CURRENT=2; _ndtune\n",
                 "selective\n--grad-accum\nexplain\n");
}

Test(cli_pages, fish_completes_values_and_options) {
    check_script("/usr/bin/fish", "-N",
                 "$argv[1] help --completion fish | source\n"
                 "complete -C 'ndtune plan --recompute sel' | cut -f1\n"
                 "complete -C 'ndtune predict --grad' | cut -f1\n"
                 "complete -C 'ndtune expl' | cut -f1\n",
                 "selective\n--grad-accum\nexplain\n");
}

// ---- disks

static ProgramRun limited(const char *limit_blocks, const char *db) {
    const char *const words[] = {"/bin/sh",
                                 "-c",
                                 "ulimit -f \"$2\"; exec \"$0\" --world 8 --model 7b --effort estimate --db \"$1\"",
                                 NDTUNE_BIN_DIR "/ndtune",
                                 db,
                                 limit_blocks,
                                 NULL};
    return program_run(words, NULL, 60);
}

Test(cli_disks, a_full_disk_is_one_sentence_and_keeps_what_was_stored) {
    char *folder = temp_dir_make();
    char path[512];
    snprintf(path, sizeof path, "%s/here.db", folder);
    ProgramRun first = CLI("--world", "4", "--model", "tiny", "--db", path);
    cr_assert_eq(first.exit_code, 0, "%s", first.err);
    program_run_free(&first);
    ProgramRun run = limited("16", path);  // blocks of 512 bytes: too few for the write-ahead log
    cr_assert_eq(run.exit_code, 3, "exit %d: %s", run.exit_code, run.err);
    cr_assert_not_null(strstr(run.err, path), "%s", run.err);
    cr_assert_not_null(strstr(run.err, "hint: make room"), "%s", run.err);
    program_run_free(&run);
    json_t *root = CLI_JSON(0, "runs", "--db", path, "--format", "json");
    cr_assert_eq(json_array_size(json_object_get(root, "requests")), 1);
    json_decref(root);
    temp_dir_remove(folder);
}

Test(cli_disks, a_foreign_or_damaged_store_is_refused_and_left_alone) {
    static const char contents[2][72] = {"not a database, somebody's notes that are long enough to have a header",
                                         "SQLite format 3\0garbage garbage garbage garbage garbage garbage garbage"};
    char *folder = temp_dir_make();
    char path[512];
    snprintf(path, sizeof path, "%s/notes.db", folder);
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(path, "wb");
        cr_assert_eq(fwrite(contents[i], 1, sizeof contents[i], file), sizeof contents[i]);
        for (int k = 0; k < 4096; k++) {
            fputc(k, file);
        }
        fclose(file);
        ProgramRun run = CLI("--world", "4", "--model", "tiny", "--db", path);
        cr_expect_eq(run.exit_code, 3, "exit %d: %s", run.exit_code, run.err);
        cr_expect_not_null(strstr(run.err, path), "%s", run.err);
        cr_expect_not_null(strstr(run.err, "left as it is"), "%s", run.err);
        char *text = read_text(path);
        cr_expect_eq(memcmp(text, contents[i], sizeof contents[i]), 0);
        free(text);
        program_run_free(&run);
    }
    temp_dir_remove(folder);
}

Test(cli_disks, a_csv_file_that_cannot_be_written_is_named) {
    ProgramRun run = CLI("--world", "4", "--model", "tiny", "--csv", "/no/such/folder/all.csv");
    cr_assert_eq(run.exit_code, 3);
    cr_assert_not_null(strstr(run.err, "/no/such/folder/all.csv cannot be written"), "%s", run.err);
    program_run_free(&run);
    run = CLI("--world", "4", "--model", "tiny", "--csv", "/dev/full");
    cr_assert_eq(run.exit_code, 3, "%s", run.err);
    program_run_free(&run);
    cr_assert_eq(access("/dev/full", F_OK), 0);
}

Test(cli_answers, a_batch_that_a_pipeline_cuts_is_told_by_its_micro_batch) {
    ProgramRun run = CLI("predict", "--model", "llama-3-8b", "--target", "torchtitan", "--mesh", "pp=4,dp_shard=8",
                         "--micro-batch", "2", "--grad-accum", "8");
    cr_expect(strstr(run.out, "pipeline_parallel_microbatch_size 2, local_batch_size 16, global_batch_size 128"), "%s",
              run.out);
    program_run_free(&run);
}
