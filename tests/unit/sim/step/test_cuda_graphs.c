// Forward and backward replayed as CUDA graphs: host work saved, memory kept, which targets have them.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cost/compute.h"
#include "sim/frameworks/target_choices.h"
#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(cuda_graphs, .fini = clean);

static LoweredRequest request_of(const char *target, GraphUse graphs) {
    return (LoweredRequest){
        .target = target, .mesh = "dp_shard=4", .grad_accum = 2, .bf16 = true, .cuda_graphs = graphs};
}

static double held_gradients(const StepProgram *program) {
    double bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes +=
            buffer->role == ROLE_GRADIENT && buffer->persistent ? (double)buffer->slots * (double)buffer->bytes : 0;
    }
    return bytes;
}

static double masters(const StepProgram *program) {
    double bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes += buffer->role == ROLE_PARAMETER ? (double)buffer->slots * (double)buffer->bytes : 0;
    }
    return bytes;
}

// torchtitan 0.3.0: trainer.py wraps fwd_bwd_fn, and the optimizer is stepped outside.
Test(cuda_graphs, the_host_issues_the_optimizer_and_the_batch_only) {
    const StepProgram replayed = lowered(&arena, request_of("torchtitan@0.3", CUDA_GRAPHS_TARGET));
    const StepProgram issued = lowered(&arena, request_of("torchtitan@0.3", CUDA_GRAPHS_OFF));
    cr_assert_eq(replayed.task_count, issued.task_count);
    int captured = 0;
    for (int32_t i = 0; i < replayed.task_count; i++) {
        const Task *task = &replayed.tasks[i];
        const bool behind = task->phase == PHASE_OPTIMIZER || task->kind == TASK_LOAD_TOKENS;
        const double own_s = task_host_s(issued.target, &issued.plan, &issued.tasks[i]);
        cr_expect_eq(task_host_s(replayed.target, &replayed.plan, task), behind ? own_s : 0, "%s", task->name);
        captured += !behind && own_s > 0;
    }
    cr_expect_gt(captured, 10);
}

// The same: zero_grad(set_to_none=disable_cuda_graphs), so 4 bytes a parameter over the shards, as the fp32 weights.
Test(cuda_graphs, gradients_of_torchtitan_keep_their_memory) {
    const StepProgram replayed = lowered(&arena, request_of("torchtitan@0.3", CUDA_GRAPHS_TARGET));
    const StepProgram issued = lowered(&arena, request_of("torchtitan@0.3", CUDA_GRAPHS_OFF));
    cr_expect_eq(held_gradients(&issued), 0);
    cr_expect_eq(held_gradients(&replayed), masters(&replayed));
}

// Megatron-core 0.19.2: gradients have a buffer of their own anyway (param_and_grad_buffer.py).
Test(cuda_graphs, of_a_whole_iteration_of_megatron_hold_no_more) {
    const StepProgram replayed = lowered(&arena, request_of("megatron@0.19", CUDA_GRAPHS_ON));
    const StepProgram issued = lowered(&arena, request_of("megatron@0.19", CUDA_GRAPHS_TARGET));
    cr_expect_gt(held_gradients(&issued), 0);
    cr_expect_eq(held_gradients(&replayed), held_gradients(&issued));
}

// TransformerLayer._forward_attention and _forward_mlp (transformer_layer.py): attention from its norm to its sum, each
// with backward. Collectives of gradients and the optimizer stay outside.
Test(cuda_graphs, of_attention_leave_the_rest_to_the_host) {
    const GraphUse attention = (GraphUse)(CUDA_GRAPHS_LAYERS + GRAPHED_ATTENTION);
    const StepProgram replayed = lowered(&arena, request_of("megatron@0.19", attention));
    const StepProgram issued = lowered(&arena, request_of("megatron@0.19", CUDA_GRAPHS_TARGET));
    static const char *const inside[] = {"qkv", "attention", "attention out", "qkv wgrad", "attention out dgrad"};
    static const char *const outside[] = {"gate up", "mlp down", "mlp down wgrad", "embed", "reduce gradients"};
    int captured = 0;
    cr_assert_eq(replayed.task_count, issued.task_count);
    for (int32_t i = 0; i < replayed.task_count; i++) {
        const char *name = replayed.tasks[i].name;
        const double host_s = task_host_s(replayed.target, &replayed.plan, &replayed.tasks[i]);
        const double own_s = task_host_s(issued.target, &issued.plan, &issued.tasks[i]);
        cr_expect(host_s == 0 || host_s == own_s, "%s", name);
        captured += host_s == 0 && own_s > 0;
        for (size_t k = 0; k < sizeof inside / sizeof inside[0]; k++) {
            cr_expect(strcmp(name, inside[k]) != 0 || host_s == 0, "%s", name);
            cr_expect(strcmp(name, outside[k]) != 0 || host_s == own_s, "%s", name);
        }
    }
    cr_expect_gt(captured, 5);
}

