// Like test_cudnn_plans, for every kind of block that the executor can request: mask, grouping, length, head_dim, ring
// or not.

#include "tests/unit/kernels/cuda/cudnn_plan_rows.h"

#include <criterion/criterion.h>

static void expect_every_plan(const char *device, int64_t length) {
    const int kv_heads[] = {16, 4, 1}, head_dims[] = {64, 80, 128};
    PlanRow rows[36];
    int count = 0;
    for (int i = 0; i < 36; i++) {
        const bool full = i % 2, ring = i / 2 % 2;
        rows[count++] =
            (PlanRow){length, length, full ? length : 0, 0, 16, kv_heads[i / 4 % 3], head_dims[i / 12], ring};
    }
    plan_expect(device, rows, count);
}

Test(cudnn_every_plan, an_h200_has_them_all) {
    expect_every_plan(plan_h200, 1000);
    expect_every_plan(plan_h200, 8192);
}

Test(cudnn_every_plan, an_a100_has_them_all) {
    expect_every_plan(plan_a100, 2048);
}
