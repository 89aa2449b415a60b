// The order in which a pipeline stage processes the micro-steps of a step: one file and one row each (schedules.c). The
// lowering converts the order to loops (micro_loops.h).

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/plan/plan.h"

// Where a schedule splits backward, WORK_BACKWARD is the gradients of inputs alone and WORK_WEIGHTS those of weights.
typedef enum { WORK_FORWARD, WORK_BACKWARD, WORK_WEIGHTS, WORK_COUNT } Work;

// One stage at work: on a chunk of its layers, for a micro-step.
typedef struct ScheduleAction {
    Work work;
    int32_t chunk;
    int32_t micro_step;
} ScheduleAction;

typedef struct ScheduleShape {
    int32_t stage, stages;
    int32_t chunks;  // of layers per stage
    int32_t micro_steps;
    int32_t group;   // micro-steps that go through a chunk before the next one, where there are several; 0 = PyTorch's
    int32_t rounds;  // schedules that the micro-steps go through, as many in each, one after another; 0 = one
} ScheduleShape;

typedef struct Schedule {
    const char *name;  // the value of --pp-schedule
    bool folded;       // the second chunk of a stage mirrors the first: stage 0 has the first and the last one
    bool splits;       // gradients of inputs and of weights are separate work items
    // Fills schedule_action_count(schedule, shape) actions, in order. A micro-step's backward comes after its forward,
    // its weight gradients after both, and each kind of work of a chunk goes through the micro-steps in ascending
    // order: gradients are summed in that order.
    void (*order)(const ScheduleShape *shape, ScheduleAction *actions);
    // Per stage, instead of `order`, for one shape: as read from a file, with micro-steps in any order.
    ScheduleAction *const *written;
} Schedule;

static inline int32_t schedule_rounds(const ScheduleShape *shape) {
    return shape->rounds > 1 ? shape->rounds : 1;
}

// All rounds.
void schedule_order(const Schedule *schedule, const ScheduleShape *shape, ScheduleAction *actions);

static inline int32_t schedule_works(const Schedule *schedule) {
    return schedule->splits ? WORK_WEIGHTS + 1 : WORK_BACKWARD + 1;
}

// Actions of a stage: each kind of work once per chunk and micro-step.
static inline int32_t schedule_action_count(const Schedule *schedule, const ScheduleShape *shape) {
    return schedule_works(schedule) * shape->chunks * shape->micro_steps;
}

extern const Schedule *const schedules[];
extern const int schedule_count;

// The row of that name; NULL = none.
const Schedule *schedule_find(const char *name);

// The plan's, if it has stages; NULL = an order in a file that was not read.
const Schedule *schedule_of(const TrainPlan *plan);

// What a stage receives of each micro-step from others. Folded, the last chunk is on the first stage, and the last
// stage hands what its first chunk computes to its second.
typedef struct ReceivedMessages {
    int32_t inputs, gradients;
} ReceivedMessages;

static inline ReceivedMessages schedule_received(bool folded, int32_t stages, int32_t chunks, int32_t stage) {
    const int32_t first = stage == 0, last = stage + 1 == stages, both = chunks - first - last;
    return folded ? (ReceivedMessages){both, both} : (ReceivedMessages){chunks - first, chunks - last};
}

// Of what a stage receives in a round, messages beyond those that slots for so many micro-steps hold.
static inline double schedule_beyond_slots(const ReceivedMessages *received, int32_t micro_steps, double input_slots,
                                           double gradient_slots) {
    return (micro_steps - input_slots) * received->inputs + (micro_steps - gradient_slots) * received->gradients;
}
