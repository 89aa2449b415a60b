// Region allocator: a list of blocks, the newest first; an allocation bumps a pointer in the head block. Memory is
// zeroed when it is handed out (unless asked for uncleared), so a block that is used after a reset needs no sweep.
// A reset joins the blocks into one: after the first rounds a steady loop allocates nothing from the system. Does not
// model alignment above 16 bytes.

#include "sim/base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/error.h"

enum { ARENA_ALIGN_BYTES = 16, ARENA_FIRST_BLOCK_BYTES = 16 << 10, ARENA_MAX_STEP_BYTES = 16 << 20 };

struct ArenaBlock {
    ArenaBlock *next;
    size_t capacity_bytes;
    size_t used_bytes;
    alignas(ARENA_ALIGN_BYTES) unsigned char data[];
};

static _Noreturn void arena_exhausted(size_t bytes) {
    fprintf(stderr, "ndtune: out of memory: %zu bytes more were needed\n", bytes);
    exit(status_exit_code(STATUS_INTERNAL));
}

// Room for at least `bytes`; block sizes double so that the number of blocks stays logarithmic.
static ArenaBlock *block_add(Arena *arena, size_t bytes) {
    size_t capacity = arena->head ? 2 * arena->head->capacity_bytes : ARENA_FIRST_BLOCK_BYTES;
    capacity = capacity > ARENA_MAX_STEP_BYTES ? ARENA_MAX_STEP_BYTES : capacity;
    capacity = capacity < bytes ? bytes : capacity;
    if (capacity > SIZE_MAX - sizeof(ArenaBlock)) {
        arena_exhausted(bytes);
    }
    ArenaBlock *block = malloc(sizeof(ArenaBlock) + capacity);
    if (!block) {
        arena_exhausted(bytes);
    }
    block->next = arena->head;
    block->capacity_bytes = capacity;
    block->used_bytes = 0;
    arena->head = block;
    return block;
}

static size_t padded_to_align(size_t bytes) {
    if (bytes > SIZE_MAX - ARENA_ALIGN_BYTES) {
        arena_exhausted(bytes);
    }
    const size_t wanted = bytes == 0 ? 1 : bytes;
    return (wanted + ARENA_ALIGN_BYTES - 1) / ARENA_ALIGN_BYTES * ARENA_ALIGN_BYTES;
}

static void *take(Arena *arena, size_t bytes, bool clear) {
    const size_t padded = padded_to_align(bytes);
    ArenaBlock *block = arena->head;
    if (!block || block->capacity_bytes - block->used_bytes < padded) {
        block = block_add(arena, padded);
    }
    void *memory = block->data + block->used_bytes;
    block->used_bytes += padded;
    arena->used_bytes += padded;
    return clear ? memset(memory, 0, padded) : memory;
}

static size_t array_bytes(size_t count, size_t element_bytes) {
    if (element_bytes != 0 && count > SIZE_MAX / element_bytes) {
        arena_exhausted(SIZE_MAX);
    }
    return count * element_bytes;
}

static void *take_array(Arena *arena, size_t count, size_t element_bytes, bool clear) {
    return take(arena, array_bytes(count, element_bytes), clear);
}

void *arena_alloc(Arena *arena, size_t bytes) {
    return take(arena, bytes, true);
}

void *arena_array(Arena *arena, size_t count, size_t element_bytes) {
    return take_array(arena, count, element_bytes, true);
}

void *arena_array_uncleared(Arena *arena, size_t count, size_t element_bytes) {
    return take_array(arena, count, element_bytes, false);
}

static void *doubled(Arena *arena, const void *array, size_t *capacity, size_t element_bytes, bool clear) {
    const size_t first = 16;  // entries of a fresh array
    if (*capacity > SIZE_MAX / 2) {
        arena_exhausted(SIZE_MAX);
    }
    const size_t grown = *capacity == 0 ? first : 2 * *capacity;
    unsigned char *larger = arena_array_uncleared(arena, grown, element_bytes);
    const size_t known_bytes = *capacity * element_bytes;
    if (known_bytes > 0) {
        memcpy(larger, array, known_bytes);
    }
    if (clear) {
        memset(larger + known_bytes, 0, grown * element_bytes - known_bytes);
    }
    *capacity = grown;
    return larger;
}

