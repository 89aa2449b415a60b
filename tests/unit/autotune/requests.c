// Builds TuneRequests the way the command line would, without one.

#include "tests/unit/autotune/requests.h"

#include <criterion/criterion.h>
#include <string.h>

TuneRequest request_for(Arena *arena, int world, const char *model, const char *cluster, const char *target) {
    TuneRequest request = {.command = "ndtune (test)", .world = world, .model_asked = model, .any_order = true};
    Error error = {0};
    plan_fields_unsaid(request.asked);
    cr_assert_eq(model_find(model, arena, &request.model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(cluster_find(cluster, arena, &request.cluster, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find(target, &request.target, &error), STATUS_OK, "%s", error.message);
    request.seq = request.model.max_seq < TUNE_DEFAULT_SEQ ? request.model.max_seq : TUNE_DEFAULT_SEQ;
    request.asked[PLAN_PRECISION] =
        request.cluster.accelerator.device_class == DEVICE_CLASS_CPU ? DTYPE_FP32 : DTYPE_BF16;
    request.memory_limit_bytes = request.cluster.accelerator.memory_bytes;
    return request;
}

bool plans_equal(const TrainPlan *a, const TrainPlan *b) {
    char left[PLAN_TEXT_BYTES], right[PLAN_TEXT_BYTES];
    return strcmp(plan_text(a, left), plan_text(b, right)) == 0;
}
