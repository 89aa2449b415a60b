// 1F1B with several chunks of layers on each stage (Narayanan et al. 2021): micro-steps go in groups, each through
// chunk after chunk, so the bubble is that of shorter stages. The groups are those of PyTorch's Interleaved1F1B, of one
// size: as many micro-steps as stages, or all if there are fewer; or of a given size, what is left over being the last
// one (get_schedule_table of Megatron-core's schedules.py). Warm-up: two work items for each stage after this one, and
// a group for each chunk but the last.

#include "sim/step/schedules/groups.h"

typedef struct Groups {
    int32_t size;  // the last one may be smaller
    const ScheduleShape *shape;
} Groups;

static Groups groups_of(const ScheduleShape *shape) {
    const int32_t rounds = shape->micro_steps / shape->stages;
    const int32_t equal = shape->micro_steps / (rounds > 1 ? rounds : 1);
    return (Groups){.size = shape->group > 0 ? shape->group : equal, .shape = shape};
}

// The n-th work item of a kind; backward, and hence weight gradients, go through the chunks from the last one.
static ScheduleAction groups_nth(const Groups *groups, Work work, int32_t n) {
    const int32_t chunks = groups->shape->chunks, group = n / (groups->size * chunks);
    const int32_t first = group * groups->size, left = groups->shape->micro_steps - first;
    const int32_t size = left < groups->size ? left : groups->size, within = n - first * chunks;
    return (ScheduleAction){.work = work,
                            .chunk = work == WORK_FORWARD ? within / size : chunks - 1 - within / size,
                            .micro_step = first + within % size};
}

void groups_order(const ScheduleShape *shape, int32_t each_stage, bool splits, ScheduleAction *actions) {
    const Groups groups = groups_of(shape);
    const int32_t all = shape->micro_steps * shape->chunks;
    const int32_t warm_up = (shape->chunks - 1) * groups.size + each_stage * (shape->stages - 1 - shape->stage);
    const int32_t ahead = warm_up < all ? warm_up : all;
    int32_t weights = 0;
    for (int32_t n = 0; n < ahead; n++) {
        *actions++ = groups_nth(&groups, WORK_FORWARD, n);
    }
    for (int32_t n = 0; n < all; n++) {
        if (n + ahead < all) {
            *actions++ = groups_nth(&groups, WORK_FORWARD, n + ahead);
        }
        *actions++ = groups_nth(&groups, WORK_BACKWARD, n);
        if (splits && n >= shape->stage) {
            *actions++ = groups_nth(&groups, WORK_WEIGHTS, weights++);
        }
    }
    while (splits && weights < all) {
        *actions++ = groups_nth(&groups, WORK_WEIGHTS, weights++);
    }
}

static void order(const ScheduleShape *shape, ScheduleAction *actions) {
    groups_order(shape, 2, false, actions);
}

extern const Schedule schedule_interleaved;
const Schedule schedule_interleaved = {.name = "interleaved", .order = order};
