// Greedy, as in the AETG system (Cohen, Dalal, Fredman, Patton 1997), over existing rows instead of synthesised ones:
// the caller knows which combinations are legal. Rows made redundant by later choices are removed at the end.

#include "tests/support/covering.h"

#include <stdlib.h>

// How often a pair of values occurs in chosen rows.
typedef struct Shown {
    int times[COVERING_FACTORS][COVERING_FACTORS][COVERING_VALUES][COVERING_VALUES];
} Shown;

// Pairs of this row that occur `times` times. A factor paired with itself stands for its value alone.
static int pairs_shown(Shown *shown, const uint8_t *row, int factor_count, int times) {
    int count = 0;
    for (int a = 0; a < factor_count; a++) {
        for (int b = a; b < factor_count; b++) {
            count += shown->times[a][b][row[a]][row[b]] == times;
        }
    }
    return count;
}

static void show(Shown *shown, const uint8_t *row, int factor_count, int change) {
    for (int a = 0; a < factor_count; a++) {
        for (int b = a; b < factor_count; b++) {
            shown->times[a][b][row[a]][row[b]] += change;
        }
    }
}

// The row with the most new pairs; -1 if none has any.
static int next_row(Shown *shown, const uint8_t *rows, int row_count, int factor_count) {
    int best = -1, most = 0;
    for (int i = 0; i < row_count; i++) {
        const int fresh = pairs_shown(shown, rows + i * factor_count, factor_count, 0);
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
    Shown *shown = calloc(1, sizeof *shown);
    int count = 0, kept = 0;
    for (int row; (row = next_row(shown, rows, row_count, factor_count)) >= 0;) {
        show(shown, rows + row * factor_count, factor_count, 1);
        chosen[count++] = row;
    }
    for (int i = 0; i < count; i++) {
        const uint8_t *row = rows + chosen[i] * factor_count;
        if (pairs_shown(shown, row, factor_count, 1) == 0) {
            show(shown, row, factor_count, -1);
        } else {
            chosen[kept++] = chosen[i];
        }
    }
    free(shown);
    qsort(chosen, (size_t)kept, sizeof *chosen, ascending);
    return kept;
}
