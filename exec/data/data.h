// Source of training sequences: a token file, or a chain that needs none. Either way a sequence is a function of (seed,
// step, global sequence), so the mesh only decides which rank holds it.

#pragma once

#include "exec/data/chain.h"
#include "exec/data/token_file.h"

typedef struct DataSetup {
    uint64_t seed;
    int32_t vocab;     // the model's own, without a target's padding
    const char *path;  // NULL = the chain
    int64_t tokens;    // in the file when the run was started; 0 = not compared
} DataSetup;

typedef struct DataSource {
    DataSetup setup;
    TokenChain chain;
    TokenFile file;
} DataSource;

Status data_open(const DataSetup *setup, DataSource *source, Error *error);
void data_close(DataSource *source);

// Tokens 0 .. count-1 of the sequence. A training sequence of n tokens takes n + 1; the last n are the targets.
void data_sequence(const DataSource *source, int64_t step, int64_t sequence, int32_t count, int32_t *tokens);
