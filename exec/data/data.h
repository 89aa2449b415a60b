// Where training sequences come from: a file of tokens, or a chain that needs none. Either way a sequence is a function
// of (seed, step, global sequence), so the mesh only decides who holds it.

#pragma once

#include "exec/data/chain.h"
#include "exec/data/token_file.h"

typedef struct DataSetup {
    uint64_t seed;
    int32_t vocab;     // the model's own, not what a target pads it to
    const char *path;  // NULL = the chain
    int64_t tokens;    // that the file has where the run was started; 0 = not compared
} DataSetup;

typedef struct DataSource {
    DataSetup setup;
    TokenChain chain;
    TokenFile file;
} DataSource;

Status data_open(const DataSetup *setup, DataSource *source, Error *error);
void data_close(DataSource *source);

// Tokens 0 .. count-1 of the sequence; a training sequence of n tokens takes n + 1, the last n are the targets.
void data_sequence(const DataSource *source, int64_t step, int64_t sequence, int32_t count, int32_t *tokens);
