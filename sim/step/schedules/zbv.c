// Two chunks on each stage, the second one folded back, with gradients of inputs and of weights separate (Qi et al.
// 2024, ZB-V; PyTorch's ScheduleZBVZeroBubble): no bubble but the stagger if forward and both gradients take equally
// long. Written for at least 2 * stages - 1 micro-steps; work for micro-steps beyond the last is skipped.

#include "sim/step/schedules/folded.h"

static void warm_up(Folded *folded, const ScheduleShape *shape) {
    const int32_t from_here = shape->stages - shape->stage;
    for (int32_t i = 0; i < 2 * from_here - 1; i++) {
        folded_add(folded, 0, WORK_FORWARD);
    }
    for (int32_t i = 0; i < shape->stage; i++) {
        folded_add(folded, 1, WORK_FORWARD);
        folded_add(folded, 0, WORK_FORWARD);
    }
    for (int32_t i = 0; i < from_here; i++) {
        folded_add(folded, 1, WORK_FORWARD);
        folded_add_both_gradients(folded, 1);
    }
}

static void cool_down(Folded *folded, const ScheduleShape *shape) {
    for (int32_t i = 0; i < shape->stage; i++) {
        folded_add(folded, 0, WORK_BACKWARD);
        folded_add(folded, 1, WORK_BACKWARD);
    }
    for (int32_t i = shape->stage; i < shape->stages; i++) {
        folded_add_both_gradients(folded, 0);
    }
    for (int32_t chunk = 1; chunk >= 0; chunk--) {
        while (folded->done[chunk][WORK_WEIGHTS] < folded->done[chunk][WORK_BACKWARD]) {
            folded_add(folded, chunk, WORK_WEIGHTS);
        }
    }
}

static void order(const ScheduleShape *shape, ScheduleAction *actions) {
    const int32_t least = 2 * shape->stages - 1;
    const int32_t all = shape->micro_steps > least ? shape->micro_steps : least;
    Folded folded = {.next = actions, .micro_steps = shape->micro_steps};
    warm_up(&folded, shape);
    while (folded.done[1][WORK_FORWARD] < folded.done[0][WORK_FORWARD] || folded.done[0][WORK_FORWARD] < all) {
        if (folded.done[0][WORK_FORWARD] < all) {
            folded_add(&folded, 0, WORK_FORWARD);
        }
        folded_add_both_gradients(&folded, 0);
        folded_add(&folded, 1, WORK_FORWARD);
        folded_add_both_gradients(&folded, 1);
    }
    cool_down(&folded, shape);
}

extern const Schedule schedule_zbv;
const Schedule schedule_zbv = {.name = "zbv", .folded = true, .splits = true, .order = order};
