// What a row ran and does not say: libraries by date and release, kernels by the chip.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/accuracy/run_case.h"
#include "autotune/accuracy/run_labels.h"
#include "autotune/accuracy/run_machine.h"
#include "autotune/accuracy/run_tests.h"
#include "sim/cost/compute.h"
#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(run_labels, .fini = forget);

// A row of `cluster` with more columns.
static RunCase case_with(const char *cluster, const char *target, const char *names, const char *values) {
    const char *zero = strcmp(target, "megatron") == 0 || strcmp(target, "nanotron") == 0 ? "1" : NULL;
    const RunCase run = line_case(
        &arena, (RunLine){.cluster = cluster, .target = target, .zero = zero, .step_time_s = 1}, names, values);
    cr_assert_null(run.skipped, "%s", run.skipped);
    return run;
}

static RunCase case_of(const char *cluster, const char *target, const char *date, const char *locator) {
    return case_with(cluster, target, "date,source_locator", arena_format(&arena, "%s,%s", date, locator));
}

static double forward_ramp(const Accelerator *accelerator) {
    for (int k = 0; k < accelerator->attention_count; k++) {
        const AttentionRate *rate = &accelerator->attention[k];
        if (strcmp(rate->kernel, "cudnn") == 0 && rate->head_dim == 128) {
            return rate->forward_ramp;
        }
    }
    return 0;
}

// dgx-b200's cudnn-913-128 has a ramp of 714 keys, 1.45 times that with cuDNN 9.10, its cudnn-128 one of 401; a chip
// without the former keeps what it has. A summary's archive is dated by its last commit: its tables name the release
// that ran.
Test(run_labels, attention_of_2025_has_the_rate_of_its_cudnn) {
    static const struct {
        const char *date, *locator, *cluster;
        double forward_ramp;
    } cases[] = {{"2025-10", "", "dgx-b200", 714},
                 {"2025-05", "", "dgx-b200", 714 * 1.45},
                 {"2026-01-07", "", "dgx-b200", 401},
                 {"", "", "dgx-b200", 401},
                 {"2026-04-01", "Megatron-Bridge@d4c36f7de:docs/archive.md L143 [25.11 pretrain]", "dgx-b200", 714},
                 {"2026-04-01", "Megatron-Bridge@d4c36f7de:docs/archive.md L60 [26.02 pretrain]", "dgx-b200", 401},
                 {"2025-10", "", "dgx-h100", 94}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunCase run = case_of(cases[i].cluster, "megatron", cases[i].date, cases[i].locator);
        cr_expect_float_eq(forward_ramp(&run.request.cluster.accelerator), cases[i].forward_ramp, 1e-9, "%s %s %s",
                           cases[i].date, cases[i].locator, cases[i].cluster);
    }
}

// 0 is the share that the profile has for every library. A row without a date ran today's.
Test(run_labels, fp8_sums_are_those_of_the_containers_cublas) {
    static const struct {
        const char *date, *locator;
        double share;
    } cases[] = {{"", "", 0.94},
                 {"2025-10", "", 0},
                 {"2025-10-27", "", 0.94},
                 {"2026-04-01", "Megatron-Bridge@d4c36f7de:docs/archive.md L193 [25.09 pretrain]", 0},
                 {"2026-04-01", "Megatron-Bridge@d4c36f7de:docs/archive.md L154 [25.11 pretrain]", 0.94}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunCase run = case_of("dgx-h100", "megatron", cases[i].date, cases[i].locator);
        cr_expect_float_eq(run.request.cluster.accelerator.fp8_exact_share_cuda_13, cases[i].share, 1e-9, "%s %s",
                           cases[i].date, cases[i].locator);
    }
}

// Heads of 96 take the rates of 128, which is nearest, and those of 9.13 are measured for no other size than their own.
Test(run_labels, attention_of_another_head_size_keeps_its_rate_of_2025) {
    static const char *const heads[] = {"96", "64", "192", "128"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const RunCase run =
            case_with("dgx-b200", "megatron", "date,head_dim", arena_format(&arena, "2025-10,%s", heads[i]));
        cr_expect_float_eq(forward_ramp(&run.request.cluster.accelerator), strcmp(heads[i], "128") == 0 ? 714 : 401,
                           1e-9, "%s", heads[i]);
    }
}

