// Tasks to costs: a small program built by hand, one task of interest each.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/cost/cost.h"
#include "tests/support/kernel_seconds.h"
#include "tests/support/sizes.h"
#include "tests/unit/sim/cost/machines.h"

static const Target fused = {.name = "fused",
                             .zigzag = true,
                             .runtime.host_s_per_op = 1e-6,
                             .runtime.memory_passes = 1,
                             .runtime.loss_bytes_per_logit = 16,
                             .runtime.optimizer_bytes_per_parameter = 28};
static const Target eager = {.name = "eager",
                             .zigzag = false,
                             .runtime.host_s_per_op = 10e-6,
                             .runtime.memory_passes = 3,
                             .runtime.loss_bytes_per_logit = 32,
                             .runtime.optimizer_bytes_per_parameter = 60};

typedef struct Bench {
    ClusterProfile profile;
    StepProgram program;
    Buffer buffers[2];
    Operand operands[AT_ADAMW_WORKING + 1];
    Group groups[1];
    CostModel model;
} Bench;

// A world of 16 ranks on two nodes: fully sharded over 16.
static void bench_begin(Bench *bench, ClusterProfile profile, const Target *target) {
    *bench = (Bench){.profile = profile};
    bench->buffers[0] = (Buffer){.dtype = DTYPE_BF16, .slots = 1};
    bench->buffers[1] = (Buffer){.dtype = DTYPE_FP32, .slots = 1};
    bench->operands[AT_GEMM_A] = bench->operands[AT_GEMM_B] =
        (Operand){.ref = {.buffer = 0, .bytes = 4 << 20}, .access = ACCESS_READ};
    bench->operands[AT_GEMM_C] = (Operand){.ref = {.buffer = 0, .bytes = 4 << 20}, .access = ACCESS_WRITE};
    bench->groups[0] = (Group){.axes = AXES_SHARD_GROUP, .size = 16};
    bench->program = (StepProgram){.target = target,
                                   .plan = {.mesh = {SIZES(1, 16, 1, 1)},
                                            .seq = 4096,
                                            .micro_batch = 1,
                                            .precision = DTYPE_BF16,
                                            .fused = target == &eager ? FUSED_EAGER : FUSED_FUSED},
                                   .buffers = bench->buffers,
                                   .buffer_count = 2,
                                   .operands = bench->operands,
                                   .operand_count = 3,
                                   .groups = bench->groups,
                                   .group_count = 1};
    bench->model = (CostModel){.profile = &bench->profile, .target = target};
}

static TaskCost bench_cost(Bench *bench, Task task) {
    task.operand_count = 3;
    return cost_task(&bench->model, &bench->program, &task);
}

Test(cost_task, gemm_is_the_tile_model_plus_the_gap) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    const TaskCost cost =
        bench_cost(&bench, (Task){.kind = TASK_GEMM, .dtype = DTYPE_BF16, .m = 4096, .n = 4096, .k = 4096});
    const Accelerator *accelerator = &bench.profile.accelerator;
    cr_assert_float_eq(cost.seconds, gemm_s(accelerator, DTYPE_BF16, 4096, 4096, 4096, 2) + accelerator->kernel_gap_s,
                       1e-12);
    cr_assert_str_eq(cost.algorithm, "tile");
    cr_assert_eq(cost.sm_share, 1);
    cr_assert_eq(cost.host_s, 1e-6);
}

Test(cost_task, weight_gradient_into_fp32_that_accumulates_reads_its_output) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    bench.operands[AT_GEMM_C].ref.buffer = 1;
    const TaskCost cost = bench_cost(
        &bench, (Task){.kind = TASK_GEMM, .dtype = DTYPE_BF16, .m = 4096, .n = 4096, .k = 512, .accumulate = true});
    const Accelerator *accelerator = &bench.profile.accelerator;
    cr_assert_float_eq(cost.seconds, gemm_s(accelerator, DTYPE_BF16, 4096, 4096, 512, 8) + accelerator->kernel_gap_s,
                       1e-12);
}

