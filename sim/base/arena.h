// Region allocator: everything variable-sized lives in an arena that the caller owns and frees at once.
// Allocation never fails visibly: on exhaustion the process ends with one sentence (STATUS_INTERNAL's exit code),
// because no caller could do better and every path stays free of checks.

#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
    ArenaBlock *head;   // current block; NULL when empty, so "Arena a = {0}" is ready for use
    size_t used_bytes;  // handed out since the last reset, padding included
} Arena;

// Zeroed memory, aligned to 16 bytes. bytes == 0 gives a valid unique pointer.
void *arena_alloc(Arena *arena, size_t bytes);

// Array of count elements, overflow-checked.
void *arena_array(Arena *arena, size_t count, size_t element_bytes);
#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_array((arena), (size_t)(count), sizeof(type)))

// What it holds is undefined: for arrays that are written whole before they are read.
void *arena_array_uncleared(Arena *arena, size_t count, size_t element_bytes);
#define ARENA_UNCLEARED(arena, type, count) ((type *)arena_array_uncleared((arena), (size_t)(count), sizeof(type)))

// Doubles an array that lives in the arena once count reaches *capacity; returns the (possibly moved) array.
void *arena_grow(Arena *arena, void *array, size_t count, size_t *capacity, size_t element_bytes);

// The same for large arrays of which every element is written whole when it is added.
void *arena_grow_uncleared(Arena *arena, void *array, size_t count, size_t *capacity, size_t element_bytes);

// One more element of such an array, to be assigned: ARENA_PUSH(arena, list->rows, list->count, &capacity) = row;
#define ARENA_PUSH(arena, array, count, capacity)                                                                      \
    (*((array) = arena_grow((arena), (array), (size_t)(count), (capacity), sizeof *(array)), &(array)[(count)++]))

// The array with another number of elements; nothing may point into the old one. What is added is undefined. A large
// array, which has a block to itself, leaves no copy behind.
void *arena_resize(Arena *arena, void *array, size_t count, size_t new_count, size_t element_bytes);

char *arena_text(Arena *arena, const char *text);  // copy
char *arena_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vformat(Arena *arena, const char *format, va_list values);

// Forgets every allocation but keeps the memory for reuse: no system call in a steady loop.
void arena_reset(Arena *arena);
void arena_free(Arena *arena);

// Moves everything that lives in `from` to `into`, addresses unchanged; `from` is then empty.
void arena_adopt(Arena *into, Arena *from);