Test(run_labels, models_compiled_as_a_whole_since_october_2023_pad_rows) {
    static const struct {
        const char *values;
        bool pads;
    } cases[] = {{"2024-06-08,compiled,karpathy/build-nanogpt@fb8bd6e:train_gpt2.py", true},
                 {"2023-02-02,compiled,karpathy/nanoGPT@d8abd212:README.md", false},
                 {"2024-06-08,eager,karpathy/build-nanogpt@fb8bd6e:train_gpt2.py", false},
                 {"2024-06-08,compiled,huggingface/accelerate", false},
                 {",compiled,karpathy/nanoGPT@d8abd212:README.md", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const RunCase run = case_with("dgx-a100-80g", "accelerate", "date,fused,source_locator", cases[i].values);
        cr_expect_eq(run.request.target->runtime.pads_rows, cases[i].pads, "%s", cases[i].values);
    }
}

Test(run_labels, fp8_of_one_scale_has_one_layout_on_blackwell_only) {
    cr_expect(case_of("dgx-b200", "megatron", "", "").request.target->runtime.fp8_one_layout);
    cr_expect_not(case_of("dgx-h100", "megatron", "", "").request.target->runtime.fp8_one_layout);
    cr_expect_not(case_of("dgx-b200", "torchtitan", "", "").request.target->runtime.fp8_one_layout,
                  "torchao makes both");
}

// Megatron-LM's own scripts overlap only what they ask for (--overlap-grad-reduce), exports and recipes all.
Test(run_labels, gradients_are_reduced_behind_backward_where_the_row_says_so) {
    cr_expect_eq(case_with("dgx-b200", "megatron", "reduce_overlap", "off").plan.reduce_overlap, REDUCE_OVERLAP_OFF);
    cr_expect_eq(case_with("dgx-b200", "megatron", "reduce_overlap", "").plan.reduce_overlap, REDUCE_OVERLAP_TARGET);
}

// Of megatron, four layers of this model, whose MLP is plain.
static const RunCase *case_of_plain(const char *model, const char *locator) {
    RunCase *run = ARENA_NEW(&arena, RunCase);
    const char *text = arena_format(&arena,
                                    "id,source_locator,model,params_b,layers,hidden,heads,kv_heads,ffn,vocab,mlp,"
                                    "cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,micro_batch,zero\n"
                                    "a,%s,%s,,4,4096,32,32,16384,256000,gelu,dgx-h100,megatron,1,8,1,1,4096,1,1\n",
                                    locator, model);
    *run = text_case(&arena, text);
    cr_assert_null(run->skipped, "%s", run->skipped);
    return run;
}

// arXiv 2402.16819, section 2; rotary_percent 0.5 in NVIDIA/NeMo's nemotron.py: 64 of 128 elements.
Test(run_labels, nemotrons_rotate_half_of_a_head_and_have_biases_in_norms_alone) {
    const ModelSpec *model = &case_of_plain("Nemotron4-15B", "")->request.model;
    cr_expect_eq(model->position, POSITION_ROTARY);
    cr_expect_eq(model->rotary_dims, 64);
    cr_expect_eq(model->norm, NORM_LAYER);
    cr_expect(model->norm_bias);
    cr_expect_not(model->qkv_bias || model->out_bias || model->mlp_bias);
    cr_expect_eq(case_of_plain("GPT3-5B", "")->request.model.position, POSITION_LEARNED);
}

Test(run_labels, squared_relu_is_two_operations_where_nemo_compiles_it_not) {
    static const char v1_23[] = "NVIDIA/NeMo-Framework-Launcher@81b75a7c:examples/README.md",
                      compiled[] = "NVIDIA/NeMo-Framework-Launcher@3499f38e:examples/README.md";
    cr_expect(case_of_plain("Nemotron-8B", v1_23)->request.target->activation_apart);
    cr_expect_not(case_of_plain("GPT3-5B", v1_23)->request.target->activation_apart);
    cr_expect_not(case_of_plain("Nemotron-8B", compiled)->request.target->activation_apart);
}

Test(run_labels, gpt3_of_dgx_cloud_drops) {
    static const char gpt3[] = "NVIDIA/dgxc-benchmarking@8f5cbb3 (tag v25.02):nemo_megatron/",
                      llama[] = "NVIDIA/dgxc-benchmarking@8f5cbb3 (tag v25.02):llama3.1/";
    cr_expect(case_of_plain("GPT3-175B", gpt3)->request.target->halves_drop);
    cr_expect_not(case_of_plain("Llama3-8B", llama)->request.target->halves_drop);
}

static bool upcasts_with(const char *kernels) {
    const char *values = arena_format(&arena, "2024-11,fms-acceleration@876e2ed:refs/a100_80gb.csv,%s", kernels);
    const RunCase run = case_with("dgx-a100-80g", "accelerate", "date,source_locator,compiled_or_fused", values);
    return run.request.target->upcasts_norms;
}

Test(run_labels, norms_beside_packed_weights_are_in_fp32_unless_a_plugin_prepared_them) {
    cr_expect(upcasts_with("baseline-peft-bnb"));
    cr_expect_not(upcasts_with("accelerated-peft-bnb-foak"));
}

// Of fms-acceleration's tables, which say their packages.
Test(run_labels, what_ran_before_transformers_4_48_repeats_mistrals_keys_and_what_ran_it_keeps_logits) {
    static const struct {
        const char *model, *table;
        bool repeats, keeps;
    } cases[] = {{"Mistral-7B", "a100_80gb_liger.csv", true, false},
                 {"Mistral-7B", "a100_80gb.csv", false, true},
                 {"Llama3-8B", "a100_80gb_liger.csv", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunRow row = {.model = cases[i].model,
                            .source_locator = arena_format(&arena, "fms-acceleration@876e2ed:refs/%s", cases[i].table)};
        cr_expect_eq(row_repeats_keys(&row), cases[i].repeats);
        cr_expect_eq(row_keeps_logits(&row), cases[i].keeps);
    }
}

Test(run_labels, liger_0_6_2_to_0_8_2_cast_the_sums_of_their_fused_loss) {
    cr_expect(row_runs_casting_liger(&(RunRow){.software = "trl, transformers v5, Liger 0.8.0"}));
    cr_expect(row_runs_casting_liger(&(RunRow){.software = "Liger 0.6.2"}));
    cr_expect_not(row_runs_casting_liger(&(RunRow){.software = "Liger 0.8.3"}));
    cr_expect_not(row_runs_casting_liger(&(RunRow){.software = "Liger 0.5.10"}));
    cr_expect_not(row_runs_casting_liger(&(RunRow){.software = "PyTorch 2.11"}));
}

Test(run_labels, states_in_bf16_are_cast_for_an_update_before_transformer_engine_2_14) {
    cr_expect(row_casts_states(&(RunRow){.software = "Megatron-LM core_v0.16.1, NGC PyTorch 26.01, TE 2.11"}));
    cr_expect_not(row_casts_states(&(RunRow){.software = "TE 2.14"}));
    cr_expect_not(row_casts_states(&(RunRow){.software = "NeMo 26.06"}));
}

Test(run_labels, fsdp_qlora_prepares_no_norms) {
    const RunCase run = case_with("ws-4x4090", "accelerate", "date,source_locator",
                                  "2024-03,AnswerDotAI/fsdp_qlora@e877dda50:benchmarks_03_2024.md");
    cr_expect_not(run.request.target->upcasts_norms);
}

Test(run_labels, paddles_second_stage_reduces_in_every_backward) {
    RunCase run = case_with("dgx-a100-80g", "megatron", "source_locator", "PaddlePaddle/PaddleNLP@03f3eb2a:llm/docs");
    const Target *target = run.request.target;
    run.plan.zero = target->max_zero;
    run.plan.grad_accum = 8;
    cr_expect_eq(target_plain_sync(&run.plan, target_own_sync(target, &run.plan)), GRAD_SYNC_EACH);
    cr_expect_eq(target_reduce_overlap(target, &run.plan), REDUCE_OVERLAP_OFF);
}

Test(run_labels, atorchs_adapters_cast_nothing) {
    const RunCase run = case_with("dgx-a100-80g", "accelerate", "date,source_locator",
                                  "2023-11,intelligent-machine-learning/dlrover@a73153087:atorch/examples/llama2");
    cr_expect_not(run.request.target->adapters_cast);
}

Test(run_labels, a_course_at_eth_runs_no_layer_of_transformers) {
    const RunCase run = case_with("alps-gh200", "accelerate", "date,source_locator",
                                  "2025-04,Shaswat-G/large-scale-AI-engg@e28b051:assignment_2");
    const TargetRuntime *runtime = &run.request.target->runtime;
    cr_expect(runtime->other_share <= 0 && !runtime->strided_rotary && run.request.target->repeats_keys);
}

Test(run_labels, ciscos_weights_arrive_where_they_are_needed) {
    static const char cisco[] = "mlcommons/training_results_v5.1@441d65f44:Cisco/results/hpf_n8/llama31_8b",
                      hpe[] = "mlcommons/training_results_v5.1@441d65f44:HPE/results/HPE-Cray-XD670/llama31_8b";
    cr_expect_not(case_of_plain("a", cisco)->request.target->runtime.gathers_beside_forward);
    cr_expect(case_of_plain("a", hpe)->request.target->runtime.gathers_beside_forward);
}

#define TESTS "NVIDIA/Megatron-LM@d98e8a64d:tests/functional_tests/test_cases/gpt/gpt3_mcore_"

// Whatever attention they ask for, which of the old version is the default.
Test(run_labels, megatrons_tests_run_its_core) {
    const RunCase local =
        case_of("dgx-a100-80g", "megatron", "2026-08", TESTS "tp1_pp2/golden_values_dev_dgx_a100.json");
    const RunCase engine =
        case_of("dgx-a100-80g", "megatron", "2026-08", TESTS "te_tp1_pp2/golden_values_dev_dgx_a100.json");
    cr_expect_str_eq(local.request.target->version, "core");
    cr_expect_str_eq(engine.request.target->version, "core");
    cr_expect(local.request.target->runtime.torch_linears);
    cr_expect_not(engine.request.target->runtime.torch_linears);
}

Test(run_labels, megatrons_tests_attend_by_separate_operations_where_their_configurations_say_so) {
    static const struct {
        const char *locator;
        bool apart;
    } rows[] = {{TESTS "te_tp1_pp4_vp1/golden_values_dev_dgx_h100.json", true},
                {TESTS "te_tp1_pp4_vp1_resume_torch_dist/golden_values_dev_dgx_h100.json", false},
                {TESTS "te_tp1_pp4_vp1_resume_torch_decoupled_lr/golden_values_lts_dgxa100_dracooci-ord.json", true},
                {TESTS "te_tp2_pp2_cp2_nondeterministic/golden_values_lts_dgxa100_dracooci.json", false},
                {"ours:te_tp1_pp4_vp1/golden_values_lts_dgxa100_dracooci.json", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const RunRow row = {.source_locator = rows[i].locator};
        cr_expect_eq(row_attention(&row, ATTENTION_CUDNN), rows[i].apart ? ATTENTION_EAGER : ATTENTION_CUDNN, "row %zu",
                     i);
    }
}

Test(run_labels, tokens_are_spread_evenly_where_a_row_forces_it_or_says_nothing) {
    static const char *const even[] = {"", "forced", "unknown", "sinkhorn"}, *const learned[] = {"natural",
                                                                                                 "real (C4)"};
    for (size_t i = 0; i < sizeof even / sizeof *even; i++) {
        cr_expect_not(row_router_learns(&(RunRow){.balance = even[i]}), "%s", even[i]);
    }
    for (size_t i = 0; i < sizeof learned / sizeof *learned; i++) {
        cr_expect(row_router_learns(&(RunRow){.balance = learned[i]}), "%s", learned[i]);
    }
}

#define MEGATRON_TESTS "NVIDIA/Megatron-LM@d98e8a64d:tests/functional_tests/test_cases/"

static TargetRuntime runtime_of_test(const char *locator, const char *balance) {
    const RunRow row = {.source_locator = locator, .experts.count = 8, .balance = balance};
    TargetRuntime runtime = {0};
    cr_assert(row_is_of_experts(&row), "%s", locator);
    take_experts_of_test(&row, &runtime);
    return runtime;
}

Test(run_labels, experts_of_megatrons_tests_are_one_by_one_where_they_are_not_grouped) {
    const TargetRuntime one_by_one = runtime_of_test(
        MEGATRON_TESTS "moe/gpt3_mcore_te_tp2_pp1_resume_torch_dist_te_8experts2parallel_dist_optimizer/golden.json",
        "sinkhorn");
    cr_expect(one_by_one.experts_one_by_one && one_by_one.routes_apart);
    cr_expect_eq(one_by_one.sinkhorn_rounds, 3);
    const TargetRuntime grouped = runtime_of_test(
        MEGATRON_TESTS "moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer/golden.json", "aux_loss");
    cr_expect(!grouped.experts_one_by_one && grouped.routes_apart && grouped.balances_nothing);
    cr_expect_eq(grouped.sinkhorn_rounds, 0);
}

// Whatever they say of experts.
Test(run_labels, tests_add_gradients_by_a_launch_but_few) {
    static const struct {
        const char *locator;
        bool adds;
    } cases[] = {{"moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer/golden.json", true},
                 {"moe/deepseek_proxy_fsdp_ep2_fsdp2/golden.json", true},
                 {"gpt/gpt3_mcore_te_tp1_pp4_vp1/golden.json", true},
                 {"moe/gpt3_mcore_te_tp2_pp2_ep4_etp1_memory_speed/golden.json", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *locator = arena_format(&arena, MEGATRON_TESTS "%s", cases[i].locator);
        const RunCase run = case_of("dgx-h100", "megatron", "2026-08-12", locator);
        cr_expect_eq(run.request.target->adds_gradients, cases[i].adds, "%s", locator);
    }
}

Test(run_labels, rows_of_recipes_are_no_tests) {
    const RunRow recipe = {.source_locator = "NVIDIA-NeMo/Megatron-Bridge@4df695c43:docs/performance-summary.md L65",
                           .experts.count = 128};
    cr_expect(!row_is_of_experts(&recipe) && !row_attends_apart(&recipe) && !row_is_hybrid(&recipe));
}

Test(run_labels, attention_of_tests_of_experts_is_unfused_where_they_ask_for_it) {
    static const struct {
        const char *locator;
        int64_t experts;
        bool apart;
    } cases[] = {
        {"moe/gpt3_mcore_te_tp2_pp1_te_8experts2parallel_ddp_average_in_collective/golden_values_dev_dgx_h100.json", 8,
         true},
        {"moe/gpt3_mcore_te_tp2_pp1_resume_torch_dist_te_8experts2parallel_dist_optimizer/golden_values_dev_dgx_a100."
         "json",
         8, false},
        {"moe/gpt3_mcore_te_tp2_pp1_resume_torch_dist_te_8experts2parallel_dist_optimizer/golden_values_lts_dgx_a100."
         "json",
         8, true},
        {"moe/gpt3_mcore_te_tp2_pp2_ep4_etp1_memory_speed/golden_values_dev_dgx_h100.json", 32, true},
        {"moe/deepseek_proxy_fsdp_ep2_fsdp2/golden_values_dev_dgx_gb200.json", 8, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunRow row = {.source_locator = arena_format(&arena, MEGATRON_TESTS "%s", cases[i].locator),
                            .experts.count = cases[i].experts};
        cr_expect_eq(row_attends_apart(&row), cases[i].apart, "%s", cases[i].locator);
    }
}

Test(run_labels, automodels_benchmarks_give_experts_out_in_turn) {
    RunRow row = {.source_locator = "NVIDIA-NeMo/Automodel@055a4deb6: message; examples/llm_benchmark",
                  .balance = "forced"};
    cr_expect(row_gates_in_turn(&row));
    row.balance = "natural";
    cr_expect_not(row_gates_in_turn(&row));
    row = (RunRow){.source_locator = "NVIDIA-NeMo/Megatron-Bridge@91b274390:docs", .balance = "forced"};
    cr_expect_not(row_gates_in_turn(&row));
}

Test(run_labels, tests_of_experts_are_what_their_configurations_say_where_columns_do_not) {
    RunRow row = {.source_locator =
                      MEGATRON_TESTS "moe/gpt3_mcore_te_tp2_pp2_ep4_etp1_mtp_resume_torch_dist_fp8/g.json",
                  .mlp = "gelu",
                  .attention_dropout = ""};
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        row.plan_word[i] = "";
        row.plan_number[i] = RUN_UNKNOWN;
    }
    row.plan_word[PLAN_PRECISION] = "fp8";
    const RunRow *tested = row_as_tested(&row, &arena);
    cr_expect_str_eq(tested->mlp, "swiglu");
    cr_expect_str_eq(tested->plan_word[PLAN_FP8_RECIPE], "tensorwise");
    cr_expect_str_eq(tested->attention_dropout, "0");
    cr_expect(tested->experts.dense_layers == 1 && tested->plan_number[PLAN_MTP] == 1);
    row.plan_word[PLAN_FP8_RECIPE] = "delayed";
    row.experts.dense_layers = 3;
    tested = row_as_tested(&row, &arena);
    cr_expect_str_eq(tested->plan_word[PLAN_FP8_RECIPE], "delayed");
    cr_expect_eq(tested->experts.dense_layers, 3);
    row.source_locator = MEGATRON_TESTS "moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer/golden.json";
    cr_expect_eq(row_as_tested(&row, &arena), &row);
}

Test(run_labels, tests_have_the_layers_that_their_configurations_say) {
    static const struct {
        const char *test;
        NormKind norm;
        PositionKind position;
        QkNorm qk_norm;
        bool biased;
    } cases[] = {
        {"gpt3_mcore_te_tp1_pp4_resume_torch_dist_untied", NORM_LAYER, POSITION_LEARNED, QK_NORM_NONE, true},
        {"gpt3_mcore_te_tp1_pp4_resume_torch_dist_swiglu", NORM_LAYER, POSITION_LEARNED, QK_NORM_NONE, true},
        {"gpt3_mcore_te_tp1_pp2_resume_torch_dist_rope_embeddings", NORM_LAYER, POSITION_ROTARY, QK_NORM_NONE, true},
        {"gpt3_mcore_te_tp1_pp4_resume_torch_dist_disable_bias_linear", NORM_LAYER, POSITION_LEARNED, QK_NORM_NONE,
         false},
        {"gpt3_mcore_te_tp4_pp1_resume_torch_dist_qk_layernorm_test_mode", NORM_LAYER, POSITION_LEARNED, QK_NORM_HEAD,
         true},
        {"gpt3_weekly_mcore_tp4_cp2_current_scaling_native_fp8_tp_sp", NORM_RMS, POSITION_LEARNED, QK_NORM_NONE, true},
        {"gpt3_mcore_te_tp2_pp1_modelopt_distill_resume", NORM_RMS, POSITION_ROTARY, QK_NORM_NONE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunRow row = {.source_locator = arena_format(&arena, MEGATRON_TESTS "gpt/%s/golden.json", cases[i].test)};
        ModelSpec model = {.head_dim = 64};
        model_set_family(&model, strstr(cases[i].test, "swiglu") ? "llama" : "gpt2");
        row_take_structure(&row, &model);
        cr_expect(model.norm == cases[i].norm && model.norm_bias == (model.norm == NORM_LAYER), "%s", cases[i].test);
        cr_expect(model.position == cases[i].position && model.qk_norm == cases[i].qk_norm, "%s", cases[i].test);
        cr_expect(model.mlp_bias == cases[i].biased && model.qkv_bias == cases[i].biased, "%s", cases[i].test);
    }
}

Test(run_labels, instances_of_the_optimizer_are_replicas) {
    const RunRow row = {.source_locator = MEGATRON_TESTS
                        "gpt/gpt3_mcore_te_tp2_pp1_resume_torch_dist_multi_dist_optimizer_instances/golden.json"};
    Mesh mesh = {.size = {[AXIS_DP_REPLICATE] = 1, [AXIS_DP_SHARD] = 4}};
    take_instances(&row, &mesh);
    cr_expect(mesh.size[AXIS_DP_REPLICATE] == 2 && mesh.size[AXIS_DP_SHARD] == 2);
}

Test(run_labels, golden_values_that_github_wrote_are_of_its_runner) {
    static const struct {
        const char *locator, *cluster;
    } cases[] = {
        {"moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer/golden_values_dev_dgx_h100.json", "aws-p5"},
        {"moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer/golden_values_dev_dgx_h100_2nd.json", "dgx-h100"},
        {"moe/gpt3_mcore_te_tp2_pp1_frozen_resume_torch_dist_te_8experts2parallel_dist_optimizer/"
         "golden_values_dev_dgx_h100.json",
         "dgx-h100"},
        {"gpt/gpt3_mcore_te_tp1_pp4_vp1/golden_values_dev_dgx_h100.json", "dgx-h100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunRow row = {.source_locator = arena_format(&arena, MEGATRON_TESTS "%s", cases[i].locator),
                            .cluster = "dgx-h100"};
        cr_expect_str_eq(row_machine(&row), cases[i].cluster, "%s", cases[i].locator);
    }
}

Test(run_labels, runs_of_hugging_face_are_of_its_cluster_and_no_others) {
    static const struct {
        const char *source, *locator, *cluster, *machine;
    } cases[] = {
        {"mine", "vinjn/nanotron-ultrascale-playbook@924e4d0b8:assets/data/benchmarks/banner.html", "aws-p5", "hf-p5"},
        {"HF Ultra-Scale Playbook benchmark sweep", "", "aws-p5", "hf-p5"},
        {"mine", "Smol Training Playbook, Our baseline 1B config", "aws-p5", "hf-p5"},
        {"mine", "huggingface/smollm@a1:text/pretraining/smollm3/stage1.yaml", "aws-p5", "hf-p5"},
        {"HF Ultra-Scale Playbook benchmark sweep", "", "dgx-h100", "dgx-h100"},
        {"mine", "huggingface/nanotron 0.4, our nodes", "aws-p5", "aws-p5"},
        {NULL, NULL, "aws-p5", "aws-p5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunRow row = {.source = cases[i].source,
                            .source_locator = cases[i].locator,
                            .target = "nanotron",
                            .cluster = cases[i].cluster};
        cr_expect_str_eq(row_machine(&row), cases[i].machine, "%zu", i);
    }
}

Test(run_labels, tests_of_one_node_of_four_read_from_the_drive_of_the_day) {
    static const struct {
        const char *locator, *drive;
    } cases[] = {
        {"gpt/gpt3_mcore_te_tp1_pp4_vp1_1node/golden.json",
         "node.sequence_read_s=0.056;node.sequence_read_spread=0.92"},
        {"moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_muon_1node/golden.json",
         "node.sequence_read_s=0.107;node.sequence_read_spread=0.92"},
        {"gpt/gpt3_mcore_te_tp1_pp4_vp1/golden.json", ""},
        {"moe/deepseek_proxy_fsdp_ep2_fsdp2_1node/golden.json", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunRow row = {.source_locator = arena_format(&arena, MEGATRON_TESTS "%s", cases[i].locator)};
        cr_expect_str_eq(row_drive(&row), cases[i].drive, "%s", cases[i].locator);
    }
}

Test(run_labels, tests_without_deterministic_mode_fill_nothing) {
    static const struct {
        const char *locator;
        bool deterministic;
    } cases[] = {
        {MEGATRON_TESTS "moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer/golden.json", true},
        {MEGATRON_TESTS "gpt/gpt3_mcore_te_tp2_pp2_resume_torch_dist/golden.json", true},
        {MEGATRON_TESTS "moe/gpt3_mcore_cp2_pp2_ep2_te_4experts2parallel_nondeterministic/golden.json", false},
        {MEGATRON_TESTS "gpt/gpt3_mcore_te_tp2_pp2_cp2_calculate_per_token_loss/golden.json", false},
        {"NVIDIA-NeMo/Megatron-Bridge@4df695c43:docs/performance-summary.md L65", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunRow row = {.source_locator = cases[i].locator, .cublas_workspaces = ":4096:8"};
        cr_expect_eq(row_is_deterministic(&row), cases[i].deterministic, "%s", cases[i].locator);
    }
}

Test(run_labels, moonlights_recipe_fuses_no_router_and_collects_garbage) {
    const char *of = "NVIDIA-NeMo/Megatron-Bridge@067f987df:skills/a";
    const RunCase moonlight =
        case_of("dgx-h100", "megatron", "2026-08-12", arena_format(&arena, "%s [Moonlight none]", of));
    const RunCase other = case_of("dgx-h100", "megatron", "2026-08-12", arena_format(&arena, "%s [Qwen]", of));
    const TargetRuntime *own = &moonlight.request.target->runtime, *usual = &other.request.target->runtime;
    cr_expect(own->router_rope_apart && !usual->router_rope_apart);
    cr_expect_float_eq(own->step_fixed_s - usual->step_fixed_s, 0.242 / 5, 1e-9);
}

Test(run_labels, recipes_of_aws_dispatchers_fuse_neither_router_nor_positions) {
    const RunRow of_dispatchers = {.source_locator =
                                       "awslabs/awsome-distributed-ai@95b939cdc:dsv3/benchmarks/RESULTS.md"};
    const RunRow other = {.source_locator = "awslabs/awsome-distributed-ai@95b939cdc:dsv3/README.md"};
    cr_expect(row_fuses_no_choice(&of_dispatchers));
    cr_expect_not(row_fuses_no_choice(&other));
}

#define MLPERF_6 "Richardyu114/training_results_v6.0@eabf23a07:NVIDIA/results/"

// Of the submitters' configuration files: FP8_OUTPUT_PROJ, and FUSED_QKV_ROPE beside position_embedding_type rope.
Test(run_labels, submissions_of_mlperf_6_have_the_head_and_positions_of_their_files) {
    static const char deepseek[] = MLPERF_6 "theia_ngpu256_ngc26.04_nemo/deepseekv3_671b",
                      llama[] = MLPERF_6 "theia_ngpu72_ngc26.04_nemo/llama31_8b";
    cr_expect(row_has_fp8_head(&(RunRow){.source_locator = deepseek, .cluster = "gb300-nvl72"}));
    cr_expect_not(row_has_fp8_head(&(RunRow){.source_locator = deepseek, .cluster = "gb200-nvl72"}));
    cr_expect_not(row_has_fp8_head(&(RunRow){.source_locator = llama, .cluster = "gb300-nvl72"}));
    static const char row[] =
        "id,model,params_b,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,mlp,experts,topk,moe_ffn,attention_type,"
        "cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,micro_batch,zero,attention,qkv_rope\n"
        "a,gpt-oss-20b,,24,2880,64,8,64,2880,128256,swiglu,32,4,2880,gqa+sliding128/2,gb300-nvl72,megatron,1,16,1,1,"
        "8192,1,1,cudnn,%s\n";
    const RunCase turned = text_case(&arena, arena_format(&arena, row, "1"));
    cr_expect_null(turned.skipped, "%s", turned.skipped);
    cr_expect_eq(turned.request.model.yarn.factor, 0);
    cr_expect(text_case(&arena, arena_format(&arena, row, "")).request.model.yarn.factor > 0);
}

Test(run_labels, inputs_are_gathered_again_where_a_column_says_so_and_not_because_collectives_are_checked) {
    cr_expect(case_with("dgx-h100", "nanotron", "gathers_again", "1").request.target->tp_regathers);
    cr_expect_not(case_with("dgx-h100", "nanotron", "checked_collectives", "1").request.target->tp_regathers);
}

Test(run_labels, columns_and_dates_say_that_nothing_is_fused_on_the_way_to_experts_and_in_what_results_are_summed) {
    const TargetRuntime apart = case_with("dgx-h100", "megatron", "routes_apart", "1").request.target->runtime;
    const TargetRuntime whole = case_with("dgx-h100", "megatron", "router_fp32", "1").request.target->runtime;
    cr_expect(apart.routes_apart && !apart.routes_in_fp32);
    static const char columns[] = "date,experts,topk,moe_ffn";
    cr_expect(case_with("dgx-h100", "megatron", columns, "2025-01,8,2,1024").request.target->runtime.routes_apart);
    cr_expect_not(case_with("dgx-h100", "megatron", columns, "2025-05,8,2,1024").request.target->runtime.routes_apart);
    cr_expect(whole.routes_in_fp32 && !whole.routes_apart);
    const Target *unfused = case_with("dgx-h100", "megatron", "activation_apart", "1").request.target;
    cr_expect(unfused->activation_apart && unfused->gate_kept);
}

Test(run_labels, torchtitan_scatters_rows_of_experts_until_it_picks_them_by_an_index) {
    static const char columns[] = "date,experts,topk,moe_ffn";
    const RunCase gathered = case_with("dgx-h100", "torchtitan", columns, "2025-10-02,8,2,1024");
    const RunCase indexed = case_with("dgx-h100", "torchtitan", columns, "2025-12-17,8,2,1024");
    cr_expect(gathered.request.target->runtime.scatters_rows);
    cr_expect_not(indexed.request.target->runtime.scatters_rows);
}
