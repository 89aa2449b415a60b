// ndtune plan and predict, as scripts use them.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli.h"
#include "tests/support/json_leaves.h"

// What holds of every prediction that has times.
static void check_prediction(const json_t *entry) {
    cr_assert_str_eq(json_string_value(json_object_get(entry, "schema")), "ndtune.prediction/1");
    const double step_s = cli_number(entry, "step_time_s");
    cr_assert_float_eq(json_leaves(json_object_get(entry, "time")), step_s, 1e-9 * step_s);
    cr_assert_lt(cli_number(entry, "step_time_low_s"), step_s);
    cr_assert_gt(cli_number(entry, "step_time_high_s"), step_s);
    const json_t *memory = json_object_get(entry, "memory");
    const double peak = cli_number(memory, "peak_bytes"), reserved = cli_number(memory, "reserved_bytes");
    const double limit = cli_number(memory, "limit_bytes");
    cr_assert_eq(json_leaves(memory) - peak - reserved - limit, peak);
    cr_assert_eq(json_is_true(json_object_get(entry, "feasible")), reserved <= limit);
    const json_t *mesh = json_object_get(entry, "mesh"), *plan = json_object_get(entry, "plan");
    cr_assert_eq(cli_number(mesh, "dp_replicate") * cli_number(mesh, "dp_shard") * cli_number(mesh, "cp") *
                     cli_number(mesh, "tp"),
                 cli_number(mesh, "world"));
    cr_assert_eq(cli_number(plan, "global_batch"), cli_number(plan, "micro_batch") * cli_number(mesh, "dp_replicate") *
                                                       cli_number(mesh, "dp_shard") * cli_number(plan, "grad_accum"));
    cr_assert_float_eq(cli_number(entry, "tokens_per_s"),
                       cli_number(plan, "global_batch") * cli_number(plan, "seq") / step_s,
                       1e-9 * cli_number(entry, "tokens_per_s"));
    cr_assert_gt(cli_number(entry, "mfu"), 0);
    cr_assert_lt(cli_number(entry, "mfu"), 1);
    cr_assert_geq(cli_number(entry, "hfu"), cli_number(entry, "mfu"));
}

Test(cli_plan, accounts_for_the_56_shapes_of_world_32) {
    json_t *root = CLI_JSON_ONCE(0, "--world", "32", "--model", "7b", "--format", "json");
    const json_t *entries = json_object_get(root, "entries"), *rejected = json_object_get(root, "rejected");
    cr_assert_str_eq(json_string_value(json_object_get(root, "schema")), "ndtune.plan/1");
    cr_assert_eq(json_array_size(entries) + json_array_size(rejected), 56);
    cr_assert_eq(cli_number(json_object_get(root, "search"), "shapes"), 56);
    cr_assert_gt(json_array_size(entries), 0);
    json_decref(root);
}

// Between recomputing little, which does not fit 64k tokens, and recomputing all.
Test(cli_plan, modules_of_a_layer_are_tried_where_the_target_can_name_them) {
    json_t *root = CLI_JSON(0, "--world", "8", "--model", "llama-3-8b", "--seq", "64k", "--target", "megatron@0.19",
                            "--recompute-layers", "0", "--format", "json");
    int found = 0;
    size_t i;
    const json_t *entry;
    json_array_foreach(json_object_get(root, "entries"), i, entry) {
        const json_t *plan = json_object_get(entry, "plan");
        const char *modules = json_string_value(json_object_get(plan, "recompute_modules"));
        found += strcmp(modules, "core-attn+layernorm+mlp") == 0;
        cr_expect(strcmp(modules, "target") == 0 ||
                  strcmp(json_string_value(json_object_get(plan, "recompute")), "selective") == 0);
    }
    cr_expect_gt(found, 0);
    json_decref(root);
}

