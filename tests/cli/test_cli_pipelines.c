// Pipelines on the command line: an order that PyTorch wrote into a file gives the same as the options without it.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli.h"

Test(cli_pipelines, a_file_of_pytorchs_actions_is_predicted_as_the_schedule_of_that_name) {
    static const struct {
        const char *file, *schedule, *chunks, *target;
    } rows[] = {{ORDERS "/1f1b_pp4_m8.csv", "1f1b", "1", "torchtitan"},
                {ORDERS "/interleaved_pp4_v2_m8.csv", "interleaved", "2", "torchtitan"},
                {ORDERS "/zero_bubble_pp4_v2_m8.csv", "zero-bubble", "2", "ndtune"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *of_file = CLI_JSON(0, "predict", "--mesh", "pp=4,tp=2", "--model", "llama-3-8b", "--target",
                                   rows[i].target, "--format", "json", "--pp-schedule", rows[i].file);
        json_t *named = CLI_JSON(0, "predict", "--mesh", "pp=4,tp=2", "--model", "llama-3-8b", "--target",
                                 rows[i].target, "--format", "json", "--pp-schedule", rows[i].schedule,
                                 "--virtual-stages", rows[i].chunks, "--grad-accum", "8");
        cr_expect_eq(cli_number(of_file, "step_time_s"), cli_number(named, "step_time_s"), "%s", rows[i].schedule);
        cr_expect(json_equal(json_object_get(of_file, "plan"), json_object_get(named, "plan")), "%s", rows[i].schedule);
        cr_expect(json_equal(json_object_get(of_file, "memory"), json_object_get(named, "memory")), "%s",
                  rows[i].schedule);
        json_decref(of_file);
        json_decref(named);
    }
}

Test(cli_pipelines, an_explanation_says_why_stages_or_why_not) {
    json_t *root = CLI_JSON(0, "explain", "--world", "4", "--model", "7b", "--target", "torchtitan", "--effort",
                            "estimate", "--format", "json");
    const json_t *stages = json_object_get(root, "stages"), *other = json_object_get(stages, "other");
    const json_t *best = json_object_get(root, "best");
    const bool used = cli_number(json_object_get(best, "mesh"), "pp") > 1;
    cr_expect(json_is_true(json_object_get(stages, "offered")));
    cr_expect_eq(json_is_true(json_object_get(stages, "used")), used);
    cr_expect_eq(cli_number(json_object_get(other, "mesh"), "pp") > 1, !used);
    cr_expect_float_eq(cli_number(stages, "lead"),
                       cli_number(best, "tokens_per_s") / cli_number(other, "tokens_per_s") - 1, 1e-9);
    const json_t *staged = used ? best : other;
    cr_expect_float_eq(cli_number(stages, "bubble_share"),
                       cli_number(json_object_get(staged, "time"), "bubble_s") / cli_number(staged, "step_time_s"),
                       1e-9);
    json_decref(root);
}

Test(cli_pipelines, a_target_without_pipelines_is_named_as_the_reason) {
    ProgramRun run =
        CLI("explain", "--world", "4", "--model", "tiny", "--target", "accelerate", "--effort", "estimate");
    cr_expect_eq(run.exit_code, 0);
    cr_expect(strstr(run.out, "Why not pp\n  accelerate has no pipelines"), "%s", run.out);
    program_run_free(&run);
}

Test(cli_pipelines, a_file_of_pytorchs_actions_is_run_as_the_schedule_of_that_name) {
    json_t *of_file = CLI_JSON(0, "run", "--mesh", "pp=4", "--model", "tiny", "--steps", "2", "--seq", "32", "--format",
                               "json", "--pp-schedule", ORDERS "/1f1b_pp4_m8.csv");
    json_t *named = CLI_JSON(0, "run", "--mesh", "pp=4", "--model", "tiny", "--steps", "2", "--seq", "32", "--format",
                             "json", "--pp-schedule", "1f1b", "--grad-accum", "8");
    cr_expect(json_equal(json_object_get(of_file, "plan"), json_object_get(named, "plan")));
    cr_expect(json_equal(json_object_get(of_file, "loss"), json_object_get(named, "loss")));
    cr_expect_gt(json_array_size(json_object_get(of_file, "loss")), 0);
    json_decref(of_file);
    json_decref(named);
}

// Chunk after chunk over the stages; the same plan as by its numbers, whose export says it as a layout again.
Test(cli_pipelines, a_layout_of_megatrons_is_the_split_that_it_spells_out) {
    static const struct {
        const char *layout, *split, *first, *last, *chunks, *exported;
    } cases[] = {
        {"Et*7|t*9|t*9|t*7L", "chunks", "7", "7", "1", "\"Et*7|(t*9|)*2t*7L\""},
        {"Et*3|(t*4|)*6t*5L", "chunks", "3", "5", "2", "\"Et*3|(t*4|)*6t*5L\""},
        {"Et*3|t*4|t*4|t*5|t*3|t*4|t*4|t*5L", "ends", "6", "10", "2", "--decoder-first-pipeline-num-layers 6"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *schedule = cases[i].chunks[0] == '1' ? "1f1b" : "interleaved";
        json_t *laid = CLI_JSON(0, "predict", "--mesh", "pp=4,tp=2", "--model", "8b", "--target", "megatron",
                                "--grad-accum", "8", "--format", "json", "--pp-split", cases[i].layout);
        json_t *said =
            CLI_JSON(0, "predict", "--mesh", "pp=4,tp=2", "--model", "8b", "--target", "megatron", "--grad-accum", "8",
                     "--format", "json", "--pp-split", cases[i].split, "--pp-first", cases[i].first, "--pp-last",
                     cases[i].last, "--virtual-stages", cases[i].chunks, "--pp-schedule", schedule);
        cr_expect(json_equal(json_object_get(laid, "plan"), json_object_get(said, "plan")), "case %zu", i);
        cr_expect(json_equal(json_object_get(laid, "step_time_s"), json_object_get(said, "step_time_s")));
        json_decref(laid);
        json_decref(said);
        ProgramRun made = CLI("export", "--mesh", "pp=4,tp=2", "--model", "8b", "--target", "megatron", "--grad-accum",
                              "8", "--pp-split", cases[i].layout);
        cr_expect(strstr(made.out, cases[i].exported), "case %zu: %s", i, made.out);
        program_run_free(&made);
    }
}

// Backward of the latest micro-batch first: as GPipe in time and bytes, told with its order.
Test(cli_pipelines, an_order_of_its_own_is_predicted_and_told) {
    json_t *own = CLI_JSON(0, "predict", "--mesh", "pp=2,tp=4", "--model", "llama-3-8b", "--target", "torchtitan",
                           "--format", "json", "--pp-schedule", ORDERS "/own_pp2_m4.csv");
    json_t *gpipe = CLI_JSON(0, "predict", "--mesh", "pp=2,tp=4", "--model", "llama-3-8b", "--target", "torchtitan",
                             "--format", "json", "--pp-schedule", "gpipe", "--grad-accum", "4");
    const json_t *plan = json_object_get(own, "plan"), *order = json_object_get(plan, "pp_order");
    cr_expect_float_eq(cli_number(own, "step_time_s"), cli_number(gpipe, "step_time_s"), 1e-3);
    cr_expect_str_eq(json_string_value(json_object_get(plan, "pp_schedule")), "file");
    cr_expect_eq(json_array_size(order), 2);
    cr_expect_str_eq(json_string_value(json_array_get(order, 1)), "1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0");
    json_decref(own);
    json_decref(gpipe);
}

Test(cli_pipelines, an_order_of_its_own_is_exported_by_its_file) {
    static const char line[] = "pipeline_parallel_schedule_csv = \"" ORDERS "/own_pp2_m4.csv\"";
    ProgramRun run = CLI("export", "--mesh", "pp=2,tp=4", "--model", "llama-3-8b", "--target", "torchtitan",
                         "--pp-schedule", ORDERS "/own_pp2_m4.csv");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, line), "%s", run.out);
    cr_expect(strstr(run.out, "pipeline_parallel_schedule = \"1F1B\""), "%s", run.out);  // one stage on each rank
    program_run_free(&run);
}

