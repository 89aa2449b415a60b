// Ranks predictions. A total order, so that the same request always gives the same table.

#include "autotune/rank.h"

#include <stdlib.h>
#include <string.h>

int rank_compare(const void *a, const void *b) {
    const Prediction *left = a, *right = b;
    if (left->tokens_per_s != right->tokens_per_s) {
        return left->tokens_per_s > right->tokens_per_s ? -1 : 1;
    }
    if (left->memory.reserved_bytes != right->memory.reserved_bytes) {
        return left->memory.reserved_bytes < right->memory.reserved_bytes ? -1 : 1;
    }
    char left_text[PLAN_TEXT_BYTES], right_text[PLAN_TEXT_BYTES];
    return strcmp(plan_text(&left->plan, left_text), plan_text(&right->plan, right_text));
}

void rank_entries(Prediction *entries, int count) {
    qsort(entries, (size_t)count, sizeof *entries, rank_compare);
}