// Mixtral's 8 experts are on 8 ranks at most: beyond that they can only be cut.
Test(cli_plan, ranks_that_cut_experts_are_tried_where_nobody_said_how_many) {
    json_t *root = CLI_JSON(0, "--world", "16", "--model", "mixtral-8x7b", "--seq", "4096", "--global-batch", "64",
                            "--micro-batch", "1", "--target", "megatron", "--effort", "estimate", "--format", "json");
    json_t *one = CLI_JSON(0, "--world", "16", "--model", "mixtral-8x7b", "--seq", "4096", "--global-batch", "64",
                           "--micro-batch", "1", "--target", "megatron", "--effort", "estimate", "--etp", "1",
                           "--format", "json");
    int cut = 0;
    size_t i;
    const json_t *entry;
    json_array_foreach(json_object_get(root, "entries"), i, entry) {
        const double etp = cli_number(json_object_get(entry, "plan"), "etp");
        cut += etp > 1;
        cr_expect(etp == 0 || cli_number(json_object_get(entry, "mesh"), "ep") > 1);
    }
    cr_expect_gt(cut, 0);
    cr_expect_gt(json_array_size(json_object_get(root, "entries")), json_array_size(json_object_get(one, "entries")));
    json_decref(root);
    json_decref(one);
}

// ep takes all 8 ranks.
Test(cli_plan, an_explanation_says_why_experts_are_cut_by_so_many_ranks) {
    json_t *root =
        CLI_JSON(0, "explain", "--world", "8", "--model", "olmoe-1b-7b", "--seq", "2048", "--global-batch", "16",
                 "--micro-batch", "1", "--target", "megatron", "--effort", "estimate", "--format", "json");
    const json_t *cuts = json_object_get(root, "etp");
    cr_expect(json_is_true(json_object_get(cuts, "offered")) && json_is_false(json_object_get(cuts, "asked")));
    cr_expect_eq(cli_number(cuts, "used"), 1);
    cr_expect_eq(json_array_size(json_object_get(cuts, "others")), 0);
    cr_expect(strstr(json_string_value(json_object_get(cuts, "reason")), "is not divisible by"));
    json_decref(root);
}

// What cannot be known, or what no run has shown, is reported as such, whatever was specified.
Test(cli_plan, guesses_about_experts_are_printed_as_guesses) {
    static const struct {
        const char *option, *value, *sentence;
    } rows[] = {
        {"--imbalance", "0", "a guess: where experts are spread (ep), all ranks get as many tokens (imbalance 0)"},
        {"--imbalance", "30", "a guess: where experts are spread (ep), those of the busiest rank get 30 % more"},
        {"--expert-capacity", "0", "no token is dropped: experts take all that come"},
        {"--expert-capacity", "125", "a guess: how many tokens the capacity of experts, 125 % of the mean, drops"},
        {"--dispatcher", "target", "a guess: tokens travel between ranks by alltoall"},
        {"--dispatcher", "deepep", "a guess: tokens travel by the kernels of deepep"},
        {"--etp", "2", "a guess: experts cut by ranks (etp) beside ranks with whole ones (ep)"},
        {"--etp", "1", "a guess: grouped products of experts at the rate of plain ones"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *root = CLI_JSON(0, "predict", "--model", "olmoe-1b-7b", "--mesh", "dp_shard=8,ep=4", "--target",
                                "megatron", rows[i].option, rows[i].value, "--format", "json");
        char *text = json_dumps(json_object_get(json_object_get(root, "request"), "assumptions"), 0);
        cr_expect(strstr(text, rows[i].sentence), "%s", text);
        free(text);
        json_decref(root);
    }
    ProgramRun table = CLI("predict", "--model", "olmoe-1b-7b", "--mesh", "dp_shard=8,ep=4", "--target", "megatron");
    cr_expect(strstr(table.out, "\n  a guess: where experts are spread (ep), all ranks"), "%s", table.out);
    program_run_free(&table);
}

// Tokens of models with shared experts stay apart, so their routers start no worse than they become.
Test(cli_plan, a_router_that_starts_no_worse_than_it_becomes_has_one_figure) {
    ProgramRun worse = CLI("predict", "--model", "qwen3-30b-a3b", "--mesh", "dp_shard=8,ep=8", "--target", "megatron");
    cr_expect(strstr(worse.out, "with ep=8; up to "), "%s", worse.out);
    program_run_free(&worse);
    ProgramRun same = CLI("predict", "--model", "deepseek-v3", "--mesh", "dp_shard=512,ep=8", "--target", "megatron");
    cr_expect(strstr(same.out, "with ep=8)") && !strstr(same.out, "first steps"), "%s", same.out);
    program_run_free(&same);
}

Test(cli_plan, no_shape_comes_twice) {
    json_t *root = CLI_JSON_ONCE(0, "--world", "8", "--model", "7b", "--format", "json");
    json_t *all = json_copy(json_object_get(root, "entries"));
    json_array_extend(all, json_object_get(root, "rejected"));
    for (size_t i = 0; i < json_array_size(all); i++) {
        for (size_t j = 0; j < i; j++) {
            cr_assert_not(json_equal(json_object_get(json_array_get(all, i), "mesh"),
                                     json_object_get(json_array_get(all, j), "mesh")));
        }
    }
    json_decref(all);
    json_decref(root);
}

Test(cli_plan, every_entry_keeps_the_promises_of_the_contract) {
    json_t *root = CLI_JSON(0, "plan", "--world", "16", "--model", "llama-3-8b", "--format", "json");
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(root, "entries"), i, entry) {
        check_prediction(entry);
        cr_assert(json_is_true(json_object_get(entry, "legal")));
        cr_assert(json_is_true(json_object_get(entry, "feasible")));
    }
    json_decref(root);
}

