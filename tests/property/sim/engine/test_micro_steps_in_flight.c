// A hand-written pipeline stage: some micro-steps go forward first, then forward and backward alternate, then the rest
// goes backward. Activations have slots per layer and micro-step in flight; weights are gathered layer by layer on
// their own lane. Every reader of a program must see the same.

#include <criterion/criterion.h>

#include "exec/device/issue_runs.h"
#include "sim/engine/engine.h"
#include "sim/memory/memory.h"
#include "sim/memory/memory_breakdown.h"
#include "sim/step/slots.h"
#include "tests/support/hazard_check.h"
#include "tests/support/program_builder.h"

enum { SLOT_BYTES = 512, LAYERS_OF_RING = 2, TASKS = 16 };

typedef struct Stage {
    int layers, micro_steps;
    int ahead;  // forwards before the first backward
    int slots;  // micro-steps that have slots of their own
} Stage;

typedef struct Draft {
    ProgramBuilder builder;
    Stage stage;
    int16_t compute, gather;
    int32_t shard, weights, x, saved, dx, work;
    int32_t gathered, used;  // events: weights written, weights read
} Draft;

static BufferRef slot_ref(const Draft *draft, int32_t buffer, bool layered, int offset) {
    const Buffer *touched = &draft->builder.program.buffers[buffer];
    return (BufferRef){
        .buffer = buffer,
        .index = {.layer_scale = layered, .layer_offset = (int16_t)offset, .micro_scale = touched->micro_steps > 0},
        .rank_group = -1,
        .bytes = SLOT_BYTES};
}

static int32_t activation(Draft *draft, const char *name, int layers) {
    const int32_t buffer =
        builder_buffer(&draft->builder, name, ROLE_ACTIVATION, layers * draft->stage.slots, SLOT_BYTES);
    draft->builder.program.buffers[buffer].micro_steps = draft->stage.slots;
    return buffer;
}

static void leaf_offset(Draft *draft, int micro_offset) {
    StepProgram *program = &draft->builder.program;
    program->segments[program->segment_count - 1].micro_offset = micro_offset;
}

static void gather_layer(Draft *draft) {
    ProgramBuilder *builder = &draft->builder;
    builder_task(builder, "gather", TASK_ALL_GATHER, draft->gather, PHASE_FORWARD)->group = 0;
    builder_touch_part(builder, ACCESS_READ, slot_ref(draft, draft->shard, true, 0));
    builder_touch_part(builder, ACCESS_WRITE, slot_ref(draft, draft->weights, true, 0));
    builder_wait(builder, draft->used, 1, 0);
    builder_record(builder, draft->gathered, 1, 0);
}

static Task *layer_task(Draft *draft, const char *name, Phase phase) {
    ProgramBuilder *builder = &draft->builder;
    Task *task = builder_task(builder, name, TASK_GEMM, draft->compute, phase);
    builder_touch_part(builder, ACCESS_READ, slot_ref(draft, draft->weights, true, 0));
    builder_wait(builder, draft->gathered, 1, 0);
    builder_record(builder, draft->used, 1, 0);
    return task;
}

static void forward(Draft *draft, int micro_offset) {
    ProgramBuilder *builder = &draft->builder;
    builder_task(builder, "embed", TASK_EMBED, draft->compute, PHASE_FORWARD);
    builder_touch_part(builder, ACCESS_WRITE, slot_ref(draft, draft->x, false, 0));
    leaf_offset(draft, micro_offset);
    builder_loop(builder, SEGMENT_LAYERS, "forward", 0, draft->stage.layers, 1);
    gather_layer(draft);
    layer_task(draft, "forward", PHASE_FORWARD);
    builder_touch_part(builder, ACCESS_READ, slot_ref(draft, draft->x, true, 0));
    builder_touch_part(builder, ACCESS_WRITE, slot_ref(draft, draft->saved, true, 0));
    builder_touch_part(builder, ACCESS_WRITE, slot_ref(draft, draft->x, true, 1));
    leaf_offset(draft, micro_offset);
    builder_end(builder);
}

static void backward(Draft *draft) {
    ProgramBuilder *builder = &draft->builder;
    builder_task(builder, "loss", TASK_LOSS_GRADIENT, draft->compute, PHASE_LOSS);
    builder_touch_part(builder, ACCESS_READ, slot_ref(draft, draft->x, false, draft->stage.layers));
    builder_touch(builder, ACCESS_WRITE, draft->dx);
    builder_loop(builder, SEGMENT_LAYERS, "backward", draft->stage.layers - 1, draft->stage.layers, -1);
    gather_layer(draft);
    layer_task(draft, "backward", PHASE_BACKWARD);
    builder_touch_part(builder, ACCESS_READ, slot_ref(draft, draft->x, true, 0));
    builder_touch_part(builder, ACCESS_READ, slot_ref(draft, draft->saved, true, 0));
    builder_touch(builder, ACCESS_WRITE, draft->work);
    builder_touch(builder, ACCESS_UPDATE, draft->dx);
    builder_end(builder);
}

