// Free blocks of a pool are an unordered array that is searched whole: there are few, since neighbours merge. Of two
// that fit equally well the lower address wins, as in the allocator's ordered set.
// Not modelled: running out of memory (cached segments are released then), roundup_power2_divisions,
// max_split_size_mb, garbage collection, CUDA graphs' private pools.

#include "sim/memory/caching_allocator.h"

#include "sim/base/error.h"

// Constants of c10/core/AllocatorConfig.h and CUDACachingAllocator.cpp (PyTorch 2.11).
static const int64_t MIN_BLOCK_BYTES = 512;           // kMinBlockSize
static const int64_t SMALL_BYTES = 1 << 20;           // kSmallSize: up to here a block is small
static const int64_t SMALL_SEGMENT_BYTES = 2 << 20;   // kSmallBuffer
static const int64_t LARGE_SEGMENT_BYTES = 20 << 20;  // kLargeBuffer
static const int64_t MIN_LARGE_BYTES = 10 << 20;      // kMinLargeAlloc: from here a segment is rounded, not fixed
static const int64_t LARGE_ROUND_BYTES = 2 << 20;     // kRoundLarge

typedef struct Block {
    int64_t bytes, address;
    int32_t previous, next;  // in its segment; -1 = none
    int32_t pool;
    int32_t free_place;  // in the pool's free array; -1 = taken
} Block;

typedef struct Pool {
    bool small;
    int32_t *free;
    size_t free_count, free_capacity;
    int32_t last;  // of an expandable segment; -1 = empty
} Pool;

struct CachingAllocator {
    Arena *arena;
    bool expandable;
    Pool *pools;  // small and large of each stream
    Block *blocks;
    size_t block_count, block_capacity;
    int32_t unused;  // chain of merged blocks, by next
    int64_t reserved_bytes;
};

CachingAllocator *caching_allocator_new(bool expandable, int streams, Arena *arena) {
    CachingAllocator *allocator = ARENA_NEW(arena, CachingAllocator);
    *allocator = (CachingAllocator){
        .arena = arena, .expandable = expandable, .pools = ARENA_ARRAY(arena, Pool, 2 * streams), .unused = -1};
    for (int i = 0; i < 2 * streams; i++) {
        allocator->pools[i].small = i % 2 == 0;
        allocator->pools[i].last = -1;
    }
    return allocator;
}