Test(cost_task, eager_norm_moves_its_passes_in_eight_kernels) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &eager);
    const TaskCost cost =
        bench_cost(&bench, (Task){.kind = TASK_RMSNORM, .phase = PHASE_FORWARD, .traffic_bytes = 64 << 20});
    const Accelerator *accelerator = &bench.profile.accelerator;
    const double stream_s = 3.0 * (64 << 20) / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    cr_assert_float_eq(cost.seconds, stream_s + 8 * (accelerator->kernel_floor_s + accelerator->kernel_gap_s), 1e-12);
    cr_assert_float_eq(cost.host_s, 80e-6, 1e-12);
    cr_assert_eq(cost.memory_bound, 1);
}

// The executor multiplies in bf16 there and widens results for the other kernels.
Test(cost_task, processors_price_products_alone_by_their_rate_in_bf16) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    Accelerator *accelerator = &bench.profile.accelerator;
    accelerator->device_class = DEVICE_CLASS_CPU;
    bench.profile.node.cores = bench.profile.node.accelerators;
    accelerator->gemm[DTYPE_FP32] = accelerator->gemm[DTYPE_BF16];
    accelerator->gemm[DTYPE_FP32].peak_flop_per_s /= 8;
    const TaskCost product =
        bench_cost(&bench, (Task){.kind = TASK_GEMM, .dtype = DTYPE_BF16, .m = 4096, .n = 4096, .k = 4096});
    cr_expect_float_eq(product.seconds,
                       gemm_s(accelerator, DTYPE_BF16, 4096, 4096, 4096, 2) + accelerator->kernel_gap_s, 1e-12);
    const Task attention = {.kind = TASK_ATTENTION,
                            .dtype = DTYPE_BF16,
                            .sequences = 1,
                            .rows = 4096,
                            .cols = 4096,
                            .heads = 32,
                            .kv_heads = 8,
                            .head_dim = 128};
    Task full = attention;
    full.dtype = DTYPE_FP32;
    cr_expect_float_eq(bench_cost(&bench, attention).seconds, bench_cost(&bench, full).seconds, 1e-12);
    const Task norm = {.kind = TASK_RMSNORM, .dtype = DTYPE_BF16, .traffic_bytes = 64 << 20};
    const double stream_s = 5.0 * (64 << 20) / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    cr_expect_float_eq(bench_cost(&bench, norm).seconds,
                       stream_s + accelerator->kernel_floor_s + accelerator->kernel_gap_s, 1e-9);
}

// Only where the target says so, and the stages are not all on one node.
Test(cost_task, stages_on_other_nodes_cost_the_host_of_a_tp_collective_time_for_each_other_rank) {
    static Target waits;
    waits = fused;
    waits.runtime.check_message_s = 0.1e-3;
    const Task gather = {.kind = TASK_ALL_GATHER, .payload_bytes = 1 << 20};
    Bench bench;
    bench_begin(&bench, machine_h100(), &waits);
    bench.groups[0] = (Group){.axes = AXIS_BIT(AXIS_TP), .size = 4};
    bench.program.plan.mesh = (Mesh){.size = SIZES(1, 4, 1, 4)};
    const double alone_s = bench_cost(&bench, gather).host_s;
    bench.program.plan.mesh.size[AXIS_DP_SHARD] = 2;
    bench.program.plan.mesh.size[AXIS_PP] = 2;
    cr_expect_float_eq(bench_cost(&bench, gather).host_s, alone_s + 4 * 3 * 0.1e-3, 1e-12);
    bench.program.plan.mesh.size[AXIS_DP_SHARD] = 1;
    cr_expect_float_eq(bench_cost(&bench, gather).host_s, alone_s, 1e-12, "8 ranks are on one node");
}

