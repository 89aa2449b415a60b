// How tokens get to experts on other ranks, by dispatcher: what is sent, what waits, which targets may use it.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cost/cost.h"
#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(expert_dispatch, .fini = clean);

// 64 tokens to 8 of 128 experts, of hidden 2048, on 4 ranks.
static LoweredRequest by(Dispatch dispatch) {
    return (LoweredRequest){
        .model = "qwen3-30b-a3b", .target = "megatron", .mesh = "dp_shard=8,ep=4", .bf16 = true, .dispatch = dispatch};
}

enum { ROW = 2048 * 2 };

// Of 4 ranks 4 (1 - C(96, 8) / C(128, 8)) = 3.63 have one of 8 experts.
Test(expert_dispatch, deepep_sends_a_token_once_to_each_rank) {
    const StepProgram program = lowered(&arena, by(DISPATCH_DEEPEP));
    const Task *task = first_named(&program, "dispatch");
    cr_assert_eq(task->kind, TASK_ALL_TO_ALL);
    cr_assert(task->once && task->awaited);
    cr_assert_float_eq((double)task->payload_bytes, 64 * 3.63 * ROW, 0.01 * 64 * ROW);
    cr_assert_null(first_named(&program, "count tokens"));
    cr_assert_null(first_named(&program, "tokens to experts"));
    cr_assert_null(first_named(&program, "sum of experts"));
    cr_assert_eq(first_named(&program, "experts gate up")->m, 64 * 8);
}

// DeepSeek-V3's router has 8 groups of 32 experts and takes 4 of them: of 8 ranks 4, of 16 (of 16 experts each)
// 16 x 4/8 (1 - C(112, 8) / C(128, 8)) = 5.33, of 4 (of 2 groups each) 4 (1 - C(6, 4) / C(8, 4)) = 3.14.
Test(expert_dispatch, a_token_goes_to_the_ranks_of_its_best_groups) {
    static const struct {
        const char *mesh;
        double ranks;
    } cases[] = {{"dp_shard=8,ep=8", 4}, {"dp_shard=16,ep=16", 5.33}, {"dp_shard=8,ep=4", 3.14}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        LoweredRequest request = by(DISPATCH_DEEPEP);
        request.model = "deepseek-v3";
        request.mesh = cases[i].mesh;
        const StepProgram program = lowered(&arena, request);
        const double row = 7168 * 2, rows = (double)first_named(&program, "dispatch")->payload_bytes / row;
        cr_assert_float_eq(rows / 64, cases[i].ranks, 0.02);
    }
}

Test(expert_dispatch, backward_of_deepep_knows_what_comes) {
    const StepProgram program = lowered(&arena, by(DISPATCH_DEEPEP));
    cr_assert_not(first_named(&program, "combine backward")->awaited);
    cr_assert_not(first_named(&program, "combine")->awaited);
}

Test(expert_dispatch, allgather_brings_all_tokens_of_all_ranks_and_scatters_their_sums) {
    const StepProgram program = lowered(&arena, by(DISPATCH_ALLGATHER));
    cr_assert_eq(first_named(&program, "dispatch")->kind, TASK_ALL_GATHER);
    cr_assert_eq(first_named(&program, "dispatch")->payload_bytes, INT64_C(4) * 64 * ROW);
    cr_assert_eq(first_named(&program, "combine")->kind, TASK_REDUCE_SCATTER);
    cr_assert_eq(first_named(&program, "combine")->payload_bytes, INT64_C(4) * 64 * ROW);
    cr_assert_eq(first_named(&program, "combine backward")->kind, TASK_ALL_GATHER);
    cr_assert_eq(first_named(&program, "dispatch backward")->kind, TASK_REDUCE_SCATTER);
    cr_assert_eq(first_named(&program, "gather routing")->payload_bytes, INT64_C(4) * 64 * 128 * 3);
}

Test(expert_dispatch, shared_experts_are_added_to_sums_that_come_back) {
    LoweredRequest request = by(DISPATCH_HYBRIDEP);
    request.model = "deepseek-v2-lite";
    const StepProgram program = lowered(&arena, request);
    const Task *sum = NULL;
    for (int32_t i = 0; i < program.task_count && !sum; i++) {
        const Task *task = &program.tasks[i];
        const bool adds = task->kind == TASK_ADD && task->phase == PHASE_FORWARD;
        const int32_t first = adds ? task_operand(&program, task, 0)->ref.buffer : -1;
        sum = first >= 0 && strcmp(program.buffers[first].name, "experts_back") == 0 ? task : NULL;
    }
    cr_assert_not_null(sum);
    cr_assert_eq(sum->rows * sum->cols, 64 * 2048);
}