static StepProgram *stage_program(Draft *draft, Arena *arena, Stage stage) {
    *draft = (Draft){.builder = builder_begin(arena, stage.layers), .stage = stage};
    ProgramBuilder *builder = &draft->builder;
    draft->compute = builder_lane(builder, "compute", -1);
    draft->gather = builder_lane(builder, "ag", 0);
    builder_group(builder, "group", AXIS_BIT(AXIS_DP_SHARD), 1);
    draft->shard = builder_persistent(builder, "shard", ROLE_PARAMETER, stage.layers, SLOT_BYTES);
    draft->weights = builder_buffer(builder, "weights", ROLE_GATHERED, LAYERS_OF_RING, SLOT_BYTES);
    draft->x = activation(draft, "x", stage.layers + 1);
    draft->saved = activation(draft, "saved", stage.layers);
    draft->dx = builder_buffer(builder, "dx", ROLE_ACTIVATION, 1, SLOT_BYTES);
    draft->work = builder_buffer(builder, "work", ROLE_ACTIVATION, 1, SLOT_BYTES);
    draft->gathered = builder_event(builder, draft->weights, draft->gather, true);
    draft->used = builder_event(builder, draft->weights, draft->compute, false);
    const int steady = stage.micro_steps - stage.ahead;
    builder_loop(builder, SEGMENT_MICRO_STEPS, "forward", 0, stage.ahead, 1);
    forward(draft, 0);
    builder_end(builder);
    builder_loop(builder, SEGMENT_MICRO_STEPS, "one forward, one backward", 0, steady, 1);
    forward(draft, stage.ahead);
    backward(draft);
    builder_end(builder);
    builder_loop(builder, SEGMENT_MICRO_STEPS, "backward", steady, stage.ahead, 1);
    backward(draft);
    builder_end(builder);
    return builder_program(builder);
}

static void each_stage(void (*check)(const StepProgram *program, const Stage *stage, Arena *arena)) {
    for (int layers = 1; layers <= 25; layers += 6) {
        for (int ahead = 1; ahead <= 3; ahead++) {
            for (int micro_steps = ahead + 1; micro_steps <= 12; micro_steps += 5) {
                Arena arena = {0};
                Draft draft;
                const Stage stage = {layers, micro_steps, ahead, ahead + 1};
                check(stage_program(&draft, &arena, stage), &stage, &arena);
                arena_free(&arena);
            }
        }
    }
}