// From this many nodes on, also to a stage on its own node: a sender once its message can go, a receiver meanwhile.
Test(cost_task, hosts_of_a_large_job_sleep_until_a_message_has_gone) {
    Target waits = fused;
    waits.runtime = (TargetRuntime){.message_sleep_s = 0.25, .stalls_from_nodes = 4, .stalls_from_tp_nodes = 8};
    const Task send = {.kind = TASK_SEND, .peer = 1, .payload_bytes = 1 << 20}, receive = {.kind = TASK_RECEIVE};
    Bench bench;
    bench_begin(&bench, machine_h100(), &waits);
    bench.program.plan.mesh = (Mesh){.size = SIZES(1, 8, 1, 1)};
    bench.program.plan.mesh.size[AXIS_PP] = 2;
    const TaskCost few = bench_cost(&bench, send), few_taken = bench_cost(&bench, receive);
    bench.program.plan.mesh.size[AXIS_DP_SHARD] = 16;
    const TaskCost sent = bench_cost(&bench, send), taken = bench_cost(&bench, receive);
    cr_expect_float_eq(sent.seconds, few.seconds + 0.25, 1e-12);
    cr_expect_float_eq(taken.host_s, few_taken.host_s + 0.25, 1e-12);
    cr_expect(few.host_stop == HOST_GOES_ON && sent.host_stop == taken.host_stop && sent.host_stop != HOST_GOES_ON);
    bench.program.plan.mesh.size[AXIS_PP] = 32;
    bench.program.plan.mesh.size[AXIS_DP_SHARD] = 1;
    const double slept_s = bench_cost(&bench, send).seconds;
    waits.runtime.message_sleep_s = 0;
    cr_expect_float_eq(slept_s, bench_cost(&bench, send).seconds + 0.25, 1e-12);
}

Test(cost_task, autograd_issues_eager_backward_in_less_host_time) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &eager);
    const Task gemm = {.kind = TASK_GEMM, .phase = PHASE_BACKWARD, .dtype = DTYPE_BF16, .m = 512, .n = 512, .k = 512};
    cr_assert_float_eq(bench_cost(&bench, gemm).host_s, 7e-6, 1e-12);
}

Test(cost_task, a_softmax_kernel_that_refuses_the_shape_costs_host_time) {
    Bench bench;
    Target megatron = fused;
    megatron.fused_softmax = true;
    bench_begin(&bench, machine_h100(), &megatron);
    bench.program.plan.attention = ATTENTION_EAGER;
    Task attention = {.kind = TASK_ATTENTION,
                      .dtype = DTYPE_BF16,
                      .rows = 512,
                      .cols = 512,
                      .sequences = 1,
                      .heads = 4,
                      .kv_heads = 4,
                      .head_dim = 64};
    const double taken_s = bench_cost(&bench, attention).host_s;
    attention.heads = attention.kv_heads = 2;
    cr_assert_gt(bench_cost(&bench, attention).host_s, 1.5 * taken_s);
    attention.sequences = 2;
    cr_assert_eq(bench_cost(&bench, attention).host_s, taken_s);
}

Test(cost_task, experts_that_are_launched_one_by_one_cost_a_launch_each_and_the_host_a_call_and_a_cast) {
    Bench bench;
    Target megatron = fused;
    megatron.expert_flavour = EXPERTS_PERMUTE_KERNELS;
    megatron.runtime.lost_lead = 0;
    Task product = {.kind = TASK_GROUPED_GEMM, .dtype = DTYPE_BF16, .m = 4096, .n = 512, .k = 512, .groups = 16};
    bench_begin(&bench, machine_h100(), &fused);
    const double together_s = bench_cost(&bench, product).host_s;
    bench_begin(&bench, machine_h100(), &megatron);
    const double s = megatron.runtime.host_s_per_op / 13;  // of a microsecond where an operation takes 13
    cr_expect_float_eq(bench_cost(&bench, product).host_s, together_s + (16 * 20.2666 - 13) * s, 1e-12);
    const double one_s = bench_cost(&bench, product).seconds - 15 * bench.profile.accelerator.gemm[DTYPE_BF16].launch_s;
    product.cast_bytes = 1;
    cr_expect_float_eq(bench_cost(&bench, product).host_s, together_s + (16 * (20.2666 + 10.327) - 13) * s, 1e-12);
    megatron.experts_at_once = true;
    cr_expect_float_eq(bench_cost(&bench, product).host_s, together_s, 1e-12);
    product.cast_bytes = 0;
    cr_expect_float_eq(bench_cost(&bench, product).seconds, one_s, 1e-12);
}

