// What modules, collectives and a deterministic run take the host.

#include <criterion/criterion.h>

#include "sim/cost/compute.h"
#include "sim/cost/cost.h"

// The host's pace has a module's Python in it; the gaps between launches do not.
Test(cost, modules_take_the_host_what_was_measured_of_them_both_ways) {
    const Target core = {
        .fp8_flavour = FP8_TRANSFORMER_ENGINE,
        .expert_flavour = EXPERTS_PERMUTE_KERNELS,
        .runtime = {.host_s_per_op = 13e-6, .module_operations = 3, .lost_lead = 0.5},
    };
    Target plain = core;
    plain.runtime.module_operations = 0;
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const struct {
        Task task;
        double us;
    } rows[] = {
        {{.kind = TASK_GEMM, .part = GRAPHED_MLP}, 115},
        {{.kind = TASK_GEMM, .part = GRAPHED_MLP, .phase = PHASE_BACKWARD}, 49},
        {{.kind = TASK_GEMM, .part = GRAPHED_MLP, .phase = PHASE_BACKWARD, .trans_a = true}, 49 + 12},
        {{.kind = TASK_GEMM, .part = GRAPHED_ROUTER}, 124},
        {{.kind = TASK_GEMM, .phase = PHASE_LOSS}, 365},
        {{.kind = TASK_ATTENTION, .part = GRAPHED_ATTENTION}, 566},
        {{.kind = TASK_ATTENTION_BACKWARD, .part = GRAPHED_ATTENTION, .phase = PHASE_BACKWARD}, 105},
        {{.kind = TASK_RMSNORM, .part = GRAPHED_ATTENTION}, 53},
        {{.kind = TASK_RMSNORM, .part = GRAPHED_ROUTER}, 163},
        {{.kind = TASK_LAYERNORM_BACKWARD, .part = GRAPHED_MLP, .phase = PHASE_BACKWARD}, 41 + 2 * 12 + 200},
        {{.kind = TASK_SWIGLU, .part = GRAPHED_MLP}, 115},
        {{.kind = TASK_RECEIVE, .phase = PHASE_FORWARD}, 755 + 89},
        {{.kind = TASK_RECEIVE, .phase = PHASE_BACKWARD}, 120 + 89},
        {{.kind = TASK_RMSNORM_BACKWARD, .phase = PHASE_BACKWARD}, 153 + 120 + 12},
        {{.kind = TASK_EMBED_BACKWARD, .phase = PHASE_BACKWARD}, 100},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Task *task = &rows[i].task;
        cr_expect_float_eq(task_host_s(&core, &plan, task), rows[i].us * 1e-6, 1e-12, "row %zu", i);
        cr_expect_eq(task_gap_s(&core, &plan, task, 1e-4), task_gap_s(&plain, &plan, task, 1e-4), "row %zu", i);
    }
}

