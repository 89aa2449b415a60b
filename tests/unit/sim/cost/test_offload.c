// What is kept on the host: off the accelerator's memory, over its link, updated by the host's memory.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cost/cost.h"
#include "sim/memory/memory_breakdown.h"
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
