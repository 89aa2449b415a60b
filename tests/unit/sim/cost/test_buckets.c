// Stage 1 that reduces and gathers in other pieces than layers: a program built by hand, mostly one layered unit.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/cost/buckets.h"
#include "sim/cost/cost.h"
#include "tests/support/sizes.h"
#include "tests/unit/sim/cost/machines.h"

enum { LAYERS = 8, SHARDS = 16, SLICES = 9 };

static const int64_t layer_parameters = 25000000;

typedef struct Bench {
    ClusterProfile profile;
    StepProgram program;
    Unit units[UNIT_COUNT];
    ParamSlice slices[SLICES];
    Buffer buffer;
    Operand operands[AT_ADAMW_WORKING + 1];
    Group group;
    CostModel model;
} Bench;

// Sharded over 16 ranks on two nodes, a start-up of 1 ms between them.
static void bench_begin(Bench *bench, const Target *target) {
    *bench = (Bench){.profile = machine_h100(),
                     .buffer = {.dtype = DTYPE_FP32, .slots = 1},
                     .group = {.axes = AXES_SHARD_GROUP, .size = SHARDS}};
    bench->profile.fabric.group_latency_s = 1e-3;
    bench->units[UNIT_LAYER] = (Unit){.layered = true,
                                      .trainable = true,
                                      .instances = LAYERS,
                                      .shards = SHARDS,
                                      .slice_count = SLICES,
                                      .trained_padded = layer_parameters};
    bench->operands[AT_ADAMW_MASTER].ref.bytes = 4 * layer_parameters / SHARDS;
    bench->program = (StepProgram){.target = target,
                                   .plan = {.mesh = {SIZES(1, SHARDS, 1, 1)},
                                            .seq = 4096,
                                            .micro_batch = 1,
                                            .zero = 1,
                                            .precision = DTYPE_BF16,
                                            .fused = FUSED_FUSED},
                                   .buffers = &bench->buffer,
                                   .buffer_count = 1,
                                   .operands = bench->operands,
                                   .operand_count = AT_ADAMW_WORKING + 1,
                                   .groups = &bench->group,
                                   .group_count = 1,
                                   .units = bench->units,
                                   .unit_count = UNIT_COUNT,
                                   .slices = bench->slices,
                                   .slice_count = SLICES};
    bench->model = (CostModel){.profile = &bench->profile, .target = target};
}

static double seconds(Bench *bench, Task task) {
    task.unit = UNIT_LAYER;
    task.operand_count = AT_ADAMW_WORKING + 1;
    return cost_task(&bench->model, &bench->program, &task).seconds;
}

Test(buckets, gradients_that_stage_1_reduces_late_start_up_once_for_all_of_a_rank) {
    Bench bench;
    const Target unit_by_unit = {.name = "by unit"}, late = {.name = "late", .late_reduce = true};
    Task reduce = {.kind = TASK_REDUCE_SCATTER,
                   .lane = LANE_RS,
                   .dtype = DTYPE_FP32,
                   .phase = PHASE_REDUCE,
                   .payload_bytes = 4 * layer_parameters};
    bench_begin(&bench, &late);
    const double layer_s = seconds(&bench, reduce);
    bench_begin(&bench, &unit_by_unit);
    reduce.payload_bytes *= LAYERS;
    cr_assert_float_eq(LAYERS * layer_s, seconds(&bench, reduce), 1e-9);
}

// Of nine slices three are one parameter with the one before: six parameters of 16 ranks.
Test(buckets, each_part_of_each_parameter_that_was_gathered_flat_is_a_copy) {
    Bench bench;
    Target flat = {.name = "flat", .gathers_flat = true, .runtime.part_copy_s = 1e-3};
    const Task gather = {.kind = TASK_ALL_GATHER,
                         .lane = LANE_AG,
                         .dtype = DTYPE_BF16,
                         .phase = PHASE_OPTIMIZER,
                         .payload_bytes = 2 * layer_parameters};
    bench_begin(&bench, &flat);
    for (int i = 0; i < SLICES; i++) {
        bench.slices[i].parameters = i < 1 || i > 3;
    }
    const double before_s = seconds(&bench, gather);
    flat.runtime.part_copy_s = 2e-3;
    cr_assert_float_eq(seconds(&bench, gather) - before_s, 6 * SHARDS * 1e-3, 1e-9);
}

Test(buckets, the_update_moves_the_gradients_of_other_ranks_too) {
    Bench bench;
    Target whole = {.name = "whole", .runtime.optimizer_bytes_per_parameter = 46};
    const Task update = {.kind = TASK_ADAMW, .phase = PHASE_OPTIMIZER};
    bench_begin(&bench, &whole);
    const double own_s = seconds(&bench, update);
    whole.runtime.whole_bytes_per_parameter = 16;
    const double bytes = 16.0 * (double)(layer_parameters - layer_parameters / SHARDS);
    const Accelerator *accelerator = &bench.profile.accelerator;
    cr_assert_float_eq(seconds(&bench, update) - own_s,
                       bytes / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency), 1e-9);
}

// Of DDP: divided into its bucket, and copied out of it.
Test(buckets, each_gradient_of_replicas_is_read_and_written_twice_more) {
    Bench bench;
    Target copies = {.name = "copies", .runtime.optimizer_bytes_per_parameter = 46};
    const Task update = {.kind = TASK_ADAMW, .phase = PHASE_OPTIMIZER};
    bench_begin(&bench, &copies);
    bench.program.plan.zero = 0;
    bench.program.plan.mesh.size[AXIS_DP_SHARD] = 1;
    bench.program.plan.mesh.size[AXIS_DP_REPLICATE] = SHARDS;
    bench.operands[AT_ADAMW_GRADIENT].ref.bytes = 4 * layer_parameters;
    const double viewed_s = seconds(&bench, update);
    copies.runtime.copies_buckets = true;
    const Accelerator *accelerator = &bench.profile.accelerator;
    const double bytes_per_s = accelerator->memory_bytes_per_s * accelerator->memory_efficiency;
    cr_assert_float_eq(seconds(&bench, update) - viewed_s, 16.0 * (double)layer_parameters / bytes_per_s, 1e-9);
}

