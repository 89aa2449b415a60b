// What this executor runs, switch by switch of the capability table; everything else is refused in words.

#include "exec/launch/launch.h"

#include <string.h>

#include "exec/transport/transport.h"

enum { HEAD_DIM_GRAIN = 8, HEAD_DIM_MOST = 256 };  // kernels.h, KernelAttention

// The worker has the devices (device_find); ndtune links none of them, so the names stand here once more.
Status exec_check_backend(const RunOptions *options, Error *error) {
    if (strcmp(options->device, "cuda") == 0) {
        return error_set(error, STATUS_ENVIRONMENT, "device cuda is not part of this build; it runs cpu");
    }
    if (strcmp(options->device, "cpu") != 0) {
        return error_set(error, STATUS_USAGE, "no device '%s'; this build runs cpu", options->device);
    }
    return transport_find(options->transport, error) ? STATUS_OK : error->status;
}

const char *exec_check(const ModelSpec *model, const TrainPlan *plan, const Target *target, Arena *arena) {
    const char *reason = NULL;
    target_check(target, model, plan, arena, &reason);
    if (reason) {
        return reason;
    }
    const char *words = model_beyond_llama(model, arena);
    if (words) {
        return arena_format(arena, "the executor runs models of the Llama type, %s has %s", model->name, words);
    }
    if (plan->attention != ATTENTION_FLASH || plan->fused != FUSED_FUSED || plan->tp_overlap) {
        return arena_format(arena, "the executor has flash attention and fused kernels only, not attention %s, %s%s",
                            attention_names[plan->attention], fused_names[plan->fused],
                            plan->tp_overlap ? " with tp overlap" : "");
    }
    const Mesh *mesh = &plan->mesh;
    if (model->head_dim % HEAD_DIM_GRAIN != 0 || model->head_dim > HEAD_DIM_MOST) {
        return arena_format(arena, "the cpu kernels take head_dim in multiples of %d up to %d, the model has %d",
                            HEAD_DIM_GRAIN, HEAD_DIM_MOST, model->head_dim);
    }
    if (plan->precision != DTYPE_FP32) {
        return arena_format(arena, "the executor computes in fp32 on the cpu, not in %s", dtype_name(plan->precision));
    }
    if (mesh->size[AXIS_TP] > 1 && target->tp_flavour != TP_SP) {
        return arena_format(
            arena,
            "the executor runs tensor parallelism with sequence parallelism, target %s does not; use target ndtune",
            target->name);
    }
    if (mesh->size[AXIS_CP] > 1 && (!target->zigzag || plan->cp_rotate != CP_ROTATE_RING)) {
        return arena_format(arena, "the executor runs context parallelism as a zigzag ring, not %s%s with target %s",
                            target->zigzag ? "" : "contiguous ", cp_rotate_names[plan->cp_rotate], target->name);
    }
    if (plan->recompute == RECOMPUTE_SELECTIVE) {
        return "the executor recomputes nothing or whole blocks, not selected operations";
    }
    if (plan->recompute == RECOMPUTE_FULL && target->recompute_flavour != RECOMPUTE_BLOCK) {
        return arena_format(
            arena,
            "the executor recomputes whole blocks, target %s keeps the inputs of their children; use target ndtune",
            target->name);
    }
    return NULL;
}
