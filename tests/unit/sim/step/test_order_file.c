// Orders in files: PyTorch 2.15's files for its schedules on 4 ranks and 8 micro-batches (1f1b and gpipe as their
// actions, the others by _dump_csv) give our orders; so do our own when written to a file; errors are named.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "sim/step/schedules/order_file.h"
#include "tests/support/written_order.h"

static Status read_text(const char *text, Arena *arena, PpOrder *file, Error *error) {
    char path[] = "order_file_test.csv";
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
    const Status status = order_file_read(path, arena, file, error);
    remove(path);
    return status;
}

Test(order_file, what_pytorch_writes_is_the_order_of_the_schedule_of_that_name) {
    static const struct {
        const char *file, *schedule;
        int chunks;
    } rows[] = {{"1f1b_pp4_m8", "1f1b", 1},
                {"gpipe_pp4_m8", "gpipe", 1},
                {"interleaved_pp4_v2_m8", "interleaved", 2},
                {"zero_bubble_pp4_v2_m8", "zero-bubble", 2},
                {"zbv_pp4_v2_m8", "zbv", 2},
                {"dualpipev_pp4_v2_m8", "dualpipev", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena arena = {0};
        Error error = {0};
        PpOrder file;
        const char *path = arena_format(&arena, "%s/%s.csv", ORDERS, rows[i].file);
        cr_assert_eq(order_file_read(path, &arena, &file, &error), STATUS_OK, "%s", error.message);
        cr_expect_eq(file.stages, 4);
        cr_expect_eq(file.micro_steps, 8);
        cr_expect_eq(file.chunks, rows[i].chunks);
        const Schedule *schedule = order_file_schedule(&file, &arena);
        cr_assert(schedule, "%s: none", rows[i].file);
        cr_expect_str_eq(schedule->name, rows[i].schedule);
        arena_free(&arena);
    }
}

Test(order_file, an_order_that_is_written_down_is_read_back) {
    static const struct {
        const char *schedule;
        int stages, chunks, micro_steps;
    } rows[] = {{"gpipe", 2, 1, 3},       {"1f1b", 3, 1, 7},        {"interleaved", 2, 3, 4}, {"interleaved", 3, 2, 6},
                {"zero-bubble", 3, 1, 6}, {"zero-bubble", 2, 2, 4}, {"zbv", 3, 2, 7},         {"dualpipev", 2, 2, 6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena arena = {0};
        Error error = {0};
        PpOrder file;
        const Schedule *schedule = schedule_find(rows[i].schedule);
        const ScheduleShape shape = {
            .stages = rows[i].stages, .chunks = rows[i].chunks, .micro_steps = rows[i].micro_steps};
        cr_assert_eq(read_text(order_written(schedule, shape, &arena), &arena, &file, &error), STATUS_OK, "%s: %s",
                     rows[i].schedule, error.message);
        cr_expect_eq(order_file_schedule(&file, &arena), schedule, "%s", rows[i].schedule);
        arena_free(&arena);
    }
}

Test(order_file, an_order_of_its_own_is_no_schedule) {
    Arena arena = {0};
    Error error = {0};
    PpOrder file;
    cr_assert_eq(read_text("0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1F2,1B1,1B2\n", &arena, &file, &error), STATUS_OK,
                 "%s", error.message);
    cr_expect_null(order_file_schedule(&file, &arena));
    arena_free(&arena);
}

Test(order_file, a_byte_order_mark_before_the_first_action_is_skipped) {
    Arena arena = {0};
    Error error = {0};
    PpOrder file;
    cr_assert_eq(read_text("\xef\xbb\xbf"
                           "0F0,0B0\n1F0,1B0\n",
                           &arena, &file, &error),
                 STATUS_OK, "%s", error.message);
    cr_expect_eq(file.stages, 2);
    arena_free(&arena);
}

Test(order_file, what_is_no_order_is_said_with_its_place) {
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "is no order of a pipeline"},
        {"place,pp,step\n1,2,3\n", "line 1, cell 1: \"place\" is no action of a pipeline, such as 2F0"},
        {"0F0,0B0\n1F0,1Q0\n", "line 2, cell 2: \"1Q0\" is no action"},
        {"0F0,0B0\n1F0,1B\n", "\"1B\" is no action"},
        {"0F0,0B0\n", "a line for each of two or more ranks"},
        {"0F0,0F1\n1F0,1F1\n", "has no backward"},
        {"0F0,0B0\n1F0\n", "line 2: rank 1 does 1 of the 2 works of 1 micro-batches of 1 chunks: 1B0 is missing"},
        {"0F0,0B0\n1B0,1F0\n", "line 2, cell 1: backward before its forward"},
        {"0F0,0B0,0F0\n1F0,1B0\n", "line 1, cell 3: done before"},
        {"0F0,1B0\n1F0,0B0\n", "line 1, cell 2: stage 1 is rank 1's"},
        {"0F0,0B0\n1F0,1B0\n2F0,2B0\n3F0,4B0\n", "has 5 stages on 4 ranks"},
        {"0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", "ranks wait for each other; rank 0 never gets to 0B0"},
        {"0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n",
         "line 2: rank 1 does 1F1 before 1F0, for which rank 0 sends first: messages are taken in"},
        {"0F0,0F1,0B0,0B1\n1F0,1F1,1B1,1B0\n", "line 1: rank 0 does 0B0 before 0B1, for which rank 1 sends first"},
        {"0F0,0I0,0W0\n1F0,1W0,1I0\n", "line 2, cell 2: gradients of weights before those of inputs"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena arena = {0};
        Error error = {0};
        PpOrder file;
        cr_expect_eq(read_text(rows[i].text, &arena, &file, &error), STATUS_USAGE, "row %zu", i);
        cr_expect(strstr(error.message, rows[i].says), "row %zu: %s", i, error.message);
        arena_free(&arena);
    }
}

// Anything in the file besides the actions is ignored; another order has another hash.
Test(order_file, its_actions_are_kept_as_they_are) {
    Arena arena = {0};
    Error error = {0};
    PpOrder file, same, other;
    cr_assert_eq(read_text("0F0, 0SEND_F0,0F1,0B1,,0B0\n1F0,1RECV_F1,1F1,1B1, 1B0\n", &arena, &file, &error), STATUS_OK,
                 "%s", error.message);
    cr_assert_eq(read_text("0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n", &arena, &same, &error), STATUS_OK);
    cr_assert_eq(read_text("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n", &arena, &other, &error), STATUS_OK);
    cr_expect_str_eq(file.lines[0], "0F0,0F1,0B1,0B0");
    cr_expect_str_eq(file.lines[1], "1F0,1F1,1B1,1B0");
    cr_expect_eq(file.hash, same.hash);
    cr_expect_neq(file.hash, other.hash);
    arena_free(&arena);
}

Test(order_file, a_file_that_is_not_there_is_said) {
    Arena arena = {0};
    Error error = {0};
    PpOrder file;
    cr_expect_eq(order_file_read("no_such_file.csv", &arena, &file, &error), STATUS_USAGE);
    cr_expect(strstr(error.message, "no_such_file.csv cannot be read"), "%s", error.message);
    arena_free(&arena);
}
