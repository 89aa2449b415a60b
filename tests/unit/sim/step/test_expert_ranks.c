// Expert parallelism (ep): what a rank holds, what is sent, which ranks share what.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/lowered.h"

// 128 experts of 768 columns, 8 of which a token visits; hidden 2048.
static const LoweredRequest spread = {
    .model = "qwen3-30b-a3b", .target = "torchtitan", .mesh = "dp_shard=8,ep=4", .bf16 = true};

static LoweredRequest on_mesh(const char *mesh) {
    LoweredRequest request = spread;
    request.mesh = mesh;
    return request;
}

static const Task *task_named(const StepProgram *program, const char *name) {
    const Task *task = first_named(program, name);
    cr_assert_not_null(task, "no task %s", name);
    return task;
}

Test(expert_ranks, a_rank_holds_its_part_of_the_experts_and_shares_it_with_who_is_left) {
    Arena arena = {0};
    const StepProgram whole = lowered(&arena, on_mesh("dp_shard=8")), parts = lowered(&arena, spread);
    const Unit *experts = &parts.units[UNIT_EXPERTS];
    const int64_t of_layer = 128 * 3 * INT64_C(2048) * 768;
    cr_assert_eq(parts.unit_count, UNIT_COUNT);
    cr_assert_eq(experts->elements, of_layer / 4);
    cr_assert_eq(experts->shards, 2);
    cr_assert_eq(parts.units[UNIT_LAYER].shards, 8);
    cr_assert_eq(parts.units[UNIT_LAYER].elements, whole.units[UNIT_LAYER].elements - of_layer);
    arena_free(&arena);
}

Test(expert_ranks, with_one_rank_of_experts_there_is_no_unit_of_them_and_no_exchange) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, on_mesh("dp_shard=8"));
    cr_assert_leq(program.unit_count, UNIT_EXPERTS);
    for (int32_t i = 0; i < program.task_count; i++) {
        cr_assert_neq(program.tasks[i].kind, TASK_ALL_TO_ALL);
    }
    arena_free(&arena);
}

Test(expert_ranks, every_visit_of_a_token_travels_there_and_back_in_forward_and_in_backward) {
    static const char *const names[] = {"dispatch", "combine", "combine backward", "dispatch backward"};
    Arena arena = {0};
    const StepProgram program = lowered(&arena, spread);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const Task *task = task_named(&program, names[i]);
        cr_assert_eq(task->kind, TASK_ALL_TO_ALL);
        cr_assert_eq(task->payload_bytes, 64 * 8 * INT64_C(2048) * 2, "%s", names[i]);
        cr_assert_eq(program.groups[task->group].size, 4);
    }
    arena_free(&arena);
}

Test(expert_ranks, grouped_products_are_of_the_experts_here_and_of_all_rows) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, spread);
    const Task *up = task_named(&program, "experts gate up");
    cr_assert_eq(up->groups, 32);
    cr_assert_eq(up->m, 64 * 8);
    arena_free(&arena);
}

// ep takes neighbours: ranks 0 to 3 hold the experts together, 0 and 4 the same ones.
Test(expert_ranks, experts_are_gathered_from_the_ranks_of_the_same_place) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, spread);
    const Mesh *mesh = &program.plan.mesh;
    const MeshCoordinates at = mesh_coordinates(mesh, 5);
    const AxisMask same = program.groups[program.units[UNIT_EXPERTS].shard_group].axes;
    const AxisMask others = program.groups[task_named(&program, "dispatch")->group].axes;
    cr_assert_eq(mesh_group_member(mesh, same, &at, 0), 1);
    cr_assert_eq(mesh_group_member(mesh, same, &at, 1), 5);
    cr_assert_eq(mesh_group_member(mesh, others, &at, 0), 4);
    cr_assert_eq(mesh_group_member(mesh, others, &at, 3), 7);
    arena_free(&arena);
}