// Two rows of four nodes of eight ranks as one: half the bytes leave.
Test(expert_dispatch, between_nodes_tokens_that_travel_once_take_less_time) {
    Error error = {0};
    ClusterProfile profile;
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK);
    GroupPlacement placement = {.size = 32, .nodes = 4, .per_node = 8, .siblings = 1};
    const double payload = 64e6;
    const double each = cost_collective_s(&profile, COLLECTIVE_ALL_TO_ALL, &placement, payload, NULL);
    placement.merged = 2;
    const double once = cost_collective_s(&profile, COLLECTIVE_ALL_TO_ALL, &placement, payload, NULL);
    cr_assert_lt(once, 0.6 * each);
    cr_assert_gt(once, 0.4 * each);
}

static double seconds_of(const LoweredRequest *request, const char *name) {
    Error error = {0};
    ClusterProfile profile;
    const StepProgram program = lowered(&arena, *request);
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK);
    const CostModel cost = {.profile = &profile, .target = program.target};
    return cost_task(&cost, &program, first_named(&program, name)).seconds;
}

// Of four micro-steps the first forward has no partner, so a quarter is in the open, and of the rest 5 / 113 and the
// multiprocessors that NCCL's channels take from kernels beside them.
Test(expert_dispatch, beside_another_micro_step_most_of_an_exchange_is_hidden) {
    LoweredRequest request = by(DISPATCH_TARGET);
    request.grad_accum = 4;
    const double alone = seconds_of(&request, "dispatch"), counts = seconds_of(&request, "count tokens");
    request.ep_overlap = true;
    ClusterProfile profile;
    Error error = {0};
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK);
    const double taken = profile.node.ring_ctas / profile.accelerator.sm_count;
    cr_assert_float_eq(seconds_of(&request, "dispatch") / alone, 0.25 + 0.75 * (5.0 / 113 + taken), 1e-9, "%g", taken);
    cr_assert_float_eq(seconds_of(&request, "count tokens"), counts, 1e-12);
}

Test(expert_dispatch, who_has_no_such_dispatcher_refuses) {
    LoweredRequest request = by(DISPATCH_ALLGATHER);
    cr_assert(lowered_is_legal(&request, &arena));
    request.target = "torchtitan";
    cr_assert_not(lowered_is_legal(&request, &arena));
    request.dispatch = DISPATCH_DEEPEP;
    cr_assert(lowered_is_legal(&request, &arena));
    request.ep_overlap = true;
    cr_assert_not(lowered_is_legal(&request, &arena));
}

Test(expert_dispatch, overlap_is_refused_as_megatron_refuses_it) {
    LoweredRequest request = by(DISPATCH_TARGET);
    request.ep_overlap = true;
    cr_assert(lowered_is_legal(&request, &arena));
    request.recompute = RECOMPUTE_FULL;
    cr_assert_not(lowered_is_legal(&request, &arena));
    request.recompute = RECOMPUTE_NONE;
    request.dispatch = DISPATCH_ALLGATHER;
    cr_assert_not(lowered_is_legal(&request, &arena));
    request.dispatch = DISPATCH_HYBRIDEP;
    request.mesh = "pp=2,dp_shard=8,ep=4";
    request.grad_accum = 4;
    cr_assert_not(lowered_is_legal(&request, &arena));
}

// Of operations of PyTorch: as a run's labels say it.
static StepProgram by_operations(Dispatch dispatch, bool deterministic, bool in_fp32) {
    const StepProgram program = lowered(&arena, by(dispatch));
    Target *target = ARENA_NEW(&arena, Target);
    *target = *program.target;
    target->runtime.routes_apart = true;
    target->runtime.fills_results = deterministic;
    target->runtime.routes_in_fp32 = in_fp32;
    StepProgram own;
    Error error = {0};
    cr_assert_eq(step_lower(&program.model, &program.plan, target, &arena, &own, &error), STATUS_OK, "%s",
                 error.message);
    return own;
}

