// Open addressing over the tasks of a program: a slot holds a task or is free.

#pragma once

#include "sim/base/arena.h"

typedef struct TaskTable {
    int32_t *task;  // -1 = free
    uint64_t mask;
} TaskTable;

static inline TaskTable task_table_new(int32_t tasks, Arena *arena) {
    uint64_t size = 16;
    while (size < 2 * (uint64_t)tasks) {
        size *= 2;
    }
    TaskTable table = {.task = ARENA_UNCLEARED(arena, int32_t, size), .mask = size - 1};
    for (uint64_t i = 0; i < size; i++) {
        table.task[i] = -1;
    }
    return table;
}