Test(expert_ranks, recomputed_layers_send_their_tokens_again) {
    Arena arena = {0};
    LoweredRequest request = spread;
    request.recompute = RECOMPUTE_FULL;
    const StepProgram program = lowered(&arena, request);
    int exchanges = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        exchanges += strcmp(program.tasks[i].name, "dispatch") == 0 || strcmp(program.tasks[i].name, "combine") == 0;
    }
    cr_assert_eq(exchanges, 4);
    arena_free(&arena);
}

Test(expert_ranks, meshes_that_cannot_be_are_refused) {
    static const struct {
        const char *model, *target, *mesh;
        int zero;
    } refused[] = {
        {"qwen3-30b-a3b", "accelerate", "dp_shard=8,ep=4", 0},       // has no ep
        {"llama-3-8b", "torchtitan", "dp_shard=8,ep=4", 0},          // no experts
        {"mixtral-8x7b", "torchtitan", "dp_shard=16,ep=16", 0},      // 8 experts
        {"qwen1.5-moe-a2.7b", "ndtune", "dp_shard=4,tp=2,ep=2", 0},  // with tp, a gate: not run yet
        {"qwen3-30b-a3b", "torchtitan", "tp=4,ep=2", 0},             // FSDP over what ep leaves of tp alone
    };
    Arena arena = {0};
    cr_assert(lowered_is_legal(&spread, &arena));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const LoweredRequest request = {.model = refused[i].model,
                                        .target = refused[i].target,
                                        .mesh = refused[i].mesh,
                                        .zero = refused[i].zero,
                                        .bf16 = true};
        cr_expect_not(lowered_is_legal(&request, &arena), "%zu", i);
    }
    arena_free(&arena);
}

// Megatron-LM's: biases in fp32 expert by expert, clamps, and rotary positions with scaled cosines are operations of
// their own.
Test(expert_ranks, biases_and_clamps_that_are_no_part_of_a_kernel_move_their_bytes) {
    Arena arena = {0};
    const LoweredRequest request = {
        .model = "gpt-oss-20b", .target = "megatron", .mesh = "dp_shard=8,ep=4", .bf16 = true};
    LoweredRequest picked = request;
    picked.target = "torchtitan";
    const StepProgram apart = lowered(&arena, request), within = lowered(&arena, picked);
    cr_assert_eq(task_named(&apart, "experts down")->cast_bytes, INT64_C(28) * 64 * 4 * 2880);
    cr_assert_eq(task_named(&apart, "experts swiglu")->cast_bytes, INT64_C(16) * 64 * 4 * 2880);
    cr_assert_eq(task_named(&apart, "rope")->cast_bytes, INT64_C(20) * 64 * (64 + 8) * 64);
    cr_assert_eq(task_named(&apart, "rope backward")->cast_bytes, INT64_C(24) * 64 * (64 + 8) * 64);
    cr_assert_eq(task_named(&within, "experts down")->cast_bytes, 0);
    cr_assert_eq(task_named(&within, "rope")->cast_bytes, 0);
    arena_free(&arena);
}

// NeMo Automodel's first bias as well; its activation is compiled.
Test(expert_ranks, both_biases_of_experts_are_added_one_by_one_where_no_product_takes_them) {
    Arena arena = {0};
    const LoweredRequest request = {
        .model = "gpt-oss-20b", .target = "automodel", .mesh = "dp_shard=8,ep=4", .bf16 = true};
    const StepProgram program = lowered(&arena, request);
    cr_assert_eq(task_named(&program, "experts gate up")->cast_bytes, INT64_C(8) * 64 * 4 * 2 * 2880);
    cr_assert_eq(task_named(&program, "experts gate up dgrad")->cast_bytes, INT64_C(4) * 64 * 4 * 2 * 2880);
    cr_assert_eq(task_named(&program, "experts down")->cast_bytes, INT64_C(28) * 64 * 4 * 2880);
    cr_assert_eq(task_named(&program, "experts swiglu")->cast_bytes, 0);
    arena_free(&arena);
}