void *arena_grow(Arena *arena, void *array, size_t count, size_t *capacity, size_t element_bytes) {
    return count < *capacity ? array : doubled(arena, array, capacity, element_bytes, true);
}

void *arena_grow_uncleared(Arena *arena, void *array, size_t count, size_t *capacity, size_t element_bytes) {
    return count < *capacity ? array : doubled(arena, array, capacity, element_bytes, false);
}

// Where the block that holds nothing else is linked; NULL = there is none.
static ArenaBlock **own_block(Arena *arena, const void *array, size_t padded) {
    ArenaBlock **at = &arena->head;
    while (*at && (array != (*at)->data || (*at)->used_bytes != padded)) {
        at = &(*at)->next;
    }
    return *at ? at : NULL;
}

// The system moves large blocks by their pages.
static void *resize_block(Arena *arena, ArenaBlock **at, size_t padded) {
    ArenaBlock *block = realloc(*at, sizeof(ArenaBlock) + padded);
    if (!block) {
        arena_exhausted(padded);
    }
    arena->used_bytes += padded - block->used_bytes;
    block->capacity_bytes = block->used_bytes = padded;
    *at = block;
    return block->data;
}

void *arena_resize(Arena *arena, void *array, size_t count, size_t new_count, size_t element_bytes) {
    const size_t bytes = array_bytes(count, element_bytes), new_bytes = array_bytes(new_count, element_bytes);
    ArenaBlock **own = array ? own_block(arena, array, padded_to_align(bytes)) : NULL;
    if (own && new_bytes >= ARENA_MAX_STEP_BYTES) {
        return resize_block(arena, own, padded_to_align(new_bytes));
    }
    if (array && new_bytes <= bytes) {
        return array;
    }
    void *moved = take(arena, new_bytes, false);
    return bytes > 0 ? memcpy(moved, array, bytes) : moved;
}

char *arena_text(Arena *arena, const char *text) {
    const size_t bytes = strlen(text) + 1;
    return memcpy(arena_alloc(arena, bytes), text, bytes);
}

// Into the room that is left; only what is too long for it is formatted twice.
char *arena_vformat(Arena *arena, const char *format, va_list values) {
    const ArenaBlock *block = arena->head;
    const size_t room = block ? block->capacity_bytes - block->used_bytes : 0;
    va_list again;
    va_copy(again, values);
    const int length = vsnprintf(room > 0 ? (char *)arena->head->data + block->used_bytes : NULL, room, format, values);
    ASSERT(length >= 0);
    char *text = take(arena, (size_t)length + 1, false);
    if ((size_t)length >= room || arena->head != block) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    return text;
}

char *arena_format(Arena *arena, const char *format, ...) {
    va_list values;
    va_start(values, format);
    char *text = arena_vformat(arena, format, values);
    va_end(values);
    return text;
}

static void blocks_free(ArenaBlock *block) {
    while (block) {
        ArenaBlock *next = block->next;
        free(block);
        block = next;
    }
}

// Several blocks become one of their joint size, so that the next round of the same work fits without a system call.
void arena_reset(Arena *arena) {
    size_t capacity = 0;
    for (const ArenaBlock *block = arena->head; block; block = block->next) {
        capacity += block->capacity_bytes;
    }
    if (arena->head && arena->head->next) {
        blocks_free(arena->head);
        arena->head = NULL;
        block_add(arena, capacity);
    }
    if (arena->head) {
        arena->head->used_bytes = 0;
    }
    arena->used_bytes = 0;
}

void arena_free(Arena *arena) {
    blocks_free(arena->head);
    *arena = (Arena){0};
}

void arena_adopt(Arena *into, Arena *from) {
    ArenaBlock *last = from->head;
    while (last && last->next) {
        last = last->next;
    }
    if (last && into->head) {  // after the head, whose room is still handed out
        last->next = into->head->next;
        into->head->next = from->head;
    } else if (last) {
        into->head = from->head;
    }
    into->used_bytes += from->used_bytes;
    *from = (Arena){0};
}
