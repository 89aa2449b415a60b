// The head is the output layer with its loss: on no other part does the vocabulary weigh, and a small model spends a
// third of its step there.

#include "autotune/predict/compute_split.h"

#include <string.h>

#include "sim/cost/cost.h"
#include "sim/step/stages.h"
#include "sim/step/task_counts.h"

const char *const compute_kind_names[COMPUTE_KINDS] = {"gemm", "attention", "memory-bound", "head"};

static ComputeKind kind_of(const Task *task) {
    if (task->phase == PHASE_LOSS || strncmp(task->name, "head ", 5) == 0) {
        return COMPUTE_HEAD;
    }
    switch (task->kind) {
    case TASK_GEMM:
    case TASK_GROUPED_GEMM:
        return COMPUTE_GEMM;
    case TASK_ATTENTION:
    case TASK_ATTENTION_BACKWARD:
        return COMPUTE_ATTENTION;
    default:
        return COMPUTE_MEMORY_BOUND;
    }
}

static ComputeSplit split_stage(const CostModel *cost, const StepProgram *program, Arena *arena) {
    const TaskCost *costs = cost_program(cost, program, arena);
    int64_t *counts = ARENA_ARRAY(arena, int64_t, program->task_count);
    step_task_counts(program, counts);
    ComputeSplit split = {0};
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        if (task->lane == LANE_COMPUTE && task->phase != PHASE_OPTIMIZER) {
            split.seconds[kind_of(task)] += (double)counts[i] * costs[i].seconds;
        }
    }
    return split;
}

static double total_of(const ComputeSplit *split) {
    double total = 0;
    for (int kind = 0; kind < COMPUTE_KINDS; kind++) {
        total += split->seconds[kind];
    }
    return total;
}

Status compute_split(const TuneRequest *request, const Prediction *prediction, ComputeSplit *split, Error *error) {
    Arena scratch = {0};
    const CostModel cost = {.profile = &request->cluster, .target = request->target};
    StepPrograms programs = {0};
    *split = (ComputeSplit){0};
    const Status status =
        step_lower_stages(&request->model, &prediction->plan, request->target, &scratch, &programs, error);
    const CostModel seen = cost_of_stages(&cost, programs.of, programs.count, &scratch);
    for (int stage = 0; status == STATUS_OK && stage < programs.count; stage++) {
        const ComputeSplit here = split_stage(&seen, &programs.of[stage], &scratch);
        *split = total_of(&here) > total_of(split) ? here : *split;
    }
    const double total = total_of(split);
    for (int kind = 0; total > 0 && kind < COMPUTE_KINDS; kind++) {
        split->seconds[kind] *= prediction->compute_s / total;
    }
    arena_free(&scratch);
    return status;
}
