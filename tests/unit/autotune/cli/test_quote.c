// Words quoted so that a shell reads them back.

#include <criterion/criterion.h>

#include "autotune/cli/quote.h"

static const char *quoted(const char *word) {
    static Arena arena;
    return quote_word(word, &arena);
}

Test(quote, plain_words_stay_as_they_are) {
    cr_assert_str_eq(quoted("--mesh"), "--mesh");
    cr_assert_str_eq(quoted("dp_shard=8,tp=4"), "dp_shard=8,tp=4");
}

Test(quote, spaces_and_shell_letters_are_quoted) {
    cr_assert_str_eq(quoted("my model.json"), "'my model.json'");
    cr_assert_str_eq(quoted("$(date)"), "'$(date)'");
    cr_assert_str_eq(quoted(""), "''");
}

Test(quote, a_quote_inside_is_escaped) {
    cr_assert_str_eq(quoted("it's"), "'it'\\''s'");
}

Test(quote, what_steers_a_terminal_or_ends_a_line_becomes_visible) {
    cr_assert_str_eq(quoted("a\nb\tc"), "'a b c'");
    cr_assert_str_eq(quoted("\x1b[2J\xff"), "'\\u001b[2J\\xff'");
}

Test(quote, a_line_is_ndtune_and_its_words) {
    Arena arena = {0};
    char *const argv[] = {"/usr/bin/ndtune", "--model", "a b", NULL};
    cr_assert_str_eq(quote_line(3, argv, &arena), "ndtune --model 'a b'");
    arena_free(&arena);
}

Test(quote, a_quoted_line_splits_into_the_words_it_was_made_of) {
    Arena arena = {0};
    char *const argv[] = {"ndtune", "--model", "a b", "it's", "", "{\"x\": 1}", "back\\slash", NULL};
    int argc = 0;
    char **words = quote_split(quote_line(7, argv, &arena), &argc, &arena);
    cr_assert_eq(argc, 7);
    for (int i = 0; i < 7; i++) {
        cr_assert_str_eq(words[i], argv[i]);
    }
    cr_assert_null(words[7]);
    arena_free(&arena);
}
