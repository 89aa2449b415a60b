// ndtune explain --from as people call it: what is said about their file, and that the advice is what the program predicts
// elsewhere.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli.h"

TestSuite(cli_import, .timeout = 300);

#define FILES NDTUNE_SOURCE_DIR "/tests/golden/import/files/"
#define FROM(file) "explain", "--from", FILES file, "--model", "tiny", "--seq", "1024"

Test(cli_import, an_import_of_each_kind_has_its_prediction_and_its_advice) {
    static const struct {
        const char *file, *format;
    } kinds[] = {{FILES "accelerate_fsdp2.yaml", "accelerate"},
                 {FILES "axolotl_fsdp2.yaml", "axolotl"},
                 {FILES "torchtitan_llama3_8b.toml", "torchtitan"},
                 {FILES "deepspeed_zero3.json", "deepspeed"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        json_t *root = CLI_JSON(0, "explain", "--from", kinds[i].file, "--model", "tiny", "--seq", "1024", "--world",
                                i == 0   ? "32"
                                : i == 3 ? "8"
                                         : "16",
                                "--format", "json");
        cr_expect_str_eq(json_string_value(json_object_get(root, "schema")), "ndtune.explain-from/1");
        cr_expect_str_eq(json_string_value(json_object_get(root, "format")), kinds[i].format);
        const json_t *own = json_object_get(root, "own"), *best = json_object_get(root, "best");
        cr_expect_gt(cli_number(own, "step_time_s"), 0);
        cr_expect_geq(cli_number(best, "tokens_per_s"), cli_number(own, "tokens_per_s"), "%s", kinds[i].file);
        cr_expect_float_eq(cli_number(root, "gain"),
                           cli_number(best, "tokens_per_s") / cli_number(own, "tokens_per_s") - 1, 1e-9);
        cr_expect_eq(cli_number(json_object_get(own, "plan"), "global_batch"),
                     cli_number(json_object_get(best, "plan"), "global_batch"));
        cr_expect_gt(json_array_size(json_object_get(root, "changes")), 0);
        cr_expect_gt(json_array_size(json_object_get(root, "findings")), 0);
        json_decref(root);
    }
}

// The same plan by predict, and the same change by predict, are the same numbers.
Test(cli_import, its_numbers_are_those_of_predict) {
    json_t *root = CLI_JSON(0, FROM("deepspeed_zero3.json"), "--format", "json");
    json_t *same = CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "tiny", "--seq", "1024", "--target",
                            "deepspeed", "--micro-batch", "2", "--grad-accum", "8", "--format", "json");
    cr_expect_float_eq(cli_number(json_object_get(root, "own"), "step_time_s"), cli_number(same, "step_time_s"), 1e-12);
    json_t *full =
        CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "tiny", "--seq", "1024", "--target", "deepspeed",
                 "--micro-batch", "2", "--grad-accum", "8", "--recompute", "full", "--format", "json");
    const json_t *change;
    size_t index;
    bool found = false;
    json_array_foreach(json_object_get(root, "changes"), index, change) {
        if (strcmp(json_string_value(json_object_get(change, "change")), "recompute full") == 0) {
            found = true;
            cr_expect_float_eq(cli_number(change, "step_time_s"), cli_number(full, "step_time_s"), 1e-12);
            cr_expect_float_eq(cli_number(change, "gain"),
                               cli_number(full, "tokens_per_s") / cli_number(same, "tokens_per_s") - 1, 1e-9);
        }
    }
    cr_expect(found);
    json_decref(root);
    json_decref(same);
    json_decref(full);
}

Test(cli_import, a_config_that_cannot_run_still_gets_the_best_and_the_exit_code_says_it) {
    ProgramRun run = CLI(FROM("accelerate_wrong_product.yaml"));
    cr_expect_eq(run.exit_code, 2);
    cr_expect(strstr(run.err, "= 64, and the world has 16 ranks"), "%s", run.err);
    cr_expect(strstr(run.out, "\nbest "), "%s", run.out);
    program_run_free(&run);
}

Test(cli_import, a_plan_that_does_not_fit_is_said_with_the_changes_that_do) {
    json_t *root = CLI_JSON(2, "explain", "--from", FILES "deepspeed_trainer.json", "--model", "13b", "--world", "8",
                            "--seq", "4096", "--micro-batch", "8", "--grad-accum", "2", "--format", "json");
    const json_t *own = json_object_get(root, "own");
    cr_expect(json_is_false(json_object_get(own, "feasible")));
    cr_expect(json_is_true(json_object_get(own, "legal")));
    const json_t *changes = json_object_get(root, "changes");
    cr_assert_gt(json_array_size(changes), 0);
    cr_expect(json_is_true(json_object_get(json_array_get(changes, 0), "feasible")));
    json_decref(root);
}

Test(cli_import, what_the_file_does_not_hold_is_said) {
    ProgramRun run = CLI(FROM("accelerate_fsdp2.yaml"));
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "micro-batch 1: the file does not hold it; say it with --micro-batch"), "%s", run.out);
    cr_expect(strstr(run.out, "line 10, fsdp_config.fsdp_backward_prefetch"), "%s", run.out);
    cr_expect(strstr(run.out, "ndtune export --as accelerate-yaml --mesh"), "%s", run.out);
    program_run_free(&run);
}

Test(cli_import, the_table_of_csv_is_rectangular) {
    ProgramRun run = CLI(FROM("torchtitan_llama3_8b.toml"), "--world", "16", "--format", "csv");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    static const char header[] = "kind,key,what,line,plan,step_time_s,tokens_per_s,gain,reserved_bytes,feasible\r\n";
    cr_expect_eq(strncmp(run.out, header, strlen(header)), 0, "%.100s", run.out);
    int rows = 0;
    for (const char *line = run.out; *line; line = strstr(line, "\r\n") + 2) {
        int commas = 0;
        bool quoted = false;
        for (const char *at = line; *at != '\r'; at++) {
            quoted ^= *at == '"';
            commas += *at == ',' && !quoted;
        }
        cr_expect_eq(commas, 9, "row %d", rows);
        rows++;
    }
    cr_expect_gt(rows, 5);
    program_run_free(&run);
}

Test(cli_import, errors_point_at_the_file) {
    ProgramRun none = CLI("explain", "--from", "/nowhere.yaml", "--model", "tiny");
    cr_expect_eq(none.exit_code, 3);
    cr_expect(strstr(none.err, "/nowhere.yaml cannot be read"), "%s", none.err);
    program_run_free(&none);
    ProgramRun worldless = CLI(FROM("axolotl_lora.yaml"));
    cr_expect_eq(worldless.exit_code, 1);
    cr_expect(strstr(worldless.err, "neither the file nor --world"), "%s", worldless.err);
    program_run_free(&worldless);
    ProgramRun alone = CLI("explain", "--world", "8", "--model", "tiny", "--grad-accum", "2");
    cr_expect_eq(alone.exit_code, 1);
    cr_expect(strstr(alone.err, "goes with --from"), "%s", alone.err);
    program_run_free(&alone);
    ProgramRun other = CLI(FROM("axolotl_lora.yaml"), "--from-format", "deepspeed", "--world", "8");
    cr_expect_eq(other.exit_code, 0, "%s", other.err);  // read as what was said, and every key is ignored in words
    cr_expect(strstr(other.out, "base_model: no key of DeepSpeed's"), "%s", other.out);
    program_run_free(&other);
}
