// Blocks taken and given back; where they come from: caching_segments.c.
// Not modelled: roundup_power2_divisions, max_split_size_mb, garbage collection. A CUDA graph's private pool is that of
// a stream of its own.

#include "sim/memory/caching_allocator.h"

#include "sim/memory/caching_pools.h"

static const int64_t SMALL = (1 << 20) / UNIT_BYTES;  // kSmallSize: up to here a block is small

CachingAllocator *caching_allocator_new(const CachingAllocatorOptions *options, Arena *arena) {
    CachingAllocator *allocator = ARENA_NEW(arena, CachingAllocator);
    *allocator = (CachingAllocator){.arena = arena,
                                    .options = *options,
                                    .pools = ARENA_ARRAY(arena, Pool, 2 * options->streams),
                                    .unused = -1,
                                    .limit = options->limit_bytes / UNIT_BYTES};
    for (int i = 0; i < 2 * options->streams; i++) {
        const bool small = i % 2 == 0;
        allocator->pools[i] = (Pool){.small = small, .least_rest = small ? 1 : SMALL + 1, .first = -1, .last = -1};
    }
    return allocator;
}

// The front of a free block; what is left of it stays free, and mostly at its place.
static int32_t take_front(CachingAllocator *allocator, Pool *pool, size_t place, int64_t size) {
    const int32_t rest = pool->free[place].block;
    const CachedBlock whole = allocator->blocks[rest];
    const uint64_t left = block_key(block_size(&whole) - size, block_address(&whole) + size);
    const int32_t taken =
        new_block(allocator, block_key(size, block_address(&whole)), whole.previous, rest, whole.pool);
    allocator->blocks[rest].key = left;
    allocator->blocks[rest].previous = taken;
    if (whole.previous >= 0) {
        allocator->blocks[whole.previous].next = taken;
    } else {
        pool->first = pool->first == rest ? taken : pool->first;
    }
    pool->free[gap_down(pool->free, place, left)] = (FreeBlock){left, rest};
    return taken;
}

int32_t caching_allocator_take(CachingAllocator *allocator, int64_t bytes, int stream) {
    const int64_t size = bytes > 0 ? (int64_t)(((uint64_t)bytes + UNIT_BYTES - 1) / UNIT_BYTES) : 1;
    const int32_t index = 2 * stream + (size > SMALL);
    Pool *pool = &allocator->pools[index];
    const size_t place = free_place(pool->free, pool->free_count, block_key(size, 0));  // the smallest that fits
    if (place == pool->free_count) {
        const int32_t block = caching_segments_obtain(allocator, index, size);
        if (block_size(&allocator->blocks[block]) - size >= pool->least_rest) {
            free_insert(allocator, cut_off(allocator, block, size, BLOCK_FREE));
        }
        return block;
    }
    if ((int64_t)(pool->free[place].key >> KEY_SHIFT) - size >= pool->least_rest) {
        return take_front(allocator, pool, place, size);
    }
    const int32_t block = pool->free[place].block;
    free_remove_at(allocator, pool, place);
    return block;
}

void caching_allocator_give_back(CachingAllocator *allocator, int32_t block) {
    CachedBlock *freed = &allocator->blocks[block];
    Pool *pool = &allocator->pools[freed->pool];
    const int32_t previous = freed->previous, next = freed->next;
    ASSERT(freed->state == BLOCK_TAKEN);
    if (is_free(allocator, next)) {
        const size_t place = place_of(allocator, pool, next);
        merge_blocks(allocator, pool, block, next);
        if (!is_free(allocator, previous)) {
            freed->state = BLOCK_FREE;
            pool->free[gap_up(pool->free, pool->free_count, place, freed->key)] = (FreeBlock){freed->key, block};
            return;
        }
        gap_up(pool->free, pool->free_count--, place, UINT64_MAX);
    }
    if (is_free(allocator, previous)) {
        CachedBlock *joined = &allocator->blocks[previous];
        const size_t place = place_of(allocator, pool, previous);
        merge_blocks(allocator, pool, previous, block);
        pool->free[gap_up(pool->free, pool->free_count, place, joined->key)] = (FreeBlock){joined->key, previous};
        return;
    }
    free_insert(allocator, block);
}

int64_t caching_allocator_reserved_bytes(const CachingAllocator *allocator) {
    return allocator->most_reserved * UNIT_BYTES;
}
