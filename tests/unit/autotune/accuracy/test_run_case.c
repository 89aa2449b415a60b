// From a row's columns to model, cluster, target and plan, and the message where that is impossible.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(run_case, .fini = forget);

static RunCase case_of(const char *line) {
    return text_case(&arena, arena_format(&arena, "%s%s", RUNS_HEADER, line));
}

static RunCase case_from(RunLine line) {
    return case_of(run_line(&arena, line));
}

Test(run_case, a_row_becomes_the_plan_that_its_columns_say) {
    const RunCase run = case_from((RunLine){.dp_shard = 4, .tp = 2, .micro_batch = 3, .step_time_s = 2.0});
    cr_assert_null(run.skipped, "%s", run.skipped);
    cr_assert_eq(run.plan.mesh.size[AXIS_DP_SHARD], 4);
    cr_assert_eq(run.plan.mesh.size[AXIS_TP], 2);
    cr_assert_eq(run.plan.micro_batch, 3);
    cr_assert_eq(run.plan.zero, 3);
    cr_assert_eq(run.plan.recompute, RECOMPUTE_FULL);
    cr_assert_eq(run.request.world, 8);
    cr_assert_eq(run.measured_step_s, 2.0);
    cr_assert_eq(model_parameters(&run.request.model), 8030261248, "Llama 3 8B");
}

Test(run_case, tokens_per_second_become_a_step_time) {
    // 8 ranks of 1 sequence of 4096 tokens: at 1024 tokens/s and GPU a step takes 4 s.
    char line[1024];
    snprintf(line, sizeof line, "%s", run_line(&arena, (RunLine){.step_time_s = 5}));
    char *at = strstr(line, ",5,,");
    cr_assert_not_null(at, "%s", line);
    const RunCase run = case_of(arena_format(&arena, "%.*s,,1024,%s", (int)(at - line), line, at + strlen(",5,,")));
    cr_assert_null(run.skipped, "%s", run.skipped);
    cr_assert_float_eq(run.measured_step_s, 4.0, 1e-12);
}

Test(run_case, sequences_are_as_long_as_step_time_and_rate_say) {
    // 8 ranks of 1 sequence, 4096 asked: 2 s at 1024 tokens/s and GPU are 2048 tokens each; 4.08 s are 4178, rounding.
    const char *line = run_line(&arena, (RunLine){.step_time_s = 5});
    const char *at = strstr(line, ",5,,");
    cr_assert_not_null(at, "%s", line);
    const char *const times[] = {"2", "4.08"};
    const int expected[] = {2048, 4096};
    for (int i = 0; i < 2; i++) {
        const RunCase run = case_of(arena_format(&arena, "%.*s,%s,1024,%s", (int)(at - line), line, times[i], at + 4));
        cr_assert_null(run.skipped, "%s", run.skipped);
        cr_expect_eq(run.plan.seq, expected[i]);
    }
}

Test(run_case, overrides_change_the_profile) {
    const RunCase run = case_from((RunLine){.overrides = "node.gpus=4;fabric.node_gbps=800"});
    cr_assert_null(run.skipped, "%s", run.skipped);
    cr_assert_eq(run.request.cluster.node.accelerators, 4);
    cr_assert_float_eq(run.request.cluster.fabric.nic_bytes_per_s * run.request.cluster.fabric.nics, 1e11, 1);
}

Test(run_case, the_same_overrides_on_another_row_give_the_same_profile) {
    const char *text = arena_format(
        &arena, "%s%s%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.id = "a", .overrides = "node.gpus=4"}),
        run_line(&arena, (RunLine){.id = "b"}), run_line(&arena, (RunLine){.id = "c", .overrides = "node.gpus=4"}));
    const RunFile file = run_file_of(&arena, text);
    RunMapper *mapper = run_mapper_new(&arena);
    const int expected[] = {4, 8, 4};
    for (int i = 0; i < 3; i++) {
        RunCase run;
        run_case_build(mapper, &file.rows[i], &run);
        cr_expect_eq(run.request.cluster.node.accelerators, expected[i]);
    }
}