Test(cli_pipelines, an_order_of_its_own_comes_back_from_its_config) {
    ProgramRun made = CLI("export", "--mesh", "pp=2,tp=4", "--model", "llama-3-8b", "--target", "torchtitan",
                          "--pp-schedule", ORDERS "/own_pp2_m4.csv", "--out", "own_order.toml");
    cr_assert_eq(made.exit_code, 0, "%s", made.err);
    program_run_free(&made);
    json_t *back = CLI_JSON(0, "check", "own_order.toml", "--model", "llama-3-8b", "--world", "8", "--effort",
                            "estimate", "--tolerance", "100", "--format", "json");
    char *text = json_dumps(back, 0);
    cr_expect(strstr(text, "\"pp_schedule\": \"file\""), "%s", text);
    cr_expect(strstr(text, "1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0"), "%s", text);
    free(text);
    json_decref(back);
    unlink("own_order.toml");
}

Test(cli_pipelines, an_order_of_its_own_is_run_as_one_rank) {
    json_t *own = CLI_JSON(0, "run", "--mesh", "pp=2", "--model", "tiny", "--steps", "2", "--seq", "32", "--format",
                           "json", "--pp-schedule", ORDERS "/own_pp2_m4.csv");
    json_t *one = CLI_JSON(0, "run", "--mesh", "pp=1", "--model", "tiny", "--steps", "2", "--seq", "32", "--format",
                           "json", "--grad-accum", "4");
    const json_t *losses = json_object_get(own, "loss"), *expected = json_object_get(one, "loss");
    cr_assert_eq(json_array_size(losses), 2);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_float_eq(json_real_value(json_array_get(losses, i)), json_real_value(json_array_get(expected, i)),
                           1e-5);
    }
    json_decref(own);
    json_decref(one);
}

