// Mutated JSON from a printed seed: loading never crashes, reports where it stopped, and what loads survives saving and
// loading.

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"

enum { CASES = 20000, TEXT_BYTES = 512 };
static const uint64_t seed = 20261122;

static uint64_t state;

static void begin(void) {
    state = seed;
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
}

TestSuite(json_property, .init = begin);

static uint64_t draw(void) {  // xorshift64*, Vigna 2016
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ull;
}

static size_t draw_below(size_t bound) {
    return (size_t)(draw() % bound);
}

static const char good[] =
    "{\"name\": \"caf\\u00e9\", \"numbers\": [1, -2.5e3, 0.1, 9007199254740993], \"nested\": {\"deep\": "
    "[[], {}, [true, false, null]]}, \"escape\": \"\\\"\\\\\\n\", \"utf\": \"\xc3\xa9\"}";

// A few edits with bytes that mean something to a parser, now and then any byte but NUL.
static void mutate(char text[TEXT_BYTES]) {
    static const char letters[] = "{}[]\",:\\0123456789eE+-.truefalsn \n\t";
    strcpy(text, good);
    const size_t edits = 1 + draw_below(6);
    for (size_t i = 0; i < edits; i++) {
        const size_t length = strlen(text);
        const size_t place = draw_below(length + 1);
        const char letter = draw_below(8) == 0 ? (char)(1 + draw_below(255)) : letters[draw_below(sizeof letters - 1)];
        switch (draw_below(4)) {
        case 0:  // insert
            memmove(text + place + 1, text + place, length - place + 1);
            text[place] = letter;
            break;
        case 1:  // delete
            memmove(text + place, text + place + (place < length), length - place + (place == length));
            break;
        case 2:  // cut
            text[place] = draw_below(4) == 0 ? '\0' : text[place];
            break;
        default:
            text[place] = place < length ? letter : '\0';
        }
        if (text[0] == '\0') {
            return;
        }
    }
}

static bool has_position(const char *message) {
    int line = 0;
    int column = 0;
    return sscanf(message, "fuzz:%d:%d: ", &line, &column) == 2 && line >= 1;
}

Test(json_property, mutated_text_loads_or_says_where_it_stopped) {
    int loaded = 0;
    for (int i = 0; i < CASES; i++) {
        char text[TEXT_BYTES];
        mutate(text);
        json_t *root = (json_t *)text;
        Error error = {0};
        const Status status = json_text_load(text, "fuzz", &root, &error);
        if (status == STATUS_OK) {
            loaded++;
            cr_assert_not_null(root);
            json_decref(root);
            continue;
        }
        cr_assert_eq(status, STATUS_USAGE);
        cr_assert_null(root, "a refused text must leave no tree");
        cr_assert(has_position(error.message), "case %d: %s\n%s", i, error.message, text);
    }
    cr_assert(loaded > CASES / 100 && loaded < CASES * 9 / 10, "%d of %d loaded: both sides must be exercised", loaded,
              CASES);
}

Test(json_property, what_loads_survives_printing_and_loading) {
    for (int i = 0; i < CASES; i++) {
        char text[TEXT_BYTES];
        mutate(text);
        json_t *root = NULL;
        json_t *again = NULL;
        Error error = {0};
        if (json_text_load(text, "fuzz", &root, &error) != STATUS_OK) {
            continue;
        }
        char *printed = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
        cr_assert_not_null(printed);
        cr_assert_eq(json_text_load(printed, "again", &again, &error), STATUS_OK, "case %d: %s\n%s", i, error.message,
                     printed);
        cr_assert(json_equal(root, again), "case %d: %s", i, printed);
        free(printed);
        json_decref(root);
        json_decref(again);
    }
}

Test(json_property, getters_never_store_a_value_outside_the_range) {
    int taken = 0;
    for (int i = 0; i < CASES; i++) {
        char text[TEXT_BYTES];
        const int64_t number = (int64_t)draw() >> draw_below(64);
        const int64_t low = -(int64_t)draw_below(1000);
        const int64_t high = (int64_t)draw_below(1000);
        snprintf(text, sizeof text, "{\"n\": %lld}", (long long)number);
        json_t *root = NULL;
        Error error = {0};
        cr_assert_eq(json_text_load(text, "fuzz", &root, &error), STATUS_OK, "%s", error.message);
        const JsonReader reader = {.origin = "fuzz", .path = "", .object = root};
        int64_t value = INT64_MIN;
        const Status status = json_get_int(&reader, "n", low, high, &value, &error);
        cr_assert_eq(status == STATUS_OK, number >= low && number <= high, "%s in %lld..%lld", text, (long long)low,
                     (long long)high);
        cr_assert_eq(value, status == STATUS_OK ? number : INT64_MIN);
        taken += status == STATUS_OK;
        json_decref(root);
    }
    cr_assert(taken > CASES / 100 && taken < CASES * 9 / 10, "%d of %d taken", taken, CASES);
}
