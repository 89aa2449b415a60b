// Which version of a framework a row ran, and latent attention that no preset is like.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/accuracy/run_case.h"
#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(run_target, .fini = forget);

static const char test_locator[] = "NVIDIA/Megatron-LM@d98e8a64d:tests/functional_tests/test_cases/";

// Of Megatron without a version, on 8 ranks.
static RunCase case_of(const char *columns, const char *values) {
    return text_case(&arena, arena_format(&arena,
                                          "id,date,model,layers,hidden,heads,ffn,vocab,mlp,cluster,target,dp_replicate,"
                                          "dp_shard,cp,tp,seq_len,micro_batch,%s\n"
                                          "a,2026-08,m,8,512,8,2048,50304,gelu,dgx-h100,megatron,1,8,1,1,1024,1,%s\n",
                                          columns, values));
}

static const char *version_of(const char *columns, const char *values) {
    const RunCase run = case_of(columns, values);
    cr_assert_null(run.skipped, "%s", run.skipped);
    return run.request.target->version;
}

// Its attention alone is that of the version of 2022, which has no ep.
Test(run_target, a_row_with_ranks_of_experts_is_of_a_version_that_has_them) {
    cr_expect_str_eq(version_of("attention,zero", "eager,0"), "2022");
    cr_expect_str_eq(version_of("attention,zero,experts,topk,moe_ffn,ep", "eager,0,8,2,1024,2"), "core");
    cr_expect_str_eq(version_of("attention,zero,kv_lora,head_dim,qk_rope_head_dim,v_head_dim", "eager,0,64,24,8,16"),
                     "core");
}

static const char *version_that_shards(int zero, const char *locator) {
    return version_of("attention,zero,source_locator", arena_format(&arena, "cudnn,%d,%s", zero, locator));
}

Test(run_target, a_row_of_its_own_code_that_shards_all_it_has_is_of_a_version_that_does) {
    cr_expect_str_eq(version_that_shards(1, test_locator), "core");
    cr_expect_str_eq(version_that_shards(3, test_locator), "fsdp");
    const RunCase other = case_of("attention,zero,source_locator", "cudnn,3,FlagOpen/FlagPerf@1b5a03039:README.md");
    cr_expect_not_null(other.skipped);
}

Test(run_target, a_version_that_the_row_names_is_taken_whatever_it_lacks) {
    const char *text = "id,model,cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,micro_batch,zero\n"
                       "a,llama-3-8b,dgx-h100,megatron@core,1,8,1,1,1024,1,3\n";
    const RunCase run = text_case(&arena, text);
    cr_assert_not_null(run.skipped);
    cr_expect_not_null(strstr(run.skipped, "zero=3 does not exist"), "%s", run.skipped);
}

static LatentAttention latent_of(const char *columns, const char *values, int *head_dim) {
    const RunCase run = case_of(columns, values);
    cr_assert_null(run.skipped, "%s", run.skipped);
    *head_dim = run.request.model.head_dim;
    return run.request.model.latent;
}

Test(run_target, heads_of_latent_attention_are_as_columns_say) {
    int head_dim = 0;
    const LatentAttention latent =
        latent_of("q_lora,kv_lora,head_dim,qk_rope_head_dim,v_head_dim", "192,64,24,8,16", &head_dim);
    cr_expect_eq(latent.q_rank, 192);
    cr_expect_eq(latent.kv_rank, 64);
    cr_expect_eq(latent.rope, 8);
    cr_expect_eq(latent.value, 16);
    cr_expect_eq(head_dim, 24);
}

Test(run_target, heads_that_no_column_says_are_those_of_the_test_that_is_cited) {
    static const struct {
        const char *test;
        int rope, value, head_dim;
    } cases[] = {{"gpt/gpt3_mcore_te_tp2_pp2_mla/golden.json", 8, 16, 24}, {"moe/a/golden.json", 64, 128, 192}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int head_dim = 0;
        const LatentAttention latent =
            latent_of("q_lora,kv_lora,source_locator", arena_format(&arena, "192,64,%s%s", test_locator, cases[i].test),
                      &head_dim);
        cr_expect_eq(latent.rope, cases[i].rope, "%s", cases[i].test);
        cr_expect_eq(latent.value, cases[i].value, "%s", cases[i].test);
        cr_expect_eq(head_dim, cases[i].head_dim, "%s", cases[i].test);
    }
}

static DropoutUse dropout_of(const char *column) {
    return case_of("attention_dropout", column).request.target->attention_dropout;
}

Test(run_target, attention_that_drops_no_scores_is_said_by_a_column) {
    cr_expect_eq(dropout_of("0"), DROPOUT_NONE);
    cr_expect_eq(dropout_of("0.1"), DROPOUT_UNSAID);
    cr_expect_eq(dropout_of(""), DROPOUT_UNSAID);
}
