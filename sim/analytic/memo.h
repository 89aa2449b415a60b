// Memo table: fixed-size keys of words to pointers, open addressing, grows in its arena. Keys are compared whole.

#pragma once

#include "sim/base/arena.h"

enum { MEMO_WORDS = 12 };

typedef struct MemoKey {
    uint64_t words[MEMO_WORDS];
} MemoKey;

typedef struct MemoRow {
    MemoKey key;
    void *value;  // NULL = free
} MemoRow;

typedef struct Memo {
    MemoRow *rows;
    uint64_t mask;
    int64_t count;
} Memo;

static inline uint64_t memo_hash(const MemoKey *key) {
    uint64_t hash = 0;
    for (int i = 0; i < MEMO_WORDS; i++) {
        hash = (hash ^ key->words[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static inline void *memo_find(const Memo *memo, const MemoKey *key) {
    if (!memo->rows) {
        return NULL;
    }
    for (uint64_t at = memo_hash(key) & memo->mask; memo->rows[at].value; at = (at + 1) & memo->mask) {
        uint64_t different = 0;
        for (int i = 0; i < MEMO_WORDS; i++) {
            different |= memo->rows[at].key.words[i] ^ key->words[i];
        }
        if (different == 0) {
            return memo->rows[at].value;
        }
    }
    return NULL;
}

// The key must be absent.
void memo_add(Memo *memo, const MemoKey *key, void *value, Arena *arena);
