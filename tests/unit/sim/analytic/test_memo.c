// The memo finds what was inserted, also after it has grown, and nothing else.

#include "sim/analytic/memo.h"

#include <criterion/criterion.h>

static MemoKey key_of(uint64_t i) {
    return (MemoKey){.words = {i, i * i, 7, 0, 0, i % 3}};
}

Test(memo, finds_every_key_after_growth) {
    enum { KEYS = 5000 };
    Arena arena = {0};
    Memo memo = {0};
    static int values[KEYS];
    const MemoKey absent = key_of(KEYS);
    cr_assert_null(memo_find(&memo, &absent));
    for (uint64_t i = 0; i < KEYS; i++) {
        const MemoKey key = key_of(i);
        memo_add(&memo, &key, &values[i], &arena);
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        const MemoKey key = key_of(i);
        cr_assert_eq(memo_find(&memo, &key), &values[i]);
    }
    cr_assert_null(memo_find(&memo, &absent));
    arena_free(&arena);
}
