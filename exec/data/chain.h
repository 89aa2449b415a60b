// Synthetic tokens that a model can learn: one seeded Markov chain, sampled as a function of (seed, step, global
// sequence).

#pragma once

#include <stdint.h>

typedef struct TokenChain {
    uint64_t seed;
    int32_t vocab;
    int32_t states;  // tokens that occur, spread evenly over the vocabulary
} TokenChain;

TokenChain token_chain(uint64_t seed, int32_t vocab);

// Tokens 0 .. count-1 of the sequence. A training sequence of n tokens takes n + 1; the last n are the targets.
void chain_sequence(const TokenChain *chain, int64_t step, int64_t sequence, int32_t count, int32_t *tokens);
