// The engine walks a compiled form of the event protocol, for speed: on random programs every instance must wait for
// exactly what the replay used by all other readers says.

#include <criterion/criterion.h>

#include "sim/engine/walker.h"
#include "sim/step/event_replay.h"
#include "tests/property/sim/engine/random_program.h"

enum { PROGRAMS = 300 };

static void compare(const RandomProgram *random, int number, Arena *arena) {
    const StepProgram *program = random->program;
    const EngineCosts costs = {.tasks = random->costs, .interference = random->interference};
    EngineProgram compiled;
    Error error = {0};
    cr_assert_eq(engine_compile(program, &costs, arena, &compiled, &error), STATUS_OK, "%s", error.message);
    Walker walker;
    walker_begin(&walker, &compiled, arena);
    EventReplay replay = event_replay_new(program, arena);
    StepCursor cursor = step_cursor_begin(program);
    StepInstance at;
    const int32_t kept[ENGINE_LANES] = {0};
    while (step_cursor_next(&cursor, &at)) {
        int32_t need[ENGINE_LANES] = {0};
        const int lane = walker_pull(&walker, kept);
        const Instance *instance = walker_head(&walker, lane, walker.rings[lane].pulled - 1);
        event_replay_issue(&replay, &at, need);
        cr_assert(instance->task == at.task && instance->layer == at.layer && instance->micro_step == at.micro_step);
        for (int other = 0; other < program->lane_count; other++) {
            cr_assert_eq(instance->need[other], 2 * need[other],
                         "program %d, task %d, layer %d, micro-step %d, lane %d", number, at.task, at.layer,
                         at.micro_step, other);
        }
    }
    cr_assert_lt(walker_pull(&walker, kept), 0);
}

Test(event_replay, the_engine_waits_for_what_the_replay_says) {
    Random random = {20261122};
    for (int number = 0; number < PROGRAMS; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        compare(&program, number, &arena);
        arena_free(&arena);
    }
}