Test(cli_plan, entries_after_the_best_are_ranked) {
    json_t *root = CLI_JSON_ONCE(0, "--world", "8", "--model", "7b", "--format", "json");
    const json_t *entries = json_object_get(root, "entries");
    for (size_t i = 2; i < json_array_size(entries); i++) {
        cr_assert_geq(cli_number(json_array_get(entries, i - 1), "tokens_per_s"),
                      cli_number(json_array_get(entries, i), "tokens_per_s"));
    }
    json_decref(root);
}

Test(cli_plan, every_rejected_shape_has_a_reason) {
    json_t *root = CLI_JSON_ONCE(0, "--world", "32", "--model", "7b", "--format", "json");
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(root, "rejected"), i, row) {
        cr_assert_gt(json_string_length(json_object_get(row, "reason")), 10);
    }
    json_decref(root);
}

Test(cli_plan, a_global_batch_is_met_or_the_nearest_named) {
    json_t *root = CLI_JSON(0, "--world", "8", "--model", "7b", "--global-batch", "12", "--format", "json");
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(root, "entries"), i, row) {
        cr_assert_eq(cli_number(json_object_get(row, "plan"), "global_batch"), 12);
    }
    bool named = false;
    json_array_foreach(json_object_get(root, "rejected"), i, row) {
        named = named || strstr(json_string_value(json_object_get(row, "reason")), "the nearest it could do is 8");
    }
    cr_assert(named);
    json_decref(root);
}

Test(cli_plan, the_same_question_gives_the_same_entries) {
    json_t *first = CLI_JSON_ONCE(0, "--world", "8", "--model", "7b", "--format", "json");
    json_t *second = CLI_JSON(0, "--world", "8", "--model", "7b", "--format", "json");
    cr_assert(json_equal(json_object_get(first, "entries"), json_object_get(second, "entries")));
    json_decref(first);
    json_decref(second);
}

Test(cli_plan, a_second_call_reads_the_store_and_says_the_same) {
    char *folder = temp_dir_make();
    char db[512];
    snprintf(db, sizeof db, "%s/x.db", folder);
    json_t *first = CLI_JSON(0, "--world", "8", "--model", "7b", "--format", "json", "--db", db);
    json_t *second = CLI_JSON(0, "--world", "8", "--model", "7b", "--format", "json", "--db", db);
    json_t *third = CLI_JSON(0, "--world", "8", "--model", "7b", "--format", "json", "--db", db, "--no-cache");
    cr_assert_gt(cli_number(json_object_get(first, "search"), "simulated"), 0);
    cr_assert_eq(cli_number(json_object_get(second, "search"), "simulated"), 0);
    cr_assert_gt(cli_number(json_object_get(third, "search"), "simulated"), 0);
    cr_assert(json_equal(json_object_get(first, "entries"), json_object_get(second, "entries")));
    cr_assert(json_equal(json_object_get(first, "entries"), json_object_get(third, "entries")));
    json_decref(first);
    json_decref(second);
    json_decref(third);
    temp_dir_remove(folder);
}

