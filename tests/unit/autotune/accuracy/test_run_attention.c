// The attention of a row's date and code: its kernel, and the documents that its mask knows.

#include <criterion/criterion.h>

#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(run_attention, .fini = forget);

static TrainPlan plan_of(const char *text) {
    const RunCase run = text_case(&arena, text);
    cr_assert_null(run.skipped, "%s", run.skipped);
    return run.plan;
}

static TrainPlan plan_by(const char *software, const char *target, const char *cluster, const char *date) {
    const char *text = arena_format(&arena,
                                    "id,date,software,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,"
                                    "dp_shard,cp,tp,seq_len,micro_batch,attention\n"
                                    "a,%s,%s,m,32,4096,32,11008,32000,%s,%s,1,8,1,1,4096,1,flash\n",
                                    date, software, cluster, target);
    return plan_of(text);
}

Test(run_attention, sdpa_of_torchtitan_is_cudnns_on_hopper_and_then_documents_are_masked_since_its_code_says_so) {
    static const struct {
        const char *software, *target, *cluster, *date;
        AttentionKernel kernel;
        int pack;
    } rows[] = {{"", "torchtitan", "dgx-h100", "2025-10-09", ATTENTION_CUDNN, 0},
                {"", "torchtitan", "dgx-h100", "2025-10-08", ATTENTION_FLASH, 0},
                {"", "torchtitan", "dgx-a100-80g", "2026-01-01", ATTENTION_FLASH, 0},
                {"", "torchtitan", "dgx-h100", "2026-06-08", ATTENTION_CUDNN, 0},
                {"torchtitan 0.3", "torchtitan", "dgx-h100", "2026-06-09", ATTENTION_FLASH, 427},
                {"ezpz", "torchtitan", "dgx-h100", "2026-06-09", ATTENTION_CUDNN, 0},
                {"", "fsdp1", "dgx-h100", "2026-06-09", ATTENTION_FLASH, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const TrainPlan plan = plan_by(rows[i].software, rows[i].target, rows[i].cluster, rows[i].date);
        cr_expect(plan.attention == rows[i].kernel && plan.pack == rows[i].pack, "%zu", i);
    }
}

Test(run_attention, documents_of_a_mask_are_the_columns_and_none_is_sdpas) {
    const TrainPlan plan = plan_of("id,date,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,"
                                   "cp,tp,seq_len,micro_batch,attention,pack\n"
                                   "a,2026-05,m,32,4096,32,11008,32000,dgx-h100,torchtitan,1,8,1,1,4096,1,flash,427\n");
    cr_expect(plan.pack == 427 && plan.attention == ATTENTION_FLASH);
}
