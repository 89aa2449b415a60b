// 64-bit content hash (FNV-1a for bytes, MurmurHash3 mixes for integers and the end) for cache keys and template
// identity. Not cryptographic. Stable across machines: callers feed fields one by one, never raw padded structs.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASH_TEXT_BYTES = 17 };
#define HASH_BUFFER ((char[HASH_TEXT_BYTES]){0})  // room for one text: lives as long as the block around it

typedef struct Hash {
    uint64_t state;
} Hash;

Hash hash_begin(void);
void hash_bytes(Hash *hash, const void *bytes, size_t count);
void hash_double(Hash *hash, double value);    // bit pattern, -0 as 0
void hash_text(Hash *hash, const char *text);  // length first, so ("ab","c") differs from ("a","bc")
uint64_t hash_end(const Hash *hash);

static inline uint64_t hash_rotated(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

// One block of MurmurHash3_x64 (Appleby): a lowered step hashes tens of thousands of integers, byte by byte was a third
// of a plan.
static inline void hash_int(Hash *hash, int64_t value) {
    const uint64_t mixed =
        hash_rotated((uint64_t)value * UINT64_C(0x87c37b91114253d5), 31) * UINT64_C(0x4cf5ad432745937f);
    hash->state = hash_rotated(hash->state ^ mixed, 27) * 5 + UINT64_C(0x52dce729);
}

// One after another, with the state in a register.
static inline void hash_ints(Hash *hash, const int64_t *values, size_t count) {
    Hash state = *hash;
    for (size_t i = 0; i < count; i++) {
        hash_int(&state, values[i]);
    }
    *hash = state;
}

// What only some have, by its name and where they have it: the others' hashes stay. Of tasks hardly any has it.
static inline void hash_tag(Hash *hash, bool has, const char *name) {
    if (has) {
        hash_text(hash, name);
    }
}

static inline void hash_more(Hash *hash, const char *name, int64_t value) {  // and the value; 0 = it has none
    if (value != 0) {
        hash_text(hash, name);
        hash_int(hash, value);
    }
}

static inline void hash_more_double(Hash *hash, const char *name, double value) {  // the same
    if (value != 0) {
        hash_text(hash, name);
        hash_double(hash, value);
    }
}

char *hash_hex(uint64_t value, char out[HASH_TEXT_BYTES]);
