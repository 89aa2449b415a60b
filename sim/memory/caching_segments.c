// Memory from the device and back. Pages of an expandable segment that are given back leave a hole of addresses, which
// is mapped again where a block finds no other room.

#include "sim/base/integer.h"
#include "sim/memory/caching_pools.h"

// Constants of c10/core/AllocatorConfig.h and CUDACachingAllocator.cpp (PyTorch 2.11).
static const int64_t SMALL_SEGMENT = (2 << 20) / UNIT_BYTES;   // kSmallBuffer
static const int64_t LARGE_SEGMENT = (20 << 20) / UNIT_BYTES;  // kLargeBuffer
static const int64_t MIN_LARGE = (10 << 20) / UNIT_BYTES;      // kMinLargeAlloc: from here a segment is rounded
static const int64_t LARGE_ROUND = (2 << 20) / UNIT_BYTES;     // kRoundLarge

// By which an expandable segment grows, and what of it is given back.
static int64_t page_size(const Pool *pool) {
    return pool->small ? SMALL_SEGMENT : LARGE_SEGMENT;
}

static int64_t size_of(const CachingAllocator *allocator, int32_t block) {
    return block_size(&allocator->blocks[block]);
}

static void reserve(CachingAllocator *allocator, int64_t size) {
    allocator->reserved += size;
    if (allocator->reserved > allocator->most_reserved) {
        allocator->most_reserved = allocator->reserved;
    }
}

static int64_t segment_size(const Pool *pool, int64_t size) {
    return pool->small ? SMALL_SEGMENT : size < MIN_LARGE ? LARGE_SEGMENT : int_round_up(size, LARGE_ROUND);
}

static int32_t new_segment(CachingAllocator *allocator, int32_t pool, int64_t size) {
    const int64_t segment = segment_size(&allocator->pools[pool], size);
    const int32_t block = new_block(allocator, block_key(segment, allocator->next_address), -1, -1, pool);
    allocator->next_address += segment;
    reserve(allocator, segment);
    return block;
}

static int64_t missing_at_end(const CachingAllocator *allocator, const Pool *pool, int64_t size) {
    return int_round_up(size - (is_free(allocator, pool->last) ? size_of(allocator, pool->last) : 0), page_size(pool));
}

// The end of the pool's one segment moves by what is missing after its last block.
static int32_t grow_segment(CachingAllocator *allocator, int32_t pool_index, int64_t size) {
    Pool *pool = &allocator->pools[pool_index];
    const int32_t last = pool->last;
    const int64_t more = missing_at_end(allocator, pool, size);
    reserve(allocator, more);
    if (is_free(allocator, last)) {
        free_remove(allocator, last);
        allocator->blocks[last].key += block_key(more, 0);
        return last;
    }
    const CachedBlock *end = last >= 0 ? &allocator->blocks[last] : NULL;
    const int64_t address = end ? block_address(end) + block_size(end) : 0;
    const int32_t block = new_block(allocator, block_key(more, address), last, -1, pool_index);
    if (last >= 0) {
        allocator->blocks[last].next = block;
    } else {
        pool->first = block;
    }
    pool->last = block;
    return block;
}

// The first of free blocks and holes side by side that have room together, -1 where there are none; *more: what has to
// be mapped for it.
static int32_t find_holes(const CachingAllocator *allocator, const Pool *pool, int64_t size, int64_t *more) {
    for (int32_t at = pool->has_holes ? pool->first : -1; at >= 0; at = allocator->blocks[at].next) {
        const CachedBlock *hole = &allocator->blocks[at];
        const int32_t begin = is_free(allocator, hole->previous) ? hole->previous : at;
        int64_t room = 0;
        *more = 0;
        for (int32_t i = begin; hole->state == BLOCK_HOLE && room < size && i >= 0; i = allocator->blocks[i].next) {
            const CachedBlock *block = &allocator->blocks[i];
            if (block->state == BLOCK_TAKEN) {
                break;
            }
            const int64_t wanted = int_round_up(size - room, page_size(pool)), whole = block_size(block);
            const int64_t used = block->state == BLOCK_HOLE && wanted < whole ? wanted : whole;
            *more += block->state == BLOCK_HOLE ? used : 0;
            room += used;
        }
        if (room >= size) {
            return begin;
        }
    }
    return -1;
}