// The command that starts the ranks, and what the inner file says of stages.
Test(cli_pipelines, a_batch_script_writes_and_launches_a_pipeline_of_every_framework) {
    static const struct {
        const char *target, *zero, *stages, *launch;
    } rows[] = {
        {"torchtitan", "3", "pipeline_parallel_degree = 2", "-m torchtitan.train --job.config_file torchtitan.toml"},
        {"megatron", "1", "--pipeline-model-parallel-size 2", "exec bash megatron.sh"},
        {"nanotron", "1", "pp: 2", "run_train.py --config-file"},
        {"deepspeed", "1", "num_stages=2", "train.py --deepspeed_config deepspeed.json"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ProgramRun run = CLI("export", "--as", "sbatch", "--mesh", "pp=2,dp_shard=8", "--model", "llama-3-8b",
                             "--target", rows[i].target, "--zero", rows[i].zero, "--micro-batch", "1", "--grad-accum",
                             "4", "--recompute", "full");
        cr_expect_eq(run.exit_code, 0, "%s", run.err);
        cr_expect(strstr(run.out, rows[i].stages), "%s: %s", rows[i].target, run.out);
        cr_expect(strstr(run.out, rows[i].launch), "%s: %s", rows[i].target, run.out);
        cr_expect(strstr(run.out, "#SBATCH --nodes=2"), "%s: %s", rows[i].target, run.out);
        program_run_free(&run);
    }
}

// What a file does not hold is said: of DeepSpeed's the sequence and recomputation.
Test(cli_pipelines, what_is_exported_with_stages_comes_back_from_its_file_and_from_its_batch_script) {
    static const struct {
        const char *target, *zero, *file;
    } rows[] = {{"torchtitan", "3", "round.toml"},
                {"megatron", "1", "round.sh"},
                {"megatron@bridge-0.6", "1", "round.py"},
                {"nanotron", "1", "round.yaml"},
                {"deepspeed", "1", "round.json"}};
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const size_t row = i / 2;
        const bool script = i % 2 == 1;
        const char *file = script ? "round.sbatch" : rows[row].file;
        ProgramRun made = CLI("export", "--mesh", "pp=2,dp_shard=8", "--model", "llama-3-8b", "--target",
                              rows[row].target, "--zero", rows[row].zero, "--micro-batch", "1", "--grad-accum", "4",
                              "--recompute", "full", "--out", file, script ? "--as" : NULL, "sbatch");
        cr_assert_eq(made.exit_code, 0, "%s: %s", rows[row].target, made.err);
        program_run_free(&made);
        json_t *back =
            CLI_JSON(0, "check", file, "--model", "llama-3-8b", "--world", "16", "--seq", "4096", "--recompute", "full",
                     "--effort", "estimate", "--tolerance", "100", "--format", "json");
        const json_t *own = json_object_get(back, "own"), *mesh = json_object_get(own, "mesh"),
                     *plan = json_object_get(own, "plan");
        cr_expect_eq(cli_number(mesh, "pp"), 2, "%s of %s", file, rows[row].target);
        cr_expect_eq(cli_number(mesh, "dp_shard"), 8, "%s of %s", file, rows[row].target);
        cr_expect_eq(cli_number(plan, "grad_accum"), 4, "%s of %s", file, rows[row].target);
        json_decref(back);
        unlink(file);
    }
}