Test(run_case, embeddings_are_tied_where_the_published_count_says_so) {
    const char *columns = "id,params_b,model,layers,hidden,heads,kv_heads,ffn,vocab,cluster,target,dp_replicate,"
                          "dp_shard,cp,tp,seq_len,micro_batch\n";
    // 16 layers of hidden 2048, 32 heads, ffn 8192: 67.1 M each; vocabulary 131072 x 2048 = 268.4 M, once or twice.
    const char *text = arena_format(&arena, "%s%s%s", columns,
                                    "tied,1.34,m,16,2048,32,32,8192,131072,dgx-h100,accelerate,1,8,1,1,4096,1\n",
                                    "untied,1.61,m,16,2048,32,32,8192,131072,dgx-h100,accelerate,1,8,1,1,4096,1\n");
    const RunFile file = run_file_of(&arena, text);
    RunMapper *mapper = run_mapper_new(&arena);
    for (int i = 0; i < 2; i++) {
        RunCase run;
        run_case_build(mapper, &file.rows[i], &run);
        cr_expect_null(run.skipped, "%s", run.skipped);
        cr_expect_eq(run.request.model.tied_embeddings, i == 0);
        cr_expect_float_eq((double)model_parameters(&run.request.model), file.rows[i].params_b * 1e9, 0.01e9);
    }
}

Test(run_case, stage_2_of_a_target_that_only_shards_fully_keeps_gathered_parameters) {
    const char *line = run_line(&arena, (RunLine){.step_time_s = 1});
    char text[1024];
    snprintf(text, sizeof text, "%s", line);
    char *zero = strstr(text, ",3,full");
    cr_assert_not_null(zero);
    zero[1] = '2';
    const RunCase run = case_of(text);
    cr_assert_null(run.skipped, "%s", run.skipped);
    cr_assert_eq(run.plan.zero, 3);
    cr_assert_eq(run.plan.reshard, RESHARD_NEVER);
}

Test(run_case, memory_is_limited_by_the_lesser_of_profile_and_row) {
    const double profile = case_from((RunLine){.gpu_mem_gb = 0}).request.memory_limit_bytes;
    cr_assert_eq(case_from((RunLine){.gpu_mem_gb = 900}).request.memory_limit_bytes, profile);
    cr_assert_eq(case_from((RunLine){.gpu_mem_gb = 16}).request.memory_limit_bytes, 16.0 * (1 << 30));
}

Test(run_case, without_a_version_the_default_one_is_taken) {
    cr_assert_str_eq(case_from((RunLine){.target = "torchtitan"}).request.target->version, "0.2");
    cr_assert_str_eq(case_from((RunLine){.target = "torchtitan@head"}).request.target->version, "head");
}

Test(run_case, a_run_older_than_a_version_is_of_the_one_before) {
    const char *line = run_line(&arena, (RunLine){.target = "accelerate"});
    const char *const dates[] = {"2024-10-02", "2024-10", "2025-04-02", "2026-09-20", ""};
    const char *const versions[] = {"1.0", "1.0", "1.14", "1.15", "1.15"};
    for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++) {
        const char *text = arena_format(&arena, "date,%s%s,%s", RUNS_HEADER, dates[i], line);
        const RunFile file = run_file_of(&arena, text);
        RunMapper *mapper = run_mapper_new(&arena);
        RunCase run;
        run_case_build(mapper, &file.rows[0], &run);
        cr_assert_null(run.skipped, "%s", run.skipped);
        cr_expect_str_eq(run.request.target->version, versions[i], "%s", dates[i]);
    }
}

#define VTRAIN "VIA-Research/vTrain@f8dda8473:data/"

static RunCase case_located(const char *locator, int tp) {
    char line[1024];
    snprintf(line, sizeof line, "%s", run_line(&arena, (RunLine){.target = "megatron", .dp_shard = 1, .tp = tp}));
    char *at = strstr(line, ",128256,");
    cr_assert_not_null(at);
    const char *text = arena_format(&arena, "source_locator,%s%s,%.*s,50257,%s", RUNS_HEADER, locator, (int)(at - line),
                                    line, at + strlen(",128256,"));
    const RunCase run = text_case(&arena, text);
    cr_assert_null(run.skipped, "%s", run.skipped);
    return run;
}

static int vocabulary_of(const char *locator, int tp) {
    const RunCase run = case_located(locator, tp);
    return target_vocab(run.request.target, &run.request.model, tp);
}

