// Two folded chunks on each stage, forward of one overlapping backward of the other (DeepSeek's DualPipeV; PyTorch's
// ScheduleDualPipeV, whose eight steps these are). Here the two of a pair run one after another, with no overlap; where
// PyTorch does both gradients in one action, the weight gradients follow immediately. At least twice as many
// micro-steps as stages.

#include "sim/step/schedules/folded.h"

typedef struct Dual {
    Folded folded;
    const ScheduleAction *waiting;  // all input gradients before this one have had their weight gradients
} Dual;

static void gradients(Dual *dual, int32_t chunk, bool apart) {
    folded_add(&dual->folded, chunk, WORK_BACKWARD);
    if (!apart) {
        folded_add(&dual->folded, chunk, WORK_WEIGHTS);
    }
}

// The weight gradients that have waited longest.
static void late_weights(Dual *dual) {
    while (dual->waiting < dual->folded.next) {
        const ScheduleAction *action = dual->waiting++;
        if (action->work == WORK_BACKWARD && action->micro_step >= dual->folded.done[action->chunk][WORK_WEIGHTS]) {
            folded_add(&dual->folded, action->chunk, WORK_WEIGHTS);
            return;
        }
    }
}

static void forward_and_back(Dual *dual, int32_t forward) {
    folded_add(&dual->folded, forward, WORK_FORWARD);
    gradients(dual, 1 - forward, false);
}

static void begin(Dual *dual, const ScheduleShape *shape) {
    const int32_t behind = shape->stages - shape->stage - 1;
    for (int32_t i = 0; i < 2 * behind; i++) {
        folded_add(&dual->folded, 0, WORK_FORWARD);
    }
    for (int32_t i = 0; i <= shape->stage; i++) {
        folded_add(&dual->folded, 0, WORK_FORWARD);
        folded_add(&dual->folded, 1, WORK_FORWARD);
    }
    for (int32_t i = 0; i < behind; i++) {
        gradients(dual, 1, true);
        late_weights(dual);
        folded_add(&dual->folded, 1, WORK_FORWARD);
    }
}

static void end(Dual *dual, const ScheduleShape *shape) {
    const int32_t behind = shape->stages - shape->stage - 1, before = shape->stage + 1;
    const bool odd = shape->stage % 2 == 1;
    for (int32_t i = 0; i < behind; i++) {
        gradients(dual, 1, false);
        forward_and_back(dual, 1);
    }
    for (int32_t i = 0; i < before; i++) {
        gradients(dual, 1, i > before / 2 || (i == before / 2 && odd));
        gradients(dual, 0, i >= before / 2);
    }
    for (int32_t i = 0; i < behind; i++) {
        late_weights(dual);
        gradients(dual, 0, true);
    }
    for (int32_t i = 0; i < before; i++) {
        late_weights(dual);
    }
}

static void order(const ScheduleShape *shape, ScheduleAction *actions) {
    Dual dual = {.folded = {.next = actions, .micro_steps = shape->micro_steps}, .waiting = actions};
    begin(&dual, shape);
    for (int32_t i = 0; i < shape->micro_steps - 2 * shape->stages + shape->stage + 1; i++) {
        forward_and_back(&dual, 0);
        forward_and_back(&dual, 1);
    }
    end(&dual, shape);
}

extern const Schedule schedule_dualpipev;
const Schedule schedule_dualpipev = {.name = "dualpipev", .folded = true, .splits = true, .order = order};
