// cuDNN makes execution plans for the attention calls that the executor uses, on a machine without a GPU: for devices
// described by their properties, with a driver that only pretends to load compiled code (tests/support/cuda_driver).
// Nothing is run. Skipped, with cuDNN's own message, without libcudnn.so.9.

#include "tests/unit/kernels/cuda/cudnn_plan_rows.h"

#include <criterion/criterion.h>
#include <string.h>

// The usual layers, plain and as steps of a ring.
static const PlanRow usual[] = {
    {4096, 4096, 0, 0, 32, 8, 128, false},
    {2000, 2000, 0, 0, 12, 12, 64, false},
    {2048, 2048, 4096, 4096, 32, 8, 128, true},
    {2048, 2048, 4096, 0, 8, 8, 128, true},
};

Test(cudnn_plans, an_h200_has_plans_for_layers_and_ring_steps) {
    plan_expect(plan_h200, usual, 4);
}

Test(cudnn_plans, an_a100_has_plans_for_a_layer) {
    plan_expect(plan_a100, usual, 1);
}

Test(cudnn_plans, a_shape_is_planned_once) {
    CudnnAttention *cudnn = plan_opened(plan_h200);
    char why[ATTENTION_WHY_BYTES] = "";
    CudaAttention call = plan_call(&usual[1], false);
    int64_t first_bytes = -1, bytes = -2;
    const int first = cudnn_attention_plan(cudnn, &call, &first_bytes, why);
    cr_assert_eq(first, 0, "%s", why);
    call.block.q_first = call.block.k_first = 8000;  // the same block elsewhere
    cr_assert_eq(cudnn_attention_plan(cudnn, &call, &bytes, why), first);
    cr_assert_eq(bytes, first_bytes);
    call.block.queries = 1000;  // no query sees the last keys
    cr_assert_eq(cudnn_attention_plan(cudnn, &call, &bytes, why), first + 1, "%s", why);
    cudnn_attention_close(cudnn);
}

Test(cudnn_plans, a_device_that_cudnn_cannot_read_is_refused_in_words) {
    cudnn_attention_close(plan_opened(plan_h200));
    char why[ATTENTION_WHY_BYTES] = "";
    cr_assert_null(cudnn_attention_open("{\"deviceVer\":900}", why));
    cr_assert_not_null(strstr(why, "cuDNN"), "%s", why);
}
