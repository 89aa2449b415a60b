// The programs of the stages of a pipeline: which stage holds which layers, and that what one stage sends is what
// another one receives, message by message.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/step/stages.h"
#include "tests/support/sizes.h"

enum { MOST_STAGES = 8, MOST_CHUNKS = 4, MOST_MICRO_STEPS = 32, MOST_MESSAGES = MOST_CHUNKS * MOST_MICRO_STEPS };

typedef struct Pipeline {
    Arena arena;
    ModelSpec model;
    TrainPlan plan;
    StepPrograms programs;
} Pipeline;

static void pipeline_lower(Pipeline *pipeline, PpSchedule schedule, int stages, int chunks, int micro_steps,
                           int layers) {
    Error error = {0};
    const Target *target = NULL;
    cr_assert_eq(model_find("tiny", &pipeline->arena, &pipeline->model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find("ndtune", &target, &error), STATUS_OK, "%s", error.message);
    pipeline->model.layers = layers;
    pipeline->plan = (TrainPlan){.mesh = {SIZES(1, 1, 1, 1)},
                                 .seq = 64,
                                 .micro_batch = 1,
                                 .grad_accum = micro_steps,
                                 .fused = target->default_fused,
                                 .pp_schedule = schedule,
                                 .virtual_stages = chunks};
    pipeline->plan.mesh.size[AXIS_PP] = stages;
    plan_canonical(&pipeline->plan);
    cr_assert_eq(
        step_lower_stages(&pipeline->model, &pipeline->plan, target, &pipeline->arena, &pipeline->programs, &error),
        STATUS_OK, "%s", error.message);
}

// One message as its stage sees it: which layer it goes into, counted over the model, and of which micro-step.
typedef struct Note {
    int layer, micro_step;
    int64_t bytes;
} Note;

typedef struct Notes {
    Note of[MOST_MESSAGES];
    int count;
} Notes;

// Of an activation: the layer that reads it. The gradient stream has no layers.
static int layer_into(const StepProgram *program, const Task *task) {
    const BufferRef *ref = &task_operand(program, task, AT_MESSAGE)->ref;
    const bool sends = task->kind == TASK_SEND;
    const int at = ref->index.layer_offset - (sends ? 1 : 0);
    return task->phase == PHASE_FORWARD ? stage_model_layer(&program->held, at) + (sends ? 1 : 0) : 0;
}

static void collect(const StepProgram *program, TaskKind kind, int peer, Phase phase, Notes *notes) {
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    notes->count = 0;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        if (task->kind == kind && task->peer == peer && task->phase == phase) {
            cr_assert_lt(notes->count, MOST_MESSAGES);
            notes->of[notes->count++] = (Note){layer_into(program, task), instance.micro_step, task->payload_bytes};
        }
    }
}

static int check_messages(const StepPrograms *programs) {
    static Notes sent, received;
    static const Phase phases[] = {PHASE_FORWARD, PHASE_BACKWARD};
    int messages = 0;
    for (int from = 0; from < programs->count; from++) {
        for (int to = 0; to < programs->count; to++) {
            for (int i = 0; i < 2; i++) {
                collect(&programs->of[from], TASK_SEND, to, phases[i], &sent);
                collect(&programs->of[to], TASK_RECEIVE, from, phases[i], &received);
                cr_assert_eq(sent.count, received.count, "from %d to %d", from, to);
                cr_assert_arr_eq(sent.of, received.of, (size_t)sent.count * sizeof *sent.of, "from %d to %d", from, to);
                messages += sent.count;
            }
        }
    }
    return messages;
}

Test(pipeline, what_a_stage_sends_its_peers_receive_in_that_order) {
    static const PpSchedule names[] = {PP_GPIPE, PP_1F1B, PP_INTERLEAVED, PP_ZERO_BUBBLE, PP_ZBV, PP_DUALPIPEV};
    for (int i = 0; i < 6; i++) {
        const bool folded = names[i] >= PP_ZBV;  // which chunk's turn it is, on one stage
        const bool several = names[i] == PP_INTERLEAVED || names[i] == PP_ZERO_BUBBLE;
        for (int stages = 2; stages <= MOST_STAGES; stages += 1 + stages / 4) {
            for (int chunks = several || folded ? 2 : 1; chunks <= (several ? MOST_CHUNKS : folded ? 2 : 1); chunks++) {
                for (int micro_steps = 1; micro_steps <= MOST_MICRO_STEPS; micro_steps += 1 + micro_steps / 3) {
                    const int rounds = micro_steps / stages;
                    const bool too_few = names[i] == PP_DUALPIPEV && micro_steps < 2 * stages;
                    if (too_few || (several && rounds > 1 && micro_steps % rounds != 0)) {
                        continue;
                    }
                    Pipeline pipeline = {0};
                    pipeline_lower(&pipeline, names[i], stages, chunks, micro_steps, stages * chunks + 1);
                    cr_assert_eq(check_messages(&pipeline.programs), 2 * (stages * chunks - 1 - folded) * micro_steps,
                                 "%s, %d stages of %d chunks, %d micro-steps", pp_schedule_names[names[i]], stages,
                                 chunks, micro_steps);
                    arena_free(&pipeline.arena);
                }
            }
        }
    }
}

