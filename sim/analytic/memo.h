// Memo table: fixed-size keys of words to pointers, open addressing, grows in its arena. Keys are compared whole.

#pragma once

#include <stdbool.h>

#include "sim/base/arena.h"

enum { MEMO_WORDS = 12 };

typedef struct MemoKey {
    uint64_t words[MEMO_WORDS];
} MemoKey;

typedef struct MemoEntry {
    MemoKey key;
    void *value;
} MemoEntry;

// A table that is outgrown stays in its arena: rows are small.
typedef struct MemoRow {
    uint64_t hash;
    const MemoEntry *entry;  // NULL = free
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

static inline bool memo_key_equal(const MemoKey *a, const MemoKey *b) {
    uint64_t different = 0;
    for (int i = 0; i < MEMO_WORDS; i++) {
        different |= a->words[i] ^ b->words[i];
    }
    return different == 0;
}

static inline void *memo_find(const Memo *memo, const MemoKey *key) {
    if (!memo->rows) {
        return NULL;
    }
    const uint64_t hash = memo_hash(key);
    for (uint64_t at = hash & memo->mask; memo->rows[at].entry; at = (at + 1) & memo->mask) {
        const MemoRow *row = &memo->rows[at];
        if (row->hash == hash && memo_key_equal(&row->entry->key, key)) {
            return row->entry->value;
        }
    }
    return NULL;
}

// The key must be absent.
void memo_add(Memo *memo, const MemoKey *key, void *value, Arena *arena);
