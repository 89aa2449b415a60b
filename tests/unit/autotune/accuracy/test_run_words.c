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
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(run_word(cases[i].column, cases[i].said, &arena), cases[i].means, "%s", cases[i].said);
    }
}

Test(run_words, what_nobody_knows_stays_and_leaves_its_row_out) {
    static const Said cases[] = {
        {"recompute", "True", "True"}, {"dtype", "tf32", "tf32"}, {"attention", "xformers", "xformers"},
        {"target", "FSDP", "FSDP"},    {"seq_len", "2k", "2k"},   {"zero", "zero3 offload", "zero3 offload"},
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
