// The fields of a plan packed into few bits: what distinguishes two shapes, in one comparison.

#include "sim/plan/plan_fields.h"

static inline void key_add(PlanKey *key, uint64_t value, unsigned bits) {
    const unsigned used = (unsigned)key->used, free_bits = PLAN_KEY_WORD_BITS - used % PLAN_KEY_WORD_BITS;
    const unsigned at = bits <= free_bits ? used : used + free_bits;  // no value straddles two words
    ASSERT(at + bits <= PLAN_KEY_WORDS * PLAN_KEY_WORD_BITS);
    key->words[at / PLAN_KEY_WORD_BITS] |= value << at % PLAN_KEY_WORD_BITS;
    key->used = (int)(at + bits);
}

void plan_key_add(PlanKey *key, uint64_t value, int bits) {
    key_add(key, value, (unsigned)bits);
}

static unsigned bits_of(int id) {
    enum { INT_BITS = 32 };
    return INT_BITS - (unsigned)__builtin_clz((unsigned)plan_fields[id].high | 1);  // of the largest value
}

PlanKey plan_key(const TrainPlan *plan, uint64_t without) {
    PlanKey key = {.used = 0};
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope != PLAN_OF_BATCH && !(without & PLAN_BIT(id))) {
            key_add(&key, (uint64_t)plan_get(plan, (PlanFieldId)id), bits_of(id));
        }
    }
    return key;
}

PlanKey plan_key_bits(uint64_t fields) {
    PlanKey key = {.used = 0};
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope != PLAN_OF_BATCH) {
            key_add(&key, fields & PLAN_BIT(id) ? ((uint64_t)1 << bits_of(id)) - 1 : 0, bits_of(id));
        }
    }
    return key;
}