Test(cli_plan, the_table_names_what_a_reader_needs) {
    ProgramRun run = CLI("--world", "32", "--model", "7b", "--verbose");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    static const char *const words[] = {"llama-2-7b",   "dgx-h100",      "accelerate",  "tokens/s",
                                        "MFU",          "80 % interval", "56 shapes:",  "global batch 1024 sequences",
                                        "accumulation", "Assumed",       "unvalidated", "sequences of 4096"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        cr_assert_not_null(strstr(run.out, words[i]), "no %s in %s", words[i], run.out);
    }
    cr_assert_str_empty(run.err);  // not a terminal: no progress
    program_run_free(&run);
}

Test(cli_plan, nothing_feasible_is_exit_2_with_the_reason) {
    ProgramRun run = CLI("--world", "2", "--model", "llama-3-70b");
    cr_assert_eq(run.exit_code, 2);
    cr_assert_not_null(strstr(run.err, "none of the 4 shapes can run"), "%s", run.err);  // 2 on one of four axes
    program_run_free(&run);
}

Test(cli_plan, csv_has_a_line_per_shape) {
    ProgramRun run = CLI("--world", "8", "--model", "7b", "--format", "csv");
    int lines = 0;
    for (const char *p = run.out; (p = strchr(p, '\n')); p++) {
        lines++;
    }
    cr_assert_eq(lines, 1 + 20);
    program_run_free(&run);
}

Test(cli_plan, estimating_only_answers_without_simulation) {
    json_t *root = CLI_JSON(0, "--world", "8", "--model", "7b", "--effort", "estimate", "--format", "json");
    cr_assert_eq(cli_number(json_object_get(root, "search"), "simulated"), 0);
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(root, "entries"), i, entry) {
        check_prediction(entry);
    }
    json_decref(root);
}

Test(cli_plan, set_changes_the_machine) {
    json_t *root = CLI_JSON(0, "--world", "8", "--model", "7b", "--set", "node.gpus=4", "--format", "json");
    const json_t *cluster = json_object_get(json_array_get(json_object_get(root, "entries"), 0), "cluster");
    cr_assert_eq(cli_number(cluster, "accelerators_per_node"), 4);
    json_decref(root);
}

Test(cli_predict, one_object_keeps_the_promises) {
    json_t *root = CLI_JSON(0, "predict", "--mesh", "dp_replicate=1,dp_shard=8,cp=1,tp=1", "--micro-batch", "1",
                            "--grad-accum", "2", "--model", "7b", "--recompute", "full", "--format", "json");
    check_prediction(root);
    cr_assert_str_eq(json_string_value(json_object_get(json_object_get(root, "plan"), "recompute")), "full");
    json_decref(root);
}

Test(cli_predict, agrees_with_the_entry_of_plan) {
    json_t *plan = CLI_JSON_ONCE(0, "--world", "8", "--model", "7b", "--format", "json");
    const json_t *entry = json_array_get(json_object_get(plan, "entries"), 0);
    const json_t *mesh = json_object_get(entry, "mesh"), *choices = json_object_get(entry, "plan");
    char mesh_words[128], micro[16], accumulate[16];
    snprintf(mesh_words, sizeof mesh_words, "dp_replicate=%.0f,dp_shard=%.0f,cp=%.0f,tp=%.0f",
             cli_number(mesh, "dp_replicate"), cli_number(mesh, "dp_shard"), cli_number(mesh, "cp"),
             cli_number(mesh, "tp"));
    snprintf(micro, sizeof micro, "%.0f", cli_number(choices, "micro_batch"));
    snprintf(accumulate, sizeof accumulate, "%.0f", cli_number(choices, "grad_accum"));
    json_t *prediction =
        CLI_JSON(0, "predict", "--mesh", mesh_words, "--micro-batch", micro, "--grad-accum", accumulate, "--recompute",
                 json_string_value(json_object_get(choices, "recompute")), "--reshard",
                 json_string_value(json_object_get(choices, "reshard")), "--fused",
                 json_string_value(json_object_get(choices, "fused")), "--model", "7b", "--format", "json");
    cr_assert_eq(cli_number(prediction, "step_time_s"), cli_number(entry, "step_time_s"));
    cr_assert(json_equal(json_object_get(prediction, "memory"), json_object_get(entry, "memory")));
    json_decref(prediction);
    json_decref(plan);
}

