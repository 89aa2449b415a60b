// Escaping of external text in output.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/escape.h"

static char *written(void (*writer)(const char *, FILE *), const char *text) {
    char *out = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&out, &bytes);
    writer(text, file);
    fclose(file);
    return out;
}

static void expect(void (*writer)(const char *, FILE *), const char *text, const char *expected) {
    char *out = written(writer, text);
    cr_expect_str_eq(out, expected);
    free(out);
}

Test(escape, a_name_is_utf8_without_what_ends_a_line_or_steers_a_terminal) {
    static const char *const names[] = {"", "dgx-h100", "caf\xc3\xa9 \xf0\x9f\x94\xa5", "a \"b\" \\ 'c' #"};
    static const char *const others[] = {"a\rb",         "a\nb",         "\x1b[2J",      "\xc2\x85",     "\xe2\x80\xa8",
                                         "\xe2\x80\xa9", "\x7f",         "\xef\xbb\xbf", "\xe2\x80\xae", "\xff",
                                         "\xc3",         "\xed\xa0\x80", "\xc0\x8a"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_expect(text_is_line(names[i]), "%s", names[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        cr_expect_not(text_is_line(others[i]), "%zu", i);
    }
}

Test(escape, a_cut_falls_between_two_characters) {
    cr_expect_eq(text_cut("abc", 8), 3);
    cr_expect_eq(text_cut("abc", 2), 2);
    cr_expect_eq(text_cut("a\xf0\x9f\x94\xa5", 5), 5);
    for (size_t most = 1; most < 5; most++) {
        cr_expect_eq(text_cut("a\xf0\x9f\x94\xa5", most), 1, "%zu", most);
    }
}

Test(escape, a_line_shows_what_it_cannot_hold) {
    expect(escape_line, "a \"b\" \\ caf\xc3\xa9", "a \"b\" \\ caf\xc3\xa9");
    expect(escape_line, "a\rb\xe2\x80\xa8\x1b[0m\xff", "a\\u000db\\u2028\\u001b[0m\\xff");
}

Test(escape, a_quoted_text_holds_no_quote_of_its_own) {
    expect(escape_quoted, "a \"b\" \\", "\"a \\\"b\\\" \\\\\"");
    expect(escape_quoted, "\n\xff", "\"\\u000a\\\\xff\"");
}

Test(escape, a_word_of_a_shell_stays_one_word) {
    Arena arena = {0};
    cr_expect_str_eq(escape_shell("--mesh=tp=2", &arena), "--mesh=tp=2");
    cr_expect_str_eq(escape_shell("", &arena), "''");
    cr_expect_str_eq(escape_shell("$(date) it's", &arena), "'$(date) it'\\''s'");
    arena_free(&arena);
}
