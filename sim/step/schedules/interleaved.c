// 1F1B with several chunks of layers on each stage (Narayanan et al. 2021): micro-steps go in groups, each through
// chunk after chunk, so the bubble is that of shorter stages. The groups are those of PyTorch's Interleaved1F1B: as
// many micro-steps as stages, or all where there are fewer. Where the stages divide the micro-steps, Megatron's are the
// same. Warm-up: two works for each stage behind this one, and a group for each chunk but the last.

#include "sim/step/schedules/schedule.h"

typedef struct Groups {
    int32_t size;
    const ScheduleShape *shape;
} Groups;

static Groups groups_of(const ScheduleShape *shape) {
    const int32_t rounds = shape->micro_steps / shape->stages;
    return (Groups){.size = shape->micro_steps / (rounds > 1 ? rounds : 1), .shape = shape};
}

// The n-th work of a kind; backward takes the chunks from the last one on.
static ScheduleAction nth(const Groups *groups, Work work, int32_t n) {
    const int32_t chunks = groups->shape->chunks, round = groups->size * chunks;
    const int32_t chunk = n % round / groups->size;
    return (ScheduleAction){.work = work,
                            .chunk = work == WORK_FORWARD ? chunk : chunks - 1 - chunk,
                            .micro_step = n / round * groups->size + n % groups->size};
}

static void order(const ScheduleShape *shape, ScheduleAction *actions) {
    const Groups groups = groups_of(shape);
    const int32_t all = shape->micro_steps * shape->chunks;
    const int32_t warm_up = (shape->chunks - 1) * groups.size + 2 * (shape->stages - 1 - shape->stage);
    const int32_t ahead = warm_up < all ? warm_up : all;
    for (int32_t n = 0; n < ahead; n++) {
        *actions++ = nth(&groups, WORK_FORWARD, n);
    }
    for (int32_t n = 0; n < all; n++) {
        if (n + ahead < all) {
            *actions++ = nth(&groups, WORK_FORWARD, n + ahead);
        }
        *actions++ = nth(&groups, WORK_BACKWARD, n);
    }
}

extern const Schedule schedule_interleaved;
const Schedule schedule_interleaved = {.name = "interleaved", .order = order};