Test(run_case, a_vocabulary_is_padded_by_the_targets_that_pad_it) {
    cr_expect_eq(vocabulary_of("ours", 8), 51200);  // 50 x 1024
    cr_expect_eq(vocabulary_of("ours", 1), 50304);  // 393 x 128
    cr_expect_eq(vocabulary_of(VTRAIN "ground_truth_multi.csv", 1), 50304);
}

Test(run_case, the_simulator_that_pads_no_vocabulary_is_predicted_with_an_odd_one) {
    cr_expect_eq(vocabulary_of(VTRAIN "ground_truth_single.csv", 1), 50257);
    cr_expect_eq(vocabulary_of(VTRAIN "ground_truth_single.csv", 8), 51200);
}

Test(run_case, steps_that_their_source_computed_are_told_from_measured_ones) {
    cr_expect(case_located(VTRAIN "ground_truth_single.csv", 1).computed);
    cr_expect_not(case_located(VTRAIN "ground_truth_multi.csv", 1).computed);
    cr_expect_not(case_located("", 1).computed);
}

Test(run_case, gelu_rows_are_gpts_and_mpts_by_name) {
    const RunCase run = case_from((RunLine){.mlp = "gelu", .target = "megatron", .dp_shard = 1, .tp = 8});
    cr_assert_null(run.skipped, "%s", run.skipped);
    cr_assert_eq(run.request.model.mlp, MLP_PLAIN);
    cr_assert_eq(run.request.model.norm, NORM_LAYER);
}