// _forward_mlp up to MoELayer.preprocess(): the router, the exchange of counts and tokens in the order of the experts.
// The products of experts and their exchange, whose sizes differ from step to step, are not in it.
Test(cuda_graphs, of_the_router_leave_experts_to_the_host) {
    LoweredRequest request = request_of("megatron@0.19", (GraphUse)(CUDA_GRAPHS_LAYERS + GRAPHED_ROUTER));
    request.model = "tiny-moe";
    request.mesh = "dp_shard=4,ep=4";
    const StepProgram program = lowered(&arena, request);
    int captured = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        const double host_s = task_host_s(program.target, &program.plan, task);
        const bool orders = (task->kind == TASK_PERMUTE && task->groups == 0) ||
                            (task->kind == TASK_UNPERMUTE && task->backward) || task->awaited;
        const bool routes = task->kind == TASK_ROUTE || task->kind == TASK_ROUTE_BACKWARD || orders;
        const bool moves = task->kind == TASK_GROUPED_GEMM || task->kind == TASK_ATTENTION ||
                           (!orders && (task->kind == TASK_ALL_TO_ALL || task->kind == TASK_PERMUTE));
        cr_expect(!routes || host_s == 0, "%s", task->name);
        cr_expect(!moves || host_s > 0, "%s", task->name);
        captured += routes;
    }
    cr_expect_gt(captured, 1);
}

