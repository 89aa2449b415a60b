// ndtune accuracy as users and scripts call it.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/cli/cli.h"
#include "tests/support/text_file.h"

#define SAMPLE NDTUNE_SOURCE_DIR "/tests/accuracy/runs/"

static char *folder;
static char path[512];

static void begin(void) {
    folder = temp_dir_make();
    snprintf(path, sizeof path, "%s/runs.csv", folder);
}

static void forget(void) {
    temp_dir_remove(folder);
}

static char *read_file(const char *name) {
    static char text[1 << 20];
    FILE *file = fopen(name, "rb");
    cr_assert_not_null(file, "%s", name);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static json_t *sample(void) {
    return CLI_JSON_ONCE(0, "accuracy", "--runs", SAMPLE "runs.csv", "--oom", SAMPLE "oom.csv", "--groups",
                         SAMPLE "groups.csv", "--format", "json");
}

Test(cli_accuracy, the_object_has_what_the_contract_promises) {
    json_t *root = sample();
    cr_assert_str_eq(json_string_value(json_object_get(root, "schema")), "ndtune.accuracy/1");
    const json_t *step = json_object_get(root, "step_time");
    static const char *const numbers[] = {"n",           "median_abs_error", "p90_abs_error",
                                          "median_bias", "in_interval",      "scaled_median_abs_error"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cr_expect(json_is_number(json_object_get(step, numbers[i])), "%s", numbers[i]);
    }
    static const char *const arrays[] = {"by", "by_target", "by_source", "by_source_and_cluster"};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        cr_expect_gt(json_array_size(json_object_get(step, arrays[i])), 0, "%s", arrays[i]);
    }
    cr_expect(json_is_number(json_object_get(json_object_get(root, "baseline_constant_mfu"), "median_abs_error")));
    cr_expect(json_is_number(json_object_get(json_object_get(root, "oom"), "called_infeasible")));
    const json_t *ranking = json_object_get(root, "ranking");
    cr_expect(json_is_number(json_object_get(ranking, "median_regret")));
    cr_expect_gt(json_array_size(json_object_get(ranking, "by_group")), 0);
    cr_expect_eq(json_array_size(json_object_get(ranking, "by_group")),
                 (size_t)json_integer_value(json_object_get(ranking, "groups")));
    cr_expect_gt(json_array_size(json_object_get(json_object_get(root, "memory"), "by_kind")), 0);
    json_decref(root);
}

// Of all parts of a split.
static double rows_of(const json_t *parts) {
    double sum = 0;
    size_t index;
    const json_t *part;
    json_array_foreach(parts, index, part) {
        sum += cli_number(part, "n");
    }
    return sum;
}

Test(cli_accuracy, sources_are_left_out_where_that_is_asked) {
    json_t *plain = CLI_JSON(0, "accuracy", "--runs", SAMPLE "mlperf.csv", "--format", "json");
    cr_expect_null(json_object_get(plain, "left_out"));
    json_t *root = CLI_JSON(0, "accuracy", "--runs", SAMPLE "mlperf.csv", "--leave-one-source-out", "--format", "json");
    json_t *left = json_object_get(root, "left_out");
    static const char *const arrays[] = {"by_source", "by_accelerator"};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        cr_expect_eq(rows_of(json_object_get(left, arrays[i])), cli_number(root, "scored"), "%s", arrays[i]);
    }
    cr_expect_float_eq(cli_number(json_object_get(left, "all"), "median_abs_error"),
                       cli_number(json_object_get(root, "step_time"), "median_abs_error"), 1e-9);
    cr_expect_gt(json_array_size(json_object_get(left, "fitted")), 0);
    json_decref(plain);
    json_decref(root);
}

Test(cli_accuracy, scored_and_skipped_rows_are_all_rows) {
    json_t *root = sample();
    cr_assert_eq(cli_number(root, "rows"),
                 cli_number(root, "scored") + (double)json_array_size(json_object_get(root, "skipped")));
    json_decref(root);
}

