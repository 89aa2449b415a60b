// Orders of micro-steps and the loops built from them: each row of the table.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/step/schedules/micro_loops.h"

extern const Schedule schedule_1f1b, schedule_interleaved;

static void each_shape(const Schedule *schedule, int32_t most_stages,
                       void (*check)(const Schedule *schedule, const ScheduleShape *shape, Arena *arena)) {
    for (int32_t stages = 1; stages <= most_stages; stages++) {
        for (int32_t stage = 0; stage < stages; stage++) {
            for (int32_t micro_steps = 1; micro_steps <= 19; micro_steps += 1 + micro_steps / 4) {
                Arena arena = {0};
                const bool too_few = strcmp(schedule->name, "dualpipev") == 0 && micro_steps < 2 * stages;
                if (!too_few) {
                    check(schedule, &(ScheduleShape){stage, stages, schedule->folded ? 2 : 1, micro_steps, 0, 1},
                          &arena);
                }
                arena_free(&arena);
            }
        }
    }
}

// Groups of each size that fill the stages, and so does what is left over.
static void each_group(void (*check)(const Schedule *schedule, const ScheduleShape *shape, Arena *arena)) {
    for (int32_t micro_steps = 3; micro_steps <= 17; micro_steps++) {
        for (int32_t group = 3; group <= micro_steps; group++) {
            for (int32_t stage = 0; stage < 3 && (micro_steps % group == 0 || micro_steps % group >= 3); stage++) {
                Arena arena = {0};
                check(&schedule_interleaved, &(ScheduleShape){stage, 3, 2, micro_steps, group, 1}, &arena);
                arena_free(&arena);
            }
        }
    }
}

static void check_order(const Schedule *schedule, const ScheduleShape *shape, Arena *arena) {
    const int32_t count = schedule_action_count(schedule, shape);
    ScheduleAction *actions = ARENA_ARRAY(arena, ScheduleAction, count);
    schedule->order(shape, actions);
    int32_t done[2][WORK_COUNT] = {{0}};
    for (int32_t i = 0; i < count; i++) {
        int32_t *next = done[actions[i].chunk];
        cr_assert_eq(actions[i].micro_step, next[actions[i].work]++, "%s: micro-steps in rising order", schedule->name);
        cr_assert_leq(next[WORK_BACKWARD], next[WORK_FORWARD], "%s: forward before backward", schedule->name);
        cr_assert_leq(next[WORK_WEIGHTS], next[WORK_BACKWARD], "%s: inputs before weights", schedule->name);
    }
    for (int32_t chunk = 0; chunk < shape->chunks; chunk++) {
        for (int32_t work = 0; work < schedule_works(schedule); work++) {
            cr_assert_eq(done[chunk][work], shape->micro_steps, "%s", schedule->name);
        }
    }
}

Test(schedules, every_micro_step_goes_forward_and_backward_once_and_in_order) {
    for (int i = 0; i < schedule_count; i++) {
        each_shape(schedules[i], i == 0 ? 1 : 6, check_order);
    }
    each_group(check_order);
}

static void check_loops(const Schedule *schedule, const ScheduleShape *shape, Arena *arena) {
    const int32_t count = schedule_action_count(schedule, shape);
    const int32_t round_steps = shape->micro_steps / schedule_rounds(shape);
    ScheduleAction *actions = ARENA_ARRAY(arena, ScheduleAction, count);
    schedule_order(schedule, shape, actions);
    const MicroLoops loops = micro_loops_find(schedule, shape, arena);
    int32_t at = 0;
    for (int32_t l = 0; l < loops.count; l++) {
        const MicroLoop *loop = &loops.loops[l];
        for (int32_t i = 0; i < loop->count; i++) {
            for (int32_t w = loop->first_work; w < loop->first_work + loop->work_count; w++, at++) {
                const MicroWork *work = &loops.works[w];
                const int32_t micro_step = loop->first + i * loop->step + work->micro_offset;
                cr_assert_lt(at, count);
                cr_assert(work->work == actions[at].work && work->chunk == actions[at].chunk &&
                              micro_step == actions[at].micro_step,
                          "%s, stage %d of %d, %d micro-steps: action %d", schedule->name, shape->stage, shape->stages,
                          shape->micro_steps, at);
                cr_assert_eq(work->kind, micro_kind(micro_step, round_steps));
            }
        }
    }
    cr_assert_eq(at, count);
}

