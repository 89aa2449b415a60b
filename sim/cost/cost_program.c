// Costs of a whole program: equal keys are priced once, through a small open-addressing table in the arena.

#include "sim/cost/cost_program.h"

#include "sim/cost/compute.h"
#include "sim/cost/peer_exchange.h"
#include "sim/step/task_table.h"

// The slot of the task's key: holds the task priced for it, or is free. What is captured waits for no host, which its
// key does not say.
static int32_t *key_table_slot(const TaskTable *table, const StepProgram *program, const Target *target,
                               const Task *task) {
    const uint64_t key = task->key;
    const bool captured = task_is_captured(target, &program->plan, task);
    uint64_t at = (key ^ (key >> 32)) & table->mask;
    while (table->task[at] >= 0 &&
           (program->tasks[table->task[at]].key != key ||
            task_is_captured(target, &program->plan, &program->tasks[table->task[at]]) != captured)) {
        at = (at + 1) & table->mask;
    }
    return &table->task[at];
}

TaskCost *cost_program(const CostModel *model, const StepProgram *program, Arena *arena) {
    const ClusterProfile shared = program_profile(model, program);
    CostModel seen = *model;
    seen.profile = &shared;
    seen.chip_factor = cost_chip_factor(&seen, &program->plan.mesh);
    TaskCost *costs = ARENA_UNCLEARED(arena, TaskCost, program->task_count);
    const TaskTable table = task_table_new(program->task_count, arena);
    for (int32_t i = 0; i < program->task_count; i++) {
        if (peer_exchange_feeds(program, &program->tasks[i])) {
            costs[i] = task_cost_shared(&seen, program, &program->tasks[i]);
            continue;
        }
        int32_t *slot = key_table_slot(&table, program, model->target, &program->tasks[i]);
        if (*slot >= 0) {
            costs[i] = costs[*slot];
            // depends on the phase, a key may not
            costs[i].host_s = task_issue_s(model, program, &program->tasks[i]);
        } else {
            costs[i] = task_cost_shared(&seen, program, &program->tasks[i]);
            *slot = i;
        }
    }
    return costs;
}
