// Packed documents: which part of its sequence a token sees, the cost of attention, which targets run them.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/cluster/cluster.h"
#include "sim/cost/cost.h"
#include "sim/frameworks/plan_rules.h"
#include "sim/frameworks/target.h"
#include "sim/step/step.h"
#include "tests/support/lowered.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(packing, .fini = end);

// 2 x 512 x (1 - 1/8 (1 - e^-8)) = 896.04 of a sequence of 4096; far shorter documents have twice the mean, the mean
// square of an exponential, and far longer ones all of it.
Test(packing, a_token_sees_the_squares_of_lengths_over_their_sum) {
    TrainPlan plan = {.seq = 4096, .pack = 512};
    cr_expect_float_eq(plan_document_tokens(&plan), 896.043, 1e-3);
    plan.pack = 4;
    cr_expect_float_eq(plan_document_tokens(&plan), 8, 0.01);
    plan.pack = 1 << 23;
    cr_expect_float_eq(plan_document_tokens(&plan), 4096, 1);
    plan.pack = 0;
    cr_expect_eq(plan_document_tokens(&plan), 4096);
}

// A document of an exponential's length of mean 512, cut at 4096: 512 (1 - e^-8) tokens, 12.496 % of the sequence.
Test(packing, one_document_to_a_sequence_fills_an_eighth_of_it) {
    const TrainPlan plan = {.seq = 4096, .pack = 512};
    cr_expect_float_eq(plan_unpacked_share(&plan), 0.124958, 1e-6);
    cr_expect_eq(plan_unpacked_share(&(TrainPlan){.seq = 4096}), 1);
}

static StepProgram packed(int pack) {
    return lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                            .target = "trl",
                                            .mesh = "dp_shard=8",
                                            .seq = 4096,
                                            .bf16 = true,
                                            .eager = true,
                                            .pack = pack});
}

// Nothing else of the step changes: rows are as full as before.
Test(packing, leaves_as_many_operations_of_attention_as_pairs_are_visible) {
    const StepProgram whole = packed(0), parts = packed(512);
    cr_assert_eq(whole.task_count, parts.task_count);
    for (int32_t i = 0; i < whole.task_count; i++) {
        const Task *task = &whole.tasks[i];
        const bool attends = task->kind == TASK_ATTENTION || task->kind == TASK_ATTENTION_BACKWARD;
        const double share = attends ? 896.043 / 4096 : 1;
        cr_expect_float_eq(parts.tasks[i].flops, share * task->flops, 1e-5 * task->flops, "%s", task->name);
    }
}

static double attention_s(int pack, TaskKind kind) {
    Error error = {0};
    ClusterProfile profile;
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK, "%s", error.message);
    const StepProgram program = packed(pack);
    const CostModel model = {.profile = &profile, .target = program.target};
    return cost_task(&model, &program, first_of_kind(&program, kind)).seconds;
}

// Less than a quarter of the pairs, in shorter rows, whose tiles on the diagonal are half empty more often.
Test(packing, makes_attention_cheaper_though_not_by_as_much) {
    const TaskKind kinds[] = {TASK_ATTENTION, TASK_ATTENTION_BACKWARD};
    for (int i = 0; i < 2; i++) {
        const double whole_s = attention_s(0, kinds[i]), parts_s = attention_s(512, kinds[i]);
        cr_expect_lt(parts_s, 0.5 * whole_s);
        cr_expect_gt(parts_s, 896.0 / 4096 * whole_s);
        cr_expect_float_eq(attention_s(1 << 23, kinds[i]), whole_s, 0.01 * whole_s);
    }
}

static bool is_legal(LoweredRequest request) {
    request.pack = 512;
    request.bf16 = true;
    return lowered_is_legal(&request, &arena);
}

Test(packing, is_refused_where_nobody_runs_it) {
    cr_expect(is_legal((LoweredRequest){.target = "axolotl", .mesh = "dp_shard=2"}));
    cr_expect_not(is_legal((LoweredRequest){.target = "nanotron", .mesh = "dp_shard=2"}));
    cr_expect_not(is_legal((LoweredRequest){.target = "ndtune", .mesh = "dp_shard=2"}), "no kernel of it");
    cr_expect_not(is_legal((LoweredRequest){.target = "trl", .mesh = "dp_shard=2,cp=2"}), "cut over ranks");
    cr_expect_not(is_legal((LoweredRequest){.target = "megatron", .mesh = "dp_shard=2"}));
    cr_expect(is_legal((LoweredRequest){.target = "megatron@bridge-0.6", .mesh = "dp_shard=2", .zero = 1}));
    cr_expect_not(
        is_legal((LoweredRequest){.target = "megatron@bridge-0.6", .mesh = "dp_shard=2", .zero = 1, .micro_batch = 2}));
}

// FlexAttention's kernel is Triton's, and takes a mask of documents.
Test(packing, takes_triton_where_a_mask_is_by_document) {
    TrainPlan plan = {.seq = 4096, .micro_batch = 1, .pack = 512, .attention = ATTENTION_TRITON};
    static const struct {
        const char *target;
        bool legal;
    } cases[] = {{"torchtitan", true}, {"torchtitan@0.3", true}, {"accelerate", false}, {"axolotl", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Target *target;
        Error error = {0};
        cr_assert_eq(target_find(cases[i].target, &target, &error), STATUS_OK, "%s", error.message);
        plan.mesh = (Mesh){.size = {0}};
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            plan.mesh.size[axis] = 1;
        }
        cr_expect_eq(pack_rule(target, &plan, &arena) == NULL, cases[i].legal, "%s", cases[i].target);
    }
}
