// CSV per RFC 4180.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/reports/fixture.h"

static Fixture fixture;

static Status print_plan(const Fixture *from, FILE *out, Error *error) {
    return answer_plan.csv(&(PlanReport){.result = &from->result}, out, error);
}

static char *printed(void) {
    fixture_fill(&fixture);
    return fixture_printed(&fixture, print_plan);
}

// Fields of the line that starts at text, quotes respected.
static int fields(const char *text) {
    int count = 1;
    bool quoted = false;
    for (; *text && (quoted || *text != '\r'); text++) {
        quoted ^= *text == '"';
        count += *text == ',' && !quoted;
    }
    return count;
}

Test(csv, has_a_header_and_one_line_per_shape_each_ending_in_crlf) {
    char *text = printed();
    int lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++) {
        cr_assert_eq(p[-1], '\r');
        lines++;
    }
    cr_assert_eq(lines, 1 + 2 + 2);
    free(text);
}

Test(csv, every_line_has_as_many_fields_as_the_header) {
    char *text = printed();
    const int expected = fields(text);
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        cr_assert_eq(fields(line), expected, "%.60s", line);
    }
    free(text);
}

Test(csv, quotes_and_commas_inside_a_field_are_quoted) {
    char *text = printed();
    const char *line = "memory,\"does not fit by 1 GiB, \"\"really\"\"\",,,0,1,on,0,off,off,off\r\n";
    cr_assert_not_null(strstr(text, line), "%s", text);
    free(text);
}

Test(csv, what_is_unknown_is_empty) {
    char *text = printed();
    const char *row = strstr(text, "rejected,,1,8,1,1,1,1,1,4096");
    cr_assert_not_null(row, "%s", text);
    cr_assert_not_null(strstr(row, ",,,,,,,,,,,,,,"), "%s", row);
    free(text);
}
