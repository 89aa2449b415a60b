// Text by FNV-1a (offset basis and prime: Fowler, Noll, Vo, draft-eastlake-fnv), integers by MurmurHash3's block mix,
// the end by its finaliser (fmix64). Arithmetic on values, never on memory, so the result does not depend on the
// machine.

#include "sim/base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

Hash hash_begin(void) {
    return (Hash){.state = UINT64_C(0xcbf29ce484222325)};  // FNV offset basis
}

void hash_bytes(Hash *hash, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    uint64_t state = hash->state;
    for (size_t i = 0; i < count; i++) {
        state = (state ^ byte[i]) * UINT64_C(0x100000001b3);  // FNV prime
    }
    hash->state = state;
}

void hash_double(Hash *hash, double value) {
    const double folded = value == 0.0 ? 0.0 : value;  // -0 and 0 are one value
    int64_t bits;
    memcpy(&bits, &folded, sizeof bits);
    hash_int(hash, bits);
}

void hash_text(Hash *hash, const char *text) {
    const size_t length = strlen(text);
    hash_int(hash, (int64_t)length);
    hash_bytes(hash, text, length);
}

uint64_t hash_end(const Hash *hash) {
    uint64_t value = hash->state;
    value ^= value >> 33;
    value *= UINT64_C(0xff51afd7ed558ccd);  // fmix64
    value ^= value >> 33;
    value *= UINT64_C(0xc4ceb9fe1a85ec53);
    value ^= value >> 33;
    return value;
}

char *hash_hex(uint64_t value, char out[HASH_TEXT_BYTES]) {
    snprintf(out, HASH_TEXT_BYTES, "%016" PRIx64, value);
    return out;
}
