// State kept on the host: not in the accelerator's memory, moved over its link, updated at the host's memory bandwidth.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cost/cost.h"
#include "sim/memory/memory.h"
#include "sim/step/resizable.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(offload, .fini = end);

static const int shards = 4;

static StepProgram program_of(const char *target, Offload offload, int zero) {
    return lowered(&arena, (LoweredRequest){.model = "llama-3.2-1b",
                                            .target = target,
                                            .mesh = "dp_shard=4",
                                            .zero = zero,
                                            .bf16 = true,
                                            .offload = offload});
}

static MemoryBreakdown memory_of(const StepProgram *program) {
    Error error = {0};
    MemoryBreakdown memory;
    cr_assert_eq(memory_breakdown(program, &arena, &memory, &error), STATUS_OK, "%s", error.message);
    return memory;
}

// CPUOffloadPolicy (PyTorch's _fsdp_param.py): fp32 parameters, gradients and both moments, 16 bytes of each parameter
// of the shard; the temporary of a foreach update is as long.
Test(offload, of_parameters_leaves_no_shard_on_the_accelerator) {
    const StepProgram program = program_of("accelerate", OFFLOAD_PARAMETERS, 3);
    const MemoryBreakdown memory = memory_of(&program);
    cr_expect_eq(memory.parameters, 0);
    cr_expect_eq(memory.optimizer, 0);
    cr_expect_gt(memory.gathered_parameters, 0);
    const double parameters = (double)model_parameters(&program.model);
    cr_expect_float_eq(memory.host_bytes, 20 * parameters / shards, 0.01 * 20 * parameters / shards);
    cr_expect_eq(memory_of(&(StepProgram[]){program_of("accelerate", OFFLOAD_NONE, 3)}[0]).host_bytes, 0);
}

// ZeRO-Offload (deepspeed runtime/zero): weights in bf16 stay, masters and moments go.
Test(offload, of_the_optimizer_keeps_the_weights_where_they_are) {
    const StepProgram program = program_of("deepspeed", OFFLOAD_OPTIMIZER, 2);
    const MemoryBreakdown memory = memory_of(&program);
    const double parameters = (double)model_parameters(&program.model);
    cr_expect_float_eq(memory.parameters, 2 * parameters, 0.01 * 2 * parameters);
    cr_expect_eq(memory.optimizer, 0);
    cr_expect_float_eq(memory.host_bytes, 16 * parameters / shards, 0.01 * 16 * parameters / shards);
}

static TaskCost cost_of(const StepProgram *program, const CostModel *model, const char *name) {
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        if (strcmp(task->name, name) == 0 && task->unit == UNIT_LAYER) {
            return cost_task(model, program, task);
        }
    }
    cr_assert_fail("no task %s", name);
    return (TaskCost){0};
}

Test(offload, crosses_the_link_in_fp32_and_updates_at_the_rate_of_the_hosts_memory) {
    Error error = {0};
    ClusterProfile profile;
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK, "%s", error.message);
    profile.node.host_link_bytes_per_s = 50e9;
    profile.node.host_memory_bytes_per_s = 400e9;
    const StepProgram program = program_of("accelerate", OFFLOAD_PARAMETERS, 3);
    const CostModel model = {.profile = &profile, .target = program.target};
    const double shard = (double)program.units[UNIT_LAYER].shard_elements;
    cr_expect_float_eq(cost_of(&program, &model, "gather copy in").seconds, 4 * shard / 50e9, 1e-9);
    // gradient read, master and moments read and written: 28 bytes, of a memory that the node's four ranks share
    cr_expect_float_eq(cost_of(&program, &model, "adamw").seconds, 28 * shard * shards / 400e9, 1e-7);
    const TaskCost scattered = cost_of(&program, &model, "shard gradient cast");
    cr_expect_float_eq(scattered.seconds, 2 * shard / 50e9, 1e-9);
    cr_expect_eq(scattered.sm_share, 0);
}

static const int layers = 16, tokens = 2 * 1024, hidden = 2048;  // of llama-3.2-1b

static StepProgram checkpointed(Offload offload) {
    return lowered(&arena, (LoweredRequest){.model = "llama-3.2-1b",
                                            .target = "accelerate@1.15",
                                            .mesh = "dp_shard=4",
                                            .seq = 1024,
                                            .micro_batch = 2,
                                            .bf16 = true,
                                            .recompute = RECOMPUTE_FULL,
                                            .offload = offload});
}

// fsdp2_apply_ac of accelerate 1.15 puts save_on_cpu around each checkpointed layer: what it saved of a layer, its
// input, is on the host from forward to backward, and two of them are in the accelerator's memory.
Test(offload, of_activations_keeps_the_inputs_of_layers_on_the_host) {
    const StepProgram without = checkpointed(OFFLOAD_NONE), with = checkpointed(OFFLOAD_ACTIVATIONS);
    const MemoryBreakdown before = memory_of(&without), after = memory_of(&with);
    const double input = 2.0 * tokens * hidden;
    cr_expect_eq(after.host_bytes, layers * input);
    cr_expect_eq(before.host_bytes, 0);
    cr_expect_float_eq(before.activations - after.activations, (layers - 1) * input, input);
    cr_expect_eq(before.optimizer, after.optimizer);
}

