// See the header.

#include "sim/analytic/memo.h"

enum { FIRST_ROWS = 64 };

static void place(Memo *memo, const MemoRow *row) {
    uint64_t at = row->hash & memo->mask;
    while (memo->rows[at].entry) {
        at = (at + 1) & memo->mask;
    }
    memo->rows[at] = *row;
}

static void grow(Memo *memo, Arena *arena) {
    const Memo old = *memo;
    const uint64_t size = old.rows ? old.mask + 1 : 0, larger = size ? 2 * size : FIRST_ROWS;
    memo->rows = ARENA_ARRAY(arena, MemoRow, larger);
    memo->mask = larger - 1;
    for (uint64_t i = 0; i < size; i++) {
        if (old.rows[i].entry) {
            place(memo, &old.rows[i]);
        }
    }
}

void memo_add(Memo *memo, const MemoKey *key, void *value, Arena *arena) {
    if (!memo->rows || 2 * (uint64_t)(memo->count + 1) > memo->mask + 1) {
        grow(memo, arena);
    }
    MemoEntry *entry = ARENA_NEW(arena, MemoEntry);
    *entry = (MemoEntry){.key = *key, .value = value};
    place(memo, &(MemoRow){.hash = memo_hash(key), .entry = entry});
    memo->count++;
}