static int64_t round_up(int64_t bytes, int64_t unit) {
    return (bytes + unit - 1) / unit * unit;
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

static void free_insert(CachingAllocator *allocator, int32_t block) {
    Pool *pool = &allocator->pools[allocator->blocks[block].pool];
    pool->free = arena_grow(allocator->arena, pool->free, pool->free_count, &pool->free_capacity, sizeof *pool->free);
    allocator->blocks[block].free_place = (int32_t)pool->free_count;
    pool->free[pool->free_count++] = block;
}

static void free_remove(CachingAllocator *allocator, int32_t block) {
    Pool *pool = &allocator->pools[allocator->blocks[block].pool];
    const int32_t place = allocator->blocks[block].free_place, moved = pool->free[--pool->free_count];
    pool->free[place] = moved;
    allocator->blocks[moved].free_place = place;
    allocator->blocks[block].free_place = -1;
}

// The smallest free block that fits, -1 where there is none.
static int32_t best_fit(const CachingAllocator *allocator, const Pool *pool, int64_t bytes) {
    int32_t best = -1;
    for (size_t i = 0; i < pool->free_count; i++) {
        const Block *block = &allocator->blocks[pool->free[i]];
        const Block *found = best >= 0 ? &allocator->blocks[best] : NULL;
        if (block->bytes >= bytes && (!found || block->bytes < found->bytes ||
                                      (block->bytes == found->bytes && block->address < found->address))) {
            best = pool->free[i];
        }
    }
    return best;
}

static int32_t new_segment(CachingAllocator *allocator, int32_t pool, int64_t bytes) {
    const int64_t segment = allocator->pools[pool].small ? SMALL_SEGMENT_BYTES
                            : bytes < MIN_LARGE_BYTES    ? LARGE_SEGMENT_BYTES
                                                         : round_up(bytes, LARGE_ROUND_BYTES);
    const int32_t block = new_block(allocator, &(Block){.bytes = segment,
                                                        .address = allocator->reserved_bytes,
                                                        .previous = -1,
                                                        .next = -1,
                                                        .pool = pool,
                                                        .free_place = -1});
    allocator->reserved_bytes += segment;
    return block;
}

// The end of the pool's one segment moves by what is missing after its last block.
static int32_t grow_segment(CachingAllocator *allocator, int32_t pool_index, int64_t bytes) {
    Pool *pool = &allocator->pools[pool_index];
    const int64_t unit = pool->small ? SMALL_SEGMENT_BYTES : LARGE_SEGMENT_BYTES;
    const int32_t last = pool->last;
    const bool joins = last >= 0 && allocator->blocks[last].free_place >= 0;
    const int64_t more = round_up(bytes - (joins ? allocator->blocks[last].bytes : 0), unit);
    allocator->reserved_bytes += more;
    if (joins) {
        free_remove(allocator, last);
        allocator->blocks[last].bytes += more;
        return last;
    }
    const Block *end = last >= 0 ? &allocator->blocks[last] : NULL;
    const int32_t block = new_block(allocator, &(Block){.bytes = more,
                                                        .address = end ? end->address + end->bytes : 0,
                                                        .previous = last,
                                                        .next = -1,
                                                        .pool = pool_index,
                                                        .free_place = -1});
    if (last >= 0) {
        allocator->blocks[last].next = block;
    }
    pool->last = block;
    return block;
}

static void split(CachingAllocator *allocator, int32_t block, int64_t bytes) {
    const Block whole = allocator->blocks[block];
    Pool *pool = &allocator->pools[whole.pool];
    const int64_t rest = whole.bytes - bytes;
    if (pool->small ? rest < MIN_BLOCK_BYTES : rest <= SMALL_BYTES) {
        return;
    }
    const int32_t tail = new_block(allocator, &(Block){.bytes = rest,
                                                       .address = whole.address + bytes,
                                                       .previous = block,
                                                       .next = whole.next,
                                                       .pool = whole.pool,
                                                       .free_place = -1});
    if (whole.next >= 0) {
        allocator->blocks[whole.next].previous = tail;
    }
    allocator->blocks[block].bytes = bytes;
    allocator->blocks[block].next = tail;
    pool->last = pool->last == block ? tail : pool->last;
    free_insert(allocator, tail);
}

int32_t caching_allocator_take(CachingAllocator *allocator, int64_t bytes, int stream) {
    const int64_t rounded = round_up(bytes > 0 ? bytes : 1, MIN_BLOCK_BYTES);
    const int32_t pool = 2 * stream + (rounded > SMALL_BYTES);
    int32_t block = best_fit(allocator, &allocator->pools[pool], rounded);
    if (block >= 0) {
        free_remove(allocator, block);
    } else {
        block = allocator->expandable ? grow_segment(allocator, pool, rounded) : new_segment(allocator, pool, rounded);
    }
    split(allocator, block, rounded);
    return block;
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
    right->next = allocator->unused;
    allocator->unused = behind;
}

void caching_allocator_give_back(CachingAllocator *allocator, int32_t block) {
    ASSERT(allocator->blocks[block].free_place < 0);
    const int32_t next = allocator->blocks[block].next, previous = allocator->blocks[block].previous;
    if (next >= 0 && allocator->blocks[next].free_place >= 0) {
        free_remove(allocator, next);
        merge(allocator, block, next);
    }
    if (previous >= 0 && allocator->blocks[previous].free_place >= 0) {
        merge(allocator, previous, block);
        return;
    }
    free_insert(allocator, block);
}

int64_t caching_allocator_reserved_bytes(const CachingAllocator *allocator) {
    return allocator->reserved_bytes;
}
