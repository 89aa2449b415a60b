// Human-readable numbers, strict parsing, suggestions: the ordinary case, then both sides of every boundary.

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/base/text.h"

typedef struct Shown {
    double value;
    const char *text;
} Shown;

static void check_shown(char *(*show)(char *, double), const Shown *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char out[TEXT_UNIT_BYTES];
        cr_assert_str_eq(show(out, cases[i].value), cases[i].text, "%g gave %s, not %s", cases[i].value, out,
                         cases[i].text);
    }
}

Test(text, bytes_have_three_digits_and_binary_units) {
    static const Shown cases[] = {
        {0, "0 B"},
        {1, "1 B"},
        {1023, "1023 B"},
        {1024, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {10.24e3, "10.0 KiB"},
        {1023.4 * 1024, "1023 KiB"},
        {1023.6 * 1024, "1.00 MiB"},
        {25.1e9, "23.4 GiB"},
        {80e9, "74.5 GiB"},
        {0x1p40, "1.00 TiB"},
        {0x1p50, "1.00 PiB"},
        {-2048, "-2.00 KiB"},
    };
    check_shown(text_bytes, cases, sizeof cases / sizeof cases[0]);
}

Test(text, seconds_step_down_to_nanoseconds) {
    static const Shown cases[] = {
        {0, "0 s"},          {1.024, "1.02 s"},  {35.12e-6, "35.1 us"}, {999.4e-6, "999 us"}, {999.6e-6, "1.00 ms"},
        {9.994, "9.99 s"},   {9.996, "10.0 s"},  {99.94, "99.9 s"},     {99.96, "100 s"},     {12345, "12345 s"},
        {1.3e-9, "1.30 ns"}, {1e-12, "0.00 ns"}, {-0.5, "-500 ms"},
    };
    check_shown(text_seconds, cases, sizeof cases / sizeof cases[0]);
}

Test(text, counts_use_k_m_b_t) {
    static const Shown cases[] = {
        {0, "0"},
        {7, "7"},
        {0.5, "0.5"},
        {999, "999"},
        {1000, "1.00 k"},
        {4.194304e6, "4.19 M"},
        {6738415616.0, "6.74 B"},
        {15e12, "15.0 T"},
    };
    check_shown(text_count, cases, sizeof cases / sizeof cases[0]);
}

Test(text, no_value_overflows_the_buffer) {
    const double values[] = {1e300, -1e300, INFINITY, -INFINITY, NAN, 1e27, 4.9e-324};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char out[TEXT_UNIT_BYTES];
        cr_assert_lt(strlen(text_bytes(out, values[i])), TEXT_UNIT_BYTES);
        cr_assert_lt(strlen(text_seconds(out, values[i])), TEXT_UNIT_BYTES);
        cr_assert_lt(strlen(text_count(out, values[i])), TEXT_UNIT_BYTES);
    }
}

Test(text, integers_parse_whole_or_not_at_all) {
    int64_t value = -1;
    cr_assert(text_parse_int("0", &value) && value == 0);
    cr_assert(text_parse_int("-12", &value) && value == -12);
    cr_assert(text_parse_int("+12", &value) && value == 12);
    cr_assert(text_parse_int("9223372036854775807", &value) && value == INT64_MAX);
    value = 77;
    const char *const refused[] = {"",    "-",   "+", " 1", "1 ", "1x", "0x10", "1.0", "1e3", "9223372036854775808",
                                   "--1", "four"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        cr_assert_not(text_parse_int(refused[i], &value), "\"%s\" parsed as %" PRId64, refused[i], value);
    }
    cr_assert_eq(value, 77, "a refused text must not touch the value");
}

Test(text, doubles_are_decimal_and_finite) {
    double value = 0.0;
    cr_assert(text_parse_double("1.5", &value) && value == 1.5);
    cr_assert(text_parse_double("-2e-3", &value) && value == -2e-3);
    cr_assert(text_parse_double(".5", &value) && value == 0.5);
    cr_assert(text_parse_double("1.", &value) && value == 1.0);
    const char *const refused[] = {"",    ".",   "-",    "e5",    " 1",    "1 ",     "1,5",
                                   "inf", "nan", "-inf", "0x1p3", "1e999", "-1e999", "1..2"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        cr_assert_not(text_parse_double(refused[i], &value), "\"%s\" parsed as %g", refused[i], value);
    }
}

Test(text, a_denormal_is_a_number_not_an_overflow) {
    double value = 1.0;
    cr_assert(text_parse_double("1e-320", &value));
    cr_assert_lt(value, 1e-300);
}

