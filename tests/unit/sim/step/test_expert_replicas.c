// Whole replicas with experts on several ranks (Megatron's DistributedDataParallel without the distributed optimizer):
// which ranks sum which gradients, and what each of them holds.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

// 128 experts of three matrices of 2048 x 768; 32 of them on a rank of four.
static const int64_t experts_here = 128 / 4 * 3 * INT64_C(2048) * 768;

static LoweredRequest whole_on(const char *mesh) {
    return (LoweredRequest){.model = "qwen3-30b-a3b", .target = "megatron", .mesh = mesh, .zero = -1, .bf16 = true};
}

// The sum of a unit's gradients over ranks; NULL: no ranks have the same ones.
static const Task *gradient_sum(const StepProgram *program, int unit) {
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        if (task->unit == unit && strcmp(task->name, "gradient sum") == 0) {
            return task;
        }
    }
    return NULL;
}

static int ranks_of(const StepProgram *program, const Task *task) {
    return task ? program->groups[task->group].size : 1;
}

static int64_t bytes_of(const StepProgram *program, int32_t buffer) {
    return program->buffers[buffer].bytes;
}

Test(expert_replicas, gradients_of_experts_are_summed_over_the_ranks_with_the_same_ones) {
    static const struct {
        const char *mesh;
        int experts, others;
    } cases[] = {{"dp_shard=8,ep=4", 2, 8},          {"dp_replicate=2,dp_shard=4,ep=4", 2, 8},
                 {"dp_shard=4,cp=2,ep=4", 2, 8},     {"dp_shard=8,tp=2,ep=4", 4, 8},
                 {"pp=2,dp_shard=8,ep=4", 2, 8},     {"dp_shard=8,ep=8", 1, 8},
                 {"dp_replicate=4,tp=4,ep=4", 4, 4}, {"dp_replicate=2,dp_shard=4,tp=2,ep=8", 2, 8}};
    Arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const StepProgram program = lowered(&arena, whole_on(cases[i].mesh));
        cr_expect_eq(ranks_of(&program, gradient_sum(&program, UNIT_EXPERTS)), cases[i].experts, "%s", cases[i].mesh);
        cr_expect_eq(ranks_of(&program, gradient_sum(&program, UNIT_LAYER)), cases[i].others, "%s", cases[i].mesh);
    }
    arena_free(&arena);
}

// Ranks 0 to 3 hold all experts, 4 to 7 once more: 1 and 5 the same ones.
Test(expert_replicas, they_are_those_of_the_same_place_in_each_group_of_ep) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, whole_on("dp_replicate=2,dp_shard=4,ep=4"));
    const Mesh *mesh = &program.plan.mesh;
    const MeshCoordinates at = mesh_coordinates(mesh, 5);
    const AxisMask same = program.groups[gradient_sum(&program, UNIT_EXPERTS)->group].axes;
    cr_expect_eq(mesh_group_member(mesh, same, &at, 0), 1);
    cr_expect_eq(mesh_group_member(mesh, same, &at, 1), 5);
    arena_free(&arena);
}

Test(expert_replicas, ranks_that_cut_an_expert_sum_their_own_part) {
    Arena arena = {0};
    LoweredRequest request = whole_on("dp_shard=8,tp=2,ep=4");
    request.etp = 2;
    const StepProgram program = lowered(&arena, request);
    const Task *sum = gradient_sum(&program, UNIT_EXPERTS);
    cr_assert_eq(ranks_of(&program, sum), 2);
    cr_expect_eq(sum->payload_bytes, experts_here / 2 * 4);
    arena_free(&arena);
}

Test(expert_replicas, a_sum_is_of_the_fp32_gradients_of_the_experts_here) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, whole_on("dp_shard=8,ep=4"));
    cr_expect_eq(gradient_sum(&program, UNIT_EXPERTS)->payload_bytes, experts_here * 4);
    cr_expect_eq(gradient_sum(&program, UNIT_LAYER)->payload_bytes, program.units[UNIT_LAYER].elements * 4);
    arena_free(&arena);
}

Test(expert_replicas, a_rank_holds_masters_and_moments_of_its_experts_and_of_all_that_is_dense) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, whole_on("dp_shard=8,ep=4"));
    const Unit *experts = &program.units[UNIT_EXPERTS], *dense = &program.units[UNIT_LAYER];
    const int32_t states[] = {experts->master, experts->moment1, experts->moment2};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        cr_expect_eq(bytes_of(&program, states[i]), experts_here * 4);
    }
    cr_expect_eq(bytes_of(&program, dense->moment1), dense->elements * 4);
    arena_free(&arena);
}

Test(expert_replicas, nothing_is_gathered_after_the_update) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, whole_on("dp_shard=8,ep=4"));
    cr_expect_null(first_named(&program, "gather updated weights"));
    arena_free(&arena);
}

// Dense gradients are the same on all data ranks, those of experts on the ranks with the same ones: a chained optimizer
// sums each square over its own ranks (ChainedOptimizer.get_grad_norm of Megatron-core).
Test(expert_replicas, squares_of_experts_are_summed_over_the_ranks_with_other_ones) {
    static const struct {
        const char *mesh;
        int etp, experts, others;
    } cases[] = {{"dp_shard=8,ep=4", 0, 4, 1},
                 {"pp=2,dp_shard=8,ep=4", 0, 8, 2},
                 {"dp_shard=8,tp=2,ep=4", 0, 4, 2},
                 {"pp=2,dp_shard=8,tp=2,ep=4", 2, 16, 4}};
    Arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        LoweredRequest request = whole_on(cases[i].mesh);
        request.etp = cases[i].etp;
        const StepProgram program = lowered(&arena, request);
        const Task *experts = first_named(&program, "norm sum over ranks of experts");
        cr_expect_eq(ranks_of(&program, experts), cases[i].experts, "%s", cases[i].mesh);
        const Task *others = first_named(&program, "norm sum over ranks");
        cr_expect_eq(ranks_of(&program, others), cases[i].others, "%s", cases[i].mesh);
    }
    arena_free(&arena);
}

// param_and_grad_buffer.py of Megatron-FSDP: experts over the expert data parallel group, the rest over dp x cp.
Test(expert_replicas, megatrons_fsdp_shards_experts_over_what_ep_leaves) {
    Arena arena = {0};
    LoweredRequest request = whole_on("dp_shard=8,ep=4");
    request.target = "megatron@fsdp";
    request.zero = 3;
    const StepProgram program = lowered(&arena, request);
    cr_expect_eq(program.units[UNIT_EXPERTS].shards, 2);
    cr_expect_eq(program.units[UNIT_LAYER].shards, 8);
    cr_expect_eq(program.units[UNIT_EXPERTS].elements, experts_here);
    arena_free(&arena);
}

Test(expert_replicas, sharded_experts_have_one_norm) {
    Arena arena = {0};
    LoweredRequest request = whole_on("dp_shard=8,ep=4");
    request.zero = 1;
    const StepProgram program = lowered(&arena, request);
    cr_expect_null(first_named(&program, "norm sum over ranks of experts"));
    cr_expect_null(gradient_sum(&program, UNIT_EXPERTS));
    arena_free(&arena);
}
