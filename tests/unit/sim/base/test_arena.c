// The arena: allocations are zeroed, aligned and disjoint, and a steady loop makes no system allocation.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/base/arena.h"

Test(arena, memory_is_zeroed_even_when_a_block_is_used_again) {
    Arena arena = {0};
    memset(arena_alloc(&arena, 1000), 0xff, 1000);
    arena_reset(&arena);
    const unsigned char *again = arena_alloc(&arena, 1000);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(again[i], 0, "byte %d", i);
    }
    arena_free(&arena);
}

Test(arena, every_size_is_aligned_to_16_bytes) {
    Arena arena = {0};
    for (size_t bytes = 0; bytes < 100; bytes++) {
        cr_assert_eq((uintptr_t)arena_alloc(&arena, bytes) % 16, 0, "%zu bytes", bytes);
    }
    arena_free(&arena);
}

Test(arena, zero_bytes_give_pointers_of_their_own) {
    Arena arena = {0};
    const void *first = arena_alloc(&arena, 0);
    const void *second = arena_alloc(&arena, 0);
    cr_assert_not_null(first);
    cr_assert_neq(first, second);
    arena_free(&arena);
}

Test(arena, allocations_do_not_overlap) {
    Arena arena = {0};
    enum { COUNT = 500, BYTES = 777 };
    unsigned char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = arena_alloc(&arena, BYTES);
        memset(blocks[i], i & 0xff, BYTES);
    }
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(blocks[i][0], i & 0xff);
        cr_assert_eq(blocks[i][BYTES - 1], i & 0xff);
    }
    arena_free(&arena);
}

Test(arena, one_allocation_may_be_larger_than_any_block) {
    Arena arena = {0};
    const size_t bytes = (size_t)40 << 20;
    unsigned char *memory = arena_alloc(&arena, bytes);
    memory[bytes - 1] = 1;
    cr_assert_geq(arena.used_bytes, bytes);
    arena_free(&arena);
}

// Through sizes that share a block and such that have one to themselves, of which no second one is kept.
Test(arena, an_array_keeps_what_it_holds_at_any_size) {
    Arena arena = {0};
    size_t count = 0;
    int *array = NULL;
    for (size_t more = 1; more <= (size_t)16 << 20; more *= 4) {
        array = arena_resize(&arena, array, count, more, sizeof *array);
        arena_alloc(&arena, 100);  // which is in the way of growing
        for (size_t i = count; i < more; i++) {
            array[i] = (int)i;
        }
        count = more;
    }
    array = arena_resize(&arena, array, count, count - 1000, sizeof *array);
    for (size_t i = 0; i < count - 1000; i++) {
        cr_assert_eq(array[i], (int)i);
    }
    cr_assert_lt(arena.used_bytes, (count + count / 2) * sizeof *array, "a large one is not there twice");
    arena_free(&arena);
}

Test(arena, a_reset_keeps_the_largest_block_so_a_steady_loop_stays_in_it) {
    Arena arena = {0};
    for (int i = 0; i < 100; i++) {
        arena_alloc(&arena, 5000);
    }
    arena_reset(&arena);
    const ArenaBlock *kept = arena.head;
    cr_assert_not_null(kept);
    cr_assert_eq(arena.used_bytes, 0);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 20; i++) {
            arena_alloc(&arena, 5000);
        }
        cr_assert_eq(arena.head, kept, "round %d took another block", round);
        arena_reset(&arena);
    }
    arena_free(&arena);
}

Test(arena, freeing_leaves_an_arena_ready_for_use) {
    Arena arena = {0};
    arena_alloc(&arena, 10);
    arena_free(&arena);
    cr_assert_null(arena.head);
    cr_assert_eq(arena.used_bytes, 0);
    cr_assert_not_null(arena_alloc(&arena, 10));
    arena_free(&arena);
}

Test(arena, growing_keeps_the_entries) {
    Arena arena = {0};
    int *numbers = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        numbers = arena_grow(&arena, numbers, (size_t)i, &capacity, sizeof *numbers);
        numbers[i] = i;
    }
    cr_assert_geq(capacity, 1000);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(numbers[i], i);
    }
    arena_free(&arena);
}

Test(arena, growing_moves_nothing_while_there_is_room) {
    Arena arena = {0};
    size_t capacity = 0;
    int *numbers = arena_grow(&arena, NULL, 0, &capacity, sizeof *numbers);
    cr_assert_eq(arena_grow(&arena, numbers, capacity - 1, &capacity, sizeof *numbers), numbers);
    arena_free(&arena);
}

Test(arena, what_is_adopted_stays_at_its_address_and_lives_with_the_new_owner) {
    Arena into = {0}, from = {0};
    char *first = arena_text(&into, "first");
    char *large = arena_alloc(&from, 1 << 20);
    char *text = arena_text(&from, "second");
    large[1000] = 'x';
    const size_t bytes = into.used_bytes + from.used_bytes;
    arena_adopt(&into, &from);
    cr_assert_null(from.head);
    cr_assert_eq(from.used_bytes, 0);
    cr_assert_eq(into.used_bytes, bytes);
    arena_text(&into, "third");
    cr_assert_str_eq(first, "first");
    cr_assert_str_eq(text, "second");
    cr_assert_eq(large[1000], 'x');
    arena_free(&into);
}

Test(arena, an_empty_arena_adopts_and_is_adopted) {
    Arena into = {0}, from = {0}, empty = {0};
    char *text = arena_text(&from, "word");
    arena_adopt(&into, &from);
    arena_adopt(&into, &empty);
    cr_assert_str_eq(text, "word");
    arena_free(&into);
}

Test(arena, formatted_text_of_any_length_is_whole) {
    Arena arena = {0};
    char long_word[5000];
    memset(long_word, 'x', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    const char *text = arena_format(&arena, "<%s>%d", long_word, 7);
    cr_assert_eq(strlen(text), sizeof long_word - 1 + 3);
    cr_assert_str_eq(text + strlen(text) - 3, "x>7");
    arena_free(&arena);
}

Test(arena, an_impossible_array_ends_the_process_with_the_internal_exit_code, .exit_code = 4) {
    Arena arena = {0};
    arena_array(&arena, SIZE_MAX / 4, 8);
}
