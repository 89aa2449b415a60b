#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/covering.h"

enum { FACTORS = 6, VALUES = 3, ALL = 729 };

// All combinations of six choices with three values each, except those that `legal` refuses.
static int all_rows(bool (*legal)(const uint8_t *row), uint8_t rows[ALL * FACTORS]) {
    int count = 0;
    for (int i = 0; i < ALL; i++) {
        uint8_t *row = rows + count * FACTORS;
        for (int factor = 0, rest = i; factor < FACTORS; factor++, rest /= VALUES) {
            row[factor] = (uint8_t)(rest % VALUES);
        }
        count += !legal || legal(row);
    }
    return count;
}

static bool shows(const uint8_t *row, int a, int b, int value_a, int value_b) {
    return row[a] == value_a && row[b] == value_b;
}

// Pairs that occur in some row but in no chosen one.
static int missing_pairs(const uint8_t *rows, int count, const int *chosen, int chosen_count) {
    int missing = 0;
    for (int a = 0; a < FACTORS; a++) {
        for (int b = a; b < FACTORS; b++) {
            for (int pair = 0; pair < VALUES * VALUES; pair++) {
                bool exists = false, found = false;
                for (int i = 0; i < count; i++) {
                    exists = exists || shows(rows + i * FACTORS, a, b, pair / VALUES, pair % VALUES);
                }
                for (int i = 0; i < chosen_count; i++) {
                    found = found || shows(rows + chosen[i] * FACTORS, a, b, pair / VALUES, pair % VALUES);
                }
                missing += exists && !found;
            }
        }
    }
    return missing;
}

Test(covering, every_pair_of_values_is_in_a_chosen_row) {
    uint8_t rows[ALL * FACTORS];
    int chosen[ALL];
    const int count = all_rows(NULL, rows), chosen_count = covering_choose(rows, count, FACTORS, chosen);
    cr_expect_eq(missing_pairs(rows, count, chosen, chosen_count), 0);
}

// 15 is the fewest known for six factors of three values.
Test(covering, of_729_rows_20_or_fewer_are_chosen) {
    uint8_t rows[ALL * FACTORS];
    int chosen[ALL];
    cr_expect_leq(covering_choose(rows, all_rows(NULL, rows), FACTORS, chosen), 20);
}

static bool first_two_differ(const uint8_t *row) {
    return row[0] != row[1] && (row[2] != 0 || row[3] == 0);
}

Test(covering, a_pair_that_no_row_has_is_not_asked_for_and_all_others_are_shown) {
    uint8_t rows[ALL * FACTORS];
    int chosen[ALL];
    const int count = all_rows(first_two_differ, rows), chosen_count = covering_choose(rows, count, FACTORS, chosen);
    cr_assert(count > 100 && count < ALL);
    cr_expect_eq(missing_pairs(rows, count, chosen, chosen_count), 0);
}

Test(covering, no_chosen_row_is_superfluous) {
    uint8_t rows[ALL * FACTORS];
    int chosen[ALL], fewer[ALL];
    const int count = all_rows(first_two_differ, rows), chosen_count = covering_choose(rows, count, FACTORS, chosen);
    for (int i = 0; i < chosen_count; i++) {
        memcpy(fewer, chosen, sizeof fewer);
        memmove(fewer + i, fewer + i + 1, sizeof *fewer * (size_t)(chosen_count - i - 1));
        cr_expect_gt(missing_pairs(rows, count, fewer, chosen_count - 1), 0, "row %d", chosen[i]);
    }
}

Test(covering, of_equal_rows_the_first_is_chosen) {
    const uint8_t rows[] = {0, 0, 0, 1, 0, 0, 1, 1};
    int chosen[4];
    cr_assert_eq(covering_choose(rows, 4, 2, chosen), 3);
    cr_expect(chosen[0] == 0 && chosen[1] == 1 && chosen[2] == 3);
}

Test(covering, values_are_as_many_as_the_rows_have) {
    const uint8_t rows[] = {0, 255, 255, 0, 255, 255};
    int chosen[3];
    cr_expect_eq(covering_choose(rows, 3, 2, chosen), 3);
}