Test(cost_task, what_nothing_explains_is_added_to_layers_and_not_to_the_optimizer) {
    Bench bench;
    Target other = fused;
    other.runtime.other_share = 0.25;
    const Task gemm = {.kind = TASK_GEMM, .dtype = DTYPE_BF16, .m = 4096, .n = 4096, .k = 4096};
    const Task adamw = {.kind = TASK_ADAMW};
    bench_begin(&bench, machine_h100(), &fused);
    const double gap_s = bench.profile.accelerator.kernel_gap_s;
    const double gemm_s = bench_cost(&bench, gemm).seconds, adamw_s = bench_cost(&bench, adamw).seconds;
    bench_begin(&bench, machine_h100(), &other);
    cr_assert_float_eq(bench_cost(&bench, gemm).seconds - gap_s, 1.25 * (gemm_s - gap_s), 1e-12);
    cr_assert_eq(bench_cost(&bench, adamw).seconds, adamw_s);
}

Test(cost_task, functional_collectives_along_the_sequence_cost_a_copy) {
    Bench bench;
    Target copying = fused;
    copying.tp_copies = true;
    const Task gather = {.kind = TASK_ALL_GATHER, .lane = LANE_TP, .dtype = DTYPE_BF16, .payload_bytes = 100000000};
    Task sum = gather;
    sum.kind = TASK_ALL_REDUCE;
    bench_begin(&bench, machine_h100(), &fused);
    const double gather_s = bench_cost(&bench, gather).seconds, sum_s = bench_cost(&bench, sum).seconds;
    const Accelerator accelerator = bench.profile.accelerator;
    bench_begin(&bench, machine_h100(), &copying);
    const double copy_s = memory_bound_s(&accelerator, 200e6);
    cr_assert_float_eq(bench_cost(&bench, gather).seconds, gather_s + copy_s, 1e-9);
    cr_assert_eq(bench_cost(&bench, sum).seconds, sum_s);
}

Test(cost_task, units_in_one_bucket_share_its_start_between_nodes) {
    Bench bench;
    Target bucketed = fused;
    bucketed.runtime.bucket_parameters = 200e6;
    ClusterProfile profile = machine_h100();
    profile.fabric.group_latency_s = 1e-3;
    const Task reduce = {.kind = TASK_REDUCE_SCATTER, .lane = LANE_RS, .dtype = DTYPE_FP32, .payload_bytes = 100000000};
    bench_begin(&bench, profile, &fused);
    Task bucket = reduce;
    bucket.payload_bytes = 800000000;  // 200e6 fp32 gradients
    const double alone_s = bench_cost(&bench, reduce).seconds, bucket_s = bench_cost(&bench, bucket).seconds;
    bench_begin(&bench, profile, &bucketed);
    cr_assert_float_eq(bench_cost(&bench, reduce).seconds, bucket_s / 8, 1e-9);
    cr_assert_lt(bench_cost(&bench, reduce).seconds, alone_s - 0.75e-3);
}

Test(cost_task, three_loss_tasks_move_the_bytes_per_logit_of_the_target) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    const Accelerator *accelerator = &bench.profile.accelerator;
    double seconds = 0;
    for (int kind = TASK_LOSS_MAX; kind <= TASK_LOSS_GRADIENT; kind++) {
        seconds += bench_cost(&bench, (Task){.kind = (TaskKind)kind, .rows = 4096, .cols = 32000}).seconds;
    }
    const double stream_s = 16.0 * 4096 * 32000 / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    cr_assert_float_eq(seconds, stream_s + 3 * (accelerator->kernel_floor_s + accelerator->kernel_gap_s), 1e-12);
}

static double eager_loss_bytes_s(Target target, int64_t vocab) {
    Bench bench;
    target.runtime.loss_bytes_per_logit = 0;  // PyTorch's
    bench_begin(&bench, machine_h100(), &target);
    bench.program.plan.fused = FUSED_EAGER;
    const Task sum = {.kind = TASK_LOSS_SUM, .rows = 4096, .cols = vocab};
    const Accelerator *accelerator = &bench.profile.accelerator;
    const double starts_s = 3 * (accelerator->kernel_floor_s + accelerator->kernel_gap_s);
    return (bench_cost(&bench, sum).seconds - starts_s) / (double)(4096 * vocab) * accelerator->memory_bytes_per_s *
           accelerator->memory_efficiency;
}

Test(cost_task, rows_of_logits_beyond_the_cache_are_read_again) {
    Target by_row = eager, whole = eager;
    by_row.runtime.loss_by_row = true;
    cr_expect_float_eq(eager_loss_bytes_s(by_row, 128256), 48.0 / 4, 1e-6);
    cr_expect_float_eq(eager_loss_bytes_s(by_row, 32000), 32.0 / 4, 1e-6);
    cr_expect_float_eq(eager_loss_bytes_s(whole, 128256), 32.0 / 4, 1e-6);
}

