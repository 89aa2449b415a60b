// Lowered programs in orders that keep several micro-steps in flight on one stage: no race, every memory plan proved,
// and backward reads what forward of its own micro-step wrote.

#include <criterion/criterion.h>

#include "sim/memory/memory.h"
#include "sim/step/lower.h"
#include "sim/step/slots.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"

enum { PLANS = 40, AHEAD = 2 };
static const uint64_t first_seed = 20261122;

// A number of forwards before the first backward, then alternating.
static void ahead_order(const ScheduleShape *shape, ScheduleAction *actions) {
    const int32_t ahead = AHEAD < shape->micro_steps ? AHEAD : shape->micro_steps;
    for (int32_t m = 0; m < ahead; m++) {
        *actions++ = (ScheduleAction){.work = WORK_FORWARD, .micro_step = m};
    }
    for (int32_t m = 0; m < shape->micro_steps; m++) {
        if (m + ahead < shape->micro_steps) {
            *actions++ = (ScheduleAction){.work = WORK_FORWARD, .micro_step = m + ahead};
        }
        *actions++ = (ScheduleAction){.work = WORK_BACKWARD, .micro_step = m};
    }
}

static const Schedule ahead_schedule = {.name = "ahead", .order = ahead_order};

// What micro-steps have of their own: weights and gradients are the same for all.
static bool is_own(const Buffer *buffer) {
    return !buffer->persistent && (buffer->role == ROLE_ACTIVATION || buffer->role == ROLE_LOGITS);
}

// Reads of what another micro-step wrote last.
static int64_t strangers(const StepProgram *program, Arena *arena) {
    int32_t **writer = ARENA_ARRAY(arena, int32_t *, program->buffer_count);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        writer[i] = ARENA_ARRAY(arena, int32_t, program->buffers[i].slots);
    }
    StepCursor cursor = step_cursor_begin(program);
    StepInstance at;
    int64_t found = 0;
    while (step_cursor_next(&cursor, &at)) {
        const Task *task = &program->tasks[at.task];
        for (int pass = 0; pass < 2 * task->operand_count; pass++) {
            const Operand *operand = task_operand(program, task, pass % task->operand_count);
            const int32_t buffer = operand->ref.buffer;
            if (buffer < 0 || !is_own(&program->buffers[buffer])) {
                continue;
            }
            int32_t *last = &writer[buffer][step_slot(&program->buffers[buffer], operand->ref.index, &at)];
            if (pass < task->operand_count) {
                found += (operand->access & ACCESS_READ) && *last != at.micro_step + 1;
            } else if (operand->access & ACCESS_WRITE) {
                *last = at.micro_step + 1;
            }
        }
    }
    return found;
}

static void check(const StepProgram *plain, Arena *arena) {
    Error error = {0};
    StepProgram program;
    MemoryPlan plan;
    char text[PLAN_TEXT_BYTES];
    const LoweringChoice choice = {.schedule = &ahead_schedule};
    plan_text(&plain->plan, text);
    cr_assert_eq(step_lower_chosen(&plain->model, &plain->plan, plain->target, &choice, arena, &program, &error),
                 STATUS_OK, "%s", error.message);
    cr_assert_eq(strangers(&program, arena), 0, "%s %s", plain->target->name, text);
    cr_assert_eq(step_instance_count(&program), step_instance_count(plain));
    cr_assert_eq(memory_plan(&program, arena, &plan, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(hazard_check(&program, &plan, arena, NULL, &error), STATUS_OK, "%s %s: %s", plain->target->name, text,
                 error.message);
}

Test(scheduled_programs, micro_steps_in_flight_keep_apart) {
    uint64_t seed = first_seed;
    int checked = 0, in_flight = 0;
    while (checked < PLANS) {
        Arena arena = {0};
        LoweredRequest request = lowered_random(&arena, &seed, 8);
        request.grad_accum = 2 + checked % 4;
        if (lowered_is_legal(&request, &arena)) {
            const StepProgram plain = lowered(&arena, request);
            check(&plain, &arena);
            checked++;
            in_flight += plain.plan.grad_accum > AHEAD;
        }
        arena_free(&arena);
    }
    cr_assert_gt(in_flight, PLANS / 4);
}