// A free block, or as much of a hole as is wanted, is taken.
static void take_part(CachingAllocator *allocator, int32_t block, int64_t wanted) {
    if (allocator->blocks[block].state == BLOCK_FREE) {
        free_remove(allocator, block);
        return;
    }
    const int64_t used = int_round_up(wanted, page_size(&allocator->pools[allocator->blocks[block].pool]));
    if (used < size_of(allocator, block)) {
        cut_off(allocator, block, used, BLOCK_HOLE);
    }
    allocator->blocks[block].state = BLOCK_TAKEN;
    reserve(allocator, size_of(allocator, block));
}

static int32_t fill_holes(CachingAllocator *allocator, Pool *pool, int32_t begin, int64_t size) {
    take_part(allocator, begin, size);
    while (size_of(allocator, begin) < size) {
        const int32_t next = allocator->blocks[begin].next;
        take_part(allocator, next, size - size_of(allocator, begin));
        merge_blocks(allocator, pool, begin, next);
    }
    return begin;
}

static void drop_holes_at_end(CachingAllocator *allocator, Pool *pool) {
    while (pool->last >= 0 && allocator->blocks[pool->last].state == BLOCK_HOLE) {
        const int32_t dropped = pool->last;
        pool->last = allocator->blocks[dropped].previous;
        if (pool->last >= 0) {
            allocator->blocks[pool->last].next = -1;
        } else {
            pool->first = -1;
        }
        forget_block(allocator, dropped);
    }
}

// Whole pages of a free block go back.
static void unmap(CachingAllocator *allocator, int32_t block) {
    const CachedBlock whole = allocator->blocks[block];
    Pool *pool = &allocator->pools[whole.pool];
    const int64_t page = page_size(pool), address = block_address(&whole), behind = address + block_size(&whole);
    const int64_t begin = int_round_up(address, page), end = behind / page * page;
    if (begin >= end) {
        return;
    }
    free_remove(allocator, block);
    if (end < behind) {
        free_insert(allocator, cut_off(allocator, block, end - address, BLOCK_FREE));
    }
    if (begin > address) {
        cut_off(allocator, block, begin - address, BLOCK_HOLE);
        free_insert(allocator, block);
    } else {
        allocator->blocks[block].state = BLOCK_HOLE;
    }
    allocator->reserved -= end - begin;
    pool->has_holes = true;
}

static void free_whole_segments(CachingAllocator *allocator, Pool *pool) {
    size_t kept = 0;
    for (size_t i = 0; i < pool->free_count; i++) {
        const int32_t index = pool->free[i].block;
        const CachedBlock *block = &allocator->blocks[index];
        if (block->previous < 0 && block->next < 0) {
            allocator->reserved -= block_size(block);
            forget_block(allocator, index);
        } else {
            pool->free[kept++] = pool->free[i];
        }
    }
    pool->free_count = kept;
}

// release_cached_blocks: of everything but private pools.
static void release_cached(CachingAllocator *allocator) {
    for (int i = 0; i < 2 * (allocator->options.streams - allocator->options.private_streams); i++) {
        Pool *pool = &allocator->pools[i];
        if (!allocator->options.expandable) {
            free_whole_segments(allocator, pool);
            continue;
        }
        for (int32_t at = pool->first, next; at >= 0; at = next) {
            next = allocator->blocks[at].next;
            if (is_free(allocator, at)) {
                unmap(allocator, at);
            }
        }
        drop_holes_at_end(allocator, pool);
    }
}

int32_t caching_segments_obtain(CachingAllocator *allocator, int32_t pool_index, int64_t size) {
    Pool *pool = &allocator->pools[pool_index];
    for (int attempt = 0;; attempt++) {
        int64_t more = 0;
        const int32_t begin = allocator->options.expandable ? find_holes(allocator, pool, size, &more) : -1;
        if (begin < 0) {
            more = allocator->options.expandable ? missing_at_end(allocator, pool, size) : segment_size(pool, size);
        }
        if (attempt == 0 && allocator->limit > 0 && allocator->reserved + more > allocator->limit) {
            release_cached(allocator);
            continue;
        }
        return begin >= 0                      ? fill_holes(allocator, pool, begin, size)
               : allocator->options.expandable ? grow_segment(allocator, pool_index, size)
                                               : new_segment(allocator, pool_index, size);
    }
}