Test(cost_task, a_strided_rotary_moves_23_planes_and_a_contiguous_one_10) {
    Target strided = eager, contiguous = eager;
    strided.runtime.memory_passes = contiguous.runtime.memory_passes = 0;
    strided.runtime.strided_rotary = true;
    const Task rope = {.kind = TASK_ROPE, .phase = PHASE_FORWARD, .traffic_bytes = 2 * (64 << 20)};
    Bench bench;
    bench_begin(&bench, machine_h100(), &strided);
    bench.program.plan.fused = FUSED_EAGER;
    const double long_s = bench_cost(&bench, rope).seconds;
    bench_begin(&bench, machine_h100(), &contiguous);
    bench.program.plan.fused = FUSED_EAGER;
    const double bytes_per_s =
        bench.profile.accelerator.memory_bytes_per_s * bench.profile.accelerator.memory_efficiency;
    cr_assert_float_eq(long_s - bench_cost(&bench, rope).seconds, 13.0 * (64 << 20) / bytes_per_s, 1e-12);
}

Test(cost_task, a_loss_at_once_reads_and_writes_the_logits_as_they_are) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    const Accelerator *accelerator = &bench.profile.accelerator;
    const double bytes = 4.0 * 4096 * 32000;  // bf16, there and back
    const Task loss = {
        .kind = TASK_LOSS, .dtype = DTYPE_BF16, .rows = 4096, .cols = 32000, .traffic_bytes = (int64_t)bytes};
    const double stream_s = bytes / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    cr_assert_float_eq(bench_cost(&bench, loss).seconds,
                       stream_s + 2 * (accelerator->kernel_floor_s + accelerator->kernel_gap_s), 1e-12);
}

Test(cost_task, adamw_moves_the_targets_bytes_per_element_of_the_shard) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    bench.operands[AT_ADAMW_MASTER].ref = (BufferRef){.buffer = 1, .bytes = 400 << 20};  // fp32 master: 100 Mi elements
    const TaskCost cost = bench_cost(&bench, (Task){.kind = TASK_ADAMW});
    const Accelerator *accelerator = &bench.profile.accelerator;
    const double stream_s = 28.0 * (100 << 20) / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    cr_assert_float_eq(cost.seconds, stream_s + accelerator->kernel_floor_s + accelerator->kernel_gap_s, 1e-12);
}

static double stream_s(const Bench *bench, double bytes) {
    const Accelerator *accelerator = &bench->profile.accelerator;
    return bytes / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency) + accelerator->kernel_floor_s +
           accelerator->kernel_gap_s;
}

Test(cost_task, an_update_that_writes_the_working_copy_moves_its_bytes_too) {
    Bench bench;
    Target own = fused;
    own.own_kernels = true;
    bench_begin(&bench, machine_h100(), &own);
    bench.operands[AT_ADAMW_MASTER].ref = (BufferRef){.buffer = 1, .bytes = 400 << 20};
    bench.operands[AT_ADAMW_WORKING].ref = (BufferRef){.buffer = 0, .bytes = 200 << 20};  // bf16
    cr_assert_float_eq(bench_cost(&bench, (Task){.kind = TASK_ADAMW}).seconds, stream_s(&bench, 30.0 * (100 << 20)),
                       1e-12);
}

Test(cost_task, the_first_gradient_of_an_embedding_is_written_whole) {
    Bench bench;
    Target own = fused;
    own.own_kernels = true;
    bench_begin(&bench, machine_h100(), &own);
    bench.operands[AT_EMBED_BACKWARD_DTABLE].ref.bytes = 300 << 20;
    Task task = {.kind = TASK_EMBED_BACKWARD, .traffic_bytes = 100 << 20};
    cr_assert_float_eq(bench_cost(&bench, task).seconds, stream_s(&bench, 400 << 20), 1e-12);
    task.accumulate = true;
    cr_assert_float_eq(bench_cost(&bench, task).seconds, stream_s(&bench, 100 << 20), 1e-12);
}

