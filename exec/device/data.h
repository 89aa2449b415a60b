// Synthetic tokens that a model can learn: one seeded Markov chain, sampled as a function of (seed, step, global
// sequence).

#pragma once

#include <stdint.h>

typedef struct DataChain {
    uint64_t seed;
    int32_t vocab;
    int32_t states;  // tokens that occur, spread evenly over the vocabulary
} DataChain;

DataChain data_chain(uint64_t seed, int32_t vocab);

// Tokens 0 .. count-1 of the sequence; a training sequence of n tokens takes n + 1, the last n are the targets.
void data_sequence(const DataChain *chain, int64_t step, int64_t sequence, int32_t count, int32_t *tokens);
