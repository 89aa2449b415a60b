// Launches that wait for the kernel before them: the host's time is the device's too.

#include <criterion/criterion.h>

#include "sim/cost/cost.h"
#include "tests/support/lowered.h"
#include "tests/unit/sim/cost/machines.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(launches, .fini = clean);

static TaskCost cost_of(const Target *target, const StepProgram *program, const Task *task) {
    const ClusterProfile profile = machine_h100();
    StepProgram own = *program;
    own.target = target;
    const CostModel model = {.profile = &profile, .target = target};
    return cost_task(&model, &own, task);
}

// A target that loses no lead, so that nothing of the host's time is in a kernel's before.
Test(launches, that_wait_add_the_host_s_time_to_every_task_s) {
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.target = "megatron@2022", .mesh = "dp_shard=2,tp=2", .bf16 = true});
    Target plain = *program.target;
    plain.runtime.lost_lead = 0;
    Target waiting = plain;
    waiting.runtime.launches_wait = true;
    double host_s = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const TaskCost without = cost_of(&plain, &program, &program.tasks[i]);
        const TaskCost with = cost_of(&waiting, &program, &program.tasks[i]);
        cr_expect_float_eq(with.seconds, without.seconds + with.host_s, 1e-12, "%s", program.tasks[i].name);
        host_s += with.host_s;
    }
    cr_expect_gt(host_s, 0);
}