Test(expert_ranks, without_a_gate_experts_have_two_matrices_and_are_weighed_apart) {
    Arena arena = {0};
    LoweredRequest request = spread;
    request.target = "megatron";
    request.plain = true;
    const StepProgram program = lowered(&arena, request);
    cr_assert_eq(task_named(&program, "experts gate up")->n, 768);
    cr_assert_eq(task_named(&program, "experts gate up wgrad")->m, 768);
    cr_assert_eq(task_named(&program, "experts activation")->cast_bytes, INT64_C(12) * 64 * 8 * 768);
    cr_assert_eq(task_named(&program, "experts activation backward")->cast_bytes, INT64_C(34) * 64 * 8 * 768);
    arena_free(&arena);
}

// A rank sends its own tokens; the busiest one receives more, and its experts work on more.
Test(expert_ranks, the_busiest_rank_receives_more_than_it_sends) {
    Arena arena = {0};
    LoweredRequest request = spread;
    request.imbalance = 50;
    const StepProgram even = lowered(&arena, spread), uneven = lowered(&arena, request);
    cr_assert_eq(task_named(&uneven, "experts gate up")->m, 3 * task_named(&even, "experts gate up")->m / 2);
    cr_assert_eq(task_named(&uneven, "dispatch")->payload_bytes, 3 * task_named(&even, "dispatch")->payload_bytes / 2);
    cr_assert_eq(task_named(&uneven, "sum of experts")->rows, task_named(&even, "sum of experts")->rows);
    arena_free(&arena);
}

Test(expert_ranks, without_ranks_of_experts_nobody_is_busier) {
    Arena arena = {0};
    LoweredRequest request = on_mesh("dp_shard=8");
    const StepProgram even = lowered(&arena, request);
    request.imbalance = 50;
    const StepProgram asked = lowered(&arena, request);
    cr_assert_eq(task_named(&asked, "experts gate up")->m, task_named(&even, "experts gate up")->m);
    arena_free(&arena);
}

Test(expert_ranks, the_host_waits_for_the_counts_and_for_nothing_else) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, spread);
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        cr_expect_eq(task->awaited, strcmp(task->name, "count tokens") == 0, "%s", task->name);
    }
    arena_free(&arena);
}

// Megatron-LM weighs tokens before the second product: backward of their sum needs no results of experts.
Test(expert_ranks, results_of_experts_live_until_backward_only_where_they_are_weighted) {
    Arena arena = {0};
    LoweredRequest request = spread;
    request.target = "megatron";
    const StepProgram before = lowered(&arena, request), after = lowered(&arena, spread);
    cr_assert_lt(task_operand(&before, task_named(&before, "sum of experts backward"), 1)->ref.buffer, 0);
    cr_assert_geq(task_operand(&after, task_named(&after, "sum of experts backward"), 1)->ref.buffer, 0);
    arena_free(&arena);
}

// ---- with tp, which lends its ranks first

Test(expert_ranks, beside_tp_experts_are_whole_and_shared_by_what_ep_leaves_of_all_ranks) {
    Arena arena = {0};
    const StepProgram beside = lowered(&arena, on_mesh("dp_shard=4,tp=2,ep=4"));
    const Unit *experts = &beside.units[UNIT_EXPERTS];
    cr_assert_eq(experts->elements, 128 / 4 * 3 * INT64_C(2048) * 768);
    cr_assert_eq(experts->shards, 2);
    cr_assert_eq(experts->replicated_elements, 0);
    cr_assert_eq(beside.units[UNIT_LAYER].shards, 4);
    arena_free(&arena);
}

Test(expert_ranks, beside_tp_a_rank_routes_the_tokens_that_it_has_between_blocks) {
    Arena arena = {0};
    const StepProgram beside = lowered(&arena, on_mesh("dp_shard=4,tp=2,ep=4"));
    cr_assert_eq(task_named(&beside, "router")->m, 64 / 2);
    cr_assert_eq(task_named(&beside, "dispatch")->payload_bytes, 64 / 2 * 8 * INT64_C(2048) * 2);
    cr_assert_eq(task_named(&beside, "experts gate up")->n, 2 * 768);
    cr_assert_eq(task_named(&beside, "experts gate up")->m, 64 / 2 * 8);
    arena_free(&arena);
}

