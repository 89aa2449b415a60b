// PyTorch's CUDA caching allocator on sizes alone (c10/cuda/CUDACachingAllocator.cpp): blocks are rounded to 512 bytes,
// small and large ones and those of each stream have pools of their own, the smallest free block that fits is split,
// freed neighbours merge, and memory obtained from the device stays with the process.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"

typedef struct CachingAllocator CachingAllocator;

// expandable: a pool is one segment that grows at its end (expandable_segments:True), else each cudaMalloc is one.
CachingAllocator *caching_allocator_new(bool expandable, int streams, Arena *arena);

// Returns the block; streams count from 0.
int32_t caching_allocator_take(CachingAllocator *allocator, int64_t bytes, int stream);
void caching_allocator_give_back(CachingAllocator *allocator, int32_t block);

// Device memory that the process reserves: it never falls, as memory never runs out here.
int64_t caching_allocator_reserved_bytes(const CachingAllocator *allocator);
