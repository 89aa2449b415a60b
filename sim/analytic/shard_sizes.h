// What a program needs when more ranks share its units. Only buffers made of units depend on that, and those are the
// same whatever is recomputed or resharded: matched by name, from one program that was lowered for both.

#pragma once

#include "sim/step/step.h"

enum { SHARD_SIZE_BUCKETS = 64 };

// Of plans that differ in recompute, reshard and rotation only; "ShardSizes s = {0}" knows none.
typedef struct ShardSizes {
    struct ShardSize *bucket[SHARD_SIZE_BUCKETS];
} ShardSizes;

// Whether the program with that many shards has the same tasks and the same cells in its buffers.
bool shards_keep_structure(const StepProgram *program, int32_t shards);

// A copy of the program's buffers with the sizes that they have with more shards; NULL where one of them is not known.
Buffer *shard_sizes_find(const ShardSizes *sizes, const StepProgram *few, Arena *arena);

// few and many: of one plan, with the numbers of shards that the sizes are for.
void shard_sizes_add(ShardSizes *sizes, const StepProgram *few, const StepProgram *many, Arena *arena);