Test(expert_ranks, beside_tp_only_shared_experts_gather_tokens) {
    Arena arena = {0};
    LoweredRequest shared = on_mesh("dp_shard=4,tp=2,ep=4");
    shared.model = "qwen1.5-moe-a2.7b";
    const StepProgram none = lowered(&arena, on_mesh("dp_shard=4,tp=2,ep=4")), some = lowered(&arena, shared);
    cr_assert_null(first_named(&none, "mlp in"));
    cr_assert_null(first_named(&none, "mlp sum"));
    cr_assert_null(first_named(&none, "mlp gradient"));
    cr_assert_eq(task_named(&some, "mlp in")->kind, TASK_ALL_GATHER);
    cr_assert_eq(task_named(&some, "shared sum")->kind, TASK_REDUCE_SCATTER);
    cr_assert_eq(task_named(&some, "mlp down")->m, 64);
    arena_free(&arena);
}

// tp 2 and two of dp_shard: ranks 4 to 7 of the second group.
Test(expert_ranks, beside_tp_its_ranks_are_neighbours_in_the_same_group_of_experts) {
    Arena arena = {0};
    const StepProgram beside = lowered(&arena, on_mesh("dp_shard=4,tp=2,ep=4"));
    const Mesh *mesh = &beside.plan.mesh;
    const MeshCoordinates at = mesh_coordinates(mesh, 6);
    const AxisMask others = beside.groups[task_named(&beside, "dispatch")->group].axes;
    const AxisMask same = beside.groups[beside.units[UNIT_EXPERTS].shard_group].axes;
    cr_assert_eq(mesh_group_member(mesh, others, &at, 0), 4);
    cr_assert_eq(mesh_group_member(mesh, others, &at, 3), 7);
    cr_assert_eq(mesh_group_member(mesh, same, &at, 0), 2);
    cr_assert_eq(mesh_group_member(mesh, same, &at, 1), 6);
    arena_free(&arena);
}

// Megatron-LM: "When using expert parallelism and tensor parallelism, sequence parallelism must be used".
Test(expert_ranks, beside_tp_tokens_must_be_shared_out_between_blocks) {
    Arena arena = {0};
    LoweredRequest request = on_mesh("dp_shard=4,tp=2,ep=4");
    request.target = "megatron";
    cr_assert(lowered_is_legal(&request, &arena));
    request.sequence_parallel = SEQUENCE_PARALLEL_OFF;
    cr_assert_not(lowered_is_legal(&request, &arena));
    arena_free(&arena);
}

// etp's ranks are neighbours, those of ep are as far apart as etp is wide, shards of an expert beyond both.
Test(expert_ranks, cut_experts_are_gathered_between_the_ranks_that_cut_them) {
    Arena arena = {0};
    const LoweredRequest whole = {
        .model = "mixtral-8x7b", .target = "megatron", .mesh = "dp_shard=8,tp=2,ep=4", .bf16 = true};
    LoweredRequest cut = whole;
    cut.etp = 2;
    const StepProgram alone = lowered(&arena, whole), parts = lowered(&arena, cut);
    const Mesh *mesh = &parts.plan.mesh;
    const MeshCoordinates at = mesh_coordinates(mesh, 5);
    const AxisMask others = parts.groups[task_named(&parts, "dispatch")->group].axes;
    const AxisMask cutting = parts.groups[task_named(&parts, "gather of etp")->group].axes;
    const AxisMask same = parts.groups[parts.units[UNIT_EXPERTS].shard_group].axes;
    cr_expect_eq(mesh_group_member(mesh, others, &at, 0), 1);
    cr_expect_eq(mesh_group_member(mesh, others, &at, 3), 7);
    cr_expect_eq(mesh_group_member(mesh, cutting, &at, 0), 4);
    cr_expect_eq(mesh_group_member(mesh, same, &at, 1), 13);
    cr_expect_eq(parts.units[UNIT_EXPERTS].elements * 2, alone.units[UNIT_EXPERTS].elements);
    cr_expect_eq(parts.units[UNIT_EXPERTS].shard_elements, alone.units[UNIT_EXPERTS].shard_elements);
    cr_expect_eq(task_named(&parts, "dispatch")->payload_bytes, task_named(&alone, "dispatch")->payload_bytes);
    cr_expect_eq(task_named(&parts, "experts down")->m, 2 * task_named(&alone, "experts down")->m);
    cr_expect_eq(task_named(&parts, "experts down")->k * 2, task_named(&alone, "experts down")->k);
    cr_expect_eq(task_named(&parts, "sum of etp")->kind, TASK_REDUCE_SCATTER);
    cr_expect_float_eq(task_named(&parts, "experts down")->flops, task_named(&alone, "experts down")->flops, 1);
    arena_free(&arena);
}