// Both ways on the lane of the kernels: 2 x 16 layers x 8.4 MB at 50 GB/s stand in the open.
Test(offload, of_activations_stops_the_kernels_for_both_copies) {
    Error error = {0};
    ClusterProfile profile;
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK, "%s", error.message);
    profile.node.host_link_bytes_per_s = 50e9;
    profile.node.host_memory_bytes_per_s = 4000e9;
    const StepProgram program = checkpointed(OFFLOAD_ACTIVATIONS);
    const CostModel model = {.profile = &profile, .target = program.target};
    int copies = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (strcmp(task->name, "input to host") == 0 || strcmp(task->name, "input from host") == 0) {
            cr_expect_eq(task->lane, LANE_COMPUTE);
            cr_expect_float_eq(cost_task(&model, &program, task).seconds, 2.0 * tokens * hidden / 50e9, 1e-9);
            copies++;
        }
    }
    cr_expect_eq(copies, 2);
}

static StepProgram saved_offloaded(const char *target, bool fp8, int of) {
    return lowered(&arena, (LoweredRequest){.model = "llama-3.2-1b",
                                            .target = target,
                                            .mesh = "dp_shard=4",
                                            .seq = 1024,
                                            .micro_batch = 2,
                                            .grad_accum = 2,
                                            .bf16 = true,
                                            .fp8 = fp8,
                                            .offload = of > 0 ? OFFLOAD_ACTIVATIONS : OFFLOAD_NONE,
                                            .offload_layers = of});
}

// Megatron-core's cpu_offloading: of 16 layers 12 leave, so a quarter of what layers save stays, and the first 12 are
// on the host (DefaultOffloadSynchronizer of Transformer Engine, pytorch/cpu_offload.py).
Test(offload, of_saved_activations_leaves_those_of_the_other_layers) {
    const StepProgram without = saved_offloaded("megatron@0.19", false, 0);
    const StepProgram few = saved_offloaded("megatron@0.19", false, 4),
                      most = saved_offloaded("megatron@0.19", false, 12);
    const double all = memory_of(&without).activations;
    const double layer = memory_of(&few).host_bytes / 4;
    cr_expect_gt(layer, 10 * 2.0 * tokens * hidden);
    cr_expect_float_eq(memory_of(&most).host_bytes, 12 * layer, 1);
    cr_expect_float_eq(all - memory_of(&few).activations, 4 * layer, 0.25 * layer);
    cr_expect_float_eq(all - memory_of(&most).activations, 12 * layer, 0.25 * layer);
    cr_expect_eq(memory_of(&without).optimizer, memory_of(&most).optimizer);
}

// Beside the kernels, of the first layers only: out behind the layer, back behind the backward of the layer that has
// had its slots.
Test(offload, of_saved_activations_runs_beside_the_layers_and_races_with_nothing) {
    static const int counts[] = {1, 4, 8, 12, 15};
    for (size_t i = 0; i < 2 * sizeof counts / sizeof counts[0]; i++) {
        const int of = counts[i / 2];
        const StepProgram program = saved_offloaded(i % 2 ? "megatron@fsdp" : "megatron@0.19", i % 2, of);
        Error error = {0};
        MemoryPlan plan;
        int there = 0, back = 0;
        for (int32_t t = 0; t < program.task_count; t++) {
            const Task *task = &program.tasks[t];
            const bool out = strcmp(task->name, "saved to host") == 0, in = strcmp(task->name, "saved from host") == 0;
            if (out || in) {
                cr_expect_eq(task->lane, LANE_HOST);
                cr_expect_eq(step_guard_open(&program, task, of - 1), out || of - 1 >= layers - of);
                cr_expect_eq(step_guard_open(&program, task, layers - 1), in);
            }
            there += out;
            back += in;
        }
        cr_expect_gt(there, 4);
        cr_expect_eq(there, back);
        cr_assert_eq(memory_plan(&program, &arena, &plan, &error), STATUS_OK, "%s", error.message);
        cr_expect_eq(hazard_check(&program, &plan, &arena, NULL, &error), STATUS_OK, "%d layers: %s", of,
                     error.message);
    }
}

// The estimate takes a program's sizes at any micro-batch from two: log-sum-exps of 32 heads and 4096 tokens are 2^17
// elements, too few to move, and those of two sequences must stay as well.
Test(offload, of_saved_activations_moves_the_same_tensors_at_any_micro_batch) {
    LoweredRequest request = {.model = "llama-3.2-1b",
                              .target = "megatron@0.19",
                              .mesh = "dp_shard=4",
                              .seq = 4096,
                              .bf16 = true,
                              .offload = OFFLOAD_ACTIVATIONS};
    const StepProgram one = lowered(&arena, request);
    for (request.micro_batch = 2; request.micro_batch <= 8; request.micro_batch *= 2) {
        const StepProgram more = lowered(&arena, request);
        cr_expect(step_same_structure(&one, &more), "micro-batch %d", request.micro_batch);
    }
}
