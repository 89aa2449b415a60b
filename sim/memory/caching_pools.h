// Blocks of the caching allocator and the free ones of each pool, for the two files that make it up. Sizes and
// addresses count units of 512 bytes, which all blocks consist of. Free blocks of a pool are an array in the order of
// the allocator's set: by size, then by address, both in one key. There are few at a time, and a block that changes its
// size seldom changes its place.

#pragma once

#include <string.h>

#include "sim/base/error.h"
#include "sim/memory/caching_allocator.h"

typedef enum { BLOCK_TAKEN, BLOCK_FREE, BLOCK_HOLE } BlockState;

enum { UNIT_BYTES = 512, KEY_SHIFT = 32 };  // kMinBlockSize of c10/core/AllocatorConfig.h (PyTorch 2.11)

typedef struct CachedBlock {
    uint64_t key;            // size, then address; addresses repeat after 2 TiB
    int32_t previous, next;  // in its segment; -1 = none
    int32_t pool;
    BlockState state;
} CachedBlock;

typedef struct FreeBlock {
    uint64_t key;
    int32_t block;
} FreeBlock;

typedef struct Pool {
    FreeBlock *free;
    size_t free_count, free_capacity;
    int32_t first, last;  // of an expandable segment; -1 = empty
    int64_t least_rest;   // what is left of a block stays free from this size on
    bool small, has_holes;
} Pool;

struct CachingAllocator {
    Arena *arena;
    CachingAllocatorOptions options;
    Pool *pools;  // small and large of each stream
    CachedBlock *blocks;
    size_t block_count, block_capacity;
    int32_t unused;  // chain of merged blocks, by next
    int64_t limit, reserved, most_reserved;
    int64_t next_address;  // of a segment that does not grow
};

static inline uint64_t block_key(int64_t size, int64_t address) {
    return (uint64_t)size << KEY_SHIFT | (uint32_t)address;
}

static inline int64_t block_size(const CachedBlock *block) {
    return (int64_t)(block->key >> KEY_SHIFT);
}

static inline int64_t block_address(const CachedBlock *block) {
    return (int64_t)(uint32_t)block->key;
}

static inline bool is_free(const CachingAllocator *allocator, int32_t block) {
    return block >= 0 && allocator->blocks[block].state == BLOCK_FREE;
}

static inline int32_t new_block(CachingAllocator *allocator, uint64_t key, int32_t previous, int32_t next,
                                int32_t pool) {
    int32_t made = allocator->unused;
    if (made >= 0) {
        allocator->unused = allocator->blocks[made].next;
    } else {
        allocator->blocks = arena_grow(allocator->arena, allocator->blocks, allocator->block_count,
                                       &allocator->block_capacity, sizeof(CachedBlock));
        made = (int32_t)allocator->block_count++;
    }
    CachedBlock *block = &allocator->blocks[made];
    block->key = key;
    block->previous = previous;
    block->next = next;
    block->pool = pool;
    block->state = BLOCK_TAKEN;
    return made;
}

static inline void forget_block(CachingAllocator *allocator, int32_t block) {
    allocator->blocks[block].next = allocator->unused;
    allocator->unused = block;
}

// The next block joins the one before it.
static inline void merge_blocks(CachingAllocator *allocator, Pool *pool, int32_t before, int32_t behind) {
    CachedBlock *left = &allocator->blocks[before];
    const CachedBlock *right = &allocator->blocks[behind];
    left->key += right->key >> KEY_SHIFT << KEY_SHIFT;
    left->next = right->next;
    if (right->next >= 0) {
        allocator->blocks[right->next].previous = before;
    } else {
        pool->last = pool->last == behind ? before : pool->last;
    }
    forget_block(allocator, behind);
}

// The first of this many free blocks that has this key or a larger one.
static inline size_t free_place(const FreeBlock *free, size_t count, uint64_t key) {
    size_t begin = 0;
    while (count > 0) {
        const size_t half = count / 2;
        const bool behind = free[begin + half].key < key;
        begin += behind ? half + 1 : 0;
        count = behind ? count - half - 1 : half;
    }
    return begin;
}

enum { FREE_NEAR = 16 };  // from here on it is searched for, not walked to

// Moves the gap at `place` down to where a block of this key belongs.
static inline size_t gap_down(FreeBlock *free, size_t place, uint64_t key) {
    if (place > FREE_NEAR && free[place - FREE_NEAR].key > key) {
        const size_t target = free_place(free, place, key);
        memmove(free + target + 1, free + target, (place - target) * sizeof *free);
        return target;
    }
    for (; place > 0 && free[place - 1].key > key; place--) {
        free[place] = free[place - 1];
    }
    return place;
}

// The same, up.
static inline size_t gap_up(FreeBlock *free, size_t count, size_t place, uint64_t key) {
    if (place + FREE_NEAR < count && free[place + FREE_NEAR].key < key) {
        const size_t target = place + free_place(free + place + 1, count - place - 1, key);
        memmove(free + place, free + place + 1, (target - place) * sizeof *free);
        return target;
    }
    for (; place + 1 < count && free[place + 1].key < key; place++) {
        free[place] = free[place + 1];
    }
    return place;
}

static inline size_t place_of(const CachingAllocator *allocator, const Pool *pool, int32_t block) {
    size_t place = free_place(pool->free, pool->free_count, allocator->blocks[block].key);
    while (place < pool->free_count && pool->free[place].block != block) {
        place++;  // another one whose address is the same again
    }
    ASSERT(place < pool->free_count);
    return place;
}

static inline void free_insert(CachingAllocator *allocator, int32_t index) {
    CachedBlock *block = &allocator->blocks[index];
    Pool *pool = &allocator->pools[block->pool];
    if (pool->free_count == pool->free_capacity) {
        pool->free =
            arena_grow(allocator->arena, pool->free, pool->free_count, &pool->free_capacity, sizeof *pool->free);
    }
    pool->free[gap_down(pool->free, pool->free_count, block->key)] = (FreeBlock){block->key, index};
    pool->free_count++;
    block->state = BLOCK_FREE;
}

static inline void free_remove_at(CachingAllocator *allocator, Pool *pool, size_t place) {
    allocator->blocks[pool->free[place].block].state = BLOCK_TAKEN;
    gap_up(pool->free, pool->free_count, place, UINT64_MAX);
    pool->free_count--;
}

static inline void free_remove(CachingAllocator *allocator, int32_t block) {
    Pool *pool = &allocator->pools[allocator->blocks[block].pool];
    free_remove_at(allocator, pool, place_of(allocator, pool, block));
}

// What a block has beyond `size` becomes the block after it.
static inline int32_t cut_off(CachingAllocator *allocator, int32_t block, int64_t size, BlockState state) {
    const CachedBlock whole = allocator->blocks[block];
    Pool *pool = &allocator->pools[whole.pool];
    const uint64_t key = block_key(block_size(&whole) - size, block_address(&whole) + size);
    const int32_t rest = new_block(allocator, key, block, whole.next, whole.pool);
    if (whole.next >= 0) {
        allocator->blocks[whole.next].previous = rest;
    }
    allocator->blocks[rest].state = state;
    allocator->blocks[block].key = block_key(size, block_address(&whole));
    allocator->blocks[block].next = rest;
    pool->last = pool->last == block ? rest : pool->last;
    return rest;
}

// A taken block of at least this size, from memory that the device has.
int32_t caching_segments_obtain(CachingAllocator *allocator, int32_t pool, int64_t size);
