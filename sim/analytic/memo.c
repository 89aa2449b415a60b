// See the header.

#include "sim/analytic/memo.h"

enum { FIRST_ROWS = 64 };

static void place(Memo *memo, const MemoKey *key, void *value) {
    uint64_t at = memo_hash(key) & memo->mask;
    while (memo->rows[at].value) {
        at = (at + 1) & memo->mask;
    }
    memo->rows[at] = (MemoRow){.key = *key, .value = value};
}

void memo_add(Memo *memo, const MemoKey *key, void *value, Arena *arena) {
    const uint64_t size = memo->rows ? memo->mask + 1 : 0;
    if (2 * (uint64_t)(memo->count + 1) > size) {
        const Memo old = *memo;
        const uint64_t larger = size ? 2 * size : FIRST_ROWS;
        memo->rows = ARENA_ARRAY(arena, MemoRow, larger);
        memo->mask = larger - 1;
        for (uint64_t i = 0; i < size; i++) {
            if (old.rows[i].value) {
                place(memo, &old.rows[i].key, old.rows[i].value);
            }
        }
    }
    place(memo, key, value);
    memo->count++;
}
