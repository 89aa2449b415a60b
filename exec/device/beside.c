// Given a collective that moves bytes, the instances on another lane that are ordered neither before nor after it are
// consecutive there: from the first that need not have ended when the collective starts to the last that may start
// before it has ended.

#include "exec/device/beside.h"

#include <string.h>

#include "sim/memory/happens_before.h"

static void mark_lane(const HappensBefore *order, int32_t collective, int lane, bool *beside) {
    const int32_t length = order->lane_first[lane + 1] - order->lane_first[lane];
    for (int32_t position = happens_before_clock(order, collective)[lane]; position < length; position++) {
        const int32_t instance = happens_before_in_lane(order, lane, position);
        if (happens_before(order, collective, instance)) {
            return;
        }
        beside[order->instances[instance].task] = true;
    }
}

void beside_collectives(const StepProgram *program, Arena *arena, bool *beside) {
    HappensBefore order;
    happens_before_build(program, arena, &order);
    memset(beside, 0, (size_t)program->task_count * sizeof *beside);
    for (int32_t i = 0; i < order.count; i++) {
        const Task *task = &program->tasks[order.instances[i].task];
        for (int lane = 0; lane < program->lane_count && task_is_transfer(task); lane++) {
            if (lane != task->lane && program->groups[task->group].size > 1) {
                mark_lane(&order, i, lane, beside);
            }
        }
    }
}