static int64_t added(const StepProgram *program, Phase phase) {
    int64_t most = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        most = task->phase == phase && task->atomic_elements > most ? task->atomic_elements : most;
    }
    return most;
}

Test(expert_dispatch, rows_come_back_by_atomics_where_no_kernel_orders_them_and_none_is_deterministic) {
    static const Dispatch dispatches[] = {DISPATCH_ALLTOALL, DISPATCH_ALLGATHER};
    for (size_t i = 0; i < sizeof dispatches / sizeof *dispatches; i++) {
        const StepProgram fused = lowered(&arena, by(dispatches[i]));
        const StepProgram apart = by_operations(dispatches[i], false, false);
        const StepProgram sorted = by_operations(dispatches[i], true, false);
        cr_expect_eq(added(&apart, PHASE_FORWARD), 64 * 8 * 2048);
        cr_expect_eq(added(&apart, PHASE_BACKWARD), 64 * 8 * 2048);
        cr_expect_eq(added(&fused, PHASE_FORWARD) + added(&sorted, PHASE_BACKWARD), 0);
    }
}

Test(expert_dispatch, results_of_gathered_tokens_are_summed_in_the_router_s_dtype) {
    const StepProgram half = by_operations(DISPATCH_ALLGATHER, false, false);
    const StepProgram whole = by_operations(DISPATCH_ALLGATHER, false, true);
    static const char *const twice[] = {"combine", "combine backward"}, *const once[] = {"dispatch",
                                                                                         "dispatch backward"};
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(first_named(&whole, twice[i])->payload_bytes, 2 * first_named(&half, twice[i])->payload_bytes);
        cr_expect_eq(first_named(&whole, once[i])->payload_bytes, first_named(&half, once[i])->payload_bytes);
    }
}

// Where it last is in forward; its dense layers are the first ones.
static int last_of(const StepProgram *program, const char *name) {
    int last = -1;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        last = task->phase == PHASE_FORWARD && strcmp(task->name, name) == 0 ? i : last;
    }
    return last;
}

// DeepEP's tokens leave when the choice is made, and nothing computes while results come back.
Test(expert_dispatch, shared_experts_hide_all_to_alls_alone) {
    LoweredRequest request = by(DISPATCH_DEEPEP);
    request.model = "deepseek-v3";
    const StepProgram once = lowered(&arena, request);
    cr_expect_lt(last_of(&once, "mlp down"), last_of(&once, "choose experts"));
    cr_expect_lt(last_of(&once, "choose experts"), last_of(&once, "dispatch"));
    cr_expect_gt(first_named(&once, "mlp down dgrad"), first_named(&once, "router dgrad"));
    request.dispatch = DISPATCH_ALLTOALL;
    const StepProgram each = lowered(&arena, request);
    cr_expect_gt(last_of(&each, "mlp down"), last_of(&each, "combine"));
    cr_expect_lt(first_named(&each, "mlp down dgrad"), first_named(&each, "router dgrad"));
}

static const Task *of_phase(const StepProgram *program, const char *name, Phase phase) {
    for (int32_t i = 0; i < program->task_count; i++) {
        if (strcmp(program->tasks[i].name, name) == 0 && program->tasks[i].phase == phase) {
            return &program->tasks[i];
        }
    }
    return NULL;
}

Test(expert_dispatch, rows_that_an_index_picks_have_their_gradients_added_in_sorted_order) {
    static const char *const versions[] = {"torchtitan@0.2", "torchtitan@0.3"};
    enum { ELEMENTS = 64 * 8 * 2048 };
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        LoweredRequest request = by(DISPATCH_ALLTOALL);
        request.target = versions[i];
        const StepProgram program = lowered(&arena, request);
        cr_expect_eq(of_phase(&program, "tokens by rank", PHASE_BACKWARD)->sorted_elements, ELEMENTS);
        cr_expect_eq(of_phase(&program, "tokens to experts backward", PHASE_BACKWARD)->sorted_elements, ELEMENTS);
        cr_expect_eq(of_phase(&program, "tokens by rank", PHASE_FORWARD)->sorted_elements, 0);
        // 0.2's rows are put back by an index that Inductor does not see, and summed by a product
        cr_expect_eq(of_phase(&program, "tokens by rank", PHASE_FORWARD)->apart_elements, i == 0 ? ELEMENTS : 0);
        cr_expect_eq(of_phase(&program, "sum of experts", PHASE_FORWARD)->sorted_elements, i == 0 ? 0 : ELEMENTS);
    }
}

