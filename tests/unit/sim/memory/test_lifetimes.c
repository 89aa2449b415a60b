// Liveness of slots in issue order.

#include <criterion/criterion.h>
#include <stdlib.h>

#include "sim/memory/lifetimes.h"
#include "tests/unit/sim/memory/examples.h"

typedef struct Line {
    Arena arena;
    ProgramBuilder builder;
    int16_t lane;
    int32_t buffer;
} Line;

static void line_begin(Line *line) {
    line->arena = (Arena){0};
    line->builder = builder_begin(&line->arena, 1);
    line->lane = builder_lane(&line->builder, "compute", -1);
    line->buffer = builder_buffer(&line->builder, "data", ROLE_ACTIVATION, 1, 512);
}

static void line_touch(Line *line, Access access, int64_t offset_bytes, int64_t bytes) {
    builder_task(&line->builder, "task", TASK_ADD, line->lane, PHASE_FORWARD);
    builder_touch_part(
        &line->builder, access,
        (BufferRef){.buffer = line->buffer, .rank_group = -1, .offset_bytes = offset_bytes, .bytes = bytes});
}

static int compare_rows(const void *left, const void *right) {
    return ((const SlotLifetime *)left)->first - ((const SlotLifetime *)right)->first;
}

// Checks the lifetimes, in issue order, against (first, last) pairs.
static void line_expect(Line *line, int count, const int (*expected)[2]) {
    Error error = {0};
    Lifetimes lifetimes;
    StepInstance instances[16];
    int32_t length = 0;
    StepCursor cursor = step_cursor_begin(builder_program(&line->builder));
    while (step_cursor_next(&cursor, &instances[length])) {
        length++;
    }
    cr_assert_eq(lifetimes_find(&line->builder.program, instances, length, &line->arena, &lifetimes, &error),
                 STATUS_OK);
    cr_assert_eq(lifetimes.count, count);
    qsort(lifetimes.rows, (size_t)lifetimes.count, sizeof(SlotLifetime), compare_rows);
    for (int i = 0; i < count; i++) {
        cr_assert_eq(lifetimes.rows[i].first, expected[i][0]);
        cr_assert_eq(lifetimes.rows[i].last, expected[i][1]);
    }
    arena_free(&line->arena);
}

Test(lifetimes, last_from_the_write_to_the_last_read) {
    Line line;
    line_begin(&line);
    line_touch(&line, ACCESS_WRITE, 0, 512);
    line_touch(&line, ACCESS_READ, 0, 512);
    line_touch(&line, ACCESS_READ, 0, 256);
    line_expect(&line, 1, (const int[][2]){{0, 2}});
}

Test(lifetimes, a_new_write_begins_another) {
    Line line;
    line_begin(&line);
    line_touch(&line, ACCESS_WRITE, 0, 512);
    line_touch(&line, ACCESS_READ, 0, 512);
    line_touch(&line, ACCESS_WRITE, 0, 512);
    line_touch(&line, ACCESS_READ, 0, 512);
    line_expect(&line, 2, (const int[][2]){{0, 1}, {2, 3}});
}

Test(lifetimes, an_update_continues) {
    Line line;
    line_begin(&line);
    line_touch(&line, ACCESS_WRITE, 0, 512);
    line_touch(&line, ACCESS_UPDATE, 0, 512);
    line_touch(&line, ACCESS_READ, 0, 512);
    line_expect(&line, 1, (const int[][2]){{0, 2}});
}

Test(lifetimes, a_write_of_half_keeps_the_other_half) {
    Line line;
    line_begin(&line);
    line_touch(&line, ACCESS_WRITE, 0, 512);
    line_touch(&line, ACCESS_WRITE, 0, 256);
    line_touch(&line, ACCESS_READ, 0, 512);
    line_expect(&line, 1, (const int[][2]){{0, 2}});
}

Test(lifetimes, a_write_that_nobody_reads_lives_for_itself) {
    Line line;
    line_begin(&line);
    line_touch(&line, ACCESS_WRITE, 0, 512);
    line_touch(&line, ACCESS_WRITE, 0, 512);
    line_touch(&line, ACCESS_READ, 0, 512);
    line_expect(&line, 2, (const int[][2]){{0, 0}, {1, 2}});
}

Test(lifetimes, bytes_that_nobody_writes_keep_nothing_alive) {
    Line line;
    line_begin(&line);
    line_touch(&line, ACCESS_WRITE, 0, 256);
    line_touch(&line, ACCESS_READ, 0, 512);
    line_touch(&line, ACCESS_WRITE, 0, 256);
    line_touch(&line, ACCESS_READ, 0, 512);
    line_expect(&line, 2, (const int[][2]){{0, 1}, {2, 3}});
}

Test(lifetimes, more_parts_than_cells_only_lengthen) {
    Arena arena = {0};
    Error error = {0};
    Lifetimes lifetimes;
    StepInstance instances[256];
    ProgramBuilder builder = builder_begin(&arena, 1);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const int32_t buffer = builder_buffer(&builder, "chunks", ROLE_COMMUNICATION, 1, 100 * 256);
    for (int i = 0; i < 100; i++) {
        builder_task(&builder, "chunk", TASK_ZERO, lane, PHASE_FORWARD);
        builder_touch_part(&builder, ACCESS_WRITE,
                           (BufferRef){.buffer = buffer, .rank_group = -1, .offset_bytes = 256 * i, .bytes = 256});
    }
    builder_task(&builder, "use", TASK_ADD, lane, PHASE_FORWARD);
    builder_touch(&builder, ACCESS_READ, buffer);
    int32_t count = 0;
    StepCursor cursor = step_cursor_begin(builder_program(&builder));
    while (step_cursor_next(&cursor, &instances[count])) {
        count++;
    }
    cr_assert_eq(lifetimes_find(&builder.program, instances, count, &arena, &lifetimes, &error), STATUS_OK);
    cr_assert_eq(lifetimes.count, 1);
    cr_assert_eq(lifetimes.rows[0].first, 0);
    cr_assert_eq(lifetimes.rows[0].last, 100);
    arena_free(&arena);
}

// The second task is the last of backward, the third the update.
Test(lifetimes, of_what_is_held_end_with_backward) {
    Line line;
    line_begin(&line);
    line_touch(&line, ACCESS_WRITE, 0, 512);
    builder_task(&line.builder, "backward", TASK_ADD, line.lane, PHASE_BACKWARD);
    builder_task(&line.builder, "update", TASK_ADD, line.lane, PHASE_OPTIMIZER);
    builder_program(&line.builder)->buffers[line.buffer].held = true;
    line_expect(&line, 1, (const int[][2]){{0, 1}});
}