static const char *reason_of(const char *name, const char *mesh, GraphUse graphs, const Target **target,
                             TrainPlan *plan) {
    Error error = {0};
    ModelSpec model;
    const char *reason = NULL;
    cr_assert_eq(model_find("tiny", &arena, &model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find(name, target, &error), STATUS_OK, "%s", error.message);
    *plan = (TrainPlan){.seq = 64,
                        .micro_batch = 1,
                        .grad_accum = 4,
                        .precision = DTYPE_BF16,
                        .attention = (*target)->default_attention,
                        .fused = (*target)->default_fused,
                        .cuda_graphs = graphs};
    cr_assert_eq(mesh_parse(mesh, &plan->mesh, &error), STATUS_OK, "%s", error.message);
    plan->zero = target_default_zero(*target, &plan->mesh);
    target_canonical(*target, plan);
    target_check(*target, &model, plan, &arena, &reason);
    return reason;
}

// 0.3.0: _validate_cuda_graphs (trainer.py) refuses pipelines; the switch that it then names is off in our own file.
Test(cuda_graphs, there_are_none_of_a_pipeline) {
    const Target *target;
    TrainPlan plan;
    cr_expect_null(reason_of("torchtitan@0.3", "pp=2,dp_shard=2", CUDA_GRAPHS_TARGET, &target, &plan));
    cr_expect_not(target_cuda_graphs(target, &plan));
    cr_expect_str_eq(reason_of("torchtitan@0.3", "pp=2,dp_shard=2", CUDA_GRAPHS_ON, &target, &plan),
                     "cuda_graphs=on with pp=2: it refuses CUDA graphs of a pipeline; use cuda_graphs off");
    cr_expect_str_eq(reason_of("megatron@0.19", "pp=2,dp_shard=2", CUDA_GRAPHS_ON, &target, &plan),
                     "cuda_graphs=on with pp=2: the memory that graphs of stages keep is not modelled; use cuda_graphs "
                     "off");
}

Test(cuda_graphs, who_has_no_switch_refuses_them) {
    const Target *target;
    TrainPlan plan;
    cr_expect_str_eq(reason_of("torchtitan@0.2", "dp_shard=4", CUDA_GRAPHS_ON, &target, &plan),
                     "torchtitan@0.2 has no switch for cuda_graphs=on: use cuda_graphs target");
    cr_expect_null(reason_of("torchtitan@0.2", "dp_shard=4", CUDA_GRAPHS_OFF, &target, &plan));
    cr_expect_eq(plan.cuda_graphs, CUDA_GRAPHS_TARGET);
}

Test(cuda_graphs, its_own_value_said_is_the_plan_of_nothing_said) {
    const Target *target;
    TrainPlan plan;
    cr_expect_null(reason_of("torchtitan@0.3", "dp_shard=4", CUDA_GRAPHS_ON, &target, &plan));
    cr_expect_eq(plan.cuda_graphs, CUDA_GRAPHS_TARGET);
    cr_expect_eq(target_told(target, &plan, PLAN_CUDA_GRAPHS), CUDA_GRAPHS_ON);
}

// They need no memory of a whole pipeline, and transformer_config.py refuses what has no such part.
Test(cuda_graphs, of_parts_go_with_stages_and_are_refused_where_there_is_no_such_part) {
    const Target *target;
    TrainPlan plan;
    const GraphUse mlp = (GraphUse)(CUDA_GRAPHS_LAYERS + GRAPHED_MLP);
    const GraphUse router = (GraphUse)(CUDA_GRAPHS_LAYERS + GRAPHED_ATTENTION + GRAPHED_ROUTER);
    cr_expect_null(reason_of("megatron@0.19", "pp=2,dp_shard=2", mlp, &target, &plan));
    cr_expect_eq(plan.cuda_graphs, mlp);
    cr_expect_eq(target_told(target, &plan, PLAN_CUDA_GRAPHS), (int)mlp);
    cr_expect_null(reason_of("megatron@0.19", "dp_shard=4", CUDA_GRAPHS_LAYERS, &target, &plan));
    cr_expect_str_eq(reason_of("megatron@0.19", "dp_shard=4", router, &target, &plan),
                     "cuda_graphs=attn+router of tiny, which has no router: moe cuda graph is only supported for MoE");
    cr_expect_str_eq(reason_of("torchtitan@0.3", "dp_shard=4", mlp, &target, &plan),
                     "torchtitan@0.3 has no switch for cuda_graphs=mlp: use cuda_graphs target");
}

// A graph of the whole step: 1 + 1/32 bytes of each value of both inputs, 2 of gate and up, the weight; both ways.
Test(cuda_graphs, a_whole_graph_pages_what_fused_experts_keep) {
    enum { HIDDEN = 2048, WIDTH = 768, INPUTS = HIDDEN + WIDTH };
    LoweredRequest request = {.model = "qwen3-30b-a3b",
                              .target = "megatron@0.19",
                              .mesh = "dp_shard=8,ep=4",
                              .fp8 = true,
                              .fp8_recipe = FP8_MX,
                              .dispatch = DISPATCH_HYBRIDEP,
                              .cuda_graphs = CUDA_GRAPHS_ON,
                              .op_fuser = true};
    const StepProgram program = lowered(&arena, request);
    const Task *to = first_named(&program, "rows to pages");
    cr_expect_eq(to->rows, first_named(&program, "experts down")->m);
    cr_expect_eq(to->cols, (INPUTS + INPUTS / 32 + 4) / 2 + 2 * WIDTH);
    cr_expect_eq(first_named(&program, "rows from pages")->cols, to->cols);
    request.cuda_graphs = (GraphUse)(CUDA_GRAPHS_LAYERS + GRAPHED_ATTENTION + GRAPHED_ROUTER);
    const StepProgram parts = lowered(&arena, request);
    for (int32_t i = 0; i < parts.task_count; i++) {
        cr_expect_str_neq(parts.tasks[i].name, "rows to pages");
    }
}
