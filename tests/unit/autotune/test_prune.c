// The rules and their messages.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/search/prune.h"
#include "autotune/search/space.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;
static TrainPlan plan;

static void begin(void) {
    arena = (Arena){0};
    request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    memset(&plan, 0, sizeof plan);
    plan = (TrainPlan){.mesh = {SIZES(1, 8, 1, 1)},
                       .seq = 4096,
                       .micro_batch = 1,
                       .grad_accum = 1,
                       .zero = 3,
                       .precision = DTYPE_BF16};
    plan_canonical(&plan);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(prune, .init = begin, .fini = end);

static const char *rule_name(const MemoryBreakdown *memory, const char **reason) {
    const PruneRule *rule = prune(&request, &plan, memory, &arena, reason);
    return rule ? rule->name : "passes";
}

Test(prune, a_legal_plan_passes) {
    const char *reason = NULL;
    cr_assert_str_eq(rule_name(NULL, &reason), "passes");
    cr_assert_null(reason);
}

Test(prune, max_tp_names_both_numbers) {
    const char *reason = NULL;
    plan.mesh = (Mesh){.size = SIZES(1, 2, 1, 4)};
    request.max_tp = 2;
    cr_assert_str_eq(rule_name(NULL, &reason), "max-tp");
    cr_assert_str_eq(reason, "tp=4 is over --max-tp 2");
}

Test(prune, an_illegal_plan_gets_the_reason_of_the_target) {
    const char *reason = NULL;
    plan.mesh = (Mesh){.size = SIZES(1, 1, 1, 64)};  // 64 tensor ranks for 32 heads
    plan.zero = 0;
    cr_assert_str_eq(rule_name(NULL, &reason), "legality");
    cr_assert_not_null(strstr(reason, "tp=64"));
}

// Hopper's tensor cores have neither scales of 32 elements nor 4 bits.
Test(prune, a_recipe_of_fp8_is_legal_where_the_chip_has_its_products) {
    static const struct {
        const char *cluster;
        Fp8Recipe recipe;
        bool legal;
    } cases[] = {{"dgx-h100", FP8_BLOCK, true},   {"dgx-h100", FP8_MX, false},     {"dgx-h100", FP8_NVFP4, false},
                 {"dgx-b200", FP8_NVFP4, true},   {"dgx-b200", FP8_MX, true},      {"dgx-a100-80g", FP8_BLOCK, false},
                 {"pcie-5090-8x", FP8_MX, false}, {"gb300-nvl72", FP8_NVFP4, true}};
    Error error = {0};
    cr_assert_eq(target_find("megatron", &request.target, &error), STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reason = NULL;
        cr_assert_eq(cluster_find(cases[i].cluster, &arena, &request.cluster, &error), STATUS_OK);
        plan.precision = DTYPE_FP8;
        plan.fp8_recipe = cases[i].recipe;
        plan.zero = 1;
        cr_assert_str_eq(rule_name(NULL, &reason), cases[i].legal ? "passes" : "legality", "%s %s: %s",
                         cases[i].cluster, fp8_recipe_names[cases[i].recipe], reason ? reason : "");
        cr_assert(cases[i].legal || strstr(reason, fp8_recipe_names[cases[i].recipe]));
    }
}

Test(prune, a_batch_that_cannot_be_made_names_the_nearest_that_can) {
    const char *reason = NULL;
    request.global_batch = 12;
    cr_assert_str_eq(rule_name(NULL, &reason), "batch");
    cr_assert_str_eq(reason,
                     "a global batch of 12 sequences is not a multiple of dp_replicate x dp_shard = 8; the nearest it "
                     "could do is 8");
}

Test(prune, memory_names_the_buffer_and_what_is_missing) {
    const char *reason = NULL;
    request.memory_limit_bytes = 80 * 0x1p30;
    const MemoryBreakdown memory = {
        .reserved_bytes = 90 * 0x1p30, .peak_phase = "loss", .top_name = "logits", .top_bytes = 0x1p30};
    cr_assert_str_eq(rule_name(&memory, &reason), "memory");
    cr_assert_not_null(strstr(reason, "by 10.0 GiB"), "%s", reason);
    cr_assert_not_null(strstr(reason, "logits with 1.00 GiB"), "%s", reason);
}

Test(prune, exactly_the_limit_fits) {
    const char *reason = NULL;
    request.memory_limit_bytes = 80e9;
    const MemoryBreakdown memory = {.reserved_bytes = 80e9, .peak_phase = "loss", .top_name = "logits"};
    cr_assert_str_eq(rule_name(&memory, &reason), "passes");
}

Test(prune, chunks_that_are_left_out_of_a_search_run_where_somebody_has_them) {
    const char *reason = NULL;
    request = request_for(&arena, 8, "7b", "dgx-h100", "torchtitan");
    plan.mesh = (Mesh){.size = SIZES(1, 4, 1, 1)};
    plan.mesh.size[AXIS_PP] = 2;
    plan.grad_accum = 8;
    plan.pp_schedule = PP_INTERLEAVED;
    plan.virtual_stages = 3;  // 32 layers over 6 chunks
    plan_canonical(&plan);
    cr_expect_str_eq(rule_name(NULL, &reason), "chunks");
    cr_expect_null(prune_given(&request, &plan, NULL, &arena, &reason), "%s", reason);
}

Test(prune, weights_too_large_for_a_rank_need_no_program_where_stages_would_cut_them) {
    const char *reason = NULL;
    request = request_for(&arena, 8, "405b", "dgx-h100", "megatron");
    request.global_batch = 8;
    plan.mesh = (Mesh){.size = SIZES(1, 1, 1, 8)};
    plan.zero = 0;
    plan.grad_accum = 8;
    plan.seq = 8192;
    space_take(&request, &plan, PLAN_ATTENTION);
    space_take(&request, &plan, PLAN_FUSED);
    const char *rule = rule_name(NULL, &reason);
    cr_expect_str_eq(rule, "memory", "%s", reason);
    plan.update_in_backward = true;
    cr_expect_str_neq(rule_name(NULL, &reason), "memory", "gradients are freed layer by layer");
    request.global_batch = 0;
    plan.update_in_backward = false;
    cr_expect_str_neq(rule_name(NULL, &reason), "memory", "the batch is still to be settled");
}