static void check_memory(const StepProgram *program, const Stage *stage, Arena *arena) {
    Error error = {0};
    MemoryPlan plan;
    cr_assert_eq(hazard_check(program, NULL, arena, NULL, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(memory_plan(program, arena, &plan, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(hazard_check(program, &plan, arena, NULL, &error), STATUS_OK, "%d layers, %d micro-steps: %s",
                 stage->layers, stage->micro_steps, error.message);
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        bytes += program->buffers[i].slots * program->buffers[i].slot_bytes;
    }
    cr_assert_leq(plan.arena_bytes, bytes);
}

Test(micro_steps_in_flight, no_slot_is_overwritten_before_its_backward_and_the_plan_is_proved) {
    each_stage(check_memory);
}

// Reads of saved activations that meet what another micro-step or layer wrote.
static int64_t strangers(const Draft *draft, const StepProgram *program, Arena *arena) {
    StepInstance *writer = ARENA_ARRAY(arena, StepInstance, program->buffers[draft->saved].slots);
    StepCursor cursor = step_cursor_begin(program);
    StepInstance at;
    int64_t found = 0;
    while (step_cursor_next(&cursor, &at)) {
        const Task *task = &program->tasks[at.task];
        for (int i = 0; i < task->operand_count; i++) {
            const Operand *operand = task_operand(program, task, i);
            if (operand->ref.buffer == draft->saved) {
                StepInstance *last = &writer[step_slot(&program->buffers[draft->saved], operand->ref.index, &at)];
                found +=
                    operand->access == ACCESS_READ && (last->layer != at.layer || last->micro_step != at.micro_step);
                *last = operand->access == ACCESS_WRITE ? at : *last;
            }
        }
    }
    return found;
}

Test(micro_steps_in_flight, backward_reads_what_its_own_micro_step_wrote) {
    Arena arena = {0};
    Draft draft;
    const StepProgram *program = stage_program(&draft, &arena, (Stage){5, 7, 2, 3});
    cr_assert_eq(strangers(&draft, program, &arena), 0);
    program = stage_program(&draft, &arena, (Stage){5, 7, 2, 2});
    cr_assert_gt(strangers(&draft, program, &arena), 0, "a slot too few is seen");
    arena_free(&arena);
}

static void check_live_bytes(const StepProgram *program, const Stage *stage, Arena *arena) {
    (void)arena;
    const CutOptions whole = {.base_layers = stage->layers, .max_micro_steps = stage->micro_steps};
    StepProgram with_target = *program;
    const Target target = {.name = "plain"};
    with_target.target = &target;
    LiveTraces traces = {0};
    MemoryBreakdown cut, uncut;
    Error error = {0};
    cr_assert_eq(memory_breakdown_cut(&with_target, &memory_breakdown_cut_options, &traces, &cut, &error), STATUS_OK);
    cr_assert_eq(memory_breakdown_cut(&with_target, &whole, &traces, &uncut, &error), STATUS_OK);
    cr_assert_float_eq(cut.peak_bytes, uncut.peak_bytes, 0.5, "%d layers, %d micro-steps, %d ahead: %g and %g",
                       stage->layers, stage->micro_steps, stage->ahead, cut.peak_bytes, uncut.peak_bytes);
    const double saved = (double)stage->layers * (stage->ahead + 1) * SLOT_BYTES;
    cr_assert_geq(cut.activations, saved, "as many micro-steps as are in flight are alive");
    live_traces_free(&traces);
}

Test(micro_steps_in_flight, live_bytes_of_the_cut_program_are_those_of_the_whole) {
    each_stage(check_live_bytes);
}

static EngineResult simulate(const StepProgram *program, bool unroll, Arena *arena) {
    TaskCost costs[TASKS] = {0};
    for (int32_t i = 0; i < program->task_count; i++) {
        costs[i] = (TaskCost){.seconds = 1e-6 * (3 + 2 * i), .sm_share = program->tasks[i].lane == 0};
    }
    const EngineCosts engine_costs = {.tasks = costs,
                                      .interference = {.hbm_factor = 1, .collective_slowdown = 1, .residue = 1}};
    const EngineOptions options = {.unroll = unroll, .keep_spans = true};
    EngineResult result;
    Error error = {0};
    cr_assert_leq(program->task_count, TASKS);
    cr_assert_eq(engine_run_costs(program, &engine_costs, &options, arena, &result, &error), STATUS_OK, "%s",
                 error.message);
    return result;
}

static void check_engine(const StepProgram *program, const Stage *stage, Arena *arena) {
    const EngineResult skipped = simulate(program, false, arena), whole = simulate(program, true, arena);
    cr_assert_eq(skipped.step_s, whole.step_s, "%d layers, %d micro-steps, %d ahead", stage->layers, stage->micro_steps,
                 stage->ahead);
    cr_assert_eq(skipped.instances, whole.instances);
    cr_assert_eq(whole.timeline.span_count, step_instance_count(program));
    StepCursor cursor = step_cursor_begin(program);
    StepInstance at;
    for (int64_t i = 0; step_cursor_next(&cursor, &at); i++) {
        const Span *span = &whole.timeline.spans[i];
        cr_assert(span->task == at.task && span->layer == at.layer && span->micro_step == at.micro_step);
    }
}

Test(micro_steps_in_flight, the_engine_walks_as_the_cursor_and_skipping_equals_unrolling) {
    each_stage(check_engine);
}

Test(micro_steps_in_flight, a_graph_serves_the_micro_steps_whose_slots_are_the_same) {
    Arena arena = {0};
    Draft draft;
    const StepProgram *program = stage_program(&draft, &arena, (Stage){1, 8, 2, 3});
    const IssueRuns runs = issue_runs_cut(program, &arena);
    int64_t shared = 0;
    for (int32_t r = 0; r < runs.count; r++) {
        StepCursor a = runs.runs[r].cursor, b = runs.runs[runs.runs[r].same_as].cursor;
        StepInstance x, y;
        for (int32_t i = 0; i < runs.runs[r].count; i++) {
            cr_assert(step_cursor_next(&a, &x) && step_cursor_next(&b, &y));
            cr_assert_eq((x.micro_step - y.micro_step) % 3, 0, "micro-steps %d and %d", x.micro_step, y.micro_step);
        }
        shared += runs.runs[r].same_as != r;
    }
    cr_assert_gt(shared, 0);
    arena_free(&arena);
}