Test(cli_accuracy, the_parts_of_a_split_sum_to_the_whole) {
    json_t *root = sample();
    json_t *step = json_object_get(root, "step_time");
    static const char *const arrays[] = {"by", "by_target", "by_source"};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        cr_expect_eq(rows_of(json_object_get(step, arrays[i])), cli_number(step, "n"), "%s", arrays[i]);
    }
    json_decref(root);
}

Test(cli_accuracy, two_calls_give_the_same_bytes, .init = begin, .fini = forget) {
    ProgramRun runs[2] = {CLI_ONCE("accuracy", "--runs", SAMPLE "runs.csv", "--format", "json"),
                          CLI("accuracy", "--runs", SAMPLE "runs.csv", "--format", "json")};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(runs[i].exit_code, 0, "%s", runs[i].err);
    }
    cr_assert_str_eq(runs[0].out, runs[1].out);
    program_run_free(&runs[0]);
    program_run_free(&runs[1]);
}

Test(cli_accuracy, the_csv_file_has_a_line_per_row, .init = begin, .fini = forget) {
    ProgramRun run = CLI("accuracy", "--runs", SAMPLE "runs.csv", "--effort", "estimate", "--csv", path);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_assert_not_null(strstr(run.out, "one constant MFU"));
    program_run_free(&run);
    const char *text = read_file(path);
    int lines = 0;
    for (const char *p = text; *p; p++) {
        lines += *p == '\n';
    }
    json_t *root = CLI_JSON_ONCE(0, "accuracy", "--runs", SAMPLE "runs.csv", "--format", "json");
    cr_assert_eq(lines, 1 + (int)cli_number(root, "rows"));
    json_decref(root);
}

Test(cli_accuracy, the_csv_format_is_a_line_per_score) {
    ProgramRun run = CLI("accuracy", "--runs", SAMPLE "runs.csv", "--format", "csv");
    cr_assert_eq(strncmp(run.out, "what,target,cluster,source,kind,n,", 34), 0, "%s", run.out);
    program_run_free(&run);
}

Test(cli_accuracy, without_runs_it_says_what_is_needed) {
    ProgramRun run = CLI("accuracy");
    cr_assert_eq(run.exit_code, 1);
    cr_assert_not_null(strstr(run.err, "--runs is needed"), "%s", run.err);
    program_run_free(&run);
}

#define HEADER "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,micro_batch\n"
#define ROW "a,m,32,4096,32,11008,32000,dgx-h100,accelerate,1,8,1,1,4096,1\n"

Test(cli_accuracy, bad_files_are_one_sentence_with_the_place, .init = begin, .fini = forget) {
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "runs.csv: empty"},
        {"a,b\n1,2\n", "lacks columns that are needed: id, model, cluster"},
        {HEADER "a,m,x,4096,32,11008,32000,dgx-h100,accelerate,1,8,1,1,4096,1\n",
         "runs.csv:2:5: layers takes a whole number from 1 to 65536, not \"x\""},
        {HEADER ROW ROW, "runs.csv:3: the id \"a\" is that of line 2 too"},
        {HEADER "a,m\n", "runs.csv:2:3: the row has fewer than the 15 fields"},
        {HEADER "\"a", "runs.csv:2:1: the quote is never closed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text_file_write(path, cases[i].text);
        ProgramRun run = CLI("accuracy", "--runs", path);
        cr_expect_eq(run.exit_code, 1, "case %zu: exit %d", i, run.exit_code);
        cr_expect_not_null(strstr(run.err, cases[i].says), "case %zu: %s", i, run.err);
        cr_expect_str_empty(run.out);
        program_run_free(&run);
    }
}

