// A file of tokens: uint16 or uint32, little-endian, no header, as most tokenizer scripts write them. Mapped, so ranks
// of one machine share its pages. A training sequence begins at a place that is a function of (seed, step, global
// sequence): no mesh and no rank has a say.

#pragma once

#include <stdint.h>

#include "sim/base/error.h"

typedef struct TokenFile {
    const char *path;
    const unsigned char *bytes;  // NULL when not open
    int64_t count;               // tokens
    int width;                   // bytes of a token, 2 or 4
} TokenFile;

// The width comes from the name (.u16, .uint16, .u32, .uint32), else from the vocabulary: 2 bytes up to 65536 entries.
Status token_file_open(const char *path, int32_t vocab, TokenFile *file, Error *error);
void token_file_close(TokenFile *file);

// The place of the first token of a sequence of `count` tokens; needs at least as many in the file.
int64_t token_file_place(const TokenFile *file, uint64_t seed, int64_t step, int64_t sequence, int32_t count);

void token_file_read(const TokenFile *file, int64_t place, int32_t count, int32_t *tokens);

// What a run would read, `sequences` of `count` tokens in each of its steps, is there and inside the vocabulary.
typedef struct TokenNeed {
    uint64_t seed;
    int32_t vocab;
    int64_t steps, sequences;
    int32_t count;
} TokenNeed;

Status token_file_check(const TokenFile *file, const TokenNeed *need, Error *error);
