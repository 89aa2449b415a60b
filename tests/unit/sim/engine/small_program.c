// See the header.

#include "tests/unit/sim/engine/small_program.h"

#include <criterion/criterion.h>
#include <string.h>

void small_begin(Small *small, int layers, bool shared_communicator, AxisMask axes) {
    *small = (Small){.interference = {.hbm_factor = 1, .collective_slowdown = 1, .residue = 1}};
    small->builder = builder_begin(&small->arena, layers);
    small->compute = builder_lane(&small->builder, "compute", -1);
    small->ag = builder_lane(&small->builder, "ag", 0);
    small->rs = builder_lane(&small->builder, "rs", shared_communicator ? 0 : 1);
    builder_lane(&small->builder, "rep", 2);
    builder_lane(&small->builder, "tp", 3);
    builder_lane(&small->builder, "cp", 4);
    small->ctl = builder_lane(&small->builder, "ctl", 5);
    small->group = builder_group(&small->builder, "group", axes, 2);
}

void small_end(Small *small) {
    arena_free(&small->arena);
}

Task *small_kernel(Small *small, const char *name, double us) {
    cr_assert(small->tasks < SMALL_MAX_TASKS);
    small->costs[small->tasks++] = (TaskCost){.seconds = us * 1e-6, .sm_share = 1};
    return builder_task(&small->builder, name, TASK_GEMM, small->compute, PHASE_FORWARD);
}

Task *small_collective(Small *small, const char *name, int16_t lane, double us, double nic_use) {
    cr_assert(small->tasks < SMALL_MAX_TASKS);
    small->costs[small->tasks] = (TaskCost){.seconds = us * 1e-6};
    small->costs[small->tasks++].use[RESOURCE_NIC] = (float)nic_use;
    Task *task = builder_task(&small->builder, name, TASK_ALL_GATHER, lane, PHASE_FORWARD);
    task->group = small->group;
    return task;
}

TaskCost *small_last_cost(Small *small) {
    return &small->costs[small->tasks - 1];
}

EngineResult small_run(Small *small, EngineOptions options) {
    StepProgram *program = builder_program(&small->builder);
    cr_assert_eq(program->task_count, small->tasks);
    const EngineCosts costs = {
        .tasks = small->costs, .interference = small->interference, .step_fixed_s = small->step_fixed_s};
    EngineResult result;
    Error error = {0};
    options.keep_spans = true;
    cr_assert_eq(engine_run_costs(program, &costs, &options, &small->arena, &result, &error), STATUS_OK, "%s",
                 error.message);
    return result;
}

static const Span *first_span(const Small *small, const EngineResult *result, const char *name) {
    for (int64_t i = 0; i < result->timeline.span_count; i++) {
        const Span *span = &result->timeline.spans[i];
        if (strcmp(small->builder.program.tasks[span->task].name, name) == 0) {
            return span;
        }
    }
    cr_assert_fail("no span of %s", name);
    return NULL;
}

double small_start_us(const Small *small, const EngineResult *result, const char *name) {
    return first_span(small, result, name)->start_s * 1e6;
}

double small_end_us(const Small *small, const EngineResult *result, const char *name) {
    return first_span(small, result, name)->end_s * 1e6;
}
