// Launches on the way to experts and back, counted in Megatron-LM (sim/cost/expert_launches.c).

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/cost/compute.h"
#include "sim/cost/cost.h"
#include "sim/cost/products.h"
#include "tests/support/lowered.h"
#include "tests/unit/sim/cost/machines.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(expert_launches, .fini = clean);

static StepProgram program_of(const char *target, Dispatch dispatch, bool fp8) {
    const LoweredRequest request = {.target = target,
                                    .model = "tiny-moe",
                                    .mesh = "dp_shard=2,ep=2",
                                    .layers = 1,
                                    .bf16 = true,
                                    .fp8 = fp8,
                                    .fp8_recipe = fp8 ? FP8_MX : FP8_TENSORWISE,
                                    .dispatch = dispatch};
    return lowered(&arena, request);
}

static int launches(const StepProgram *program, Phase phase) {
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        count += task->phase == phase ? expert_launches(program->target, &program->plan, task) : 0;
    }
    return count;
}

// Forward: router 6, counts 6, their exchange 1 and copies home 4, rows mapped 3 and moved 1, tokens and weights sent
// 2, chunks mapped and sorted 2, back 3, returned 1, summed 1. Backward: router 10, and a kernel for each of the rest
// but what was sent apart, 2.
Test(expert_launches, of_an_all_to_all_are_thirty_forward_and_seventeen_back) {
    const StepProgram program = program_of("megatron", DISPATCH_ALLTOALL, false);
    cr_expect_eq(launches(&program, PHASE_FORWARD), 6 + 6 + 1 + 4 + 3 + 1 + 2 + 2 + 3 + 1 + 1);
    cr_expect_eq(launches(&program, PHASE_BACKWARD), 10 + 1 + 1 + 1 + 1 + 2 + 1);
}

// Router 6, its choice found again 2; layout, notify, dispatch 3; a map of what came 1, rows mapped and moved 4; moved
// back 1; notify, combine 2. Backward: 10 and 2, both kernels each way, a map back beside one order.
Test(expert_launches, of_deepep_are_nineteen_each_way) {
    const StepProgram program = program_of("megatron", DISPATCH_DEEPEP, false);
    cr_expect_eq(launches(&program, PHASE_FORWARD), 6 + 2 + 3 + 1 + 4 + 1 + 2);
    cr_expect_eq(launches(&program, PHASE_BACKWARD), 10 + 2 + 2 + 1 + 2 + 2);
}

// Router 6; map, metadata, counts padded 3, flags, kernel and two meetings 4, rows moved and counts summed 2; moved
// back 1, exchanged 4. Backward: 10, two exchanges of 4 and two orders.
Test(expert_launches, of_hybridep_are_twenty_each_way) {
    const StepProgram program = program_of("megatron", DISPATCH_HYBRIDEP, false);
    cr_expect_eq(launches(&program, PHASE_FORWARD), 6 + 3 + 4 + 2 + 1 + 4);
    cr_expect_eq(launches(&program, PHASE_BACKWARD), 10 + 4 + 4 + 1 + 1);
}

// Exchanges are calls of torch.distributed, of six operations each: of the counts, of tokens and their weights, back.
static int operations(const Task *task, int launches) {
    const bool exchange = task->kind == TASK_ALL_TO_ALL;
    return launches + (!exchange ? 0 : task->rows > 0 ? launches * (6 - 1) : 6 - 1);
}

// What was measured with its Python is no count.
Test(expert_launches, are_an_operation_of_the_host_each_and_exchanges_six) {
    const StepProgram program = program_of("megatron", DISPATCH_ALLTOALL, false);
    int counted = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        const int count = expert_launches(program.target, &program.plan, task);
        counted += count > 0;
        const double measured = module_host_operations(program.target, &program.plan, task);
        const double expected_s =
            (measured > 0 ? measured : operations(task, count)) * program.target->runtime.host_s_per_op;
        cr_expect(count == 0 || fabs(task_host_s(program.target, &program.plan, task) - expected_s) < 1e-12, "%s",
                  task->name);
    }
    cr_expect_eq(counted, 8 + 7);
}