Test(pipeline, every_layer_is_on_one_stage_and_the_ends_have_embedding_and_head) {
    Pipeline pipeline = {0};
    pipeline_lower(&pipeline, PP_INTERLEAVED, 4, 2, 8, 19);
    bool held[19] = {false};
    for (int stage = 0; stage < 4; stage++) {
        const StepProgram *program = &pipeline.programs.of[stage];
        for (int layer = 0; layer < program->layers; layer++) {
            const int in_model = stage_model_layer(&program->held, layer);
            cr_assert(in_model >= 0 && in_model < 19 && !held[in_model]);
            held[in_model] = true;
        }
        cr_assert_eq(program->units[UNIT_LAYER].instances, program->layers);
        cr_assert_eq(program->units[UNIT_EMBEDDING].instances, stage == 0);
        cr_assert_eq(program->units[UNIT_HEAD].instances, stage == 3);
    }
    for (int layer = 0; layer < 19; layer++) {
        cr_assert(held[layer], "layer %d", layer);
    }
    arena_free(&pipeline.arena);
}

// What walks a program leaves a loop behind its last task. A chunk of the head alone has no weights to make later where
// a chunked loss makes the head's at once.
Test(pipeline, no_loop_is_without_tasks) {
    Pipeline pipeline = {0};
    Error error = {0};
    const Target *target = NULL;
    cr_assert_eq(target_find("ndtune", &target, &error), STATUS_OK, "%s", error.message);
    pipeline_lower(&pipeline, PP_ZERO_BUBBLE, 2, 2, 4, 7);
    pipeline.plan.loss = LOSS_CHUNKED;
    pipeline.plan.pp_split = SPLIT_WEIGHTED;
    pipeline.plan.pp_last = 2;
    cr_assert_eq(
        step_lower_stages(&pipeline.model, &pipeline.plan, target, &pipeline.arena, &pipeline.programs, &error),
        STATUS_OK, "%s", error.message);
    const StepProgram *last = &pipeline.programs.of[1];
    cr_assert_eq(last->held.chunks[1].count, 0);
    for (int32_t s = 0; s < last->segment_count; s++) {
        cr_expect(last->segments[s].kind == SEGMENT_TASKS || last->segments[s].end > s + 1, "%s",
                  last->segments[s].name);
    }
    arena_free(&pipeline.arena);
}

Test(pipeline, a_stage_holds_activations_of_the_micro_steps_that_are_in_flight) {
    Pipeline pipeline = {0};
    pipeline_lower(&pipeline, PP_1F1B, 4, 1, 8, 8);
    for (int stage = 0; stage < 4; stage++) {
        const StepProgram *program = &pipeline.programs.of[stage];
        bool found = false;
        for (int32_t i = 0; i < program->buffer_count; i++) {
            const Buffer *buffer = &program->buffers[i];
            if (strcmp(buffer->name, "qkv") == 0 || strcmp(buffer->name, "s") == 0) {
                cr_assert_eq(buffer->slots, 2 * (4 - stage), "%s", buffer->name);
                found = true;
            }
        }
        cr_assert(found);
    }
    arena_free(&pipeline.arena);
}

Test(pipeline, loss_and_norm_are_summed_over_the_stages) {
    Pipeline pipeline = {0};
    pipeline_lower(&pipeline, PP_GPIPE, 3, 1, 2, 4);
    for (int stage = 0; stage < 3; stage++) {
        const StepProgram *program = &pipeline.programs.of[stage];
        int sums = 0;
        for (int32_t i = 0; i < program->task_count; i++) {
            const Task *task = &program->tasks[i];
            if (task->lane == LANE_CTL) {
                cr_assert_eq(program->groups[task->group].size, 3);
                sums++;
            }
        }
        cr_assert_eq(sums, 2);
        cr_assert_geq(program->loss_buffer, 0);
    }
    arena_free(&pipeline.arena);
}

static int tied_messages(const StepProgram *program, int peer, int64_t bytes) {
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        if (task_is_message(task) && task->phase == PHASE_OPTIMIZER) {
            cr_expect_eq(task->peer, peer);
            cr_expect_eq(task->payload_bytes, bytes);
            count++;
        }
    }
    return count;
}

// Of a unit, in the gradient norm.
static int64_t squared_elements(const StepProgram *program, int unit) {
    int64_t count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        if (task->kind == TASK_SQUARE_SUM && task->unit == unit) {
            count += task->inner > 0 ? task->inner : program->units[unit].elements;
        }
    }
    return count;
}

// GPT-2's one table: a copy on the first and one on the last stage, whose gradients meet; the
// norm counts it once.
Test(pipeline, stages_with_a_copy_of_one_table_each_exchange_its_gradient) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *target = NULL;
    StepPrograms programs;
    cr_assert_eq(model_find("gpt2", &arena, &model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find("nanotron", &target, &error), STATUS_OK, "%s", error.message);
    TrainPlan plan = {.mesh = {SIZES(1, 1, 1, 1)}, .seq = 64, .micro_batch = 1, .grad_accum = 4};
    plan.mesh.size[AXIS_PP] = 3;
    plan_canonical(&plan);
    cr_assert_eq(step_lower_stages(&model, &plan, target, &arena, &programs, &error), STATUS_OK, "%s", error.message);
    const int64_t bytes = model.vocab * model.hidden * (int64_t)sizeof(float);
    cr_expect_eq(tied_messages(&programs.of[0], 2, bytes), 2);
    cr_expect_eq(tied_messages(&programs.of[1], -1, 0), 0);
    cr_expect_eq(tied_messages(&programs.of[2], 0, bytes), 2);
    cr_expect(!programs.of[2].model.tied_embeddings && programs.of[0].model.tied_embeddings);
    cr_expect_eq(squared_elements(&programs.of[0], UNIT_EMBEDDING), model.max_seq * model.hidden);  // positions only
    cr_expect_eq(squared_elements(&programs.of[2], UNIT_HEAD), (model.vocab + 2) * model.hidden);   // with a norm
    arena_free(&arena);
}
