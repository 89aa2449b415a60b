// The interleaved order with gradients of inputs and of weights separate (PyTorch's ScheduleInterleavedZeroBubble,
// after Qi et al. 2023, ZB1P): weight gradients are delayed by as many work items as there are stages before this one,
// to fill what would be a bubble at the end. Its warm-up is one work item for each stage after this one, and a group
// for each chunk but the last. Also with one chunk per stage.

#include "sim/step/schedules/groups.h"

static void order(const ScheduleShape *shape, ScheduleAction *actions) {
    const Groups groups = groups_of(shape);
    const int32_t all = shape->micro_steps * shape->chunks, ahead = groups_ahead(&groups, 1);
    int32_t weights = 0;
    for (int32_t n = 0; n < ahead; n++) {
        *actions++ = groups_nth(&groups, WORK_FORWARD, n);
    }
    for (int32_t n = 0; n < all; n++) {
        if (n + ahead < all) {
            *actions++ = groups_nth(&groups, WORK_FORWARD, n + ahead);
        }
        *actions++ = groups_nth(&groups, WORK_BACKWARD, n);
        if (n >= shape->stage) {
            *actions++ = groups_nth(&groups, WORK_WEIGHTS, weights++);
        }
    }
    while (weights < all) {
        *actions++ = groups_nth(&groups, WORK_WEIGHTS, weights++);
    }
}

extern const Schedule schedule_zero_bubble;
const Schedule schedule_zero_bubble = {.name = "zero-bubble", .splits = true, .order = order};