// Forward: counts exchanged 6 and home 4; order 7; sent 6; aligned 16; back in order 1; returned 6; summed 6. Backward:
// 5, 6, 3, 6 by index, 6, and 12 by index.
Test(expert_launches, that_nothing_compiles_are_operations_of_pytorch) {
    const StepProgram apart = program_of("torchtitan", DISPATCH_ALLTOALL, false);
    cr_expect_eq(launches(&apart, PHASE_FORWARD), 6 + 4 + 7 + 6 + 16 + 1 + 6 + 6);
    cr_expect_eq(launches(&apart, PHASE_BACKWARD), 5 + 6 + 3 + 6 + 6 + 12);
    const StepProgram compiled = program_of("torchtitan@head", DISPATCH_ALLTOALL, false);
    cr_expect_eq(launches(&compiled, PHASE_FORWARD) + launches(&compiled, PHASE_BACKWARD), 0);
}

// Megatron-core's without its fused kernels.
static Target apart_of(const StepProgram *program, int rounds, bool deterministic) {
    Target apart = *program->target;
    apart.runtime.routes_apart = true;
    apart.runtime.sinkhorn_rounds = rounds;
    apart.runtime.fills_results = deterministic;
    return apart;
}

// Forward: Sinkhorn's 15 and 16 a round; two slices, counts home 3, order 9, weights turned twice and picked 7; zeros
// and added. Back: 2; zeros and added, six of the mask, zeros and put; picked.
Test(expert_launches, of_operations_of_pytorch_are_counted_in_megatrons_router_and_dispatcher) {
    StepProgram program = program_of("megatron", DISPATCH_ALLGATHER, false);
    const Target three = apart_of(&program, 3, false), four = apart_of(&program, 4, false);
    program.target = &three;
    cr_expect_eq(launches(&program, PHASE_FORWARD), 15 + 3 * 16 + 2 + 3 + 9 + 2 + 7 + 2);
    cr_expect_eq(launches(&program, PHASE_BACKWARD), 2 + 2 + 6 + 2 + 1);
    program.target = &four;
    cr_expect_eq(launches(&program, PHASE_FORWARD), 15 + 4 * 16 + 2 + 3 + 9 + 2 + 7 + 2);
}

Test(expert_launches, deterministic_put_by_sorted_indices) {
    StepProgram program = program_of("megatron", DISPATCH_ALLGATHER, false);
    const Target free_order = apart_of(&program, 0, false), sorted = apart_of(&program, 0, true);
    program.target = &free_order;
    const int forward = launches(&program, PHASE_FORWARD), back = launches(&program, PHASE_BACKWARD);
    program.target = &sorted;
    cr_expect(launches(&program, PHASE_FORWARD) > 2 * forward && launches(&program, PHASE_BACKWARD) > 3 * back / 2);
}

Test(expert_launches, a_router_that_asks_for_its_balance_stops_the_host) {
    StepProgram program = program_of("megatron", DISPATCH_ALLGATHER, false);
    const Target asks = apart_of(&program, 3, false), goes_on = apart_of(&program, 0, false);
    const Task route = {.kind = TASK_ROUTE, .phase = PHASE_FORWARD};
    cr_expect_eq(task_host_stop(&asks, &program.plan, &route), HOST_WAITS_FOR_END);
    cr_expect_eq(task_host_stop(&goes_on, &program.plan, &route), HOST_GOES_ON);
}

// Of four local experts: 84 us of Python for three products, and a call; and three more activations.
Test(expert_launches, experts_one_by_one_are_a_module_each) {
    const StepProgram program = program_of("megatron", DISPATCH_ALLTOALL, false);
    Target apart = *program.target;
    apart.runtime.experts_one_by_one = true;
    const Task product = {.kind = TASK_GROUPED_GEMM, .phase = PHASE_FORWARD, .groups = 4, .dtype = DTYPE_BF16};
    const double expected_s = 4 * (84e-6 / 3 + 20.2666e-6) + 3 * 13e-6;
    cr_expect_float_eq(task_host_s(&apart, &program.plan, &product), expected_s, 1e-9);
    apart.adds_gradients = true;
    const Task gradient = {
        .kind = TASK_GROUPED_GEMM, .phase = PHASE_BACKWARD, .groups = 4, .dtype = DTYPE_BF16, .trans_a = true};
    cr_expect_float_eq(task_host_s(&apart, &program.plan, &gradient), expected_s + 2 * 4 * 13e-6, 1e-9);
}

static const Task *awaited_of(const StepProgram *program) {
    for (int32_t i = 0; i < program->task_count; i++) {
        if (program->tasks[i].awaited) {
            return &program->tasks[i];
        }
    }
    cr_assert_fail("nothing is awaited");
    return NULL;
}

