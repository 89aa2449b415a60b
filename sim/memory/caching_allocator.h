// PyTorch's CUDA caching allocator on sizes alone (c10/cuda/CUDACachingAllocator.cpp): blocks are rounded to 512 bytes,
// small and large ones and those of each stream have pools of their own, the smallest free block that fits is split,
// freed neighbours merge, and memory obtained from the device stays with the process until there is no more of it.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"

typedef struct CachingAllocator CachingAllocator;

// Where the device has no more, what is free goes back to it before the allocation is tried again; where that is not
// enough either, the limit is passed by. Private pools keep what they have.
typedef struct CachingAllocatorOptions {
    bool expandable;      // a pool is one segment that grows at its end (expandable_segments:True), else each
                          // cudaMalloc is one
    int streams;          // of which the last
    int private_streams;  // are a CUDA graph's
    int64_t limit_bytes;  // of the device; 0 = it always has more
} CachingAllocatorOptions;

CachingAllocator *caching_allocator_new(const CachingAllocatorOptions *options, Arena *arena);

// Returns the block; streams count from 0.
int32_t caching_allocator_take(CachingAllocator *allocator, int64_t bytes, int stream);
void caching_allocator_give_back(CachingAllocator *allocator, int32_t block);

// The most device memory that the process ever reserved.
int64_t caching_allocator_reserved_bytes(const CachingAllocator *allocator);