Test(cli_accuracy, a_file_that_is_not_there_is_exit_3) {
    static const char *const options[] = {"--runs", "--oom", "--groups"};
    for (size_t i = 0; i < 3; i++) {
        const char *runs = i == 0 ? "/no/such.csv" : SAMPLE "runs.csv";
        ProgramRun run =
            i == 0 ? CLI("accuracy", "--runs", runs) : CLI("accuracy", "--runs", runs, options[i], "/no/such.csv");
        cr_expect_eq(run.exit_code, 3, "%s: %s", options[i], run.err);
        cr_expect_not_null(strstr(run.err, "/no/such.csv"), "%s", run.err);
        program_run_free(&run);
    }
}

Test(cli_accuracy, rows_that_cannot_be_written_are_exit_3) {
    ProgramRun run = CLI("accuracy", "--runs", SAMPLE "runs.csv", "--csv", "/no/such/folder/rows.csv");
    cr_assert_eq(run.exit_code, 3, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "/no/such/folder/rows.csv"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_accuracy, a_file_whose_every_row_is_foreign_scores_nothing_and_says_why, .init = begin, .fini = forget) {
    text_file_write(path, HEADER "a,m,32,4096,32,11008,32000,nowhere,accelerate,1,8,1,1,4096,1\n");
    json_t *root = CLI_JSON(0, "accuracy", "--runs", path, "--format", "json");
    cr_assert_eq(cli_number(root, "scored"), 0);
    const json_t *skipped = json_array_get(json_object_get(root, "skipped"), 0);
    cr_assert_str_eq(json_string_value(json_object_get(skipped, "reason")),
                     "cluster \"nowhere\" is not in this version");
    cr_assert(json_is_null(json_object_get(json_object_get(root, "step_time"), "median_abs_error")));
    json_decref(root);
}

// The minimum that a user's own table of runs needs.
Test(cli_accuracy, a_row_may_name_a_preset_for_its_sizes, .init = begin, .fini = forget) {
    text_file_write(path, "id,model,cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,micro_batch,step_time_s\n"
                          "a,meta-llama/Llama-3.1-8B,dgx-h100,torchtitan,1,64,1,1,8192,1,1.1\n"
                          "b,llama-9,dgx-h100,torchtitan,1,64,1,1,8192,1,1.1\n");
    json_t *root = CLI_JSON(0, "accuracy", "--runs", path, "--format", "json");
    cr_expect_eq(cli_number(root, "scored"), 1);
    const json_t *skipped = json_array_get(json_object_get(root, "skipped"), 0);
    cr_expect_not_null(strstr(cli_text(skipped, "reason"), "and \"llama-9\" is no preset"));
    json_decref(root);
}

Test(cli_accuracy, a_table_without_sources_and_memory_has_no_lines_of_them, .init = begin, .fini = forget) {
    text_file_write(path, "id,model,cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,micro_batch,step_time_s\n"
                          "a,meta-llama/Llama-3.1-8B,dgx-h100,torchtitan,1,64,1,1,8192,1,1.1\n");
    ProgramRun run = CLI("accuracy", "--runs", path, "--effort", "estimate");
    cr_expect(run.exit_code == 0 && strstr(run.out, "all clusters"), "%s", run.out);
    cr_expect_null(strstr(run.out, "\nsource"), "%s", run.out);
    cr_expect_null(strstr(run.out, "memory"), "%s", run.out);
    program_run_free(&run);
}

Test(cli_accuracy, a_table_of_nothing_is_no_good_score, .init = begin, .fini = forget) {
    text_file_write(path, HEADER "a,m,32,4096,32,11008,32000,nowhere,accelerate,1,8,1,1,4096,1\n");
    ProgramRun run = CLI("accuracy", "--runs", path);
    cr_expect_not_null(strstr(run.err, "none of the 1 rows of"), "%s", run.err);
    cr_expect_not_null(strstr(run.err, "cluster \"nowhere\" is not in this version"), "%s", run.err);
    cr_expect_null(strstr(run.out, "0.0 %  "), "%s", run.out);
    program_run_free(&run);
}
