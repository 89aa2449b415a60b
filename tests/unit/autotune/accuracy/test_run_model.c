// The model of a row that lacks sizes: the preset that it names, or none.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(run_model, .fini = forget);

#define SIZES "mlp,params_b,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,experts,topk,moe_ffn,attention_type"

static RunCase case_with(const char *model, const char *sizes) {
    return text_case(&arena, arena_format(&arena,
                                          "id,cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,micro_batch,"
                                          "model," SIZES "\na,dgx-h100,torchtitan,1,8,1,1,2048,1,%s,%s\n",
                                          model, sizes));
}

static int64_t parameters_with(const char *model, const char *sizes) {
    const RunCase run = case_with(model, sizes);
    cr_assert_null(run.skipped, "%s: %s", model, run.skipped);
    return model_parameters(&run.request.model);
}

static void expect_left_out(const char *model, const char *sizes, const char *why) {
    const RunCase run = case_with(model, sizes);
    cr_expect(run.skipped && strstr(run.skipped, why), "%s %s: %s", model, sizes, run.skipped ? run.skipped : "");
}

// Its experts, heads and MLP too, which no given size is about.
Test(run_model, a_row_that_lacks_a_size_is_the_preset_that_it_names_whole) {
    static const struct {
        const char *model, *sizes;
    } rows[] = {{"llama-3-8b", ",,32,4096,,,,14336,,,,,"},
                {"qwen3-30b-a3b", ",,48,2048,32,,,,151936,,,,"},
                {"qwen3-30b-a3b", "swiglu,30.5,48,2048,32,4,128,,,128,8,768,"},
                {"mistral-nemo-12b", ",,40,5120,,8,,14336,131072,,,,"},
                {"qwen3-32b", ",,64,5120,,,,25600,151936,,,,"},
                {"gemma-7b", ",,28,3072,16,,,,256000,,,,"},
                {"gpt3-13b", ",,40,5120,40,,,,,,,,"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ModelSpec preset;
        Error error = {0};
        cr_assert_eq(model_find(rows[i].model, &arena, &preset, &error), STATUS_OK, "%s", error.message);
        const RunCase row = case_with(rows[i].model, rows[i].sizes), whole = case_with(rows[i].model, ",,,,,,,,,,,,");
        cr_assert_null(row.skipped, "%s: %s", rows[i].model, row.skipped);
        cr_expect_eq(memcmp(&row.request.model, &whole.request.model, sizeof preset), 0, "%s", rows[i].model);
        cr_expect_eq(model_parameters(&row.request.model), model_parameters(&preset), "%s", rows[i].model);
    }
}

Test(run_model, its_vocabulary_is_the_rows_padded_or_not) {
    const int64_t more =
        parameters_with("llama-3-8b", ",,32,4096,,,,,128512,,,,") - parameters_with("llama-3-8b", ",,32,4096,,,,,,,,,");
    cr_expect_eq(more, 2 * 256 * 4096);
}

Test(run_model, a_row_that_contradicts_its_preset_in_a_size_is_left_out) {
    expect_left_out("llama-3-8b", ",,16,4096,,,,14336,,,,,", "layers is 16 where that of llama-3-8b is 32");
    expect_left_out("llama-3-8b", ",,32,4096,,32,,14336,,,,,", "kv_heads is 32 where that of llama-3-8b is 8");
    expect_left_out("mistral-nemo-12b", ",,40,5120,,,160,14336,,,,,", "head_dim is 160 where");
    expect_left_out("llama-3-8b", ",,32,4096,,,,14336,,8,2,,", "experts is 8 where that of llama-3-8b is 0");
    expect_left_out("llama-3-8b", "gelu,,32,4096,,,,14336,,,,,", "mlp \"gelu\" is not that of llama-3-8b");
    expect_left_out("llama-3-8b", ",,32,4096,,,,14336,,,,,mla", "llama-3-8b has no latent attention");
    expect_left_out("llama-3-8b", ",70,32,4096,,,,14336,,,,,", "params_b says 70.0 B");
}

Test(run_model, sizes_of_what_is_no_preset_are_needed) {
    expect_left_out("mine", ",,32,4096,,,,14336,,,,,",
                    "of layers, hidden, heads, ffn and vocab some are empty, and \"mine\" is no preset");
    expect_left_out("mine", ",,,,,,,,,,,,", "layers, hidden, heads, ffn and vocab are empty, and \"mine\"");
}