Test(expert_ranks, as_many_ranks_of_an_expert_as_without_a_word_is_the_same_plan) {
    TrainPlan plan = {.mesh = mesh_of_one(), .etp = 1}, said = plan;
    plan.mesh.size[AXIS_DP_SHARD] = said.mesh.size[AXIS_DP_SHARD] = 8;
    plan.mesh.size[AXIS_EP] = said.mesh.size[AXIS_EP] = 4;
    said.etp = 0;
    plan_canonical(&plan);
    plan_canonical(&said);
    cr_expect_eq(plan.etp, said.etp);
    said.etp = 2;
    plan_canonical(&said);
    cr_expect_eq(said.etp, 2);
}

Test(expert_ranks, ranks_that_cannot_cut_an_expert_are_refused_in_words) {
    static const struct {
        const char *model, *target, *mesh;
        int etp, capacity;
        const char *says;
    } refused[] = {
        {"mixtral-8x7b", "torchtitan", "dp_shard=8,ep=4", 2, 0, "has no tensor parallelism of experts alone"},
        {"mixtral-8x7b", "ndtune", "dp_shard=8,ep=4", 2, 0, "has no tensor parallelism of experts alone"},
        {"mixtral-8x7b", "megatron", "dp_shard=8,ep=4", 4, 0, "world_size (8) is not divisible"},
        {"gpt-oss-20b", "megatron", "dp_shard=8,ep=4", 2, 0, "only supported when ETP==1"},
        {"llama-3-8b", "megatron", "dp_shard=8", 2, 0, "etp is of experts"},
        {"mixtral-8x7b", "torchtitan", "dp_shard=8,ep=4", 0, 125, "drops no tokens"},
    };
    Arena arena = {0};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const LoweredRequest request = {.model = refused[i].model,
                                        .target = refused[i].target,
                                        .mesh = refused[i].mesh,
                                        .etp = refused[i].etp,
                                        .expert_capacity = refused[i].capacity,
                                        .bf16 = true};
        const char *reason = lowered_refusal(&request, &arena);
        cr_expect(reason && strstr(reason, refused[i].says), "%zu: %s", i, reason ? reason : "legal");
    }
    arena_free(&arena);
}