// Two copies of counts. HybridEP's kernel, between flags and two meetings of its ranks, is one task with its counts.
Test(expert_launches, behind_the_counts_are_two_copies_and_what_is_one_task_with_them) {
    static const struct {
        const char *target;
        Dispatch dispatch;
        HostStop stop;
        int operations;
    } rows[] = {{"megatron", DISPATCH_ALLTOALL, HOST_WAITS_FOR_END, 2},
                {"megatron", DISPATCH_DEEPEP, HOST_WAITS_FOR_START, 2 + 1},
                {"megatron", DISPATCH_HYBRIDEP, HOST_WAITS_FOR_START, 2 + 4},
                {"torchtitan", DISPATCH_ALLTOALL, HOST_WAITS_FOR_END, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const StepProgram program = program_of(rows[i].target, rows[i].dispatch, false);
        const Task *task = awaited_of(&program);
        cr_expect_eq(task_host_stop(program.target, &program.plan, task), rows[i].stop, "row %zu", i);
        cr_expect_float_eq(task_read_back_s(program.target, &program.plan, task),
                           rows[i].operations * program.target->runtime.host_s_per_op, 1e-12, "row %zu", i);
    }
}

// Three kernels, each way, over rows that are read and written: padded tokens and weights, and results without it.
Test(expert_launches, in_fp8_pad_the_rows_of_each_expert_unless_the_exchange_does) {
    const StepProgram bf16 = program_of("megatron", DISPATCH_ALLTOALL, false);
    const StepProgram fp8 = program_of("megatron", DISPATCH_ALLTOALL, true);
    const StepProgram hybrid = program_of("megatron", DISPATCH_HYBRIDEP, true);
    for (Phase phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase += PHASE_BACKWARD - PHASE_FORWARD) {
        cr_expect_eq(launches(&fp8, phase), launches(&bf16, phase) + 3);
    }
    const Task order = {.kind = TASK_PERMUTE, .groups = 4};
    cr_expect_eq(traffic_passes(bf16.target, &bf16.plan, &order), 1);
    cr_expect_eq(traffic_passes(fp8.target, &fp8.plan, &order), 2);
    cr_expect_eq(traffic_passes(hybrid.target, &hybrid.plan, &order), 1);
}

static double exchange_s(Dispatch dispatch, bool beside) {
    const ClusterProfile profile = machine_h100();
    StepProgram program = program_of("megatron", dispatch, false);
    program.plan.ep_overlap = beside;
    const CostModel model = {.profile = &profile, .target = program.target, .chip_factor = 1, .paired = true};
    int32_t i = 0;
    while (program.tasks[i].kind != TASK_ALL_TO_ALL || !program.tasks[i].once || program.tasks[i].awaited) {
        i++;
    }
    return cost_task(&model, &program, &program.tasks[i]).seconds;
}

// What DeepSeek's profile leaves in the open, and HybridEP's 32 multiprocessors or DeepEP's 24 of 132.
Test(expert_launches, an_exchange_beside_a_micro_step_takes_multiprocessors_from_its_kernels) {
    const double open = 5.0 / 113;
    cr_expect_float_eq(exchange_s(DISPATCH_HYBRIDEP, true) / exchange_s(DISPATCH_HYBRIDEP, false), open + 32.0 / 132,
                       1e-3);
    cr_expect_float_eq(exchange_s(DISPATCH_DEEPEP, true) / exchange_s(DISPATCH_DEEPEP, false), open + 24.0 / 132, 1e-3);
}

// SharedExpertMLP's are Transformer Engine's, whatever graphs capture them with the router's, which is torch's.
Test(expert_launches, products_of_a_shared_expert_are_modules_as_of_any_mlp) {
    const StepProgram program = lowered(
        &arena,
        (LoweredRequest){
            .target = "megatron", .model = "qwen1.5-moe-a2.7b", .mesh = "dp_shard=2,ep=2", .layers = 1, .bf16 = true});
    double router_s = 0, shared_s = 0, attention_s = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        const double host_s = task_host_s(program.target, &program.plan, task);
        router_s = strcmp(task->name, "router dgrad") == 0 ? host_s : router_s;
        shared_s = strcmp(task->name, "mlp down dgrad") == 0 ? host_s : shared_s;
        attention_s = strcmp(task->name, "attention out dgrad") == 0 ? host_s : attention_s;
    }
    cr_expect_float_eq(attention_s, 49e-6, 1e-12);  // half of a Linear's backward
    cr_expect_float_eq(router_s, 70e-6, 1e-12);     // of RouterGatingLinear's
    cr_expect_eq(shared_s, attention_s);
}

