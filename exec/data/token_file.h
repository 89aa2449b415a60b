// A token file: uint16 or uint32, little-endian, no header, as most tokenizer scripts write them. Memory-mapped, so
// ranks on one machine share its pages. Where a training sequence starts is a function of (seed, step, global
// sequence), independent of mesh and rank.

#pragma once

#include <stdint.h>

#include "sim/base/error.h"

typedef struct TokenFile {
    const char *path;
    const unsigned char *bytes;  // NULL when not open
    int64_t count;               // tokens
    int width;                   // bytes per token, 2 or 4
} TokenFile;

// The width comes from the name (.u16, .uint16, .u32, .uint32), else from the vocabulary: 2 bytes up to 65536 entries.
Status token_file_open(const char *path, int32_t vocab, TokenFile *file, Error *error);
void token_file_close(TokenFile *file);

// Position of the first token of a sequence of `count` tokens; the file must hold at least that many.
int64_t token_file_place(const TokenFile *file, uint64_t seed, int64_t step, int64_t sequence, int32_t count);

void token_file_read(const TokenFile *file, int64_t place, int32_t count, int32_t *tokens);

// Checks that what a run would read, `sequences` of `count` tokens per step, exists and is inside the vocabulary.
typedef struct TokenNeed {
    uint64_t seed;
    int32_t vocab;
    int64_t steps, sequences;
    int32_t count;
} TokenNeed;

Status token_file_check(const TokenFile *file, const TokenNeed *need, Error *error);