Test(cli_predict, an_illegal_plan_is_exit_2_and_says_why_in_the_object) {
    json_t *root = CLI_JSON(2, "predict", "--mesh", "tp=64", "--model", "7b", "--format", "json");
    cr_assert(json_is_false(json_object_get(root, "legal")));
    cr_assert_eq(json_array_size(json_object_get(root, "reasons")), 1);
    json_decref(root);
}

Test(cli_predict, a_plan_that_does_not_fit_is_exit_2_with_its_times) {
    json_t *root = CLI_JSON(2, "predict", "--mesh", "dp_replicate=8", "--model", "7b", "--format", "json");
    cr_assert(json_is_true(json_object_get(root, "legal")));
    cr_assert(json_is_false(json_object_get(root, "feasible")));
    check_prediction(root);
    json_decref(root);
}

// PyTorch on ROCm has no cuDNN; Transformer Engine runs other kernels in its place.
Test(cli_predict, cudnn_on_amd_is_transformer_engines_or_refused) {
    ProgramRun plain =
        CLI("predict", "--mesh", "dp_shard=8", "--model", "350m", "--cluster", "mi300x-8x", "--attention", "cudnn");
    ProgramRun megatron =
        CLI("predict", "--mesh", "dp_shard=8", "--model", "350m", "--cluster", "mi300x-8x", "--target", "megatron");
    cr_expect_not_null(strstr(plain.err, "attention cudnn is NVIDIA's: MI300X-192GB runs kernels in its place under "
                                         "Transformer Engine alone"),
                       "%s", plain.err);
    cr_expect_not_null(strstr(megatron.out, "attention cudnn stands for what Transformer Engine runs on ROCm"), "%s",
                       megatron.out);
    program_run_free(&plain);
    program_run_free(&megatron);
}

// V100 have no bf16: fp16 on their tensor cores, eight times their fp32.
Test(cli_predict, a_chip_without_bf16_trains_in_fp16) {
    json_t *volta =
        CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "350m", "--cluster", "dgx-1v", "--format", "json");
    cr_assert_str_eq(json_string_value(json_object_get(json_object_get(volta, "plan"), "precision")), "fp16");
    json_decref(volta);
}

Test(cli_predict, a_chip_without_flash_attention_says_which_kernel_stands_for_it) {
    ProgramRun volta = CLI("predict", "--mesh", "dp_shard=8", "--model", "350m", "--cluster", "dgx-1v");
    ProgramRun ampere = CLI("predict", "--mesh", "dp_shard=8", "--model", "350m", "--cluster", "dgx-a100-80g");
    cr_expect(strstr(volta.out, "memory-efficient kernel") || strstr(volta.err, "memory-efficient kernel"));
    cr_expect(!strstr(ampere.out, "memory-efficient") && !strstr(ampere.err, "memory-efficient"));
    program_run_free(&volta);
    program_run_free(&ampere);
}

// Activations are offloaded of layers that are recomputed: beyond 256 shapes a plan that recomputes stands for a shape.
Test(cli_plan, offloaded_activations_are_searched_among_many_shapes) {
    ProgramRun run = CLI("plan", "--world", "1024", "--model", "7b", "--target", "accelerate@1.15", "--offload",
                         "activations", "--effort", "estimate");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
}

Test(cli_plan, who_says_everything_gets_a_sentence_for_each_choice) {
    ProgramRun run =
        CLI("plan", "--world", "16", "--objective", "cost", "--model", "deepseek-v3", "--layers", "8", "--cluster",
            "aws-p5", "--finetune", "lora", "--lora-rank", "8", "--lora-targets", "attention", "--optimizer", "sgd",
            "--pack", "512", "--imbalance", "20", "--capacity", "30", "--expert-capacity", "120", "--mtp", "2",
            "--update-in-backward", "on", "--offload", "optimizer", "--tp-overlap", "on", "--master-weights", "bf16",
            "--precision", "fp8", "--rank-order", "dp_shard,tp", "--set", "rank.1.slowdown=2");
    cr_assert(run.exit_code >= 0 && run.exit_code <= 2, "%d: %s", run.exit_code, run.err);
    program_run_free(&run);
}