// 1 x 8 x 8 ranks are 64 sequences: nothing in the file speaks of stages, and none are made of the batch.
Test(cli_pipelines, a_batch_that_does_not_add_up_is_no_pipeline_of_deepspeed) {
    FILE *file = fopen("batch.json", "w");
    cr_assert(file);
    fputs("{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 8,"
          " \"zero_optimization\": {\"stage\": 1}, \"bf16\": {\"enabled\": true}}\n",
          file);
    fclose(file);
    ProgramRun run = CLI("check", "batch.json", "--model", "llama-3-8b", "--world", "8", "--effort", "estimate");
    cr_expect_eq(run.exit_code, 2, "%s", run.out);
    cr_expect(strstr(run.out, "= 64 sequences, and the global batch is 32"), "%s", run.out);
    cr_expect_not(strstr(run.out, "pp=2"), "%s", run.out);
    program_run_free(&run);
    unlink("batch.json");
}

// Without stages DeepSpeed shards more than optimizer states: the same mesh is advised by stage.
Test(cli_pipelines, advice_that_shards_otherwise_says_how) {
    FILE *file = fopen("stages.json", "w");
    cr_assert(file);
    fputs("{\"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 16, \"pipeline\": {\"stages\": 4},"
          " \"zero_optimization\": {\"stage\": 1}, \"bf16\": {\"enabled\": true}}\n",
          file);
    fclose(file);
    json_t *root = CLI_JSON(0, "explain", "--from", "stages.json", "--world", "16", "--model", "llama-3-8b", "--seq",
                            "4096", "--effort", "estimate", "--format", "json");
    const json_t *changes = json_object_get(root, "changes");
    for (size_t i = 0; i < json_array_size(changes); i++) {
        for (size_t k = 0; k < i; k++) {
            cr_expect_str_neq(cli_text(json_array_get(changes, i), "change"),
                              cli_text(json_array_get(changes, k), "change"));
        }
    }
    cr_expect_gt(json_array_size(changes), 3);
    json_decref(root);
    unlink("stages.json");
}

// A global batch of four local ones: the file says so, and a check what it costs.
Test(cli_pipelines, a_schedule_that_is_repeated_comes_back_from_its_file_with_what_one_would_gain) {
    ProgramRun made =
        CLI("export", "--mesh", "pp=2,dp_shard=8", "--model", "llama-3-8b", "--target", "torchtitan", "--micro-batch",
            "1", "--grad-accum", "16", "--pp-rounds", "4", "--recompute", "full", "--out", "rounds.toml");
    cr_assert_eq(made.exit_code, 0, "%s", made.err);
    program_run_free(&made);
    json_t *back =
        CLI_JSON(2, "check", "rounds.toml", "--model", "llama-3-8b", "--effort", "estimate", "--format", "json");
    const json_t *plan = json_object_get(json_object_get(back, "own"), "plan"), *note;
    size_t index;
    bool named = false;
    cr_expect_eq(cli_number(plan, "grad_accum"), 16);
    cr_expect_eq(cli_number(plan, "pp_rounds"), 4);
    json_array_foreach(json_object_get(back, "notes"), index, note) {
        const char *key = json_string_value(json_object_get(note, "key"));
        named |= key && strcmp(key, "training.local_batch_size") == 0 &&
                 strstr(cli_text(note, "sentence"), "one schedule of 16 micro-steps, not 4 of 4: ");
    }
    cr_expect(named);
    json_decref(back);
    unlink("rounds.toml");
}

// Of a file of actions each round has the file's micro-batches.
Test(cli_pipelines, a_file_of_actions_is_repeated_too) {
    FILE *file = fopen("repeated.csv", "w");
    fputs("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", file);
    fclose(file);
    json_t *root = CLI_JSON(0, "predict", "--mesh", "pp=2,dp_shard=4", "--model", "llama-3-8b", "--target",
                            "torchtitan", "--pp-schedule", "repeated.csv", "--pp-rounds", "3", "--format", "json");
    const json_t *plan = json_object_get(root, "plan");
    cr_expect_eq(cli_number(plan, "grad_accum"), 6);
    cr_expect_eq(cli_number(plan, "pp_rounds"), 3);
    json_decref(root);
    unlink("repeated.csv");
}

