// Free blocks of a pool are an array in the order of the allocator's set: by size, then by address. Pages of an
// expandable segment that are given back to the device leave a hole of addresses, which is mapped again where a block
// finds no other room.
// Not modelled: roundup_power2_divisions, max_split_size_mb, garbage collection. A CUDA graph's private pool is that of
// a stream of its own.

#include "sim/memory/caching_allocator.h"

#include <string.h>

#include "sim/base/error.h"
#include "sim/base/integer.h"

// Constants of c10/core/AllocatorConfig.h and CUDACachingAllocator.cpp (PyTorch 2.11).
static const int64_t MIN_BLOCK_BYTES = 512;           // kMinBlockSize
static const int64_t SMALL_BYTES = 1 << 20;           // kSmallSize: up to here a block is small
static const int64_t SMALL_SEGMENT_BYTES = 2 << 20;   // kSmallBuffer
static const int64_t LARGE_SEGMENT_BYTES = 20 << 20;  // kLargeBuffer
static const int64_t MIN_LARGE_BYTES = 10 << 20;      // kMinLargeAlloc: from here a segment is rounded, not fixed
static const int64_t LARGE_ROUND_BYTES = 2 << 20;     // kRoundLarge

typedef enum { BLOCK_TAKEN, BLOCK_FREE, BLOCK_HOLE } BlockState;

typedef struct Block {
    int64_t bytes, address;
    int32_t previous, next;  // in its segment; -1 = none
    int32_t pool;
    BlockState state;
} Block;

typedef struct Pool {
    bool small;
    int32_t *free;
    size_t free_count, free_capacity;
    int32_t first, last;  // of an expandable segment; -1 = empty
    bool has_holes;
} Pool;

struct CachingAllocator {
    Arena *arena;
    CachingAllocatorOptions options;
    Pool *pools;  // small and large of each stream
    Block *blocks;
    size_t block_count, block_capacity;
    int32_t unused;  // chain of merged blocks, by next
    int64_t reserved_bytes, most_reserved_bytes;
    int64_t next_address;  // of a segment that does not grow
};

CachingAllocator *caching_allocator_new(const CachingAllocatorOptions *options, Arena *arena) {
    CachingAllocator *allocator = ARENA_NEW(arena, CachingAllocator);
    *allocator = (CachingAllocator){
        .arena = arena, .options = *options, .pools = ARENA_ARRAY(arena, Pool, 2 * options->streams), .unused = -1};
    for (int i = 0; i < 2 * options->streams; i++) {
        allocator->pools[i].small = i % 2 == 0;
        allocator->pools[i].first = allocator->pools[i].last = -1;
    }
    return allocator;
}

// By which an expandable segment grows, and what of it is given back.
static int64_t page_bytes(const Pool *pool) {
    return pool->small ? SMALL_SEGMENT_BYTES : LARGE_SEGMENT_BYTES;
}

static int32_t new_block(CachingAllocator *allocator, const Block *content) {
    int32_t block = allocator->unused;
    if (block >= 0) {
        allocator->unused = allocator->blocks[block].next;
    } else {
        allocator->blocks = arena_grow(allocator->arena, allocator->blocks, allocator->block_count,
                                       &allocator->block_capacity, sizeof(Block));
        block = (int32_t)allocator->block_count++;
    }
    allocator->blocks[block] = *content;
    return block;
}

static void forget_block(CachingAllocator *allocator, int32_t block) {
    allocator->blocks[block].next = allocator->unused;
    allocator->unused = block;
}