Test(expert_dispatch, experts_of_one_rank_have_their_rows_ordered_once_more_where_they_are_padded) {
    LoweredRequest request = by(DISPATCH_ALLTOALL);
    request.mesh = "dp_shard=8";
    request.target = "torchtitan@0.2";
    const StepProgram padded = lowered(&arena, request);
    cr_expect_not_null(of_phase(&padded, "tokens by expert", PHASE_FORWARD));
    cr_expect_gt(of_phase(&padded, "tokens by rank", PHASE_BACKWARD)->sorted_elements, 0);
    cr_expect_null(first_named(&padded, "dispatch"));
    cr_expect_null(first_named(&padded, "count tokens"));
    request.target = "torchtitan@0.3";
    const StepProgram plain = lowered(&arena, request);
    cr_expect_null(of_phase(&plain, "tokens by expert", PHASE_FORWARD));
}

static bool has_buffer(const StepProgram *program, const char *name) {
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (strcmp(program->buffers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

// transformers 5 picks rows, results and biases by an index (grouped_mm_experts_forward); Liger's kernels have experts
// of their own, but none with biases.
Test(expert_dispatch, transformers_puts_gradients_of_experts_back_in_sorted_order) {
    static const struct {
        const char *target, *model;
        bool fused, indexed;
    } cases[] = {{"trl", "qwen3-30b-a3b", false, true},
                 {"trl", "qwen3-30b-a3b", true, false},
                 {"trl", "gpt-oss-20b", true, true},
                 {"accelerate", "gpt-oss-20b", false, true},
                 {"accelerate@1.0", "gpt-oss-20b", false, false},
                 {"automodel", "gpt-oss-20b", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const LoweredRequest request = {.model = cases[i].model,
                                        .target = cases[i].target,
                                        .mesh = "dp_shard=8",
                                        .bf16 = true,
                                        .fused = cases[i].fused};
        const StepProgram program = lowered(&arena, request);
        const Experts *experts = &program.model.experts;
        const bool indexed = cases[i].indexed, each = program.target->biases_by_expert;
        const int64_t sorted = indexed ? (int64_t)64 * experts->active * program.model.hidden : 0;
        cr_expect_eq(of_phase(&program, "tokens to experts backward", PHASE_BACKWARD)->sorted_elements, sorted);
        cr_expect_eq(of_phase(&program, "sum of experts backward", PHASE_BACKWARD)->sorted_elements, sorted);
        cr_expect_eq(of_phase(&program, "experts swiglu", PHASE_FORWARD)->apart_elements > 0, indexed && experts->bias);
        const int64_t picked = experts->bias ? (int64_t)8 * 64 * experts->active * program.model.hidden : 0;
        cr_expect_eq(of_phase(&program, "experts down", PHASE_FORWARD)->cast_bytes, each ? picked / 8 * 28 : picked);
        cr_expect_eq(has_buffer(&program, "experts_clamped"), indexed && experts->bias);
        if (experts->bias) {
            cr_expect_eq(of_phase(&program, "bias gradient", PHASE_BACKWARD)->groups, indexed ? experts->count : 0);
        }
    }
}

// What Inductor makes of repeat_interleave's gradient; eager, or before a block was compiled with its experts, atomics.
Test(expert_dispatch, torchtitan_adds_gradients_of_repeated_biases_in_turn_where_it_compiles_experts) {
    static const struct {
        const char *target;
        bool eager;
        int groups;
    } cases[] = {{"torchtitan@0.3", false, 32}, {"torchtitan@0.3", true, 0}, {"torchtitan@0.2", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const LoweredRequest request = {.model = "gpt-oss-20b",
                                        .target = cases[i].target,
                                        .mesh = "dp_shard=8",
                                        .bf16 = true,
                                        .eager = cases[i].eager};
        const StepProgram program = lowered(&arena, request);
        int groups = 0;  // of the two gradients by expert; those of attention and the router have none
        for (int32_t k = 0; k < program.task_count; k++) {
            const Task *task = &program.tasks[k];
            groups = task->kind == TASK_COLUMN_SUM && task->groups > groups ? task->groups : groups;
        }
        cr_expect_eq(groups, cases[i].groups);
    }
}
