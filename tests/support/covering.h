// Pairwise covering: from many combinations of choices, a few that together contain every pair of choices that occurs.
// Most faults need one choice or two interacting ones (Kuhn, Wallace, Gallo: Software fault interactions, 2004).

#pragma once

#include <stdint.h>

// Indices of rows such that every pair of values that two factors have in one of the rows, they have in a chosen one;
// every value alone too. Of rows that show as much that is new, the first: put the cheap ones first. Always the same
// for the same rows. `chosen` has room for all rows; returns how many are in it, ascending.
int covering_choose(const uint8_t *rows, int row_count, int factor_count, int *chosen);