// Linear layers of 2.9 took 51 us in the loop that takes 2.12 31; their norms 21 for 17, attention 134 for 128.
Test(cost, older_releases_of_transformer_engine_take_the_host_longer) {
    Target core = {.fp8_flavour = FP8_TRANSFORMER_ENGINE, .runtime = {.host_s_per_op = 13e-6, .module_operations = 3}};
    Target older = core;
    older.runtime.engine_release = ENGINE_2_9;
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const struct {
        Task task;
        double more_us;
    } rows[] = {
        {{.kind = TASK_GEMM, .part = GRAPHED_MLP}, 94.7 * 20 / 31},
        {{.kind = TASK_GEMM, .part = GRAPHED_MLP, .phase = PHASE_BACKWARD}, 28.7 * 16 / 72},
        {{.kind = TASK_RMSNORM, .part = GRAPHED_ATTENTION}, 42.7 * 4 / 17},
        {{.kind = TASK_ATTENTION, .part = GRAPHED_ATTENTION}, 410.0 * 6 / 128},
        {{.kind = TASK_GEMM, .part = GRAPHED_ROUTER}, 0},  // not its module
        {{.kind = TASK_GEMM, .phase = PHASE_LOSS}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Task *task = &rows[i].task;
        const double more_s = task_host_s(&older, &plan, task) - task_host_s(&core, &plan, task);
        cr_expect_float_eq(more_s, rows[i].more_us * 1e-6, 1e-9, "row %zu", i);
    }
    older.runtime.torch_linears = core.runtime.torch_linears = true;
    cr_expect_eq(task_host_s(&older, &plan, &rows[0].task), task_host_s(&core, &plan, &rows[0].task));
    older.runtime.torch_linears = core.runtime.torch_linears = false;
    older.until = core.until = "2024-02";  // its layers were its own
    cr_expect_eq(task_host_s(&older, &plan, &rows[0].task), task_host_s(&core, &plan, &rows[0].task));
}

// A layer's sum is one function of autograd with dropout, whose gradient is a copy, and without.
Test(cost, what_drops_nothing_takes_the_host_back_through_its_sum_as_well) {
    const Target undropped = {.runtime = {.host_s_per_op = 13e-6, .module_operations = 3},
                              .fp8_flavour = FP8_TRANSFORMER_ENGINE};
    Target dropped = undropped;
    dropped.halves_drop = true;
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const Task norm = {.kind = TASK_RMSNORM_BACKWARD, .part = GRAPHED_MLP, .phase = PHASE_BACKWARD},
               copy = {.kind = TASK_COPY, .part = GRAPHED_MLP, .phase = PHASE_BACKWARD};
    const double launch_s = 10e-6;
    cr_expect_float_eq(task_host_s(&undropped, &plan, &norm) + launch_s,
                       task_host_s(&dropped, &plan, &norm) + task_host_s(&dropped, &plan, &copy), 1e-12);
    Task latent = norm;
    latent.within = true;
    cr_expect_float_eq(task_host_s(&undropped, &plan, &latent), task_host_s(&dropped, &plan, &norm), 1e-12);
}

// What the host issues while it is behind; gaps of a host that is ahead are those of launches.
Test(cost, a_slower_processor_issues_slower_and_leaves_the_same_gaps) {
    const Target usual = {.runtime = {.host_s_per_op = 13e-6, .lost_lead = 0.5, .fills_results = true}};
    Target slow = usual;
    slow.runtime.host_pace = 1.5;
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const Task task = {.kind = TASK_GEMM};
    cr_expect_float_eq(task_host_s(&slow, &plan, &task), 1.5 * task_host_s(&usual, &plan, &task), 1e-12);
    cr_expect_eq(task_gap_s(&slow, &plan, &task, 1e-4), task_gap_s(&usual, &plan, &task, 1e-4));
}

// AccumulateGrad with the hook on it and the sum into the main gradient: 12 us.
Test(cost, gradients_of_norms_and_biases_are_handed_over_one_by_one) {
    const Target layers = {.runtime = {.host_s_per_op = 13e-6}, .fp8_flavour = FP8_TRANSFORMER_ENGINE};
    const Target plain = {.runtime = {.host_s_per_op = 13e-6}};
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const TaskKind kinds[] = {TASK_RMSNORM_BACKWARD, TASK_LAYERNORM_BACKWARD, TASK_COLUMN_SUM, TASK_RMSNORM};
    const int parameters[] = {1, 2, 1, 0};
    for (int i = 0; i < 4; i++) {
        const Task task = {.kind = kinds[i], .phase = i < 3 ? PHASE_BACKWARD : PHASE_FORWARD};
        cr_expect_float_eq(task_host_s(&layers, &plan, &task) - task_host_s(&plain, &plan, &task),
                           parameters[i] * 12e-6, 1e-12, "%d", i);
        cr_expect_eq(task_gap_s(&layers, &plan, &task, 1e-4), task_gap_s(&plain, &plan, &task, 1e-4), "%d", i);
    }
}

// Whether it is a number; of other targets nobody asks.
Test(cost, the_host_waits_for_a_loss_that_it_checks) {
    const Target plain = {.runtime = {.host_s_per_op = 13e-6}};
    Target checks = plain;
    checks.runtime.checks_loss = true;
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const TaskKind kinds[] = {TASK_LOSS, TASK_LOSS_SUM, TASK_LOSS_MAX, TASK_GEMM};
    for (int i = 0; i < 4; i++) {
        const Task task = {.kind = kinds[i]};
        cr_expect_eq(task_host_stop(&checks, &plan, &task), i < 2 ? HOST_WAITS_FOR_END : HOST_GOES_ON, "%d", i);
        cr_expect_eq(task_host_stop(&plain, &plan, &task), HOST_GOES_ON, "%d", i);
    }
}

// A call into or out of a tensor that exists is an all-reduce's 89 us, one of stages of one chunk sends and takes; a
// stage of another framework launches.
Test(cost, messages_between_stages_are_calls) {
    const Target layers = {.runtime = {.host_s_per_op = 13e-6, .messages_stop_host = true},
                           .fp8_flavour = FP8_TRANSFORMER_ENGINE};
    const Target plain = {.runtime = {.host_s_per_op = 13e-6}};
    TrainPlan plan = {.fused = FUSED_FUSED, .virtual_stages = 1};
    plan.mesh.size[AXIS_PP] = 4;
    TrainPlan chunks = plan;
    chunks.pp_schedule = PP_INTERLEAVED;
    chunks.virtual_stages = 3;
    const Task sent = {.kind = TASK_SEND};
    cr_expect_float_eq(task_host_s(&layers, &plan, &sent), 89e-6 / 2, 1e-12);
    cr_expect_float_eq(task_host_s(&layers, &chunks, &sent), 89e-6, 1e-12);
    cr_expect_float_eq(task_host_s(&plain, &chunks, &sent), 1.7 * 13e-6, 1e-12);
    const ChunkHost timed = cost_chunk_host(&(CostModel){.target = &layers}, &chunks),
                    untimed = cost_chunk_host(&(CostModel){.target = &plain}, &chunks);
    cr_expect_float_eq(timed.before_s, 2 * 89e-6, 1e-12);
    cr_expect_float_eq(timed.after_s, 2 * 89e-6, 1e-12);
    cr_expect(untimed.before_s == 0 && untimed.after_s == 0);
}

// PyTorch issue 138773; a gather of parameters has its own account, as has one of another framework.
Test(cost, collectives_of_layers_take_the_host_what_was_timed_of_them) {
    const Target layers = {.runtime = {.host_s_per_op = 13e-6, .module_operations = 3},
                           .fp8_flavour = FP8_TRANSFORMER_ENGINE};
    const Target plain = {.runtime = {.host_s_per_op = 13e-6}};
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const TaskKind kinds[] = {TASK_ALL_GATHER, TASK_REDUCE_SCATTER, TASK_ALL_REDUCE};
    const double seconds[] = {131e-6, 122e-6, 89e-6};
    for (int i = 0; i < 3; i++) {
        const Task of_tp = {.kind = kinds[i], .lane = LANE_TP, .part = GRAPHED_MLP};
        const Task of_weights = {.kind = kinds[i], .lane = LANE_AG, .part = GRAPHED_MLP};
        cr_expect_float_eq(task_host_s(&layers, &plan, &of_tp), seconds[i], 1e-12);
        cr_expect_float_eq(task_host_s(&plain, &plan, &of_tp), 1.7 * 13e-6, 1e-12);
        cr_expect_float_eq(task_host_s(&layers, &plan, &of_weights), 1.7 * 13e-6, 1e-12);
    }
}

// A launch takes no more than the shortest call, 10.3 us where an operation takes 13: twice that on a slower host.
Test(cost, a_deterministic_run_fills_each_result_that_it_allocates) {
    const Target plain = {.runtime.host_s_per_op = 2 * 13e-6};
    Target fills = plain;
    fills.runtime.fills_results = true;
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const struct {
        Task task;
        int results;
    } rows[] = {{{.kind = TASK_GEMM}, 1},
                {{.kind = TASK_LAYERNORM}, 3},
                {{.kind = TASK_QK_NORM}, 6},
                {{.kind = TASK_ATTENTION}, 3},
                {{.kind = TASK_ALL_GATHER, .lane = LANE_TP}, 1},
                {{.kind = TASK_ALL_REDUCE, .lane = LANE_TP}, 0},
                {{.kind = TASK_ROUTE}, 2},
                {{.kind = TASK_ADD}, 0},
                {{.kind = TASK_ACCUMULATE}, 0},
                {{.kind = TASK_ADAMW, .phase = PHASE_OPTIMIZER}, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Task *task = &rows[i].task;
        cr_expect_float_eq(task_host_s(&fills, &plan, task) - task_host_s(&plain, &plan, task),
                           rows[i].results * 2 * 10.327e-6, 1e-12, "row %zu", i);
    }
}

// Of separate operations Transformer Engine's takes more, Megatron-core's own none; a ring is set up and has blocks;
// of a graph's replay there is nothing.
Test(cost, attention_takes_the_host_by_what_it_is_made_of) {
    Target core = {.fp8_flavour = FP8_TRANSFORMER_ENGINE, .runtime = {.host_s_per_op = 13e-6, .module_operations = 3}};
    TrainPlan plan = {.fused = FUSED_FUSED, .attention = ATTENTION_EAGER};
    plan.mesh.size[AXIS_CP] = 1;
    const Task attention = {.kind = TASK_ATTENTION, .part = GRAPHED_ATTENTION};
    const Task later = {.kind = TASK_ATTENTION, .part = GRAPHED_ATTENTION, .ring_step = 1};
    cr_expect_float_eq(task_host_s(&core, &plan, &attention), (566 + 420) * 1e-6, 1e-12);
    core.runtime.torch_linears = true;
    cr_expect_float_eq(task_host_s(&core, &plan, &attention), 566e-6, 1e-12);
    plan.attention = ATTENTION_FLASH;
    plan.mesh.size[AXIS_CP] = 2;
    cr_expect_float_eq(task_host_s(&core, &plan, &attention), (566 + 390) * 1e-6, 1e-12);
    cr_expect_float_eq(task_host_s(&core, &plan, &later), 270e-6, 1e-12);
    plan.cuda_graphs = CUDA_GRAPHS_LAYERS;
    cr_expect_eq(task_host_s(&core, &plan, &attention), 0);
}

// Moonlight's recipe fuses neither; measured beside what is fused.
Test(cost, a_router_and_positions_of_pytorchs_operations_take_the_host_longer) {
    Target fused = {.fp8_flavour = FP8_TRANSFORMER_ENGINE,
                    .expert_flavour = EXPERTS_PERMUTE_KERNELS,
                    .runtime = {.host_s_per_op = 13e-6, .module_operations = 3}};
    Target apart = fused;
    apart.runtime.router_rope_apart = true;
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const struct {
        Task task;
        double fused_s, apart_s;
    } rows[] = {{{.kind = TASK_ROUTE, .part = GRAPHED_ROUTER}, 383e-6, 734e-6},
                {{.kind = TASK_ROPE, .part = GRAPHED_ATTENTION}, 30e-6, 400e-6}};
    for (size_t i = 0; i < 2; i++) {
        cr_expect_float_eq(task_host_s(&fused, &plan, &rows[i].task), rows[i].fused_s, 1e-12, "%zu", i);
        cr_expect_float_eq(task_host_s(&apart, &plan, &rows[i].task), rows[i].apart_s, 1e-12, "%zu", i);
    }
}

Test(cost, gelu_without_a_bias_is_an_operation_of_pytorch) {
    const Target fused = {.fp8_flavour = FP8_TRANSFORMER_ENGINE,
                          .runtime = {.host_s_per_op = 13e-6, .module_operations = 3}};
    Target plain = fused;
    plain.runtime.plain_gelu = true;
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const Task gelu = {.kind = TASK_ACTIVATION, .part = GRAPHED_MLP};
    const Task back = {.kind = TASK_ACTIVATION_BACKWARD, .part = GRAPHED_MLP, .phase = PHASE_BACKWARD};
    cr_expect_float_eq(task_host_s(&fused, &plan, &gelu), 115e-6, 1e-9);
    cr_expect_float_eq(task_host_s(&plain, &plan, &gelu), 13e-6, 1e-9);
    cr_expect_float_eq(task_host_s(&plain, &plan, &back), 13e-6, 1e-9);
}

// In mxfp8 the gaps of what is called and cast expert by expert stand for it.
Test(cost, modules_of_mixtures_take_the_host_what_was_measured_of_them_but_in_mxfp8) {
    const Target core = {.fp8_flavour = FP8_TRANSFORMER_ENGINE,
                         .expert_flavour = EXPERTS_PERMUTE_KERNELS,
                         .runtime = {.host_s_per_op = 13e-6, .module_operations = 3}};
    TrainPlan plan = {.fused = FUSED_FUSED, .precision = DTYPE_FP8, .fp8_recipe = FP8_BLOCK};
    plan.mesh.size[AXIS_EP] = 2;
    const Task attention = {.kind = TASK_ATTENTION, .part = GRAPHED_ATTENTION};
    cr_expect_float_eq(task_host_s(&core, &plan, &attention), 566e-6, 1e-12);
    plan.fp8_recipe = FP8_MX;
    cr_expect_lt(task_host_s(&core, &plan, &attention), 100e-6);
}

// Experts are shared over ep, and a slower processor takes longer.
Test(cost, weights_that_are_hashed_after_each_step_take_the_host_by_what_a_rank_holds) {
    const Target target = {.runtime = {.hashed_s_per_parameter = 1e-9, .host_pace = 1.5}};
    const CostModel cost = {.target = &target};
    const LayerRun runs[] = {{LAYER_EXPERTS, 0, 2}};
    const ModelSpec model = {.layers = 2,
                             .hidden = 512,
                             .heads = 8,
                             .kv_heads = 8,
                             .head_dim = 64,
                             .experts = {.count = 8, .active = 2, .ffn = 1024},
                             .runs = runs,
                             .run_count = 1};
    TrainPlan plan = {.micro_batch = 1, .seq = 100, .grad_accum = 1};
    for (int i = 0; i < AXIS_COUNT; i++) {
        plan.mesh.size[i] = 1;
    }
    const double all = (double)model_parameters(&model), experts = (double)model_expert_parameters(&model);
    cr_expect_gt(experts, 0);
    cr_expect_float_eq(cost_step_fixed_s(&cost, &model, &plan), 1.5e-9 * all, 1e-12);
    plan.mesh.size[AXIS_EP] = 2;
    cr_expect_float_eq(cost_step_fixed_s(&cost, &model, &plan), 1.5e-9 * (all - experts / 2), 1e-12);
}

static double waited_s(const ClusterProfile *profile, const TrainPlan *plan, double step_s) {
    double waited_s = step_s, overhead_s = 0;
    const double wait_s = cost_wait_for_data(&(CostModel){.profile = profile}, plan, &waited_s, &overhead_s);
    cr_expect(overhead_s == wait_s && waited_s == step_s + wait_s);
    return wait_s;
}

// Read ahead, so that they cost nothing while a step takes longer than they do.
Test(cost, data_that_come_later_than_a_step_asks_are_waited_for) {
    const ClusterProfile slow = {.node.sequence_read_s = 0.05}, fast = {.node.sequence_read_s = 0};
    const TrainPlan plan = {
        .micro_batch = 4, .grad_accum = 8, .mesh.size = {[AXIS_DP_REPLICATE] = 1, [AXIS_DP_SHARD] = 1}};
    cr_expect_float_eq(waited_s(&slow, &plan, 0.6), 1, 1e-9);
    cr_expect_eq(waited_s(&slow, &plan, 1.7), 0);
    cr_expect_eq(waited_s(&fast, &plan, 0.6), 0);
}

// What a user says of one rank's drive is so of each.
Test(cost, without_a_spread_many_that_read_wait_as_one_does) {
    const ClusterProfile slow = {.node.sequence_read_s = 2};
    const TrainPlan plan = {
        .micro_batch = 1, .grad_accum = 1, .mesh.size = {[AXIS_DP_REPLICATE] = 8, [AXIS_DP_SHARD] = 64}};
    cr_expect_eq(waited_s(&slow, &plan, 0.5), 1.5);
}

// Three golden files of four ranks, of 8 sequences each, have 73, 77 and 79 ms a sequence where one rank takes 56.
Test(cost, the_slowest_of_ranks_that_read_is_waited_for) {
    const ClusterProfile slow = {.node = {.sequence_read_s = 0.056, .sequence_read_spread = 0.92}};
    const TrainPlan plan = {
        .micro_batch = 4, .grad_accum = 2, .mesh.size = {[AXIS_DP_REPLICATE] = 1, [AXIS_DP_SHARD] = 4}};
    cr_expect_float_eq(waited_s(&slow, &plan, 0) / 8, 0.077, 0.003);
}

// A product of 16 experts has GroupedLinear's Python, which a loop over them has not; beside calls of cuBLAS, 20.3 us.
Test(cost, products_of_experts_in_groups_take_the_host_the_python_of_their_module) {
    Target core = {.fp8_flavour = FP8_TRANSFORMER_ENGINE,
                   .expert_flavour = EXPERTS_PERMUTE_KERNELS,
                   .runtime = {.host_s_per_op = 13e-6, .module_operations = 3}};
    const TrainPlan plan = {.fused = FUSED_FUSED};
    const Task forward = {.kind = TASK_GROUPED_GEMM, .phase = PHASE_FORWARD, .dtype = DTYPE_BF16, .groups = 16},
               back = {.kind = TASK_GROUPED_GEMM, .phase = PHASE_BACKWARD, .dtype = DTYPE_BF16, .groups = 16},
               activation = {.kind = TASK_SWIGLU, .phase = PHASE_FORWARD},
               again = {.kind = TASK_SWIGLU, .phase = PHASE_RECOMPUTE},
               activation_back = {.kind = TASK_SWIGLU_BACKWARD, .phase = PHASE_BACKWARD};
    const double calls_s = 16 * 20.2666e-6;
    cr_expect_float_eq(task_host_s(&core, &plan, &forward), calls_s + (98 + 16 * 4.4 - 13) * 1e-6, 1e-9);
    cr_expect_float_eq(task_host_s(&core, &plan, &back), calls_s + (33 + 16 * 2.35 - 13) * 1e-6, 1e-9);
    cr_expect_float_eq(task_host_s(&core, &plan, &activation), 140e-6, 1e-9);
    cr_expect_float_eq(task_host_s(&core, &plan, &again), 140e-6, 1e-9);
    cr_expect_float_eq(task_host_s(&core, &plan, &activation_back), 54e-6, 1e-9);
    core.runtime.experts_one_by_one = true;
    cr_expect_lt(task_host_s(&core, &plan, &activation), 30e-6);
}

// By all-to-all the counts go before the tokens, and are in no node of their own; DeepEP's exchange has them.
Test(cost, layers_run_in_nodes_beside_another_micro_step_take_the_host_longer) {
    const Target core = {.fp8_flavour = FP8_TRANSFORMER_ENGINE, .runtime = {.host_s_per_op = 13e-6}};
    const TrainPlan whole = {.fused = FUSED_FUSED}, nodes = {.fused = FUSED_FUSED, .ep_overlap = true};
    const Task tokens = {.kind = TASK_ALL_TO_ALL, .phase = PHASE_FORWARD, .rows = 64},
               once = {.kind = TASK_ALL_TO_ALL, .phase = PHASE_FORWARD, .once = true, .awaited = true},
               counts = {.kind = TASK_ALL_TO_ALL, .phase = PHASE_FORWARD, .rows = 64, .awaited = true};
    const Task *const tasks[] = {&tokens, &once, &counts};
    const double more_s[] = {505e-6 * 1.4 / 4, 505e-6 * 1.4 / 4, 0};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        const double whole_s = task_host_s(&core, &whole, tasks[i]), nodes_s = task_host_s(&core, &nodes, tasks[i]);
        cr_expect_float_eq(nodes_s - whole_s, more_s[i], 1e-9, "task %zu", i);
    }
}

// CheckpointFunction runs the modules again; core attention alone is without the rest of SelfAttention.
Test(cost, modules_of_what_is_recomputed_take_the_host_as_forward_does) {
    const Target core = {.fp8_flavour = FP8_TRANSFORMER_ENGINE,
                         .expert_flavour = EXPERTS_PERMUTE_KERNELS,
                         .runtime = {.host_s_per_op = 13e-6, .module_operations = 3}};
    const TrainPlan full = {.fused = FUSED_FUSED, .recompute = RECOMPUTE_FULL};
    const TrainPlan selective = {.fused = FUSED_FUSED, .recompute = RECOMPUTE_SELECTIVE};
    const TaskKind kinds[] = {TASK_GEMM, TASK_ATTENTION, TASK_QK_NORM, TASK_ADD};
    for (int i = 0; i < 4; i++) {
        const Task forward = {.kind = kinds[i], .part = GRAPHED_ATTENTION};
        Task again = forward;
        again.phase = PHASE_RECOMPUTE;
        const double first_s = task_host_s(&core, &full, &forward), spared_s = kinds[i] == TASK_ATTENTION ? 135e-6 : 0;
        cr_expect_float_eq(task_host_s(&core, &full, &again), first_s, 1e-12, "%d", i);
        cr_expect_float_eq(task_host_s(&core, &selective, &again), first_s - spared_s, 1e-12, "%d", i);
    }
}

// Forward and again alike, back with the gradient of the input; biases and norms stay gathered. On the scale of
// Megatron-core's modules, whose host it was.
Test(cost, stage_three_of_deepspeed_takes_the_host_longer_by_its_hooks) {
    const Target hooked = {.runtime = {.host_s_per_op = 13e-6, .lost_lead = 0.5, .hooks_modules = true}};
    Target plain = hooked;
    plain.runtime.hooks_modules = false;
    const TrainPlan plan = {.zero = 3, .fused = FUSED_EAGER}, whole = {.zero = 2, .fused = FUSED_EAGER};
    const struct {
        Task task;
        double us;
    } rows[] = {
        {{.kind = TASK_GEMM}, 345},  // (1637 / 8.5 + 667 / 12.5) x 1.403
        {{.kind = TASK_GEMM, .phase = PHASE_RECOMPUTE}, 345},
        {{.kind = TASK_GEMM, .phase = PHASE_BACKWARD}, 500.8},  // (2430 / 8.5 + 888 / 12.5) x 1.403
        {{.kind = TASK_GEMM, .phase = PHASE_BACKWARD, .trans_a = true}, 0},
        {{.kind = TASK_RMSNORM}, 270.2},
        {{.kind = TASK_SWIGLU}, 540.4},
        {{.kind = TASK_ADD}, 0},
        {{.kind = TASK_ADAMW, .phase = PHASE_OPTIMIZER}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Task *task = &rows[i].task;
        const double more_s = task_host_s(&hooked, &plan, task) - task_host_s(&plain, &plan, task);
        cr_expect_float_eq(more_s, rows[i].us * 1e-6, 0.1e-6, "row %zu: %g", i, more_s);
        cr_expect_eq(task_host_s(&hooked, &whole, task), task_host_s(&plain, &whole, task), "row %zu", i);
        cr_expect_eq(task_gap_s(&hooked, &plan, task, 1e-4), task_gap_s(&plain, &plan, task, 1e-4), "row %zu", i);
    }
}

// By parameter, one flat one, or behind each gradient, on the scale of Megatron-core's modules; at stage 3 alone. Nine
// slices that are seven parameters; experts are in their layer's hooks where those are behind each gradient.
Test(cost, hooks_of_a_unit_take_the_host_longer_where_it_is_gathered_and_reduced) {
    ParamSlice slices[9] = {{0}};
    for (size_t i = 0; i < 7; i++) {
        slices[i].parameters = 1;
    }
    Unit units[UNIT_COUNT] = {{.slice_count = 9}, [UNIT_EXPERTS] = {.slice_count = 9}};
    StepProgram program = {.plan = {.zero = 3}, .units = units, .unit_count = UNIT_COUNT, .slices = slices};
    const struct {
        Task task;
        double us[SHARD_HOOKS_COUNT];
    } rows[] = {
        {{.kind = TASK_ALL_GATHER}, {0, 695.3, 321.3, 451.8}},  // (301 + 7 x 27.8) x 1.403, (245 + 7 x 11) x 1.403
        {{.kind = TASK_ALL_GATHER, .phase = PHASE_BACKWARD}, {0, 427.9, 224.5, 138.0}},
        {{.kind = TASK_REDUCE_SCATTER, .phase = PHASE_REDUCE}, {0, 486.3, 188.0, 758.6}},
        {{.kind = TASK_REDUCE_SCATTER, .phase = PHASE_REDUCE, .unit = UNIT_EXPERTS}, {0, 486.3, 188.0, 266.1}},
        {{.kind = TASK_ALL_GATHER, .phase = PHASE_OPTIMIZER}, {0}},
        {{.kind = TASK_ALL_GATHER, .unit = -1}, {0}},
        {{.kind = TASK_COPY}, {0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int hooks = 0; hooks < SHARD_HOOKS_COUNT; hooks++) {
            const Target target = {.runtime.shard_hooks = (ShardHooks)hooks};
            const CostModel model = {.target = &target};
            program.plan.zero = 3;
            const double more_s = shard_host_s(&model, &program, &rows[i].task);
            cr_expect_float_eq(more_s, rows[i].us[hooks] * 1e-6, 0.1e-6, "row %zu, %d: %g", i, hooks, more_s);
            program.plan.zero = 0;
            cr_expect_eq(shard_host_s(&model, &program, &rows[i].task), 0, "row %zu", i);
        }
    }
}