Test(schedules, the_loops_run_through_the_order_and_each_place_through_micro_steps_of_one_kind) {
    for (int i = 0; i < schedule_count; i++) {
        each_shape(schedules[i], i == 0 ? 1 : 6, check_loops);
    }
    each_group(check_loops);
}

static void check_rounds(const Schedule *schedule, const ScheduleShape *shape, Arena *arena) {
    static const int32_t times[] = {2, 3, 7};
    const int32_t count = schedule_action_count(schedule, shape);
    ScheduleAction *once = ARENA_ARRAY(arena, ScheduleAction, count);
    ScheduleAction *actions = ARENA_ARRAY(arena, ScheduleAction, count * 7);
    schedule_order(schedule, shape, once);
    const int32_t in_flight = micro_loops_find(schedule, shape, arena).in_flight;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        ScheduleShape rounds = *shape;
        rounds.rounds = times[i];
        rounds.micro_steps *= times[i];
        cr_assert_eq(schedule_action_count(schedule, &rounds), count * times[i]);
        schedule_order(schedule, &rounds, actions);
        for (int32_t at = 0; at < count * times[i]; at++) {
            const ScheduleAction *as = &once[at % count];
            cr_assert(actions[at].work == as->work && actions[at].chunk == as->chunk &&
                          actions[at].micro_step == as->micro_step + at / count * shape->micro_steps,
                      "%s, %d rounds: action %d", schedule->name, times[i], at);
        }
        check_loops(schedule, &rounds, arena);
        cr_assert_eq(micro_loops_find(schedule, &rounds, arena).in_flight, in_flight, "it drains in between");
    }
}

Test(schedules, rounds_are_the_schedule_once_more_each) {
    for (int i = 1; i < schedule_count; i++) {
        each_shape(schedules[i], 4, check_rounds);
    }
}

// By hand: of two stages the first one, four micro-steps in two rounds, and then in one.
Test(schedules, a_later_round_adds_to_what_was_reduced) {
    static const MicroKind kinds[2][4] = {{MICRO_FIRST, MICRO_LAST, MICRO_ADD_FIRST, MICRO_ADD_LAST},
                                          {MICRO_FIRST, MICRO_MIDDLE, MICRO_MIDDLE, MICRO_LAST}};
    for (int32_t micro_step = 0; micro_step < 4; micro_step++) {
        cr_expect_eq(micro_kind(micro_step, 2), kinds[0][micro_step]);
        cr_expect_eq(micro_kind(micro_step, 4), kinds[1][micro_step]);
        cr_expect_eq(micro_kind(micro_step, 1), micro_step == 0 ? MICRO_ONLY : MICRO_ADD_ONLY);
    }
    cr_expect_eq(micro_kind(4, 3), MICRO_MIDDLE);
}

Test(schedules, rounds_are_one_loop_however_many_there_are) {
    Arena arena = {0};
    int32_t counts[2];
    for (int i = 0; i < 2; i++) {
        const int32_t rounds = i ? 512 : 4;
        const ScheduleShape shape = {.stages = 4, .chunks = 1, .micro_steps = 8 * rounds, .rounds = rounds};
        counts[i] = micro_loops_find(&schedule_1f1b, &shape, &arena).count;
    }
    cr_expect_eq(counts[0], counts[1], "%d and %d loops", counts[0], counts[1]);
    arena_free(&arena);
}

// "PP2 N3M5 with VP2" (get_schedule_table, megatron/core/pipeline_parallel/schedules.py).
Test(schedules, what_is_left_over_is_a_last_smaller_group) {
    enum { ALL = 20 };
    static const int32_t micro_step[] = {0, 1, 2, 0, 1, 2, 3, 4, 3, 4}, chunk[] = {0, 0, 0, 1, 1, 1, 0, 0, 1, 1};
    for (int32_t stage = 0; stage < 2; stage++) {
        ScheduleAction actions[ALL];
        int32_t done[2] = {0};
        schedule_interleaved.order(&(ScheduleShape){stage, 2, 2, 5, 3, 1}, actions);
        for (int32_t i = 0; i < ALL; i++) {
            const bool back = actions[i].work == WORK_BACKWARD;
            const int32_t at = done[back]++;
            cr_expect_eq(actions[i].micro_step, micro_step[at], "stage %d, action %d", stage, i);
            cr_expect_eq(actions[i].chunk, back ? 1 - chunk[at] : chunk[at], "stage %d, action %d", stage, i);
            cr_expect(!back || at > 0 || done[0] == 3 + 2 * (1 - stage) + 1, "stage %d: warm-up", stage);
        }
    }
}

