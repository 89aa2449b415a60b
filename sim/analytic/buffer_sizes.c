// A buffer that is as large in both is taken to be so whatever the size of the rest; of the others the bytes must be
// those that were seen.

#include "sim/analytic/buffer_sizes.h"

#include <string.h>

typedef struct BufferSize {
    const char *name;
    int64_t bytes, neighbour_bytes;
    struct BufferSize *next;
} BufferSize;

static unsigned bucket_of(const char *name) {
    unsigned sum = 0;
    for (const char *letter = name; *letter; letter++) {
        sum = sum * 31 + (unsigned char)*letter;
    }
    return sum % BUFFER_SIZE_BUCKETS;
}

static BufferSize *size_of(const BufferSizes *sizes, const char *name) {
    BufferSize *size = sizes->bucket[bucket_of(name)];
    while (size && strcmp(size->name, name) != 0) {
        size = size->next;
    }
    return size;
}

Buffer *buffer_sizes_find(const BufferSizes *sizes, const StepProgram *program, Arena *arena) {
    Buffer *buffers = ARENA_UNCLEARED(arena, Buffer, program->buffer_count);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        buffers[i] = program->buffers[i];
        const BufferSize *size = size_of(sizes, buffers[i].name);
        const bool same = size && size->bytes == size->neighbour_bytes;
        if (!size || (!same && size->bytes != buffers[i].bytes)) {
            return NULL;
        }
        buffers[i].bytes = same ? buffers[i].bytes : size->neighbour_bytes;
        buffers[i].slot_bytes = step_slot_bytes(buffers[i].bytes);
    }
    return buffers;
}

void buffer_sizes_add(BufferSizes *sizes, const Buffer *buffers, const StepProgram *neighbour, Arena *arena) {
    for (int32_t i = 0; i < neighbour->buffer_count; i++) {
        const char *name = buffers[i].name;
        BufferSize *size = size_of(sizes, name);
        if (!size) {
            BufferSize **bucket = &sizes->bucket[bucket_of(name)];
            size = ARENA_NEW(arena, BufferSize);
            *size = (BufferSize){.name = arena_text(arena, name), .next = *bucket};
            *bucket = size;
        }
        size->bytes = buffers[i].bytes;
        size->neighbour_bytes = neighbour->buffers[i].bytes;
    }
}
