// What takes longer on slow chips: arithmetic, not traffic.

#include <criterion/criterion.h>

#include "sim/cost/cost.h"
#include "tests/support/lowered.h"
#include "tests/unit/sim/cost/machines.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(slow_chips, .fini = clean);

static double attention_s(AttentionKernel kernel, double chip_factor) {
    const ClusterProfile profile = machine_h100();
    StepProgram program =
        lowered(&arena, (LoweredRequest){.target = "megatron@2022", .mesh = "dp_shard=2", .bf16 = true});
    Target target = *program.target;
    target.runtime.lost_lead = 0;
    program.target = &target;
    program.plan.attention = kernel;
    const CostModel model = {.profile = &profile, .target = &target, .chip_factor = chip_factor};
    const Task task = {.kind = TASK_ATTENTION,
                       .dtype = DTYPE_BF16,
                       .sequences = 1,
                       .rows = 4096,
                       .cols = 4096,
                       .heads = 32,
                       .kv_heads = 32,
                       .head_dim = 128};
    return cost_task(&model, &program, &task).seconds;
}

// Of separate operations the products alone are a quarter longer: 32 heads x 4096^2 x 128 x 4 operations at 0.55 of 735
// TFLOP/s are 0.680 ms, so 0.170 ms more, beside 2.34 ms of traffic that stays. A kernel of its own is longer in all.
Test(slow_chips, make_products_of_separate_attention_longer_and_not_its_traffic) {
    const double products_s = 32.0 * 4096 * 4096 * 128 * 4 / (0.55 * 735e12);
    const double eager_s = attention_s(ATTENTION_EAGER, 1), flash_s = attention_s(ATTENTION_FLASH, 1);
    cr_expect_gt(eager_s, 4 * products_s);
    cr_expect_float_eq(attention_s(ATTENTION_EAGER, 1.25) - eager_s, 0.25 * products_s, 1e-6);
    cr_expect_float_eq(attention_s(ATTENTION_FLASH, 1.25), 1.25 * flash_s, 1e-6);
}
