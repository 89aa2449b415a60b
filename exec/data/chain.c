// A Markov chain over at most 64 states, each with one likely and one less likely successor. A model that learns which
// tokens occur gains ln(vocab / 64) nats; one that learns the successors gains most of the rest; both take a few dozen
// steps.

#include "exec/data/chain.h"

#include "kernels/philox.h"

enum { DATA_STATES = 64, STREAM_SUCCESSORS = 1, STREAM_SEQUENCES = 2, STREAM_SHIFT = 48 };

// Of 16: 12 likely successor, 3 the other, 1 any state. Entropy about 1.2 nats: low enough to show learning, not zero.
enum { CHANCES = 16, LIKELY = 12, OTHER = 15 };

TokenChain token_chain(uint64_t seed, int32_t vocab) {
    return (TokenChain){.seed = seed, .vocab = vocab, .states = vocab < DATA_STATES ? vocab : DATA_STATES};
}

static int32_t chain_next(const TokenChain *chain, int32_t state, const Philox *random) {
    const uint32_t states = (uint32_t)chain->states;
    const Philox successors = philox(chain->seed, (uint64_t)STREAM_SUCCESSORS << STREAM_SHIFT, (uint64_t)state);
    const uint32_t chance = random->word[0] % CHANCES;
    const uint32_t pick = chance < LIKELY ? successors.word[0] : chance < OTHER ? successors.word[1] : random->word[1];
    return (int32_t)(pick % states);
}

void chain_sequence(const TokenChain *chain, int64_t step, int64_t sequence, int32_t count, int32_t *tokens) {
    const uint64_t stream = (uint64_t)STREAM_SEQUENCES << STREAM_SHIFT | (uint64_t)step;
    int32_t state = 0;
    for (int32_t i = 0; i < count; i++) {
        const Philox random = philox(chain->seed, stream, (uint64_t)sequence << 32 | (uint32_t)i);
        state = i == 0 ? (int32_t)(random.word[2] % (uint32_t)chain->states) : chain_next(chain, state, &random);
        tokens[i] = (int32_t)((int64_t)state * chain->vocab / chain->states);
    }
}