Test(text, bytes_take_decimal_and_binary_units) {
    int64_t bytes = 0;
    cr_assert(text_parse_bytes("80e9", &bytes) && bytes == INT64_C(80000000000));
    cr_assert(text_parse_bytes("80GB", &bytes) && bytes == INT64_C(80000000000));
    cr_assert(text_parse_bytes("80G", &bytes) && bytes == INT64_C(80000000000));
    cr_assert(text_parse_bytes("80 GB", &bytes) && bytes == INT64_C(80000000000));
    cr_assert(text_parse_bytes("64MiB", &bytes) && bytes == 64 << 20);
    cr_assert(text_parse_bytes("64Mi", &bytes) && bytes == 64 << 20);
    cr_assert(text_parse_bytes("1.5k", &bytes) && bytes == 1500);
    cr_assert(text_parse_bytes("0", &bytes) && bytes == 0);
    cr_assert(text_parse_bytes("512B", &bytes) && bytes == 512);
}

Test(text, bytes_refuse_what_is_not_a_size) {
    int64_t bytes = 5;
    const char *const refused[] = {"",    "GB",     "-1",   "-1GB", "1XB",   "1GiBx",
                                   "1 2", "10000P", "1e19", "1GG",  "1  GB", "1iB"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        cr_assert_not(text_parse_bytes(refused[i], &bytes), "\"%s\" parsed as %" PRId64, refused[i], bytes);
    }
    cr_assert_eq(bytes, 5);
}

static const char *const words[] = {"dgx-h100", "dgx-a100-80g", "local-cpu", "accelerate", "7b"};

static const char *nearest(const char *word) {
    return text_nearest(word, words, sizeof words / sizeof words[0]);
}

Test(text, slips_are_corrected) {
    cr_assert_str_eq(nearest("dgx-h10"), "dgx-h100");    // one letter missing
    cr_assert_str_eq(nearest("dgx-h1000"), "dgx-h100");  // one too many
    cr_assert_str_eq(nearest("acelerate"), "accelerate");
    cr_assert_str_eq(nearest("acclerate"), "accelerate");
    cr_assert_str_eq(nearest("acceleraet"), "accelerate");  // neighbours swapped
    cr_assert_str_eq(nearest("7bb"), "7b");
    cr_assert_null(nearest("4"), "each word of one letter is as near");
}

Test(text, case_and_dashes_are_not_slips) {
    cr_assert_str_eq(nearest("DGX_H100"), "dgx-h100");
    cr_assert_str_eq(nearest("Local_CPU"), "local-cpu");
}

Test(text, strangers_get_no_suggestion) {
    cr_assert_null(nearest("frobnicate"));
    cr_assert_null(nearest("zz"));
    cr_assert_null(nearest(""));
}

Test(text, a_slip_in_every_third_letter_is_the_border) {
    const char *const names[] = {"abcdefghi"};
    cr_assert_str_eq(text_nearest("xbcxefxhi", names, 1), "abcdefghi");  // 3 of 9
    cr_assert_null(text_nearest("xbxxefxhi", names, 1));                 // 4 of 9
}

Test(text, the_nearest_wins_and_the_first_of_equals) {
    const char *const names[] = {"abcd", "abce", "abcx"};
    cr_assert_str_eq(text_nearest("abcx", names, 3), "abcx");
    cr_assert_str_eq(text_nearest("abcz", names, 3), "abcd");
}

Test(text, very_long_words_are_looked_at_safely) {
    char word[300];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    cr_assert_null(nearest(word));
    const char *const names[] = {word, "abc"};
    cr_assert_str_eq(text_nearest("abd", names, 2), "abc");
}

Test(text, no_candidates_no_suggestion) {
    cr_assert_null(text_nearest("word", NULL, 0));
}

Test(text, option_words_take_either_dash) {
    cr_assert(text_same_word("dp_replicate", "dp-replicate"));
    cr_assert(text_same_word("", ""));
    cr_assert_not(text_same_word("dp_replicate", "dp_replicat"));
    cr_assert_not(text_same_word("tp", "TP"));
    cr_assert_not(text_same_word("a-b", "a.b"));
}

Test(text, files_are_told_from_names) {
    cr_assert(text_is_path("./x"));
    cr_assert(text_is_path("/etc/x"));
    cr_assert(text_is_path("my.json"));
    cr_assert(text_is_path("dir/config.json"));
    cr_assert_not(text_is_path("x.jsonl"));
    cr_assert_not(text_is_path("llama-3.1-8b"));
    cr_assert_not(text_is_path("json"));
    cr_assert_not(text_is_path(""));
}

Test(text, words_of_bits_are_a_list_that_ends_in_or) {
    static const char *const numbers[] = {"one", "two", "three"};
    Arena arena = {0};
    cr_expect_str_eq(text_of_bits(numbers, 0, &arena), "");
    cr_expect_str_eq(text_of_bits(numbers, 2, &arena), "two");
    cr_expect_str_eq(text_of_bits(numbers, 5, &arena), "one or three");
    cr_expect_str_eq(text_of_bits(numbers, 7, &arena), "one, two or three");
    arena_free(&arena);
}
