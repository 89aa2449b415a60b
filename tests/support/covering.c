// Greedy, as in the AETG system (Cohen, Dalal, Fredman, Patton 1997), over existing rows instead of synthesised ones:
// the caller knows which combinations are legal. Rows made redundant by later choices are removed at the end.

#include "tests/support/covering.h"

#include <stdlib.h>

// How often a pair of values occurs in chosen rows; as many values as the rows have, 0 to the greatest.
typedef struct Shown {
    int factors, values;
    int *times;  // [factors][factors][values][values]
} Shown;

static Shown shown_of(const uint8_t *rows, int row_count, int factor_count) {
    int greatest = 0;
    for (int i = 0; i < row_count * factor_count; i++) {
        greatest = rows[i] > greatest ? rows[i] : greatest;
    }
    Shown shown = {.factors = factor_count, .values = greatest + 1};
    const size_t pairs = (size_t)shown.factors * (size_t)shown.values;
    shown.times = calloc(pairs * pairs, sizeof *shown.times);
    return shown;
}

static int *times_of(const Shown *shown, const uint8_t *row, int a, int b) {
    return &shown->times[((a * shown->factors + b) * shown->values + row[a]) * shown->values + row[b]];
}

// Pairs of this row that occur `times` times. A factor paired with itself stands for its value alone.
static int pairs_shown(const Shown *shown, const uint8_t *row, int times) {
    int count = 0;
    for (int a = 0; a < shown->factors; a++) {
        for (int b = a; b < shown->factors; b++) {
            count += *times_of(shown, row, a, b) == times;
        }
    }
    return count;
}

static void show(const Shown *shown, const uint8_t *row, int change) {
    for (int a = 0; a < shown->factors; a++) {
        for (int b = a; b < shown->factors; b++) {
            *times_of(shown, row, a, b) += change;
        }
    }
}

// The row with the most new pairs; -1 if none has any.
static int next_row(const Shown *shown, const uint8_t *rows, int row_count) {
    int best = -1, most = 0;
    for (int i = 0; i < row_count; i++) {
        const int fresh = pairs_shown(shown, rows + i * shown->factors, 0);
        if (fresh > most) {
            most = fresh;
            best = i;
        }
    }
    return best;
}

static int ascending(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

int covering_choose(const uint8_t *rows, int row_count, int factor_count, int *chosen) {
    const Shown shown = shown_of(rows, row_count, factor_count);
    int count = 0, kept = 0;
    for (int row; (row = next_row(&shown, rows, row_count)) >= 0;) {
        show(&shown, rows + row * factor_count, 1);
        chosen[count++] = row;
    }
    for (int i = 0; i < count; i++) {
        const uint8_t *row = rows + chosen[i] * factor_count;
        if (pairs_shown(&shown, row, 1) == 0) {
            show(&shown, row, -1);
        } else {
            chosen[kept++] = chosen[i];
        }
    }
    free(shown.times);
    qsort(chosen, (size_t)kept, sizeof *chosen, ascending);
    return kept;
}