// integrations/expert_parallel/plugin.py of axolotl 0.19, mesh_utils.py and capabilities.py of nemo-automodel 0.7,
// distributed/configuration_utils.py and mixin.py of transformers 5.23.
Test(expert_ranks, what_a_framework_does_not_start_is_refused_in_its_words) {
    static const struct {
        const char *model, *target, *mesh;
        Dispatch dispatch;
        const char *says;
    } refused[] = {
        {"qwen3-30b-a3b", "axolotl", "dp_shard=8,tp=2,ep=4", DISPATCH_TARGET, "EP x TP composition not yet supported"},
        {"qwen3-30b-a3b", "axolotl", "dp_replicate=2,dp_shard=8,ep=4", DISPATCH_TARGET,
         "world_size (16) must equal expert_parallel_size (4) * dp_shard_size (2)"},
        {"qwen3-30b-a3b", "axolotl", "dp_shard=2,cp=4,ep=4", DISPATCH_TARGET, "expert_parallel_size (4) must divide"},
        {"qwen3-30b-a3b", "axolotl", "dp_shard=8,ep=4", DISPATCH_ALLTOALL, "has no dispatcher=alltoall"},
        {"qwen3-30b-a3b", "axolotl@0.18", "dp_shard=8,ep=4", DISPATCH_TARGET, "axolotl has no ep"},
        {"mixtral-8x7b", "automodel", "dp_shard=8,ep=4", DISPATCH_TARGET, "does not inherit from MoEFSDPSyncMixin"},
        {"gpt-oss-20b", "automodel", "dp_shard=24,ep=24", DISPATCH_TARGET,
         "n_routed_experts 32 must be divisible by expert_parallel_degree 24"},
        {"qwen3-30b-a3b", "automodel", "dp_shard=8,ep=4", DISPATCH_ALLTOALL, "has no dispatcher=alltoall"},
        {"qwen3-30b-a3b", "automodel", "dp_shard=4,tp=2,ep=4", DISPATCH_TARGET, "send the same tokens to experts"},
        {"qwen3-30b-a3b", "trainer", "dp_shard=4,tp=4,ep=2", DISPATCH_TARGET,
         "`ep_size` must be a multiple of `tp_size`"},
        {"qwen3-30b-a3b", "trainer", "dp_shard=2,cp=2,ep=4", DISPATCH_TARGET,
         "`ep_size` must divide `fsdp_size * tp_size`"},
        {"llama-4-scout", "trainer", "dp_shard=8,ep=4", DISPATCH_TARGET, "have no `ep_plan`"},
        {"qwen3-30b-a3b", "trainer", "dp_shard=4,cp=2,ep=4", DISPATCH_TARGET, "without context parallelism"},
        {"qwen3-30b-a3b", "trainer", "dp_shard=8,ep=4", DISPATCH_DEEPEP, "has no dispatcher=deepep"},
        {"qwen3-30b-a3b", "trl", "dp_shard=8,ep=4", DISPATCH_TARGET, "trl has no ep"},
    };
    Arena arena = {0};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const LoweredRequest request = {.model = refused[i].model,
                                        .target = refused[i].target,
                                        .mesh = refused[i].mesh,
                                        .dispatch = refused[i].dispatch,
                                        .bf16 = true};
        const char *reason = lowered_refusal(&request, &arena);
        cr_expect(reason && strstr(reason, refused[i].says), "%zu: %s", i, reason ? reason : "legal");
    }
    arena_free(&arena);
}

Test(expert_ranks, frameworks_over_shards_lower_ranks_of_experts_by_their_own_dispatcher) {
    static const struct {
        const char *target;
        Dispatch dispatch;
    } cases[] = {{"axolotl", DISPATCH_DEEPEP}, {"automodel", DISPATCH_DEEPEP}, {"trainer", DISPATCH_ALLTOALL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        LoweredRequest request = spread;
        request.target = cases[i].target;
        const StepProgram program = lowered(&arena, request);
        cr_expect_eq(task_named(&program, "dispatch")->once, cases[i].dispatch != DISPATCH_ALLTOALL, "%s",
                     cases[i].target);
        cr_expect_eq(program.units[UNIT_EXPERTS].shards, 2, "%s", cases[i].target);
        arena_free(&arena);
    }
}

// Uniform routing drops none at a capacity of the mean; padded, every expert takes what it may.
Test(expert_ranks, a_capacity_bounds_rows_and_padded_rows_are_what_it_says) {
    static const struct {
        int imbalance, capacity;
        bool pads;
        int64_t per_cent;
    } cases[] = {{0, 0, false, 100},  {0, 125, false, 100},   {0, 75, false, 75},
                 {0, 125, true, 125}, {100, 150, false, 150}, {50, 0, false, 150}};
    Arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const LoweredRequest request = {.model = "mixtral-8x7b",
                                        .target = "megatron",
                                        .mesh = "dp_shard=8,ep=4",
                                        .imbalance = cases[i].imbalance,
                                        .expert_capacity = cases[i].capacity,
                                        .pad_experts = cases[i].pads,
                                        .bf16 = true};
        const StepProgram program = lowered(&arena, request);
        bool counts = false;
        for (int32_t t = 0; t < program.task_count; t++) {
            counts |= strcmp(program.tasks[t].name, "count tokens") == 0;
        }
        cr_expect_eq(task_named(&program, "experts down")->m, 64 * 2 * cases[i].per_cent / 100, "%zu", i);
        cr_expect_eq(task_named(&program, "dispatch")->payload_bytes, 128 * cases[i].per_cent / 100 * 4096 * 2, "%zu",
                     i);
        cr_expect_eq(counts, !cases[i].pads, "%zu", i);
    }
    arena_free(&arena);
}