// get_bias_dropout_add of both halves.
Test(expert_launches, the_sum_behind_experts_is_a_module_as_that_behind_attention) {
    const StepProgram program = program_of("megatron", DISPATCH_ALLTOALL, false);
    double sums_s[2] = {0};
    int sums = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (task->kind == TASK_ADD && task->phase == PHASE_FORWARD && sums < 2) {
            sums_s[sums++] = task_host_s(program.target, &program.plan, task);
        }
    }
    cr_assert_eq(sums, 2);
    cr_expect_eq(sums_s[0], sums_s[1]);
}

Test(expert_launches, elements_that_atomics_add_take_as_long_as_they_do_beyond_their_traffic) {
    Accelerator chip = machine_h100().accelerator;
    const Task task = {.dtype = DTYPE_BF16, .atomic_elements = 1 << 24};
    const double traffic_s = (4 << 24) / (chip.memory_bytes_per_s * chip.memory_efficiency);
    chip.atomic_s = 0;
    cr_expect_eq(cost_apart_s(&chip, &task), 0);
    chip.atomic_s = 3 * traffic_s / (1 << 24);
    cr_expect_float_eq(cost_apart_s(&chip, &task), 2 * traffic_s, 1e-12);
}

Test(expert_launches, elements_that_are_added_in_sorted_order_take_their_own_time_beyond_three_planes) {
    Accelerator chip = machine_h100().accelerator;
    const Task task = {.dtype = DTYPE_BF16, .sorted_elements = 1 << 24};
    const double traffic_s = (6 << 24) / (chip.memory_bytes_per_s * chip.memory_efficiency);
    chip.sorted_s = 0;
    cr_expect_eq(cost_apart_s(&chip, &task), 0);
    chip.sorted_s = 3 * traffic_s / (1 << 24);
    cr_expect_float_eq(cost_apart_s(&chip, &task), 2 * traffic_s, 1e-12);
}

// 64 tokens to 4 of 32 experts: a mean of 8 rows, 1.37 times as many of the busiest.
Test(expert_launches, a_bias_gradient_by_index_takes_rows_of_an_expert_one_after_another) {
    const LoweredRequest request = {
        .target = "trl", .model = "gpt-oss-20b", .mesh = "dp_shard=8", .layers = 1, .bf16 = true};
    const StepProgram program = lowered(&arena, request);
    Task task = {.kind = TASK_COLUMN_SUM, .rows = 64 * 4, .groups = 32};
    Accelerator chip = machine_h100().accelerator;
    cr_expect_float_eq(cost_repeated_s(&chip, &program, &task), 8 * 1.37 * 0.98e-6, 1e-7);
    chip.clock_hz = 1.83e9 / 2;  // as many clocks
    cr_expect_float_eq(cost_repeated_s(&chip, &program, &task), 2 * 8 * 1.37 * 0.98e-6, 1e-7);
    task.groups = 0;
    cr_expect_eq(cost_repeated_s(&chip, &program, &task), 0);
}

// Of 8,192 tokens on an H100, where plain ones take half as long and less.
Test(expert_launches, experts_by_ligers_kernels_go_back_at_a_pace_of_their_own) {
    const ClusterProfile profile = machine_h100();
    for (int fused = 0; fused < 2; fused++) {
        const StepProgram program = lowered(&arena, (LoweredRequest){.target = "trainer",
                                                                     .model = "qwen3-30b-a3b",
                                                                     .mesh = "dp_shard=8",
                                                                     .layers = 1,
                                                                     .seq = 8192,
                                                                     .bf16 = true,
                                                                     .fused = fused == 1});
        const CostModel model = {.profile = &profile, .target = program.target, .chip_factor = 1};
        int found = 0;
        for (int32_t i = 0; i < program.task_count; i++) {
            const Task *task = &program.tasks[i];
            if (task->kind == TASK_GROUPED_GEMM && task->phase == PHASE_BACKWARD) {
                const double seconds = cost_grouped_time(&model, &program, task).seconds;
                cr_expect_eq(seconds >= task->flops / 262e12, fused == 1, "%s: %g s", task->name, seconds);
                found++;
            }
        }
        cr_expect_eq(found, 4);
    }
}
