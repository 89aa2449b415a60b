// Blocks measured before: most pieces of one estimate consist of the same stretches as another's, task by task.

#pragma once

#include "sim/analytic/block.h"
#include "sim/analytic/contention.h"

typedef struct KnownBlock {
    BlockCode code;
    uint64_t hash;
    Block block;
    FluidBlock fluid;         // no tasks: nobody has asked for it
    struct KnownBlock *next;  // of the same bucket
} KnownBlock;

typedef struct BlockMemo {
    Arena *arena;         // where known blocks live
    KnownBlock **bucket;  // by the lowest bits of hashes; as many as blocks or more
    uint64_t buckets, count;
} BlockMemo;

// Measured now unless known. The code may live in the scratch arena.
KnownBlock *block_memo_find(BlockMemo *memo, const BlockCode *code, Arena *scratch);

// Only layers are asked how collectives slow them down.
const FluidBlock *known_block_fluid(const BlockMemo *memo, KnownBlock *known, Arena *scratch);