Test(cli_plan, what_has_no_effect_in_a_plan_is_said) {
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=2", "--model", "tiny", "--target", "megatron", "--cp-rotate",
                         "allgather", "--tp-overlap", "on", "--grad-accum", "2", "--op-fuser", "on");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_not_null(
        strstr(run.out, "without effect in this plan: --cp-rotate allgather, --tp-overlap on, --op-fuser on\n"), "%s",
        run.out);
    program_run_free(&run);
    run =
        CLI("predict", "--mesh", "dp_shard=2", "--model", "tiny", "--attention", "flash3", "--cluster", "dgx-a100-80g");
    cr_expect_not_null(strstr(run.out, "attention flash3 is priced as flash: the profile dgx-a100-80g has no rate"),
                       "%s", run.out);
    program_run_free(&run);
}

Test(cli_plan, a_format_as_fast_as_the_best_is_called_the_same) {
    ProgramRun run = CLI("plan", "--world", "2", "--model", "tiny", "--effort", "estimate", "--verbose");
    cr_expect_not_null(strstr(run.out, "8-bit states: the same time, -"), "%s", run.out);
    program_run_free(&run);
}

// In bf16 too, where of dense layers it changes nothing.
Test(cli_plan, fused_operations_of_experts_are_refused_but_in_mxfp8) {
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=8,ep=8", "--model", "mixtral-8x7b", "--target", "megatron",
                         "--op-fuser", "on");
    cr_expect_eq(run.exit_code, 2, "%d", run.exit_code);
    cr_expect_not_null(
        strstr(run.err, "op_fuser=on of layers of experts, which mixtral-8x7b has, is predicted in mxfp8"), "%s",
        run.err);
    program_run_free(&run);
}

// What a target lacks is refused where it would change nothing too: of bf16, of shapes without tp.
Test(cli_plan, what_a_target_lacks_is_refused_in_plans_where_it_has_no_effect) {
    static const struct {
        const char *option, *reason;
    } cases[] = {{"--op-fuser", "torchtitan@0.2 has no op_fuser=on: use op_fuser off"},
                 {"--fp8-parameters", "torchtitan@0.2 has no fp8_parameters=on: use fp8_parameters off"},
                 {"--qkv-rope", "torchtitan@0.2 has no qkv_rope=on: use qkv_rope off"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ProgramRun run = CLI("predict", "--mesh", "dp_shard=2", "--model", "tiny", "--target", "torchtitan@0.2",
                             "--cluster", "dgx-h100", cases[i].option, "on");
        cr_expect_eq(run.exit_code, 2, "%d", run.exit_code);
        cr_expect_not_null(strstr(run.err, cases[i].reason), "%s", run.err);
        program_run_free(&run);
    }
}

Test(cli_plan, the_least_memory_is_explained_as_what_was_asked_for) {
    ProgramRun run = CLI("explain", "--world", "4", "--model", "tiny", "--objective", "memory", "--effort", "estimate");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "fewer tokens per second than the next: the least memory was asked for."), "%s",
                       run.out);
    program_run_free(&run);
}

// The search tries sets of modules to recompute, and programs of three micro-steps: what a choice refuses ends neither.
Test(cli_plan, a_choice_that_refuses_some_plans_is_searched_with_the_others) {
    ProgramRun run = CLI("plan", "--world", "4", "--model", "qwen3-30b-a3b", "--cluster", "gb200-nvl72", "--target",
                         "megatron", "--seq", "4096", "--global-batch", "16", "--precision", "fp8", "--fp8-recipe",
                         "mxfp8", "--op-fuser", "on", "--max-tp", "1", "--effort", "estimate");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    run = CLI("plan", "--world", "8", "--model", "llama-3-8b", "--seq", "4096", "--global-batch", "64", "--target",
              "torchtitan", "--update-in-backward", "on", "--effort", "estimate");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
}