Test(cli_pipelines, a_batch_script_of_a_framework_without_pipelines_says_whose_file_it_is) {
    ProgramRun run =
        CLI("export", "--as", "sbatch", "--mesh", "pp=2,dp_shard=4", "--model", "llama-3-8b", "--target", "accelerate");
    cr_expect_neq(run.exit_code, 0);
    cr_expect(strstr(run.err, "accelerate has no pp"), "%s", run.err);
    program_run_free(&run);
}

// The field of that name in the last line.
static const char *last_field(char *csv, const char *name) {
    char *header = csv, *line = csv, *head_rest = NULL, *line_rest = NULL;
    for (char *next; (next = strchr(line, '\n')) && next[1]; line = next + 1) {
    }
    header[strcspn(header, "\r")] = line[strcspn(line, "\r")] = '\0';
    for (;;) {
        char *field = line_rest ? line_rest : line, *head = head_rest ? head_rest : header;
        char *end = strchr(field, ','), *head_end = strchr(head, ',');
        if (end && head_end) {
            *end = *head_end = '\0';
        }
        if (strcmp(head, name) == 0) {
            return field;
        }
        cr_assert(end && head_end, "no column %s", name);
        line_rest = end + 1;
        head_rest = head_end + 1;
    }
}

Test(cli_pipelines, csv_has_the_bubble_and_the_stage_of_json) {
    json_t *root = CLI_JSON(0, "predict", "--mesh", "pp=4,tp=2", "--model", "llama-3-8b", "--target", "torchtitan",
                            "--grad-accum", "8", "--format", "json");
    static const char *const columns[] = {"bubble_s", "stage"};
    const double told[] = {cli_number(json_object_get(root, "time"), "bubble_s"),
                           cli_number(json_object_get(root, "memory"), "stage")};
    for (int i = 0; i < 2; i++) {
        ProgramRun run = CLI("predict", "--mesh", "pp=4,tp=2", "--model", "llama-3-8b", "--target", "torchtitan",
                             "--grad-accum", "8", "--format", "csv");
        const char *field = last_field(run.out, columns[i]);
        cr_expect_neq(field[0], '\0', "%s", columns[i]);
        cr_expect_float_eq(strtod(field, NULL), told[i], 1e-9, "%s: %s", columns[i], field);
        program_run_free(&run);
    }
    json_decref(root);
}

Test(cli_pipelines, bytes_of_stages_are_those_of_all_or_of_none) {
    json_t *root = CLI_JSON(0, "plan", "--world", "8", "--model", "llama-3-8b", "--target", "torchtitan", "--seq",
                            "4096", "--global-batch", "32", "--format", "json");
    const json_t *entries = json_object_get(root, "entries");
    size_t i, all = 0, none = 0;
    json_t *entry;
    json_array_foreach(entries, i, entry) {
        const json_t *by_stage = json_object_get(json_object_get(entry, "memory"), "by_stage");
        const size_t stages = (size_t)cli_number(json_object_get(entry, "mesh"), "pp");
        all += stages > 1 && json_array_size(by_stage) == stages;
        none += stages > 1 && json_is_null(by_stage);
        cr_expect(json_is_null(by_stage) ? stages > 1 : json_array_size(by_stage) == stages, "entry %zu", i);
    }
    cr_expect(all > 0 && none > 0, "%zu simulated, %zu estimated", all, none);
    json_decref(root);
}

Test(cli_pipelines, csv_has_no_stage_without_a_pipeline) {
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=8", "--model", "llama-3-8b", "--format", "csv");
    cr_expect_str_eq(last_field(run.out, "stage"), "");
    program_run_free(&run);
}