Test(schedules, accumulation_is_the_first_the_middle_and_the_last_micro_steps) {
    Arena arena = {0};
    const MicroLoops loops =
        micro_loops_find(schedules[0], &(ScheduleShape){.stages = 1, .chunks = 1, .micro_steps = 64}, &arena);
    cr_assert_eq(loops.count, 3);
    cr_assert_eq(loops.in_flight, 1);
    cr_assert(loops.loops[1].kind == MICRO_MIDDLE && loops.loops[1].first == 1 && loops.loops[1].count == 62);
    arena_free(&arena);
}

// Also those whose pairs of forward and backward change chunks at the same time, so that a shorter loop would do.
Test(schedules, the_groups_of_an_interleaved_pipeline_are_one_steady_loop_of_every_stage) {
    for (int32_t stage = 0; stage < 4; stage++) {
        Arena arena = {0};
        int32_t steady = 0;
        const ScheduleShape shape = {.stage = stage, .stages = 4, .chunks = 5, .micro_steps = 128};
        const MicroLoops loops = micro_loops_find(&schedule_interleaved, &shape, &arena);
        for (int32_t l = 0; l < loops.count; l++) {
            const MicroLoop *loop = &loops.loops[l];
            steady += loop->steady;
            cr_expect(!loop->steady || (loop->step == 4 && loop->count >= 128 / 4 - 4),
                      "stage %d: %d times %d micro-steps", stage, loop->count, loop->step);
        }
        cr_expect_eq(steady, 1, "stage %d", stage);
        arena_free(&arena);
    }
}

// What is in flight, of each kind of work of each chunk, is shifted by a steady loop and otherwise stays.
static void check_steady(const Schedule *schedule, const ScheduleShape *shape, Arena *arena) {
    const MicroLoops loops = micro_loops_find(schedule, shape, arena);
    for (int32_t l = 0; l < loops.count; l++) {
        const MicroLoop *loop = &loops.loops[l];
        int32_t done[8][WORK_COUNT] = {{0}};
        for (int32_t w = loop->first_work; w < loop->first_work + loop->work_count; w++) {
            done[loops.works[w].chunk][loops.works[w].work]++;
        }
        bool all = true;
        for (int32_t i = 0; i < shape->chunks * schedule_works(schedule); i++) {
            all &= done[i / schedule_works(schedule)][i % schedule_works(schedule)] == loop->step;
        }
        cr_expect_eq(loop->steady, all, "%s, stage %d of %d: loop %d", schedule->name, shape->stage, shape->stages, l);
    }
}

Test(schedules, an_iteration_of_a_steady_loop_is_every_work_of_as_many_micro_steps_as_it_goes_on) {
    for (int i = 0; i < schedule_count; i++) {
        each_shape(schedules[i], i == 0 ? 1 : 6, check_steady);
    }
    each_group(check_steady);
}

Test(schedules, the_steady_state_is_one_loop_however_many_micro_steps_there_are) {
    for (int32_t stage = 0; stage < 4; stage++) {
        Arena arena = {0};
        int32_t counts[2];
        for (int i = 0; i < 2; i++) {
            const ScheduleShape shape = {.stage = stage, .stages = 4, .chunks = 1, .micro_steps = i ? 4096 : 32};
            const MicroLoops loops = micro_loops_find(&schedule_1f1b, &shape, &arena);
            counts[i] = loops.count;
            cr_assert_eq(loops.in_flight, 4 - stage, "as many as stages from here to the last");
        }
        cr_assert_eq(counts[0], counts[1]);
        cr_assert_leq(counts[0], 8);
        arena_free(&arena);
    }
}

// Of four stages with two chunks: all inputs but the model's, all gradients but the loss's; folded, neither what the
// last stage hands itself.
Test(schedules, a_stage_receives_for_each_chunk_what_another_stage_sends) {
    static const struct {
        bool folded;
        int32_t stage, inputs, gradients;
    } rows[] = {{false, 0, 1, 2}, {false, 1, 2, 2}, {false, 3, 2, 1},
                {true, 0, 1, 1},  {true, 1, 2, 2},  {true, 3, 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ReceivedMessages received = schedule_received(rows[i].folded, 4, 2, rows[i].stage);
        cr_expect_eq(received.inputs, rows[i].inputs, "row %zu", i);
        cr_expect_eq(received.gradients, rows[i].gradients, "row %zu", i);
    }
}