Test(cost_task, gather_over_slow_nics_needs_them_more_than_the_links) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    bench.profile.fabric.nic_bytes_per_s = 25e9;  // half: 8 x 25 GB/s compared with links of 400 GB/s
    const TaskCost cost = bench_cost(&bench, (Task){.kind = TASK_ALL_GATHER, .group = 0, .payload_bytes = 1 << 30});
    cr_assert_str_eq(cost.algorithm, "ring");
    cr_assert_float_eq(cost.sm_share, 24.0 / 132, 1e-6);
    cr_assert_gt(cost.use[RESOURCE_NIC], cost.use[RESOURCE_NODE_LINK]);
    cr_assert_leq(cost.use[RESOURCE_NIC], 1);
    cr_assert_gt(cost.use[RESOURCE_HBM], 0);
}

// Both nodes on a leaf of one: everything between them crosses uplinks of a quarter of the NICs.
Test(cost_task, gather_across_leaves_needs_the_narrow_uplink_most) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    const TaskCost below = bench_cost(&bench, (Task){.kind = TASK_ALL_GATHER, .group = 0, .payload_bytes = 1 << 30});
    cr_assert_eq(below.use[RESOURCE_UPLINK], 0);
    bench.profile.fabric.tier[0] = (FabricTier){.nodes = 1, .oversubscription = 4};
    const TaskCost across = bench_cost(&bench, (Task){.kind = TASK_ALL_GATHER, .group = 0, .payload_bytes = 1 << 30});
    cr_assert_gt(across.seconds, 3 * below.seconds);
    cr_assert_gt(across.use[RESOURCE_UPLINK], 0.9);
    cr_assert_lt(across.use[RESOURCE_NIC], 0.3);
}

Test(cost_task, gather_inside_a_node_leaves_the_nics_alone) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    bench.program.plan.mesh = (Mesh){.size = SIZES(2, 8, 1, 1)};
    const TaskCost cost = bench_cost(&bench, (Task){.kind = TASK_ALL_GATHER, .group = 0, .payload_bytes = 1 << 30});
    cr_assert_eq(cost.use[RESOURCE_NIC], 0);
    cr_assert_gt(cost.use[RESOURCE_NODE_LINK], 0.9);
}

Test(cost_task, collective_of_a_group_of_one_takes_no_time_and_no_resource) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    bench.program.plan.mesh = (Mesh){.size = SIZES(16, 1, 1, 1)};
    const TaskCost cost = bench_cost(&bench, (Task){.kind = TASK_REDUCE_SCATTER, .group = 0, .payload_bytes = 1 << 30});
    cr_assert_eq(cost.seconds, 0);
    cr_assert_eq(cost.sm_share, 0);
    cr_assert_str_eq(cost.algorithm, "none");
}

static Task ring_block(int ring_step) {
    return (Task){.kind = TASK_ATTENTION,
                  .dtype = DTYPE_BF16,
                  .rows = 2048,
                  .cols = 2048,
                  .sequences = 1,
                  .heads = 32,
                  .kv_heads = 8,
                  .head_dim = 128,
                  .ring_step = (int16_t)ring_step};
}

Test(cost_task, contiguous_ring_waits_for_ranks_that_see_whole_blocks) {
    Bench zigzag, contiguous;
    bench_begin(&zigzag, machine_h100(), &fused);
    Target slow = fused;
    slow.zigzag = false;
    bench_begin(&contiguous, machine_h100(), &slow);
    zigzag.program.plan.mesh = contiguous.program.plan.mesh = (Mesh){.size = SIZES(1, 4, 4, 1)};
    const double ratio = bench_cost(&contiguous, ring_block(1)).seconds / bench_cost(&zigzag, ring_block(1)).seconds;
    cr_assert(ratio > 1.7 && ratio < 2.0, "%g", ratio);  // twice the work at a better ramp
    cr_assert_eq(bench_cost(&contiguous, ring_block(0)).seconds, bench_cost(&zigzag, ring_block(0)).seconds);
}