// Two chunks of layers on each stage that folds, whatever --virtual-stages has for others.
Test(cli_pipelines, a_folded_schedule_is_told_with_the_two_chunks_that_it_has) {
    static const struct {
        const char *schedule;
        int chunks;
    } rows[] = {{"zbv", 2}, {"dualpipev", 2}, {"1f1b", 1}, {"interleaved", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *root = CLI_JSON(0, "predict", "--mesh", "pp=2", "--model", "tiny", "--target", "ndtune",
                                "--pp-schedule", rows[i].schedule, "--grad-accum", "8", "--format", "json");
        cr_expect_eq(cli_number(json_object_get(root, "plan"), "virtual_stages"), rows[i].chunks, "%s",
                     rows[i].schedule);
        json_decref(root);
    }
}

// The interleaved schedule with one chunk: not to be named, and legal as what the file says.
Test(cli_pipelines, an_order_of_interleaving_with_one_chunk_is_taken_as_it_is) {
    static const char *const rows[][2] = {{"torchtitan", "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n"},
                                          {"torchtitan", "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1W0,1I1,1W1\n"},
                                          {"ndtune", "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *file = fopen("one_chunk.csv", "w");
        cr_assert_not_null(file);
        fputs(rows[i][1], file);
        fclose(file);
        json_t *root = CLI_JSON(0, "predict", "--mesh", "pp=2", "--model", "tiny", "--target", rows[i][0], "--fused",
                                i == 2 ? "auto" : "eager", "--pp-schedule", "one_chunk.csv", "--format", "json");
        cr_expect(json_is_true(json_object_get(root, "legal")), "%zu", i);
        unlink("one_chunk.csv");
        json_decref(root);
    }
}

Test(cli_pipelines, layers_and_bytes_of_stages_are_told_together_where_they_are_the_same) {
    ProgramRun run = CLI("predict", "--mesh", "pp=16,tp=8,dp_shard=4", "--model", "llama-3.1-405b", "--target",
                         "megatron", "--zero", "1", "--micro-batch", "1", "--grad-accum", "32", "--recompute", "full");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "  stages 0: 7 layers, 1..14: 8, 15: 7\n"), "%s", run.out);
    cr_expect(strstr(run.out, "  reserved by stage 0: "), "%s", run.out);
    program_run_free(&run);
}

// Kernels that sleep to their pace: 2 stages of 4 micro-steps in 1f1b wait for 1 of 5 of their work items.
Test(cli_pipelines, a_run_says_how_long_its_stages_waited_and_what_they_held) {
    setenv("NDTUNE_FAULT", "pace:0.002", 1);
    json_t *root = CLI_JSON(0, "run", "--mesh", "pp=2", "--model", "tiny", "--steps", "2", "--seq", "32", "--lanes",
                            "async", "--pp-schedule", "1f1b", "--grad-accum", "4", "--format", "json");
    unsetenv("NDTUNE_FAULT");
    const json_t *stages = json_object_get(root, "stages");
    double planned = 0;
    cr_assert_eq(json_array_size(stages), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *stage = json_array_get(stages, i);
        const double measured = cli_number(stage, "bubble_share"),
                     simulated = cli_number(stage, "predicted_bubble_share");
        const double peak = cli_number(stage, "peak_bytes");
        cr_expect_eq(cli_number(stage, "stage"), (double)i);
        cr_expect(measured >= 0 && measured < 1, "%g", measured);
        cr_expect(simulated > 0.05 && simulated < 0.5, "%g", simulated);
        cr_expect_eq(peak, cli_number(stage, "planned_peak_bytes"));
        planned = peak > planned ? peak : planned;
    }
    cr_expect_eq(planned, cli_number(root, "planned_peak_bytes"));
    json_decref(root);
}

// Its table of stages, from its head to the words below it.
static char *stage_table(const char *out) {
    const char *begin = strstr(out, "stage  layers  bubble measured"), *end = strstr(out, "bubble is the share");
    cr_assert(begin && end && end > begin, "%s", out);
    return strndup(begin, (size_t)(end - begin));
}

Test(cli_pipelines, a_run_in_words_has_a_line_for_each_stage_and_so_has_what_the_store_kept_of_it) {
    char *folder = temp_dir_make(), db[512];
    snprintf(db, sizeof db, "%s/runs.db", folder);
    ProgramRun run =
        CLI("run", "--mesh", "pp=2", "--model", "tiny", "--steps", "1", "--seq", "32", "--grad-accum", "2", "--db", db);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    ProgramRun kept = CLI("runs", "1", "--db", db);
    char *said = stage_table(run.out), *stored = stage_table(kept.out);
    cr_expect_str_eq(stored, said);
    free(said);
    free(stored);
    program_run_free(&run);
    program_run_free(&kept);
    temp_dir_remove(folder);
}