// Where a block of this size at this address is among the free ones, or would be.
static size_t free_place(const CachingAllocator *allocator, const Pool *pool, int64_t bytes, int64_t address) {
    size_t low = 0, high = pool->free_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const Block *block = &allocator->blocks[pool->free[middle]];
        if (block->bytes < bytes || (block->bytes == bytes && block->address < address)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void free_insert(CachingAllocator *allocator, int32_t index) {
    Block *block = &allocator->blocks[index];
    Pool *pool = &allocator->pools[block->pool];
    const size_t place = free_place(allocator, pool, block->bytes, block->address);
    pool->free = arena_grow(allocator->arena, pool->free, pool->free_count, &pool->free_capacity, sizeof *pool->free);
    memmove(pool->free + place + 1, pool->free + place, (pool->free_count - place) * sizeof *pool->free);
    pool->free[place] = index;
    pool->free_count++;
    block->state = BLOCK_FREE;
}

static void free_remove(CachingAllocator *allocator, int32_t index) {
    Block *block = &allocator->blocks[index];
    Pool *pool = &allocator->pools[block->pool];
    const size_t place = free_place(allocator, pool, block->bytes, block->address);
    ASSERT(place < pool->free_count && pool->free[place] == index);
    pool->free_count--;
    memmove(pool->free + place, pool->free + place + 1, (pool->free_count - place) * sizeof *pool->free);
    block->state = BLOCK_TAKEN;
}

// The smallest free block that fits, -1 where there is none.
static int32_t best_fit(const CachingAllocator *allocator, const Pool *pool, int64_t bytes) {
    const size_t place = free_place(allocator, pool, bytes, 0);
    return place < pool->free_count ? pool->free[place] : -1;
}

static bool is_free(const CachingAllocator *allocator, int32_t block) {
    return block >= 0 && allocator->blocks[block].state == BLOCK_FREE;
}

// The next block joins the one before it.
static void merge(CachingAllocator *allocator, int32_t before, int32_t behind) {
    Block *left = &allocator->blocks[before], *right = &allocator->blocks[behind];
    Pool *pool = &allocator->pools[left->pool];
    left->bytes += right->bytes;
    left->next = right->next;
    if (right->next >= 0) {
        allocator->blocks[right->next].previous = before;
    }
    pool->last = pool->last == behind ? before : pool->last;
    forget_block(allocator, behind);
}

// What a block has beyond `bytes` becomes one behind it.
static int32_t cut_off(CachingAllocator *allocator, int32_t block, int64_t bytes, BlockState state) {
    const Block whole = allocator->blocks[block];
    Pool *pool = &allocator->pools[whole.pool];
    const int32_t rest = new_block(allocator, &(Block){.bytes = whole.bytes - bytes,
                                                       .address = whole.address + bytes,
                                                       .previous = block,
                                                       .next = whole.next,
                                                       .pool = whole.pool,
                                                       .state = state});
    if (whole.next >= 0) {
        allocator->blocks[whole.next].previous = rest;
    }
    allocator->blocks[block].bytes = bytes;
    allocator->blocks[block].next = rest;
    pool->last = pool->last == block ? rest : pool->last;
    return rest;
}

// ---- memory from the device and back

static void reserve(CachingAllocator *allocator, int64_t bytes) {
    allocator->reserved_bytes += bytes;
    if (allocator->reserved_bytes > allocator->most_reserved_bytes) {
        allocator->most_reserved_bytes = allocator->reserved_bytes;
    }
}

static int64_t segment_bytes(const Pool *pool, int64_t bytes) {
    return pool->small               ? SMALL_SEGMENT_BYTES
           : bytes < MIN_LARGE_BYTES ? LARGE_SEGMENT_BYTES
                                     : int_round_up(bytes, LARGE_ROUND_BYTES);
}

static int32_t new_segment(CachingAllocator *allocator, int32_t pool, int64_t bytes) {
    const int64_t segment = segment_bytes(&allocator->pools[pool], bytes);
    const int32_t block = new_block(
        allocator,
        &(Block){.bytes = segment, .address = allocator->next_address, .previous = -1, .next = -1, .pool = pool});
    allocator->next_address += segment;
    reserve(allocator, segment);
    return block;
}

static int64_t missing_at_end(const CachingAllocator *allocator, const Pool *pool, int64_t bytes) {
    return int_round_up(bytes - (is_free(allocator, pool->last) ? allocator->blocks[pool->last].bytes : 0),
                        page_bytes(pool));
}

// The end of the pool's one segment moves by what is missing after its last block.
static int32_t grow_segment(CachingAllocator *allocator, int32_t pool_index, int64_t bytes) {
    Pool *pool = &allocator->pools[pool_index];
    const int32_t last = pool->last;
    const int64_t more = missing_at_end(allocator, pool, bytes);
    reserve(allocator, more);
    if (is_free(allocator, last)) {
        free_remove(allocator, last);
        allocator->blocks[last].bytes += more;
        return last;
    }
    const Block *end = last >= 0 ? &allocator->blocks[last] : NULL;
    const int32_t block = new_block(allocator, &(Block){.bytes = more,
                                                        .address = end ? end->address + end->bytes : 0,
                                                        .previous = last,
                                                        .next = -1,
                                                        .pool = pool_index});
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
static int32_t find_holes(const CachingAllocator *allocator, const Pool *pool, int64_t bytes, int64_t *more) {
    for (int32_t at = pool->has_holes ? pool->first : -1; at >= 0; at = allocator->blocks[at].next) {
        const Block *hole = &allocator->blocks[at];
        const int32_t begin = is_free(allocator, hole->previous) ? hole->previous : at;
        int64_t room = 0;
        *more = 0;
        for (int32_t i = begin; hole->state == BLOCK_HOLE && room < bytes && i >= 0; i = allocator->blocks[i].next) {
            const Block *block = &allocator->blocks[i];
            if (block->state == BLOCK_TAKEN) {
                break;
            }
            const int64_t wanted = int_round_up(bytes - room, page_bytes(pool));
            const int64_t used = block->state == BLOCK_HOLE && wanted < block->bytes ? wanted : block->bytes;
            *more += block->state == BLOCK_HOLE ? used : 0;
            room += used;
        }
        if (room >= bytes) {
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
    const int64_t used = int_round_up(wanted, page_bytes(&allocator->pools[allocator->blocks[block].pool]));
    if (used < allocator->blocks[block].bytes) {
        cut_off(allocator, block, used, BLOCK_HOLE);
    }
    allocator->blocks[block].state = BLOCK_TAKEN;
    reserve(allocator, allocator->blocks[block].bytes);
}

static int32_t fill_holes(CachingAllocator *allocator, int32_t begin, int64_t bytes) {
    take_part(allocator, begin, bytes);
    while (allocator->blocks[begin].bytes < bytes) {
        const int32_t next = allocator->blocks[begin].next;
        take_part(allocator, next, bytes - allocator->blocks[begin].bytes);
        merge(allocator, begin, next);
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
    const Block whole = allocator->blocks[block];
    Pool *pool = &allocator->pools[whole.pool];
    const int64_t page = page_bytes(pool), begin = int_round_up(whole.address, page);
    const int64_t end = (whole.address + whole.bytes) / page * page;
    if (begin >= end) {
        return;
    }
    free_remove(allocator, block);
    if (end < whole.address + whole.bytes) {
        free_insert(allocator, cut_off(allocator, block, end - whole.address, BLOCK_FREE));
    }
    if (begin > whole.address) {
        cut_off(allocator, block, begin - whole.address, BLOCK_HOLE);
        free_insert(allocator, block);
    } else {
        allocator->blocks[block].state = BLOCK_HOLE;
    }
    allocator->reserved_bytes -= end - begin;
    pool->has_holes = true;
}

static void free_whole_segments(CachingAllocator *allocator, Pool *pool) {
    size_t kept = 0;
    for (size_t i = 0; i < pool->free_count; i++) {
        const Block *block = &allocator->blocks[pool->free[i]];
        if (block->previous < 0 && block->next < 0) {
            allocator->reserved_bytes -= block->bytes;
            forget_block(allocator, pool->free[i]);
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

static int32_t obtain(CachingAllocator *allocator, int32_t pool_index, int64_t bytes) {
    const Pool *pool = &allocator->pools[pool_index];
    const int64_t limit = allocator->options.limit_bytes;
    for (int attempt = 0;; attempt++) {
        int64_t more = 0;
        const int32_t begin = allocator->options.expandable ? find_holes(allocator, pool, bytes, &more) : -1;
        if (begin < 0) {
            more = allocator->options.expandable ? missing_at_end(allocator, pool, bytes) : segment_bytes(pool, bytes);
        }
        if (attempt == 0 && limit > 0 && allocator->reserved_bytes + more > limit) {
            release_cached(allocator);
            continue;
        }
        return begin >= 0                      ? fill_holes(allocator, begin, bytes)
               : allocator->options.expandable ? grow_segment(allocator, pool_index, bytes)
                                               : new_segment(allocator, pool_index, bytes);
    }
}

// ---- blocks

int32_t caching_allocator_take(CachingAllocator *allocator, int64_t bytes, int stream) {
    const int64_t rounded = int_round_up(bytes > 0 ? bytes : 1, MIN_BLOCK_BYTES);
    const int32_t pool = 2 * stream + (rounded > SMALL_BYTES);
    int32_t block = best_fit(allocator, &allocator->pools[pool], rounded);
    if (block >= 0) {
        free_remove(allocator, block);
    } else {
        block = obtain(allocator, pool, rounded);
    }
    const int64_t rest = allocator->blocks[block].bytes - rounded;
    if (allocator->pools[pool].small ? rest >= MIN_BLOCK_BYTES : rest > SMALL_BYTES) {
        free_insert(allocator, cut_off(allocator, block, rounded, BLOCK_FREE));
    }
    return block;
}

void caching_allocator_give_back(CachingAllocator *allocator, int32_t block) {
    ASSERT(allocator->blocks[block].state == BLOCK_TAKEN);
    const int32_t next = allocator->blocks[block].next, previous = allocator->blocks[block].previous;
    if (is_free(allocator, next)) {
        free_remove(allocator, next);
        merge(allocator, block, next);
    }
    if (is_free(allocator, previous)) {
        free_remove(allocator, previous);
        merge(allocator, previous, block);
        block = previous;
    }
    free_insert(allocator, block);
}

int64_t caching_allocator_reserved_bytes(const CachingAllocator *allocator) {
    return allocator->most_reserved_bytes;
}