Test(cost_task, eager_ring_block_pays_for_its_merge) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &eager);
    bench.program.plan.mesh = (Mesh){.size = SIZES(1, 4, 4, 1)};
    const Accelerator *accelerator = &bench.profile.accelerator;
    const double block_s = attention_s(accelerator, DTYPE_BF16, 1, 32, 128, 2048, 2048, 1, false);
    const double merge_s = 12.0 * 2048 * 32 * 128 / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    cr_assert_gt(bench_cost(&bench, ring_block(1)).seconds, block_s + merge_s);
}

Test(cost_task, equal_keys_are_priced_alike_except_for_host_time) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &eager);
    Task tasks[40] = {{0}};
    for (int i = 0; i < 40; i++) {
        tasks[i] = (Task){.kind = TASK_GEMM,
                          .dtype = DTYPE_BF16,
                          .m = 1024,
                          .n = 1024,
                          .k = 64 * (1 + i % 3),
                          .operand_count = 3,
                          .phase = i < 20 ? PHASE_FORWARD : PHASE_BACKWARD,
                          .key = (uint64_t)(i % 3) << 40};
    }
    bench.program.tasks = tasks;
    bench.program.task_count = 40;
    Arena arena = {0};
    const TaskCost *costs = cost_program(&bench.model, &bench.program, &arena);
    for (int i = 0; i < 40; i++) {
        const TaskCost alone = cost_task(&bench.model, &bench.program, &tasks[i]);
        cr_assert_eq(costs[i].seconds, alone.seconds);
        cr_assert_eq(costs[i].host_s, alone.host_s);
    }
    arena_free(&arena);
}

Test(cost_task, ranks_on_one_cpu_share_its_cores_in_programs_too) {
    Bench bench;
    bench_begin(&bench, machine_cpu(), &fused);
    const Task gemm = {.kind = TASK_GEMM, .dtype = DTYPE_FP32, .m = 512, .n = 512, .k = 512};
    bench.program.plan.mesh = (Mesh){.size = SIZES(1, 4, 1, 1)};
    const double alone_s = bench_cost(&bench, gemm).seconds;
    bench.program.plan.mesh = (Mesh){.size = SIZES(1, 8, 1, 1)};  // eight ranks, four cores
    cr_assert_float_eq(bench_cost(&bench, gemm).seconds, 2 * alone_s, 1e-9);
}

// A step waits for the slowest core, and there are four of them under eight ranks as under four.
Test(cost_task, ranks_that_take_turns_scatter_as_their_cores_do) {
    Bench bench;
    bench_begin(&bench, machine_cpu(), &fused);
    bench.profile.accelerator.chip_spread = 0.1;
    const Task gemm = {.kind = TASK_GEMM, .dtype = DTYPE_FP32, .m = 512, .n = 512, .k = 512};
    bench.program.plan.mesh = (Mesh){.size = SIZES(1, 4, 1, 1)};
    const double four_s = bench_cost(&bench, gemm).seconds;
    bench.program.plan.mesh = (Mesh){.size = SIZES(1, 8, 1, 1)};
    cr_assert_float_eq(bench_cost(&bench, gemm).seconds, 2 * four_s, 1e-9);
}

static void add_fp8(Bench *bench, double exact_share) {
    Accelerator *accelerator = &bench->profile.accelerator;
    accelerator->gemm[DTYPE_FP8] = accelerator->gemm[DTYPE_BF16];
    accelerator->fp8_exact_share = exact_share;
}

// Hopper's tensor cores keep few bits of a sum of fp8 products: gradients, reading transposed weights, add up outside.
Test(cost_task, fp8_gradients_pay_for_exact_sums_where_the_chip_has_two_rates) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    add_fp8(&bench, 0.5);
    Task task = {.kind = TASK_GEMM, .dtype = DTYPE_FP8, .m = 8192, .n = 8192, .k = 8192};
    const double gradient_s = bench_cost(&bench, task).seconds;
    task.trans_b = true;
    const double forward_s = bench_cost(&bench, task).seconds;
    cr_assert_gt(gradient_s, 1.8 * forward_s);
    cr_assert_lt(gradient_s, 2 * forward_s);
}

Test(cost_task, casts_before_a_gemm_are_streamed) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    add_fp8(&bench, 1);
    Task task = {.kind = TASK_GEMM, .dtype = DTYPE_FP8, .m = 8192, .n = 8192, .k = 8192};
    const double bare_s = bench_cost(&bench, task).seconds;
    task.cast_bytes = 1 << 30;
    cr_assert_float_eq(bench_cost(&bench, task).seconds, bare_s + memory_bound_s(&bench.profile.accelerator, 1 << 30),
                       1e-12);
}