Test(cli_pipelines, the_stages_of_a_run_and_of_what_the_store_kept_of_it_are_the_same) {
    char *folder = temp_dir_make(), db[512];
    snprintf(db, sizeof db, "%s/runs.db", folder);
    json_t *run = CLI_JSON(0, "run", "--mesh", "pp=2", "--model", "tiny", "--steps", "1", "--seq", "32", "--grad-accum",
                           "2", "--format", "json", "--db", db);
    json_t *alone = CLI_JSON(0, "run", "--mesh", "tp=2", "--model", "tiny", "--steps", "1", "--seq", "32", "--format",
                             "json", "--db", db);
    json_t *kept = CLI_JSON(0, "runs", "1", "--db", db, "--format", "json");
    json_t *kept_alone = CLI_JSON(0, "runs", "2", "--db", db, "--format", "json");
    cr_assert_eq(json_array_size(json_object_get(run, "stages")), 2);
    cr_expect(json_equal(json_object_get(kept, "stages"), json_object_get(run, "stages")));
    cr_expect_null(json_object_get(alone, "stages"));
    cr_expect_null(json_object_get(kept_alone, "stages"));
    json_decref(run);
    json_decref(alone);
    json_decref(kept);
    json_decref(kept_alone);
    temp_dir_remove(folder);
}

Test(cli_pipelines, an_explanation_says_by_how_many_fewer_tokens_the_other_kind_loses) {
    json_t *root = CLI_JSON(0, "explain", "--world", "8", "--model", "7b", "--target", "torchtitan", "--effort",
                            "estimate", "--format", "json");
    const double lead = cli_number(json_object_get(root, "stages"), "lead");
    const bool used = json_is_true(json_object_get(json_object_get(root, "stages"), "used"));
    char sentence[128];
    snprintf(sentence, sizeof sentence, "the best %s stages: %.1f %% %s tokens per second\n", used ? "without" : "with",
             100 * fabs(1 - 1 / (1 + lead)), lead >= 0 ? "fewer" : "more");
    ProgramRun run = CLI("explain", "--world", "8", "--model", "7b", "--target", "torchtitan", "--effort", "estimate");
    cr_expect(strstr(run.out, sentence), "%s is not in %s", sentence, run.out);
    cr_expect_gt(lead, 0, "a case in which the sentence says fewer");
    program_run_free(&run);
    json_decref(root);
}

// What has no value in a pipeline, or without one, has words for that.
Test(cli_pipelines, no_answer_about_stages_prints_a_text_that_is_not_there) {
    char *folder = temp_dir_make(), db[512];
    snprintf(db, sizeof db, "%s/runs.db", folder);
    const char *const lines[][18] = {
        {"run", "--mesh", "pp=2", "--model", "tiny", "--steps", "1", "--seq", "32", "--grad-accum", "2", "--db", db},
        {"runs", "1", "--db", db},
        {"runs", "--db", db},
        {"predict", "--mesh", "pp=4,tp=2", "--model", "llama-3-8b", "--target", "megatron", "--virtual-stages", "2",
         "--grad-accum", "8", "--db", db},
        {"predict", "--mesh", "pp=4,tp=2", "--model", "llama-3-8b", "--target", "accelerate", "--db", db},
        {"plan", "--world", "8", "--model", "7b", "--target", "nanotron", "--effort", "estimate", "--db", db},
        {"explain", "--world", "4", "--model", "7b", "--target", "torchtitan", "--effort", "estimate", "--db", db},
        {"export", "--mesh", "pp=2,tp=2", "--model", "llama-3-8b", "--target", "deepspeed", "--zero", "1", "--db", db},
        {"export", "--mesh", "pp=2,tp=2", "--model", "llama-3-8b", "--target", "megatron", "--as", "sbatch", "--db",
         db},
        {"report", "--html", "/dev/null", "--db", db}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        ProgramRun run = cli_words(lines[i]);
        cr_expect(run.out[0] || run.err[0], "%s answers", lines[i][0]);
        cr_expect_null(strstr(run.out, "(null)"), "%zu %s: %s", i, lines[i][0], run.out);
        cr_expect_null(strstr(run.err, "(null)"), "%zu %s: %s", i, lines[i][0], run.err);
        program_run_free(&run);
    }
    temp_dir_remove(folder);
}
