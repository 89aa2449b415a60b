// Compared whole: every second, reference and demand of two stretches is equal, so what is measured is, too.

#include "sim/analytic/block_memo.h"

#include <string.h>

enum { FIRST_BUCKETS = 1024 };

static uint64_t mixed(uint64_t hash, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);  // 2^64 / golden ratio (Knuth 6.4)
    return hash ^ hash >> 29;
}

static uint64_t code_hash(const BlockCode *code) {
    uint64_t hash = code->refs_hash;
    for (int32_t i = 0; i < code->count; i++) {
        hash = mixed(mixed(hash, code->steps[i].seconds), code->steps[i].host_s);
    }
    return hash;
}

static bool same_code(const BlockCode *a, const BlockCode *b) {
    _Static_assert(sizeof(BlockStep) == 24, "compared as bytes: no padding");
    if (a->before != b->before || a->count != b->count || a->joins != b->joins || a->ref_count != b->ref_count ||
        a->slot_count != b->slot_count || memcmp(a->steps, b->steps, (size_t)a->count * sizeof *a->steps) != 0 ||
        a->refs_hash != b->refs_hash || memcmp(a->refs, b->refs, (size_t)a->ref_count * sizeof *a->refs) != 0 ||
        memcmp(a->slot_lane, b->slot_lane, (size_t)a->slot_count) != 0) {
        return false;
    }
    for (int32_t i = 0; i < a->count; i++) {
        if (!share_demand_equal(&a->demands[i], &b->demands[i])) {
            return false;
        }
    }
    return true;
}

static void *copied(Arena *arena, const void *from, size_t bytes) {
    void *to = arena_array_uncleared(arena, bytes, 1);
    return bytes > 0 ? memcpy(to, from, bytes) : to;
}

static void put(BlockMemo *memo, KnownBlock *known) {
    KnownBlock **bucket = &memo->bucket[known->hash & (memo->buckets - 1)];
    known->next = *bucket;
    *bucket = known;
}

static void make_room(BlockMemo *memo) {
    const BlockMemo old = *memo;
    if (memo->count < memo->buckets) {
        return;
    }
    memo->buckets = old.buckets > 0 ? 4 * old.buckets : FIRST_BUCKETS;
    memo->bucket = ARENA_ARRAY(memo->arena, KnownBlock *, memo->buckets);
    for (uint64_t i = 0; i < old.buckets; i++) {
        for (KnownBlock *known = old.bucket[i], *next; known; known = next) {
            next = known->next;
            put(memo, known);
        }
    }
}

KnownBlock *block_memo_find(BlockMemo *memo, const BlockCode *code, Arena *scratch) {
    const uint64_t hash = code_hash(code);
    make_room(memo);
    for (KnownBlock *known = memo->bucket[hash & (memo->buckets - 1)]; known; known = known->next) {
        if (known->hash == hash && same_code(&known->code, code)) {
            return known;
        }
    }
    KnownBlock *made = ARENA_NEW(memo->arena, KnownBlock);
    *made = (KnownBlock){.code = *code, .hash = hash};
    const size_t count = (size_t)code->count, refs = (size_t)code->ref_count;
    made->code.steps = copied(memo->arena, code->steps, count * sizeof *code->steps);
    made->code.demands = copied(memo->arena, code->demands, count * sizeof *code->demands);
    made->code.refs = copied(memo->arena, code->refs, refs * sizeof *code->refs);
    made->code.slot_lane = copied(memo->arena, code->slot_lane, (size_t)code->slot_count);
    made->block = block_measure(code, scratch);
    put(memo, made);
    memo->count++;
    return made;
}

const FluidBlock *known_block_fluid(const BlockMemo *memo, KnownBlock *known, Arena *scratch) {
    if (!known->fluid.tasks) {
        known->fluid = fluid_of(&known->code, memo->arena, scratch);
    }
    return &known->fluid;
}