static double sliding_s(double window_share, bool backward) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    return bench_cost(&bench, (Task){.kind = backward ? TASK_ATTENTION_BACKWARD : TASK_ATTENTION,
                                     .dtype = DTYPE_BF16,
                                     .rows = 32768,
                                     .cols = 32768,
                                     .sequences = 1,
                                     .heads = 32,
                                     .kv_heads = 8,
                                     .head_dim = 128,
                                     .window = window_share > 0 ? 4096 : 0,
                                     .window_share = window_share})
        .seconds;
}

Test(cost_task, a_sliding_window_costs_what_it_sees) {
    for (int backward = 0; backward < 2; backward++) {
        const double share = sliding_s(1, backward) / sliding_s(0, backward);
        // 4096 (1 - 1/16) of 16384 keys, with the tiles of a second edge and a shorter ramp
        cr_assert(share > 3840.0 / 16384 && share < 1.3 * 3840 / 16384, "%g", share);
    }
}

Test(cost_task, layers_that_slide_by_turns_cost_the_mean) {
    cr_assert_float_eq(sliding_s(0.5, false), (sliding_s(0, false) + sliding_s(1, false)) / 2, 1e-9);
}

static double grouped_rate(int64_t experts, int64_t rows) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    const double flops = 2.0 * (double)(experts * rows) * 4096 * 2048;
    return flops / bench_cost(&bench, (Task){.kind = TASK_GROUPED_GEMM,
                                             .dtype = DTYPE_BF16,
                                             .groups = (int32_t)experts,
                                             .m = experts * rows,
                                             .n = 4096,
                                             .k = 2048})
                       .seconds;
}

static double grouped_sum_s(int32_t experts, bool accumulate) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    bench.operands[AT_GEMM_C].ref.buffer = 1;
    return bench_cost(&bench, (Task){.kind = TASK_GROUPED_GEMM,
                                     .dtype = DTYPE_BF16,
                                     .trans_a = true,
                                     .accumulate = accumulate,
                                     .groups = experts,
                                     .m = 4096,
                                     .n = 4096,
                                     .k = 1024 * experts})
        .seconds;
}

// Of fp32 sums: read, which the products do not hide.
Test(cost_task, every_experts_gradient_that_adds_up_reads_its_sum) {
    const double one_s = grouped_sum_s(1, true) - grouped_sum_s(1, false);
    cr_assert_gt(one_s, 0.5 * 4096 * 4096 * 4 / machine_h100().accelerator.memory_bytes_per_s);
    cr_assert_float_eq(grouped_sum_s(16, true) - grouped_sum_s(16, false), 16 * one_s, 3 * one_s);
}

Test(cost_task, grouped_products_slow_down_with_rows_per_expert_and_not_with_experts) {
    cr_assert_float_eq(grouped_rate(64, 2048) / grouped_rate(8, 2048), 1, 0.05);
    cr_assert_lt(grouped_rate(64, 64), 0.75 * grouped_rate(64, 2048));
}

// Casts, broadcasts and strided rows of PyTorch: beyond their traffic, where the accelerator is slower than it.
Test(cost_task, kernels_that_take_elements_one_by_one_take_as_long_as_their_elements) {
    Bench bench;
    bench_begin(&bench, machine_h100(), &fused);
    bench.profile.accelerator.element_s = 0;
    Task task = {.kind = TASK_PERMUTE, .cast_bytes = 6 << 24, .apart_elements = 1 << 24, .apart_bytes = 6 << 24};
    const double streamed_s = bench_cost(&bench, task).seconds;
    task.cast_bytes = 0;
    const double traffic_s = streamed_s - bench_cost(&bench, task).seconds;
    task.cast_bytes = task.apart_bytes;
    bench.profile.accelerator.element_s = 2 * traffic_s / (1 << 24);
    cr_assert_float_eq(bench_cost(&bench, task).seconds, streamed_s + traffic_s, 1e-9);
    bench.profile.accelerator.element_s /= 4;
    cr_assert_float_eq(bench_cost(&bench, task).seconds, streamed_s, 1e-12);
}
