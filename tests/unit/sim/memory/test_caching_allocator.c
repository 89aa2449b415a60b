// The rules of PyTorch's caching allocator, one at a time; sizes from c10/cuda/CUDACachingAllocator.cpp.

#include <criterion/criterion.h>

#include "sim/memory/caching_allocator.h"

static const int64_t MIB = 1 << 20;

static int64_t held(const CachingAllocator *allocator) {
    return caching_allocator_reserved_bytes(allocator);
}

Test(caching_allocator, small_blocks_share_a_segment_of_two_mib_and_large_ones_of_twenty) {
    Arena arena = {0};
    CachingAllocator *allocator =
        caching_allocator_new(&(CachingAllocatorOptions){.expandable = false, .streams = 1}, &arena);
    caching_allocator_take(allocator, 1, 0);
    caching_allocator_take(allocator, MIB, 0);
    cr_assert_eq(held(allocator), 2 * MIB);
    caching_allocator_take(allocator, MIB + 1, 0);
    caching_allocator_take(allocator, 9 * MIB, 0);
    cr_assert_eq(held(allocator), 22 * MIB);
    caching_allocator_take(allocator, 11 * MIB, 0);  // from 10 MiB on its own, rounded to 2 MiB
    cr_assert_eq(held(allocator), 34 * MIB);
    arena_free(&arena);
}

Test(caching_allocator, what_is_freed_is_kept_and_taken_again) {
    Arena arena = {0};
    CachingAllocator *allocator =
        caching_allocator_new(&(CachingAllocatorOptions){.expandable = false, .streams = 1}, &arena);
    for (int i = 0; i < 5; i++) {
        caching_allocator_give_back(allocator, caching_allocator_take(allocator, 100 * MIB, 0));
    }
    cr_assert_eq(held(allocator), 100 * MIB);
    arena_free(&arena);
}

Test(caching_allocator, the_smallest_block_that_fits_is_split_and_its_parts_merge) {
    Arena arena = {0};
    CachingAllocator *allocator =
        caching_allocator_new(&(CachingAllocatorOptions){.expandable = false, .streams = 1}, &arena);
    const int32_t large = caching_allocator_take(allocator, 100 * MIB, 0);
    const int32_t small = caching_allocator_take(allocator, 40 * MIB, 0);
    caching_allocator_give_back(allocator, large);
    caching_allocator_give_back(allocator, small);
    const int32_t a = caching_allocator_take(allocator, 20 * MIB, 0);  // from the 40
    const int32_t b = caching_allocator_take(allocator, 20 * MIB, 0);
    caching_allocator_take(allocator, 100 * MIB, 0);
    cr_assert_eq(held(allocator), 140 * MIB);
    caching_allocator_give_back(allocator, a);
    caching_allocator_give_back(allocator, b);
    caching_allocator_take(allocator, 40 * MIB, 0);
    cr_assert_eq(held(allocator), 140 * MIB);
    arena_free(&arena);
}

Test(caching_allocator, segments_never_join_and_streams_never_share) {
    Arena arena = {0};
    CachingAllocator *allocator =
        caching_allocator_new(&(CachingAllocatorOptions){.expandable = false, .streams = 2}, &arena);
    const int32_t a = caching_allocator_take(allocator, 40 * MIB, 0),
                  b = caching_allocator_take(allocator, 40 * MIB, 0);
    caching_allocator_give_back(allocator, a);
    caching_allocator_give_back(allocator, b);
    const int32_t both = caching_allocator_take(allocator, 80 * MIB, 0);
    cr_assert_eq(held(allocator), 160 * MIB);
    caching_allocator_give_back(allocator, both);
    caching_allocator_take(allocator, 40 * MIB, 1);
    cr_assert_eq(held(allocator), 200 * MIB);
    arena_free(&arena);
}

Test(caching_allocator, an_expandable_segment_grows_by_what_is_missing_at_its_end) {
    Arena arena = {0};
    CachingAllocator *allocator =
        caching_allocator_new(&(CachingAllocatorOptions){.expandable = true, .streams = 1}, &arena);
    const int32_t a = caching_allocator_take(allocator, 40 * MIB, 0),
                  b = caching_allocator_take(allocator, 40 * MIB, 0);
    caching_allocator_give_back(allocator, a);
    caching_allocator_give_back(allocator, b);
    caching_allocator_take(allocator, 100 * MIB, 0);
    cr_assert_eq(held(allocator), 100 * MIB);
    const int32_t c = caching_allocator_take(allocator, 30 * MIB, 0);
    caching_allocator_take(allocator, 20 * MIB, 0);  // half of it from the remainder of 40
    cr_assert_eq(held(allocator), 160 * MIB);
    caching_allocator_give_back(allocator, c);
    caching_allocator_take(allocator, 35 * MIB, 0);  // the hole is too small and not at the end
    cr_assert_eq(held(allocator), 200 * MIB);
    arena_free(&arena);
}

Test(caching_allocator, at_the_limit_free_segments_go_back_to_the_device) {
    Arena arena = {0};
    CachingAllocator *allocator =
        caching_allocator_new(&(CachingAllocatorOptions){.streams = 2, .limit_bytes = 100 * MIB}, &arena);
    caching_allocator_give_back(allocator, caching_allocator_take(allocator, 60 * MIB, 0));
    caching_allocator_take(allocator, 80 * MIB, 1);
    cr_assert_eq(held(allocator), 80 * MIB);
    caching_allocator_take(allocator, 30 * MIB, 0);  // nothing is free: more than there is
    cr_assert_eq(held(allocator), 110 * MIB);
    arena_free(&arena);
}

Test(caching_allocator, at_the_limit_free_pages_leave_holes_that_are_filled_again) {
    Arena arena = {0};
    CachingAllocator *allocator = caching_allocator_new(
        &(CachingAllocatorOptions){.expandable = true, .streams = 2, .limit_bytes = 120 * MIB}, &arena);
    const int32_t a = caching_allocator_take(allocator, 50 * MIB, 0);
    caching_allocator_take(allocator, 10 * MIB, 0);
    const int32_t b = caching_allocator_take(allocator, 40 * MIB, 0);
    caching_allocator_give_back(allocator, a);
    caching_allocator_give_back(allocator, b);
    cr_assert_eq(held(allocator), 100 * MIB);
    const int32_t other = caching_allocator_take(allocator, 80 * MIB, 1);  // two pages and two: 20 MiB are left
    cr_assert_eq(held(allocator), 100 * MIB);
    caching_allocator_give_back(allocator, other);
    caching_allocator_take(allocator, 50 * MIB, 0);  // where it was: two pages beside one, 60 MiB in all
    cr_assert_eq(held(allocator), 100 * MIB);
    caching_allocator_take(allocator, 60 * MIB, 1);
    cr_assert_eq(held(allocator), 120 * MIB);
    arena_free(&arena);
}

Test(caching_allocator, private_pools_keep_what_they_have) {
    Arena arena = {0};
    CachingAllocator *allocator = caching_allocator_new(
        &(CachingAllocatorOptions){.streams = 2, .private_streams = 1, .limit_bytes = 100 * MIB}, &arena);
    caching_allocator_give_back(allocator, caching_allocator_take(allocator, 60 * MIB, 1));
    caching_allocator_take(allocator, 60 * MIB, 0);
    cr_assert_eq(held(allocator), 120 * MIB);
    arena_free(&arena);
}
