// Words of sources in run files: what they stand for, and what empty columns follow from.

#include <criterion/criterion.h>

#include "autotune/accuracy/run_words.h"
#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(run_words, .fini = forget);

typedef struct Said {
    const char *column, *said, *means;
} Said;

Test(run_words, spellings_of_sources_are_the_words_of_the_columns) {
    static const Said cases[] = {
        {"recompute", "Full", "full"},
        {"recompute", "selective_op", "selective"},
        {"dtype", "BF16", "bf16"},
        {"dtype", "bf16-mixed", "bf16"},
        {"dtype", "MXFP8", "fp8"},
        {"fp8_recipe", "float8_current", "tensorwise"},
        {"fp8_recipe", "rowwise-bf16", "rowwise-bf16"},
        {"attention", "FlashAttention-2", "flash"},
        {"attention", "flash3", "flash3"},
        {"attention", "TE cuDNN", "cudnn"},
        {"fused", "torch.compile", "compiled"},
        {"mlp", "SwiGLU", "swiglu"},
        {"zero", "ZeRO-2", "2"},
        {"zero", "3.0", "3.0"},
        {"sp", "True", "1"},
        {"seq_len", "4096 packed", "4096"},
        {"target", "DeepSpeed", "deepspeed"},
        {"target", "Megatron-LM@2022", "megatron@2022"},
        {"cp_algo", "p2p", "ring"},
        {"cp_algo", "all_gather", "allgather"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(run_word(cases[i].column, cases[i].said, &arena), cases[i].means, "%s", cases[i].said);
    }
}

Test(run_words, what_nobody_knows_stays_and_leaves_its_row_out) {
    static const Said cases[] = {
        {"recompute", "True", "True"},     {"dtype", "tf32", "tf32"}, {"attention", "xformers", "xformers"},
        {"target", "FSDP", "FSDP"},        {"seq_len", "2k", "2k"},   {"zero", "zero3 offload", "zero3 offload"},
        {"cp_algo", "a2a+p2p", "a2a+p2p"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(run_word(cases[i].column, cases[i].said, &arena), cases[i].means, "%s", cases[i].said);
    }
}

Test(run_words, an_empty_column_follows_from_what_its_source_says) {
    static const Said cases[] = {
        {"zero", "ddp+distributed optimizer", "1"},
        {"zero", "fsdp2(zero3)", "3"},
        {"zero", "ddp (zero stage not stated)", "0"},
        {"zero", "TP + SP", ""},
        {"zero", "zero3 offload", "zero3 offload"},
        {"recompute", "selective: mlp (config match)", "selective"},
        {"recompute", "best found", "best found"},
        {"dtype", "fp8 e4m3 matmul, bf16 weights", "fp8"},
        {"fp8_recipe", "NVFP4", "nvfp4"},
        {"fp8_recipe", "bf16", ""},
        {"sp", "TE, sequence parallel", "1"},
        {"sp", "compiled", ""},
        {"target", "torchtitan commit/PR log", "torchtitan"},
        {"target", "somebody's blog", ""},
        {"target", "NVIDIA NeMo docs", "megatron"},
        {"target", "NVIDIA docs", "megatron"},
        {"target", "NVIDIA NeMo Automodel docs", "automodel"},
        {"target", "IBM fms-acceleration", "accelerate"},
        {"target", "LitGPT", "fsdp1"},
        {"target", "HF PEFT", "accelerate"},
        {"target", "HF Trainer log", "accelerate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(run_word_from(cases[i].column, cases[i].said, &arena), cases[i].means, "%s", cases[i].said);
    }
}

Test(run_words, a_source_that_names_no_framework_or_several_says_no_target) {
    static const char *const sources[] = {"How to accelerate training", "torchtitan and DeepSpeed",
                                          "NVIDIA JAX-Toolbox Paxml results", "what no NVIDIA GPU does"};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        cr_expect_str_empty(run_word_from("target", sources[i], &arena), "%s", sources[i]);
    }
}

Test(run_words, what_a_text_denies_is_not_read) {
    static const Said cases[] = {
        {"fused", "without compile", "without compile"},
        {"fused", "not compiled", "not compiled"},
        {"fused", "eager, no torch.compile", "eager, no torch.compile"},
        {"attention", "no flash", "no flash"},
        {"attention", "without flash attention", "without flash attention"},
        {"dtype", "bf16 (no fp8)", "bf16 (no fp8)"},
        {"mlp", "non-gated GELU", "non-gated GELU"},
        {"mlp", "un-gated relu", "un-gated relu"},
        {"recompute", "not selective", "not selective"},
        {"fused", "uncompiled", "uncompiled"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(run_word(cases[i].column, cases[i].said, &arena), cases[i].means, "%s", cases[i].said);
    }
}

Test(run_words, what_another_column_denies_leaves_the_row_out) {
    static const Said cases[] = {
        {"dtype", "bf16, fp8 off", "bf16, fp8 off"},
        {"dtype", "bf16 no fp8", "bf16 no fp8"},
        {"dtype", "bf16 (fp8 KV)", "bf16 (fp8 KV)"},
        {"recompute", "no full recompute", "no full recompute"},
        {"zero", "ddp, no fsdp", "ddp, no fsdp"},
        {"zero", "ddp, no distributed optimizer", "ddp, no distributed optimizer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(run_word_from(cases[i].column, cases[i].said, &arena), cases[i].means, "%s", cases[i].said);
    }
}

Test(run_words, a_denial_that_a_row_names_is_read) {
    static const Said cases[] = {
        {"sp", "TE, sequence parallel off", "0"},
        {"sp", "TE, without sequence parallel", "0"},
        {"zero", "NO_SHARD", "0"},
        {"attention", "unfused", "eager"},
        {"mlp", "ungated relu", "gelu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bool other = run_word_source(cases[i].column, 0) != NULL;
        cr_expect_str_eq((other ? run_word_from : run_word)(cases[i].column, cases[i].said, &arena), cases[i].means,
                         "%s", cases[i].said);
    }
}

Test(run_words, flash_attention_3_is_known_by_every_spelling_and_4_by_none) {
    static const Said cases[] = {
        {"attention", "Flash Attention 3", "flash3"}, {"attention", "flash_attention_3", "flash3"},
        {"attention", "FlashAttention v3", "flash3"}, {"attention", "kernels-community/flash-attn3", "flash3"},
        {"attention", "flash-attn 2.5", "flash"},     {"attention", "FlashAttention-4", "FlashAttention-4"},
        {"attention", "sdpa (math)", "eager"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(run_word(cases[i].column, cases[i].said, &arena), cases[i].means, "%s", cases[i].said);
    }
}

Test(run_words, another_column_of_the_same_subject_has_the_columns_own_words) {
    static const Said cases[] = {
        {"attention", "eager", "eager"},
        {"attention", "eager attention", "eager"},
        {"attention", "TE", "cudnn"},
        {"attention", "xformers", "xformers"},
        {"attention", "naive", "naive"},
        {"dtype", "float32", "fp32"},
        {"sp", "no", ""},
        {"sp", "yes", ""},
        {"sp", "True", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(run_word_from(cases[i].column, cases[i].said, &arena), cases[i].means, "%s", cases[i].said);
    }
}

Test(run_words, sharding_is_read_in_every_spelling_of_its_stages) {
    static const Said cases[] = {
        {"zero", "fsdp SHARD_GRAD_OP", "2"},
        {"zero", "zero_2", "2"},
        {"zero", "stage2", "2"},
        {"zero", "zero_stage: 2", "2"},
        {"zero", "_HYBRID_SHARD_ZERO2", "2"},
        {"zero", "none (zero0), TP=32", "0"},
        {"zero", "zero-infinity", "zero-infinity"},
        {"zero", "weights sharded", "weights sharded"},
        {"zero", "deepspeed (stage not stated)", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(run_word_from(cases[i].column, cases[i].said, &arena), cases[i].means, "%s", cases[i].said);
    }
}

Test(run_words, a_chip_is_its_usual_node_by_its_memory) {
    cr_expect_str_eq(run_word_cluster("A100", "40", true, &arena), "dgx-a100-40g");
    cr_expect_str_eq(run_word_cluster("A100", "40", false, &arena), "dgx-a100-40g");
    cr_expect_str_eq(run_word_cluster("A100", "80", false, &arena), "A100", "known by that name too");
    cr_expect_str_eq(run_word_cluster("A100", "", true, &arena), "dgx-a100-80g");
    cr_expect_str_eq(run_word_cluster("H100", "96", true, &arena), "meta-h100-96g");
    cr_expect_str_eq(run_word_cluster("GB200", "184.3", true, &arena), "gb200-nvl72");
    cr_expect_str_eq(run_word_cluster("MI210", "64", true, &arena), "MI210");
}

Test(run_words, a_row_without_cluster_target_zero_and_dtype_takes_them_from_its_source) {
    const RunFile file = run_file_of(
        &arena,
        "id,source,gpu,gpu_mem_gb,gpus_per_node,sharding,precision,act_ckpt,model,layers,hidden,heads,ffn,"
        "vocab,dp_replicate,dp_shard,cp,tp,seq_len,micro_batch\n"
        "a,torchtitan log,NVIDIA H100 SXM,80,4,fsdp2(zero3),MXFP8,full,m,32,4096,32,11008,32000,1,4,1,1,2048,1\n");
    const RunRow *row = &file.rows[0];
    cr_expect_str_eq(row->cluster, "dgx-h100");
    cr_expect_str_eq(row->target, "torchtitan");
    cr_expect_eq(row->gpus_per_node, 4);
    cr_expect_eq(row->plan_number[PLAN_ZERO], 3);
    cr_expect_str_eq(row->plan_word[PLAN_PRECISION], "fp8");
    cr_expect_str_eq(row->plan_word[PLAN_FP8_RECIPE], "mxfp8");
    cr_expect_str_eq(row->plan_word[PLAN_RECOMPUTE], "full");
}

Test(run_words, the_fp8_recipe_follows_from_the_dtypes_own_text_before_the_precisions) {
    const RunFile file = run_file_of(
        &arena,
        "id,source,gpu,gpu_mem_gb,sharding,dtype,precision,act_ckpt,model,layers,hidden,heads,ffn,vocab,dp_replicate,"
        "dp_shard,cp,tp,seq_len,micro_batch\n"
        "a,torchtitan log,B200,180,fsdp2(zero3),MXFP8,bf16,full,m,32,4096,32,11008,32000,1,4,1,1,2048,1\n"
        "b,torchtitan log,B200,180,fsdp2(zero3),nvfp4,float8 rowwise,full,m,32,4096,32,11008,32000,1,4,1,1,2048,1\n"
        "c,torchtitan log,B200,180,fsdp2(zero3),fp8,float8 rowwise,full,m,32,4096,32,11008,32000,1,4,1,1,2048,1\n");
    static const char *const recipes[] = {"mxfp8", "nvfp4", "rowwise"};
    for (int i = 0; i < 3; i++) {
        cr_expect_str_eq(file.rows[i].plan_word[PLAN_PRECISION], "fp8");
        cr_expect_str_eq(file.rows[i].plan_word[PLAN_FP8_RECIPE], recipes[i]);
    }
}

Test(run_words, a_row_without_a_target_is_left_out_with_its_source) {
    const RunCase row = text_case(
        &arena, "id,source,gpu,gpu_mem_gb,sharding,precision,act_ckpt,model,layers,hidden,heads,ffn,vocab,dp_replicate,"
                "dp_shard,"
                "cp,tp,seq_len,micro_batch\n"
                "a,How to accelerate training,H100,80,fsdp2,bf16,full,m,32,4096,32,11008,32000,1,4,1,1,2048,1\n");
    cr_expect_str_eq(row.skipped, "no target is stated, and its source \"How to accelerate training\" names none");
}
