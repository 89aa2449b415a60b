// Progress marks of device cuda over the stand-in runtime: a caller waiting for a step sees its progress, task by task
// and where the whole step is one graph.

#include <criterion/criterion.h>

#include "exec/device/device.h"
#include "exec/device/issue_runs.h"
#include "tests/support/sizes.h"

typedef struct Step {
    Arena arena;
    StepProgram program;
    MemoryPlan memory;
    Device *device;
    int heard;
} Step;

static const DeviceTable *table;

static void hear(void *context) {
    ((Step *)context)->heard++;
}

static ModelSpec small_model(void) {
    return (ModelSpec){.name = "test",
                       .layers = 2,
                       .hidden = 16,
                       .heads = 2,
                       .kv_heads = 1,
                       .head_dim = 8,
                       .ffn = 16,
                       .vocab = 32,
                       .max_seq = 32,
                       .rope_theta = 10000,
                       .norm_eps = 1e-5,
                       .source = "tests"};
}

static void step_open(Step *step, double mark_work) {
    const ModelSpec model = small_model();
    const Target *target = NULL;
    Error error = {0};
    TrainPlan plan = {.mesh = {.size = SIZES(1, 1, 1, 1)}, .seq = 8, .micro_batch = 1, .grad_accum = 1};
    plan.precision = DTYPE_FP32;
    plan_canonical(&plan);
    *step = (Step){.heard = 0};
    table = device_find("cuda", &error);
    cr_assert(table && target_find("ndtune", &target, &error) == STATUS_OK, "%s", error.message);
    cr_assert(step_lower(&model, &plan, target, &step->arena, &step->program, &error) == STATUS_OK, "%s",
              error.message);
    cr_assert(memory_plan(&step->program, &step->arena, &step->memory, &error) == STATUS_OK, "%s", error.message);
    const DeviceSetup setup = {.program = &step->program,
                               .memory = &step->memory,
                               .threads = 1,
                               .mark_work = mark_work,
                               .alive = hear,
                               .alive_context = step,
                               .data = {.seed = 1, .vocab = model.vocab},
                               .numbers = {.seed = 1, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip = 1}};
    cr_assert(table->open(&setup, &step->arena, &step->device, &error) == STATUS_OK, "%s", error.message);
}

static void step_close(Step *step) {
    table->close(step->device);
    arena_free(&step->arena);
}

// One rank: no collectives. Graphs exist from the second step on; true when all fixed runs were launched as graphs.
static bool step_run(Step *step, int64_t number) {
    const IssueRuns runs = issue_runs_cut(&step->program, &step->arena);
    bool graphs = true;
    Error error = {0};
    table->begin_step(step->device, number, false);
    for (int32_t r = 0; r < runs.count; r++) {
        StepCursor cursor = runs.runs[r].cursor;
        StepInstance instance;
        for (int64_t done = 0, i = 0; step_cursor_next(&cursor, &instance) && i < runs.runs[r].count; i++) {
            done += i < done ? 0 : table->run(step->device, &instance, runs.runs[r].first + i);
            graphs = graphs && (runs.runs[r].kind != RUN_FIXED || done == runs.runs[r].count);
        }
    }
    cr_assert(table->synchronize(step->device, &error) == STATUS_OK, "%s", error.message);
    return graphs;
}

Test(cuda_marks, a_waiting_host_hears_of_every_task_and_of_a_step_in_one_graph) {
    Step step;
    step_open(&step, 1);
    cr_assert(!step_run(&step, 0));
    cr_expect(step.heard >= 20, "%d times in a step of %d tasks", step.heard, step.program.task_count);
    step.heard = 0;
    cr_assert(step_run(&step, 1), "no graphs");
    cr_expect(step.heard >= 1);
    step_close(&step);
}

Test(cuda_marks, little_work_makes_no_sign) {
    Step step;
    step_open(&step, 1e15);
    step_run(&step, 0);
    step_run(&step, 1);
    cr_expect_eq(step.heard, 0);
    step_close(&step);
}
