// Parsing and suggestions on random input from a printed seed.

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/text.h"

enum { CASES = 20000 };
static const uint64_t seed = 20261123;

static uint64_t state;

static void begin(void) {
    state = seed;
    fprintf(stderr, "seed %" PRIu64 "\n", seed);
}

TestSuite(text_property, .init = begin);

static uint64_t draw(void) {  // xorshift64*, Vigna 2016
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ull;
}

Test(text_property, every_integer_parses_back) {
    for (int i = 0; i < CASES; i++) {
        const int64_t number = (int64_t)draw() >> (draw() % 64);
        char text[32];
        int64_t parsed = 0;
        snprintf(text, sizeof text, "%" PRId64, number);
        cr_assert(text_parse_int(text, &parsed) && parsed == number, "%s", text);
        strcat(text, "k");
        cr_assert_not(text_parse_int(text, &parsed));
    }
}

Test(text_property, every_finite_double_parses_back_bit_for_bit) {
    for (int i = 0; i < CASES; i++) {
        const uint64_t bits = draw();
        double number = 0.0;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number)) {
            continue;
        }
        char text[64];
        double parsed = 0.0;
        snprintf(text, sizeof text, "%.17g", number);
        cr_assert(text_parse_double(text, &parsed) && parsed == number, "%s", text);
    }
}

// Three significant digits: reading the shown number back is within half a unit of the third digit (binary units: of
// 1024 steps).
Test(text_property, shown_sizes_are_true_to_three_digits) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    for (int i = 0; i < CASES; i++) {
        const double bytes = floor(exp2((double)(draw() % 5900) / 100.0));
        char text[TEXT_UNIT_BYTES];
        char unit[8] = "";
        double shown = 0.0;
        cr_assert_eq(sscanf(text_bytes(text, bytes), "%lf %7s", &shown, unit), 2, "%s", text);
        int power = 0;
        while (power < 5 && strcmp(unit, names[power]) != 0) {
            power++;
        }
        const double value = shown * exp2(10.0 * power);
        cr_assert_leq(fabs(value - bytes), 0.0051 * bytes + 0.5, "%.0f shown as %s", bytes, text);
    }
}

Test(text_property, a_single_slip_finds_the_word_again) {
    static const char *const words[] = {"dp_replicate", "dp_shard",    "micro-batch",
                                        "accelerate",   "llama-3-70b", "grad-accum"};
    enum { WORD_COUNT = sizeof words / sizeof words[0] };
    for (int i = 0; i < CASES; i++) {
        const char *word = words[draw() % WORD_COUNT];
        const size_t length = strlen(word);
        const size_t place = draw() % length;
        char slip[32];
        strcpy(slip, word);
        switch (draw() % 4) {
        case 0:
            slip[place] = (char)('a' + draw() % 26);
            break;
        case 1:
            memmove(slip + place, slip + place + 1, length - place);
            break;
        case 2:
            memmove(slip + place + 1, slip + place, length - place + 1);
            break;
        default:
            if (place + 1 < length) {
                slip[place] = word[place + 1];
                slip[place + 1] = word[place];
            }
        }
        const char *nearest = text_nearest(slip, words, WORD_COUNT);
        cr_assert_not_null(nearest, "%s", slip);
        cr_assert_str_eq(nearest, word, "%s", slip);
    }
}
