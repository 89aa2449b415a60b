// A buffer that is as large with few shards as with many is taken to be so at any micro-batch; of the others the bytes
// with few shards must be those that were seen.

#include "sim/analytic/shard_sizes.h"

#include <string.h>

typedef struct ShardSize {
    const char *name;
    int64_t few_bytes, many_bytes;
    struct ShardSize *next;
} ShardSize;

static unsigned bucket_of(const char *name) {
    unsigned sum = 0;
    for (const char *letter = name; *letter; letter++) {
        sum = sum * 31 + (unsigned char)*letter;
    }
    return sum % SHARD_SIZE_BUCKETS;
}

// Padding has a task of its own, and a shard in the place of its whole cuts that into cells.
bool shards_keep_structure(const StepProgram *program, int32_t shards) {
    bool kept = true;
    for (int32_t u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        const bool padded = unit->padded_elements > unit->elements;
        const int64_t of_unit = (int64_t)shards * unit->shards / program->units[0].shards;
        kept &= padded == (unit_padded(unit->elements, (int32_t)of_unit) > unit->elements);
    }
    for (int32_t i = 0; i < program->operand_count && kept; i++) {
        const int16_t group = program->operands[i].ref.rank_group;
        for (int32_t u = 0; u < program->unit_count; u++) {
            kept &= group != program->units[u].shard_group;
        }
    }
    return kept;
}

static ShardSize *size_of(const ShardSizes *sizes, const char *name) {
    ShardSize *size = sizes->bucket[bucket_of(name)];
    while (size && strcmp(size->name, name) != 0) {
        size = size->next;
    }
    return size;
}

Buffer *shard_sizes_find(const ShardSizes *sizes, const StepProgram *few, Arena *arena) {
    Buffer *buffers = ARENA_UNCLEARED(arena, Buffer, few->buffer_count);
    for (int32_t i = 0; i < few->buffer_count; i++) {
        buffers[i] = few->buffers[i];
        const ShardSize *size = size_of(sizes, buffers[i].name);
        const bool same = size && size->few_bytes == size->many_bytes;
        if (!size || (!same && size->few_bytes != buffers[i].bytes)) {
            return NULL;
        }
        buffers[i].bytes = same ? buffers[i].bytes : size->many_bytes;
        buffers[i].slot_bytes = step_slot_bytes(buffers[i].bytes);
    }
    return buffers;
}

void shard_sizes_add(ShardSizes *sizes, const StepProgram *few, const StepProgram *many, Arena *arena) {
    for (int32_t i = 0; i < few->buffer_count; i++) {
        const char *name = few->buffers[i].name;
        ShardSize *size = size_of(sizes, name);
        if (!size) {
            ShardSize **bucket = &sizes->bucket[bucket_of(name)];
            size = ARENA_NEW(arena, ShardSize);
            *size = (ShardSize){.name = arena_text(arena, name), .next = *bucket};
            *bucket = size;
        }
        size->few_bytes = few->buffers[i].bytes;
        size->many_bytes = many->buffers[i].bytes;
    }
}