// ---- layers that predict further tokens: on the last stage, with its own table, norms and projection, and the head

static const LoweredRequest further = {
    .model = "deepseek-v2-lite", .target = "megatron", .mesh = "dp_shard=8,ep=4", .bf16 = true, .mtp = 1};

static int64_t parameters_of(const StepProgram *program) {
    int64_t count = 0;
    for (int32_t u = 0; u < program->unit_count; u++) {
        count += program->units[u].elements * program->units[u].instances;
    }
    return count;
}

// hidden 2048: a layer like the last one, three norms, and 2 * 2048 columns to 2048.
Test(expert_ranks, a_layer_of_further_tokens_adds_itself_a_projection_and_three_norms) {
    Arena arena = {0};
    LoweredRequest request = further;
    request.mesh = "dp_shard=1";
    const StepProgram with = lowered(&arena, request);
    request.mtp = 0;
    const StepProgram without = lowered(&arena, request);
    ModelSpec model;
    Error error = {0};
    cr_assert_eq(model_find("deepseek-v2-lite", &arena, &model, &error), STATUS_OK);
    const int64_t more = model_layer_parameters(&model, LAYER_EXPERTS) + 3 * INT64_C(2048) + 2 * INT64_C(2048) * 2048;
    cr_expect_eq(model_further_parameters(&model), more);
    cr_expect_eq(with.layers, without.layers + 1);
    // a layer of both kinds has the share of each kind in whole elements
    cr_expect_lt(llabs(parameters_of(&with) - parameters_of(&without) - more), 2000000, "%lld",
                 (long long)(parameters_of(&with) - parameters_of(&without) - more));
    cr_expect_eq(tasks_named(&with, "mtp projection"), 1);
    cr_expect_eq(task_named(&with, "mtp projection")->k, 2 * 2048);
    cr_expect_eq(tasks_named(&with, "head"), 2 * tasks_named(&without, "head"));
    cr_expect_eq(tasks_named(&with, "head wgrad"), 2 * tasks_named(&without, "head wgrad"));
    arena_free(&arena);
}

Test(expert_ranks, two_layers_of_further_tokens_are_two_and_each_counts_its_loss) {
    Arena arena = {0};
    LoweredRequest request = further;
    request.mtp = 2;
    request.mesh = "dp_shard=4,tp=2,ep=4";
    const StepProgram program = lowered(&arena, request);
    request.mtp = 0;
    const StepProgram without = lowered(&arena, request);
    cr_expect_eq(program.layers, without.layers + 2);
    cr_expect_eq(tasks_named(&program, "mtp projection"), 2);
    cr_expect_eq(tasks_named(&program, "mtp embed backward"), 2);
    cr_expect_eq(tasks_named(&program, "gather mtp"), 2);
    cr_expect_eq(tasks_named(&program, "loss gradient"), 3 * tasks_named(&without, "loss gradient"));
    arena_free(&arena);
}

Test(expert_ranks, layers_of_further_tokens_are_refused_where_no_target_has_them) {
    Arena arena = {0};
    LoweredRequest request = further;
    request.target = "torchtitan";
    cr_expect_str_eq(lowered_refusal(&request, &arena),
                     "torchtitan has no layers that predict further tokens (mtp=1): use mtp=0");
    arena_free(&arena);
}
