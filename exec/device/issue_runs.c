// One walk counts the runs, a second one writes them; a hash table finds equal candidates, which are then compared.

#include "exec/device/issue_runs.h"

#include "sim/step/slots.h"

// The router determines expert row counts, on the device; the host needs them, or has to fetch them again.
static bool counts_rows(const Task *task) {
    switch (task->kind) {
    case TASK_GROUPED_GEMM:
    case TASK_ROUTE:
        return true;
    case TASK_SWIGLU:
        return task->operand_count > AT_SWIGLU_CAME;
    case TASK_SWIGLU_BACKWARD:
        return task->operand_count > AT_SWIGLU_BACKWARD_CAME;
    case TASK_COLUMN_SUM:
        return task->operand_count > AT_COLUMN_SUM_CAME;
    default:
        return false;
    }
}

static RunKind kind_of(const Task *task) {
    if (task_is_transfer(task)) {
        return RUN_COLLECTIVE;
    }
    const bool host = task->kind == TASK_LOAD_TOKENS || counts_rows(task);
    return host ? RUN_HOST : task->kind == TASK_ADAMW ? RUN_STEPWISE : RUN_FIXED;
}

static bool joins(RunKind before, int lane_before, RunKind now, int lane) {
    return before == now && lane_before == lane && (now == RUN_STEPWISE || now == RUN_FIXED);
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    const uint64_t spread = UINT64_C(0x9E3779B97F4A7C15);  // golden ratio
    return (hash ^ (value + 1)) * spread ^ hash >> 29;
}

static uint64_t run_hash(const IssueRun *run) {
    StepCursor cursor = run->cursor;
    StepInstance instance;
    uint64_t hash = (uint64_t)run->count;
    for (int32_t i = 0; i < run->count && step_cursor_next(&cursor, &instance); i++) {
        hash = mix(mix(hash, (uint64_t)instance.task), (uint64_t)instance.layer);
    }
    return hash;
}

static bool runs_equal(const StepProgram *program, const IssueRun *a, const IssueRun *b) {
    StepCursor left = a->cursor, right = b->cursor;
    StepInstance x, y;
    if (a->kind != b->kind || a->count != b->count) {
        return false;
    }
    for (int32_t i = 0; i < a->count; i++) {
        if (!step_cursor_next(&left, &x) || !step_cursor_next(&right, &y) || !step_instances_alike(program, &x, &y)) {
            return false;
        }
    }
    return true;
}

// Fills runs, or only counts them if NULL.
static int32_t walk(const StepProgram *program, IssueRun *runs) {
    StepCursor cursor = step_cursor_begin(program), before = cursor;
    StepInstance instance;
    int32_t count = 0;
    RunKind last = RUN_KINDS;
    int last_lane = -1;
    for (int64_t ordinal = 0; step_cursor_next(&cursor, &instance); ordinal++, before = cursor) {
        const Task *task = &program->tasks[instance.task];
        const RunKind kind = kind_of(task);
        if (!joins(last, last_lane, kind, task->lane)) {
            if (runs) {
                runs[count] = (IssueRun){.kind = kind, .cursor = before, .first = ordinal, .same_as = count};
            }
            count++;
        }
        if (runs) {
            runs[count - 1].count++;
        }
        last = kind;
        last_lane = task->lane;
    }
    return count;
}

static void find_equal(const StepProgram *program, IssueRuns *runs, Arena *arena) {
    int32_t room = 16;
    while (room < 2 * runs->count) {
        room *= 2;
    }
    int32_t *slot = ARENA_ARRAY(arena, int32_t, room);  // 1 + index of a run; 0 = empty
    for (int32_t r = 0; r < runs->count; r++) {
        if (runs->runs[r].kind != RUN_FIXED) {
            continue;
        }
        int32_t at = (int32_t)(run_hash(&runs->runs[r]) & (uint64_t)(room - 1));
        while (slot[at] != 0 && !runs_equal(program, &runs->runs[slot[at] - 1], &runs->runs[r])) {
            at = (at + 1) & (room - 1);
        }
        if (slot[at] == 0) {
            slot[at] = r + 1;
            runs->distinct++;
        }
        runs->runs[r].same_as = slot[at] - 1;
    }
}

IssueRuns issue_runs_cut(const StepProgram *program, Arena *arena) {
    IssueRuns runs = {.count = walk(program, NULL)};
    runs.runs = ARENA_ARRAY(arena, IssueRun, runs.count + 1);
    walk(program, runs.runs);
    find_equal(program, &runs, arena);
    return runs;
}
