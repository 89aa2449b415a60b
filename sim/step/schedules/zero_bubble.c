// The interleaved order with gradients of inputs and of weights separate (PyTorch's ScheduleInterleavedZeroBubble,
// after Qi et al. 2023, ZB1P): weight gradients are delayed by as many work items as there are stages before this one,
// to fill what would be a bubble at the end. Its warm-up is one work item for each stage after this one, and a group
// for each chunk but the last. Also with one chunk per stage.

#include "sim/step/schedules/groups.h"

static void order(const ScheduleShape *shape, ScheduleAction *actions) {
    groups_order(shape, 1, true, actions);
}

extern const Schedule schedule_zero_bubble;
const Schedule schedule_zero_bubble = {.name = "zero-bubble", .splits = true, .order = order};