// A bucket is of 40e6 parameters, and of one more million for each rank beyond 40.
Test(buckets, the_host_stops_once_for_each_bucket_that_backward_reduces_beside_it) {
    const Target target = {.runtime = {.bucket_parameters = 40e6,
                                       .bucket_parameters_per_rank = 1e6,
                                       .bucket_stop_operations = 10,
                                       .host_s_per_op = 1e-5}};
    const CostModel cost = {.target = &target};
    const ModelSpec model = {.layers = 1, .hidden = 20000, .heads = 1, .kv_heads = 1, .head_dim = 20000};
    TrainPlan plan = {.mesh = {SIZES(1, 8, 1, 1)}, .zero = 1};
    const double parameters = (double)model_parameters(&model);
    cr_expect_float_eq(cost_step_fixed_s(&cost, &model, &plan), ceil(parameters / 40e6) * 1e-4, 1e-9);
    plan.mesh.size[AXIS_DP_SHARD] = 64;
    cr_expect_float_eq(cost_step_fixed_s(&cost, &model, &plan), ceil(parameters / 64e6) * 1e-4, 1e-9);
    plan.reduce_overlap = REDUCE_OVERLAP_OFF;
    cr_expect_eq(cost_step_fixed_s(&cost, &model, &plan), 0);
    plan.reduce_overlap = REDUCE_OVERLAP_ON;
    plan.mesh.size[AXIS_DP_SHARD] = 1;
    cr_expect_eq(cost_step_fixed_s(&cost, &model, &plan), 0);
}

// Eight layers of 25e6 and an embedding of 50e6.
static double reduced_s(Bench *bench, int unit, int64_t parameters) {
    Task task = {.kind = TASK_REDUCE_SCATTER,
                 .lane = LANE_RS,
                 .dtype = DTYPE_FP32,
                 .phase = PHASE_REDUCE,
                 .unit = (int16_t)unit,
                 .payload_bytes = 4 * parameters};
    return cost_task(&bench->model, &bench->program, &task).seconds;
}

static void bench_of_buckets(Bench *bench, const Target *target) {
    bench_begin(bench, target);
    bench->profile.fabric.group_latency_s = 0;
    bench->units[UNIT_LAYER].trained_elements = layer_parameters;
    bench->units[UNIT_EMBEDDING] =
        (Unit){.trainable = true, .instances = 1, .trained_elements = 2 * layer_parameters, .shards = SHARDS};
}

Test(buckets, what_one_bucket_holds_is_reduced_with_the_embedding) {
    Bench bench;
    const Target target = {.runtime = {.bucket_parameters = 40e6, .bucket_parameters_per_rank = 1e9}};
    bench_of_buckets(&bench, &target);
    cr_expect_eq(reduced_s(&bench, UNIT_LAYER, layer_parameters), 0);
    const double all_s = reduced_s(&bench, UNIT_EMBEDDING, 2 * layer_parameters);
    bench.units[UNIT_LAYER].trainable = false;
    cr_expect_float_eq(all_s, reduced_s(&bench, UNIT_EMBEDDING, (LAYERS + 2) * layer_parameters), 1e-9);
}

Test(buckets, a_bucket_is_no_larger_than_what_its_buffer_holds) {
    const int64_t all = (LAYERS + 2) * layer_parameters;
    Bench bench;
    const Target beyond = {.runtime = {.bucket_parameters = 40e6, .bucket_parameters_per_rank = 1e9}};
    const Target just = {.runtime = {.bucket_parameters = (double)all, .bucket_parameters_per_rank = 1}};
    bench_of_buckets(&bench, &just);
    const double whole_s = reduced_s(&bench, UNIT_EMBEDDING, 2 * layer_parameters);
    bench_of_buckets(&bench, &beyond);
    cr_assert_float_eq(reduced_s(&bench, UNIT_EMBEDDING, 2 * layer_parameters), whole_s, 1e-12);
}

// Buckets of 160e6: 40e6 of the layers' 200e6 are left for the embedding's.
Test(buckets, layers_that_the_last_bucket_holds_leave_with_the_embedding) {
    const StepProgram program = {
        .target = &(Target){.runtime = {.bucket_parameters = 40e6, .bucket_parameters_per_rank = 10e6}},
        .plan = {.mesh = {SIZES(1, SHARDS, 1, 1)}, .zero = 1},
        .units = (Unit[UNIT_COUNT]){
            [UNIT_LAYER] = {.trainable = true, .instances = LAYERS, .trained_elements = layer_parameters},
            [UNIT_EMBEDDING] = {.trainable = true, .instances = 1, .trained_elements = 2 * layer_parameters}}};
    const Task layer = {.lane = LANE_RS, .unit = UNIT_LAYER}, embedding = {.lane = LANE_RS, .unit = UNIT_EMBEDDING};
    cr_expect_float_eq(buckets_travelling_share(&program, &layer, SHARDS), 1 - 40.0 / 200, 1e-12);
    cr_expect_float_eq(buckets_travelling_share(&program, &embedding, SHARDS), 1 + 40.0 / 50, 1e-12);
    StepProgram later = program;
    later.stage = 1;
    cr_expect_eq(buckets_travelling_share(&later, &layer, SHARDS), 1);
}
