// CSV per RFC 4180, and errors in it.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/accuracy/csv_file.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(csv_file, .fini = forget);

static CsvTable parsed(const char *text) {
    CsvTable table;
    Error error = {0};
    cr_assert_eq(csv_parse(text, strlen(text), "x.csv", &arena, &table, &error), STATUS_OK, "%s", error.message);
    return table;
}

Test(csv_file, lines_end_with_crlf_or_lf_and_the_last_needs_no_end) {
    const CsvTable table = parsed("a,b\r\n1,2\n3,4");
    cr_assert_eq(table.row_count, 2);
    cr_assert_str_eq(csv_field(&table, 0, 1)->text, "2");
    cr_assert_str_eq(csv_field(&table, 1, 1)->text, "4");
}

Test(csv_file, a_quoted_field_holds_commas_line_breaks_and_doubled_quotes) {
    const CsvTable table = parsed("a,b\r\n\"x, \"\"y\"\"\r\nz\",2\r\n");
    cr_assert_str_eq(csv_field(&table, 0, 0)->text, "x, \"y\"\r\nz");
    cr_assert_str_eq(csv_field(&table, 0, 1)->text, "2");
}

Test(csv_file, empty_fields_stay_and_empty_lines_go) {
    const CsvTable table = parsed("a,b\n\n,\n\r\n\"\",\"\"\n");
    cr_assert_eq(table.row_count, 2);
    cr_assert_str_empty(csv_field(&table, 0, 0)->text);
    cr_assert_str_empty(csv_field(&table, 1, 1)->text);
}

Test(csv_file, a_byte_order_mark_is_no_part_of_the_first_name) {
    const CsvTable table = parsed("\xEF\xBB\xBFid,b\n1,2\n");
    cr_assert_eq(csv_column(&table, "id"), 0);
    cr_assert_eq(csv_field(&table, 0, 0)->column, 1);
    cr_assert_eq(table.header[0].column, 1);
}

Test(csv_file, fields_know_their_place_after_a_quoted_line_break) {
    const CsvTable table = parsed("a,b\n\"x\ny\",\"2\"\n5,6\n");
    cr_assert_eq(csv_field(&table, 0, 1)->line, 3);
    cr_assert_eq(csv_field(&table, 0, 1)->column, 4);
    cr_assert_eq(csv_field(&table, 1, 0)->line, 4);
}

Test(csv_file, a_header_alone_is_a_table_without_rows) {
    cr_assert_eq(parsed("a,b").row_count, 0);
}

Test(csv_file, what_is_malformed_is_named_with_its_place) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "x.csv: empty"},
        {"\n\n", "x.csv: empty"},
        {"a,b\n1\n", "x.csv:2:1: the row has fewer than the 2 fields"},
        {"a,b\n1,2,3\n", "x.csv:2:3: the row has more than the 2 fields"},
        {"a,b\n1,\"2\n", "x.csv:2:3: the quote is never closed"},
        {"a,b\n1,2\"\n", "x.csv:2:4: a quote inside a field"},
        {"a,b\n\"1\"x,2\n", "x.csv:2:4: text behind a closing quote"},
        {"a,b\n1,2\r3,4\n", "x.csv:2:4: a carriage return that no line feed follows"},
        {"a,b,a\n", "x.csv:1:5: the column \"a\" is named twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CsvTable table;
        Error error = {0};
        cr_expect_eq(csv_parse(cases[i].text, strlen(cases[i].text), "x.csv", &arena, &table, &error), STATUS_USAGE);
        cr_expect_eq(strncmp(error.message, cases[i].says, strlen(cases[i].says)), 0, "case %zu: %s", i, error.message);
    }
}

Test(csv_file, a_zero_byte_is_refused_in_and_outside_quotes) {
    static const char *const texts[] = {"a,b\n1,2\0\n", "a,b\n1,\"\0\"\n"};
    static const size_t bytes[] = {9, 10};
    for (size_t i = 0; i < 2; i++) {
        CsvTable table;
        Error error = {0};
        cr_expect_eq(csv_parse(texts[i], bytes[i], "x.csv", &arena, &table, &error), STATUS_USAGE);
        cr_expect_not_null(strstr(error.message, "x.csv:2:4: a zero byte"), "%s", error.message);
    }
}

Test(csv_file, a_file_that_is_not_there_is_the_environments_fault) {
    CsvTable table;
    Error error = {0};
    cr_assert_eq(csv_load("/no/such.csv", &arena, &table, &error), STATUS_ENVIRONMENT);
    cr_assert_not_null(strstr(error.message, "/no/such.csv"));
}

Test(csv_file, a_folder_is_no_file) {
    CsvTable table;
    Error error = {0};
    cr_assert_eq(csv_load("/tmp", &arena, &table, &error), STATUS_ENVIRONMENT, "%s", error.message);
}