Test(run_case, what_this_version_cannot_predict_says_why) {
    static const struct {
        RunLine line;
        const char *says;
    } cases[] = {
        {{.unusable = true}, "marked as not usable"},
        {{.target = "megatronn"}, "target \"megatronn\" is not in this version"},
        {{.target = "accelerate@0.1"}, "target \"accelerate@0.1\" is not in this version"},
        {{.cluster = "dgx-h10"}, "cluster \"dgx-h10\" is not in this version"},
        {{.overrides = "node.gpsu=4"}, "no field \"node.gpsu\""},
        {{.pp = 2}, "accelerate has no pp: use pp=1"},
        {{.recompute = "some"}, "recompute \"some\" is not in this version"},
        {{.dtype = "int4"}, "dtype \"int4\" is not bf16, fp16, fp32 or fp8"},
        {{.tp = 3}, "tp=3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunCase run = case_from(cases[i].line);
        cr_expect_not_null(run.skipped, "case %zu", i);
        cr_expect(run.skipped && strstr(run.skipped, cases[i].says), "case %zu: %s", i, run.skipped);
    }
}

// The expert columns after those of RUNS_HEADER, on a row of a mixture of 16 experts.
static RunCase case_with_experts(const char *columns, const char *values) {
    return line_case(&arena, (RunLine){.step_time_s = 1}, columns, values);
}

// Nobody asks for it but recipes of Megatron-Bridge in mxfp8 since 2026-06, on GB200 and GB300.
Test(run_case, products_of_experts_are_one_launch_where_a_recipe_fuses_them) {
    static const struct {
        const char *source, *date, *cluster;
        bool at_once;
    } cases[] = {{"NVIDIA-NeMo/Megatron-Bridge@1:a", "2026-06-12", "gb200-nvl72", true},
                 {"NVIDIA-NeMo/Megatron-Bridge@1:a", "2026-05-14", "gb200-nvl72", false},
                 {"NVIDIA-NeMo/Megatron-Bridge@1:a", "2026-06-12", "dgx-b200", false},
                 {"somebody@1:a", "2026-06-12", "gb200-nvl72", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunLine line = {.target = "megatron", .cluster = cases[i].cluster, .step_time_s = 1};
        const char *values = arena_format(&arena, "16,4,2048,%s,%s,fp8,mxfp8", cases[i].date, cases[i].source);
        const RunCase run =
            line_case(&arena, line, "experts,topk,moe_ffn,date,source_locator,precision,fp8_recipe", values);
        cr_expect_eq(run.request.target->experts_at_once, cases[i].at_once, "case %zu", i);
    }
}

Test(run_case, experts_of_torchtitan_are_those_of_its_code_of_the_date_and_of_what_compiled_it) {
    static const struct {
        const char *date, *compiled;
        bool by_product, eagerly, reference, sorted;
    } cases[] = {{"2025-08-20", "grouped_mm", false, true, false, false},
                 {"2025-12-17", "torch.compile model+loss", true, true, false, false},
                 {"2026-03-12", "graph_trainer full inductor", true, false, false, false},
                 {"2026-03-13", "graph trainer", true, true, true, false},
                 {"2026-04-10", "torch.compile", false, true, false, true},
                 {"2026-06-13", "grouped_mm", false, false, false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *values = arena_format(&arena, "16,4,2048,%s,%s", cases[i].date, cases[i].compiled);
        const RunCase run = line_case(&arena, (RunLine){.target = "torchtitan", .step_time_s = 1},
                                      "experts,topk,moe_ffn,date,compiled_or_fused", values);
        const Target *target = run.request.target;
        cr_expect_eq(target->sums_by_product, cases[i].by_product, "%s", cases[i].date);
        cr_expect_eq(target->routes_eagerly, cases[i].eagerly, "%s", cases[i].compiled);
        cr_expect_eq(target->reference_attention, cases[i].reference, "%s", cases[i].compiled);
        cr_expect_eq(target->runtime.sums_sorted, cases[i].sorted, "%s", cases[i].date);
    }
}

Test(run_case, attention_is_in_fp8_where_the_row_says_so) {
    static const char *const said[] = {"", "fp8"};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        const RunCase run =
            line_case(&arena, (RunLine){.target = "megatron", .step_time_s = 1}, "attention_precision", said[i]);
        cr_expect_eq(run.request.target->fp8_attention, said[i][0] != '\0', "\"%s\"", said[i]);
    }
}

Test(run_case, a_row_with_experts_is_a_model_with_experts) {
    const RunCase run = case_with_experts("experts,topk,moe_ffn,shared_ffn,ep", "16,4,2048,1024,1");
    cr_assert_null(run.skipped, "%s", run.skipped);
    const Experts *experts = &run.request.model.experts;
    cr_assert_eq(experts->count, 16);
    cr_assert_eq(experts->active, 4);
    cr_assert_eq(experts->ffn, 2048);
    cr_assert_eq(experts->shared_ffn, 1024);
}

Test(run_case, its_first_layers_are_dense_where_the_row_says_so) {
    const RunCase run = case_with_experts("experts,topk,moe_ffn,dense_layers", "16,4,2048,2");
    cr_assert_null(run.skipped, "%s", run.skipped);
    const ModelSpec *model = &run.request.model;
    cr_assert_eq(model_run_count(model), 2);
    cr_assert_eq(model_run(model, 0).kind, LAYER_DENSE);
    cr_assert_eq(model_run(model, 0).count, 2);
    cr_assert_eq(model_run(model, 1).kind, LAYER_EXPERTS);
}

// torchtitan compiles by itself; what a source tells of its kernels goes before.
Test(run_case, kernels_that_name_no_compiler_were_not_compiled) {
    const char *const said[] = {"grouped_mm", "torch.compile", "graph_trainer full inductor", ""};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        const char *header = arena_format(&arena, "id,model,cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,"
                                                  "micro_batch,recompute,compiled_or_fused,step_time_s\n");
        const char *line = arena_format(&arena, "a,llama-3-8b,dgx-h100,torchtitan,1,8,1,1,4096,1,full,%s,1\n", said[i]);
        const RunCase run = text_case(&arena, arena_format(&arena, "%s%s", header, line));
        cr_assert_null(run.skipped, "%s", run.skipped);
        cr_expect_eq(run.plan.fused, i == 0 ? FUSED_EAGER : FUSED_COMPILED, "%s", said[i]);
    }
}

Test(run_case, experts_that_this_version_cannot_predict_say_why) {
    static const struct {
        const char *columns, *values, *says;
    } cases[] = {
        {"experts,topk,moe_ffn,ep", "16,4,2048,8", "accelerate has no ep"},
        {"experts,topk,moe_ffn,etp", "16,4,2048,2", "accelerate has no tensor parallelism of experts alone"},
        {"experts,topk", "16,4", "of topk and moe_ffn"},
        {"attention_type", "mla", "kv_lora is empty"},
        {"attention_type,kv_lora", "mla,512", "no preset like it begins as"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunCase run = case_with_experts(cases[i].columns, cases[i].values);
        cr_expect(run.skipped && strstr(run.skipped, cases[i].says), "case %zu: %s", i, run.skipped);
    }
}

static TrainPlan plan_of(const char *text) {
    const RunCase run = text_case(&arena, text);
    cr_assert_null(run.skipped, "%s", run.skipped);
    return run.plan;
}

static bool target_keeps_fp8_weights(const char *target, int zero, const char *recipe, const char *date) {
    const char *text = arena_format(&arena,
                                    "id,date,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,"
                                    "cp,tp,seq_len,micro_batch,zero,dtype,fp8_recipe\n"
                                    "a,%s,m,32,4096,32,11008,32000,dgx-b200,%s,1,8,1,1,4096,1,%d,fp8,%s\n",
                                    date, target, zero, recipe);
    return plan_of(text).fp8_parameters;
}

static bool keeps_fp8_weights(const char *recipe, const char *date) {
    return target_keeps_fp8_weights("megatron", 1, recipe, date);
}

Test(run_case, recipes_of_megatron_in_mxfp8_keep_no_weights_in_bf16) {
    cr_expect(keeps_fp8_weights("mx", "2026-02-01"));
    cr_expect_not(keeps_fp8_weights("mx", "2025-01-01"));
    cr_expect_not(keeps_fp8_weights("blockwise", "2026-02-01"));
}

Test(run_case, recipes_of_megatron_fsdp_shard_weights_in_fp8) {
    cr_expect(target_keeps_fp8_weights("megatron@fsdp", 3, "tensorwise", "2026-02-01"));
    cr_expect_not(target_keeps_fp8_weights("megatron@fsdp", 3, "mx", "2026-02-01"));
    cr_expect_not(target_keeps_fp8_weights("megatron@fsdp", 3, "tensorwise", "2025-01-01"));
}

// What a row says counts, whatever the date makes likely.
static bool says_fp8_weights(const char *said, const char *date) {
    const char *text = arena_format(&arena,
                                    "id,date,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,"
                                    "cp,tp,seq_len,micro_batch,zero,dtype,fp8_recipe,fp8_parameters\n"
                                    "a,%s,m,32,4096,32,11008,32000,dgx-h100,megatron,1,8,1,1,4096,1,1,fp8,delayed,%s\n",
                                    date, said);
    return plan_of(text).fp8_parameters;
}

Test(run_case, a_row_says_whether_weights_are_kept_in_fp8) {
    cr_expect(says_fp8_weights("1", "2024-06-01"));
    cr_expect_not(says_fp8_weights("0", "2026-02-01"));
    cr_expect(says_fp8_weights("", "2026-02-01"));
    cr_expect_not(says_fp8_weights("", "2024-06-01"));
}

static bool may_keep_experts_in_fp8(const char *recipe, int ep) {
    const char *text = arena_format(&arena,
                                    "id,date,model,layers,hidden,heads,ffn,vocab,experts,topk,moe_ffn,cluster,target,"
                                    "dp_replicate,dp_shard,cp,tp,ep,seq_len,micro_batch,zero,dtype,fp8_recipe\n"
                                    "a,2026-02-01,m,32,4096,32,11008,32000,16,4,2048,dgx-b200,megatron,"
                                    "1,8,1,1,%d,4096,1,1,fp8,%s\n",
                                    ep, recipe);
    const RunCase run = text_case(&arena, text);
    cr_assert_null(run.skipped, "%s", run.skipped);
    cr_expect_not(run.plan.fp8_parameters);
    return run.may_keep_fp8;
}

Test(run_case, experts_in_mxfp8_may_have_no_weights_in_bf16_either) {
    cr_expect(may_keep_experts_in_fp8("mx", 4));
    cr_expect_not(may_keep_experts_in_fp8("mx", 1));
    cr_expect_not(may_keep_experts_in_fp8("tensorwise", 4));
}

static LossForm loss_with(const char *kernels, const char *loss) {
    const char *text = arena_format(&arena,
                                    "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,tp,"
                                    "seq_len,micro_batch,compiled_or_fused,loss\n"
                                    "a,m,32,4096,32,11008,32000,dgx-h100,accelerate,1,8,1,1,4096,1,%s,%s\n",
                                    kernels, loss);
    return plan_of(text).loss;
}

Test(run_case, kernels_of_liger_are_its_fused_loss_unless_a_column_says_otherwise) {
    cr_expect_eq(loss_with("foak-fast-kernels-liger", ""), LOSS_FUSED);
    cr_expect_eq(loss_with("foak-fast-kernels", ""), loss_with("", ""));
    cr_expect_eq(loss_with("foak-fast-kernels-liger", "whole"), loss_with("", "whole"));
    cr_expect_neq(loss_with("foak-fast-kernels-liger", "whole"), LOSS_FUSED);
}

Test(run_case, adapters_of_fms_acceleration_drop_elements_of_their_input) {
    static const char *const locators[] = {"foundation-model-stack/fms-acceleration@876e2ed:refs/a100.csv", "ours"};
    for (int i = 0; i < 2; i++) {
        const char *text =
            arena_format(&arena,
                         "id,source_locator,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,"
                         "cp,tp,seq_len,micro_batch\na,%s,m,32,4096,32,8192,32000,dgx-b200,accelerate,1,8,1,1,4096,1\n",
                         locators[i]);
        const RunCase run = text_case(&arena, text);
        cr_expect_eq(run.request.target->adapters_drop, i == 0);
        cr_expect_eq(run.request.target->activation_apart, i == 0);
    }
}

// Of Megatron-core, with two columns besides.
static const RunCase *case_with(const char *cluster, const char *columns, const char *first, const char *second) {
    RunCase *run = ARENA_NEW(&arena, RunCase);
    const char *text = arena_format(&arena,
                                    "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,tp,"
                                    "seq_len,micro_batch,zero,%s\n"
                                    "a,m,32,4096,32,11008,32000,%s,megatron@core,1,8,1,1,4096,1,1,%s,%s\n",
                                    columns, cluster, first, second);
    *run = text_case(&arena, text);
    cr_assert_null(run->skipped, "%s", run->skipped);
    return run;
}

static const Target *target_of_settings(const char *cluster, const char *dropout, const char *workspaces) {
    return case_with(cluster, "dropout,cublas_workspaces", dropout, workspaces)->request.target;
}

Test(run_case, layers_drop_where_a_column_says_so) {
    cr_expect(target_of_settings("dgx-h100", "0.1", "")->halves_drop);
    cr_expect_not(target_of_settings("dgx-h100", "0", "")->halves_drop);
    cr_expect_not(target_of_settings("dgx-h100", "", "")->halves_drop);
}

Test(run_case, adapters_drop_and_exchange_where_columns_say_so) {
    const Target *said = case_with("dgx-h100", "lora_dropout,lora_a2a", "0.1", "1")->request.target;
    const Target *not_said = case_with("dgx-h100", "lora_dropout,lora_a2a", "", "")->request.target;
    cr_expect(said->adapters_drop && said->adapters_exchange);
    cr_expect_not(not_said->adapters_drop || not_said->adapters_exchange);
}

Test(run_case, launches_wait_where_a_column_says_so) {
    cr_expect(case_with("dgx-a100-80g", "launch_blocking,dropout", "1", "")->request.target->runtime.launches_wait);
    cr_expect_not(case_with("dgx-a100-80g", "launch_blocking,dropout", "", "")->request.target->runtime.launches_wait);
}

Test(run_case, collectives_are_checked_where_a_column_says_so) {
    const char *columns = "checked_collectives,dropout";
    cr_expect(case_with("dgx-a100-80g", columns, "1", "")->request.target->runtime.checks_collectives);
    cr_expect_not(case_with("dgx-a100-80g", columns, "", "")->request.target->runtime.checks_collectives);
}

static const RunCase *case_of_locator(const char *locator, const char *loss) {
    return case_with("dgx-a100-80g", "source_locator,loss", locator, loss);
}

Test(run_case, a_test_of_megatron_that_says_nothing_has_what_most_of_them_set) {
    const RunCase *test =
        case_of_locator("NVIDIA/Megatron-LM@d98e8a64d:tests/functional_tests/test_cases/gpt/a/golden.json", "");
    const RunCase *recipe = case_of_locator("NVIDIA/Megatron-LM@d98e8a64d:examples/llama/README.md", "");
    const RunCase *said =
        case_of_locator("NVIDIA/Megatron-LM@d98e8a64d:tests/functional_tests/test_cases/gpt/a/golden.json", "whole");
    cr_expect_eq(test->plan.loss, LOSS_ONE_COPY);
    cr_expect(test->request.target->halves_drop);
    cr_expect_eq(test->request.target->runtime.blas_workspace_bytes, 8.0 * 4096 * 1024);
    cr_expect_neq(recipe->plan.loss, LOSS_ONE_COPY);
    cr_expect_not(recipe->request.target->halves_drop);
    cr_expect_neq(said->plan.loss, LOSS_ONE_COPY);
    cr_expect_not(said->request.target->halves_drop);
}

// PyTorch's own are 8.1 MiB before Hopper and 32 from there on, Transformer Engine's 4 and 32.
Test(run_case, workspaces_are_those_of_the_chip_or_of_the_environment) {
    enum { KIB = 1024, MIB = 1024 * KIB };
    cr_expect_eq(runtime_workspace_bytes(&target_of_settings("dgx-h100", "", "")->runtime), (2 * 32 + 32) * MIB);
    cr_expect_eq(runtime_workspace_bytes(&target_of_settings("dgx-a100-80g", "", "")->runtime),
                 2 * (2 * 4096 + 8 * 16) * KIB + 4 * MIB);
    cr_expect_eq(runtime_workspace_bytes(&target_of_settings("dgx-a100-80g", "", ":4096:8")->runtime),
                 (2 * 32 + 4) * MIB);
    cr_expect_eq(runtime_workspace_bytes(&target_of_settings("dgx-h100", "", ":4096:2:16:8")->runtime),
                 2 * (2 * 4096 + 8 * 16) * KIB + 32 * MIB);
}

static bool overlaps_tp(const char *locator, int tp, const char *precision) {
    const char *text =
        arena_format(&arena,
                     "id,source_locator,date,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,"
                     "cp,tp,seq_len,micro_batch,zero,dtype,fp8_recipe,precision,tp_overlap\n"
                     "a,%s,2026-04-01,m,32,4096,32,11008,32000,gb200-nvl72,megatron,1,8,1,%d,4096,1,1,fp8,mx,%s,0\n",
                     locator, tp, precision);
    return plan_of(text).tp_overlap;
}

Test(run_case, tp_of_megatron_bridges_recipes_overlaps_whatever_its_summary_does_not_print) {
    const char *summary = "NVIDIA-NeMo/Megatron-Bridge@867af0079:docs/performance-summary.md L60";
    cr_expect(overlaps_tp(summary, 4, "FP8-MX"));
    cr_expect_not(overlaps_tp(summary, 1, "FP8-MX"));
    cr_expect_not(overlaps_tp(summary, 4, "NVFP4"));
    cr_expect_not(overlaps_tp("SimuMax@1234567:README.md", 4, "FP8-MX"));
}

static const RunCase *case_of_flagperf(const char *folder, int tp) {
    const char *text = arena_format(
        &arena,
        "id,source_locator,date,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,tp,pp,"
        "seq_len,micro_batch,grad_accum,fused,usable\n"
        "a,FlagOpen/FlagPerf@1b5a03039:training/nvidia/%s/README.md,2023-11-14,Aquila2-7B,32,4096,32,11008,100008,"
        "hgx-a800,megatron,1,1,1,%d,1,2048,8,9,eager,1\n",
        folder, tp);
    RunCase *run = ARENA_NEW(&arena, RunCase);
    *run = text_case(&arena, text);
    return run;
}

Test(run_case, rows_of_paddlepaddle_are_not_those_of_the_target_that_they_name) {
    cr_expect_str_eq(case_of_flagperf("llama1_7B-paddle", 2)->skipped, "PaddlePaddle is not in this version");
    cr_expect_null(case_of_flagperf("aquila2_7b-flagscale", 2)->skipped);
}

Test(run_case, flagscales_scripts_of_aquila_shard_no_sequence_and_run_apexs_norms) {
    const RunCase *aquila = case_of_flagperf("aquila2_7b-flagscale", 8), *other = case_of_flagperf("llama3_8B", 8);
    cr_expect_eq(aquila->plan.sequence_parallel, SEQUENCE_PARALLEL_OFF);
    cr_expect_eq(aquila->plan.fused, FUSED_FUSED);
    cr_expect(aquila->request.target->gate_kept);
    cr_expect_neq(other->plan.sequence_parallel, SEQUENCE_PARALLEL_OFF);
    cr_expect_eq(other->plan.fused, FUSED_EAGER);
    cr_expect_eq(case_of_flagperf("llama2_70B-megatron", 8)->plan.sequence_parallel, other->plan.sequence_parallel);
}

// 32 layers of two halves, each of which reduces 8 x 2048 tokens of 4096 numbers in place, or gathers and scatters
// them.
Test(run_case, collectives_of_old_pytorch_keep_what_they_touched_while_the_host_is_ahead) {
    const double whole = 2.0 * 8 * 2048 * 4096;
    cr_expect_float_eq(case_of_flagperf("aquila2_7b-flagscale", 8)->recorded_bytes, 32 * 2 * whole, 1);
    cr_expect_float_eq(case_of_flagperf("llama2_70B-megatron", 8)->recorded_bytes, 32 * 4 * whole, 1);
    cr_expect_eq(case_of_flagperf("aquila2_7b-flagscale", 1)->recorded_bytes, 0);
    cr_expect_eq(case_of_flagperf("llama3_8B", 8)->recorded_bytes, 0);
}

// The ranks of a node that a row with this cluster has, and what it says of them; 0: left out.
static int ranks_of_node(const char *cluster, const char *said) {
    const char *const chip = cluster[0] ? "" : "H100";
    const RunCase run =
        text_case(&arena, arena_format(&arena,
                                       "id,model,cluster,gpu,gpus_per_node,target,dp_replicate,dp_shard,cp,tp,seq_len,"
                                       "micro_batch\na,llama-3-8b,%s,%s,%s,torchtitan,1,4,1,1,4096,1\n"
                                       "b,llama-3-8b,dgx-h100,,,torchtitan,1,4,1,1,4096,1\n",
                                       cluster, chip, said));
    return run.skipped ? 0 : run.request.cluster.node.accelerators;
}

Test(run_case, ranks_of_a_node_are_said_where_the_cluster_follows_from_a_chip) {
    cr_expect_eq(ranks_of_node("", "4"), 4);
    cr_expect_eq(ranks_of_node("", "4.0"), 4);
    cr_expect_eq(ranks_of_node("H100", "4"), 4);
    cr_expect_eq(ranks_of_node("H100", ""), 8);
    cr_expect_eq(ranks_of_node("dgx-h100", "4"), 8, "the profile's own");
    cr_expect_eq(ranks_of_node("", "four"), 0);
}

Test(run_case, a_world_that_contradicts_the_mesh_is_skipped) {
    const RunCase run =
        text_case(&arena, "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,tp,world,"
                          "seq_len,micro_batch\n"
                          "a,m,32,4096,32,11008,32000,dgx-h100,accelerate,1,8,1,1,16,4096,1\n");
    cr_assert_str_eq(run.skipped, "the mesh has 8 ranks, the column world says 16");
}

Test(run_case, a_global_batch_that_no_accumulation_makes_is_skipped) {
    const RunFile file = run_file_of(&arena, "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,"
                                             "dp_shard,cp,tp,global_batch_seqs,seq_len,micro_batch\n"
                                             "a,m,32,4096,32,11008,32000,dgx-h100,accelerate,1,8,1,1,24,4096,2\n"
                                             "b,m,32,4096,32,11008,32000,dgx-h100,accelerate,1,8,1,1,32,4096,2\n");
    RunCase run;
    run_case_build(run_mapper_new(&arena), &file.rows[0], &run);
    cr_assert(run.skipped && strstr(run.skipped, "a global batch of 24 is no multiple of micro-batch 2"));
    run_case_build(run_mapper_new(&arena), &file.rows[1], &run);
    cr_assert_null(run.skipped, "%s", run.skipped);
    cr_assert_eq(run.plan.grad_accum, 2);
}
