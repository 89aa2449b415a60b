// A buffer that is as large in both is taken to be so whatever the size of the rest; of the others the bytes must be
// those that were seen.

#include "sim/analytic/buffer_sizes.h"

#include <string.h>

typedef struct BufferSize {
    int64_t bytes, neighbour_bytes;
} BufferSize;

// The name itself; names that do not fit stay unknown.
static bool key_of(const char *name, MemoKey *key) {
    const size_t length = strlen(name);
    *key = (MemoKey){{0}};
    if (length > sizeof key->words) {
        return false;
    }
    memcpy(key->words, name, length);
    return true;
}

Buffer *buffer_sizes_find(const Memo *sizes, const StepProgram *program, Arena *arena) {
    Buffer *buffers = ARENA_UNCLEARED(arena, Buffer, program->buffer_count);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        buffers[i] = program->buffers[i];
        MemoKey key;
        const BufferSize *size = key_of(buffers[i].name, &key) ? memo_find(sizes, &key) : NULL;
        const bool same = size && size->bytes == size->neighbour_bytes;
        if (!size || (!same && size->bytes != buffers[i].bytes)) {
            return NULL;
        }
        buffers[i].bytes = same ? buffers[i].bytes : size->neighbour_bytes;
        buffers[i].slot_bytes = step_slot_bytes(buffers[i].bytes);
    }
    return buffers;
}

void buffer_sizes_add(Memo *sizes, const Buffer *buffers, const StepProgram *neighbour, Arena *arena) {
    for (int32_t i = 0; i < neighbour->buffer_count; i++) {
        MemoKey key;
        if (!key_of(buffers[i].name, &key)) {
            continue;
        }
        BufferSize *size = memo_find(sizes, &key);
        if (!size) {
            size = ARENA_NEW(arena, BufferSize);
            memo_add(sizes, &key, size, arena);
        }
        *size = (BufferSize){buffers[i].bytes, neighbour->buffers[i].bytes};
    }
}
