// Gradients that an operation of its own adds up.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cost/cost.h"
#include "tests/support/lowered.h"
#include "tests/unit/sim/cost/machines.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(sums_apart, .fini = clean);

static const Task *product_of_weights(const StepProgram *program, bool adds) {
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        if (task->kind == TASK_GEMM && task->phase == PHASE_BACKWARD && task->trans_a && task->accumulate == adds) {
            return task;
        }
    }
    cr_assert_fail("no such product");
    return NULL;
}

static double time_s(const StepProgram *program, const Task *task, Target target) {
    const ClusterProfile profile = machine_h100();
    StepProgram seen = *program;
    seen.target = &target;
    const CostModel model = {.profile = &profile, .target = &target, .chip_factor = 1};
    return cost_task(&model, &seen, task).seconds;
}

static double product_s(const StepProgram *program, const Task *task, bool apart) {
    Target target = *program->target;
    target.runtime.sums_apart = apart;
    return time_s(program, task, target);
}

// Two halves read and one written, where a product that adds by itself reads one more.
Test(sums_apart, cost_three_halves_an_element_beside_a_product_that_adds_nothing) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                                                 .target = "megatron@bigscience",
                                                                 .mesh = "dp_shard=2",
                                                                 .zero = 1,
                                                                 .grad_accum = 4,
                                                                 .seq = 4096,
                                                                 .bf16 = true});
    const ClusterProfile profile = machine_h100();
    const Task *adds = product_of_weights(&program, true);
    Task alone = *adds;
    alone.accumulate = false;
    const double bytes = 6 * (double)adds->m * (double)adds->n;
    const double sum_s = bytes / (profile.accelerator.memory_bytes_per_s * profile.accelerator.memory_efficiency);
    const double more_s = product_s(&program, adds, true) - product_s(&program, &alone, true);
    cr_expect_float_eq(more_s, sum_s, 0.05 * sum_s + 5e-6, "%g s for %g", more_s, sum_s);
    cr_expect_gt(more_s, product_s(&program, adds, false) - product_s(&program, &alone, false));
    cr_expect_float_eq(product_s(&program, &alone, true), product_s(&program, &alone, false), 1e-12);
}

// A gradient in 16 bits read, the sum in fp32 read and written; the product writes the 16 bits alone, as one does whose
// gradients are kept so.
Test(sums_apart, of_products_without_fused_sums_move_ten_bytes_an_element_in_every_micro_step) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                                                 .target = "megatron",
                                                                 .mesh = "dp_shard=2",
                                                                 .zero = 1,
                                                                 .grad_accum = 4,
                                                                 .seq = 4096,
                                                                 .bf16 = true});
    const ClusterProfile profile = machine_h100();
    Target fused = *program.target, apart = fused;
    fused.adds_gradients = false;
    apart.adds_gradients = true;
    const Task *adds = product_of_weights(&program, true);
    Task first = *adds;
    first.accumulate = false;
    const double elements = (double)adds->m * (double)adds->n;
    const double byte_s = 1 / (profile.accelerator.memory_bytes_per_s * profile.accelerator.memory_efficiency);
    cr_expect_float_eq(time_s(&program, adds, apart), time_s(&program, &first, apart), 1e-12);
    const double more_s = time_s(&program, &first, apart) - time_s(&program, &first, fused);
    cr_expect(more_s > 7 * elements * byte_s && more_s < 11 * elements * byte_s, "%g bytes",
              more_s / byte_s / elements);
}
