// The table of TrainPlan's fields other than the mesh. From a row follow the field's place in the plan's text, hash and
// canonical form, its command-line option with help and completion, its part of JSON, CSV, the store, the workers'
// request and run files, and whether the search tries its values. A new choice is its member and id in plan.h, a row
// here, and the pass or cost that reads it.

#pragma once

#include "sim/base/arena.h"
#include "sim/plan/plan.h"

// When the text names a field. Fields always present are required when the text is read back.
typedef enum { PLAN_PRINTED_UNLESS_USUAL, PLAN_PRINTED_ALWAYS, PLAN_PRINTED_WHERE_IT_MATTERS } PlanPrinted;

// Who decides when not given: the job (what the user said, else the target's own), the shape that it goes with, or
// the arithmetic of the batch.
typedef enum { PLAN_OF_JOB, PLAN_OF_SHAPE, PLAN_OF_BATCH } PlanScope;

// Commands that take the option besides those that search, predict or calibrate. OF_ONE_PLAN: none that searches, but
// those that explain or export a given plan. SAYS_WHAT: help lists it under what is trained, not under the choices.
enum { PLAN_OPTION_RUN = 1, PLAN_OPTION_PREFLIGHT = 2, PLAN_OPTION_OF_ONE_PLAN = 4, PLAN_OPTION_SAYS_WHAT = 8 };

typedef struct PlanOption {
    const char *name;      // without dashes: "micro-batch"
    const char *value;     // what help shows: "auto|none|selective|full", in an order that reads well; "auto|N"
    const char *unit;      // of a number; NULL
    const char *fallback;  // what it is when not given, as text
    const char *help;
    unsigned flags;  // PLAN_OPTION_...
} PlanOption;

typedef struct PlanField {
    const char *name;                        // "micro_batch": key in JSON and in the workers' request, column of CSV
    const char *key;                         // in the plan's text, where that is another word: "mb"; NULL
    const char *label;                       // in sentences: "micro-batch"
    size_t at;                               // of its int, enum or bool in TrainPlan
    bool is_bool;                            // of TrainPlan
    bool json_bool;                          // true and false in JSON, not its words
    const char *const *words;                // by value; NULL = a number
    bool is_set;                             // a value is a set of bits, its word those of its bits joined by '+'
    int no_bits;                             // then the value of the empty set; below it are words of their own
    int low, high;                           // of the value
    int usual;                               // where it does not matter; of numbers the least
    bool (*matters)(const TrainPlan *plan);  // given the fields above it; NULL = always
    PlanPrinted printed;
    bool hashed_always;  // as fields of the first stores are; the others where they are not at their usual value
    PlanScope scope;
    bool searched;  // the search tries every value that the target offers, when none is given
    bool fitted;    // the search takes the value that just fits in memory, when none is given
    PlanOption option;
    const char *column;     // of run files; NULL = they have none
    bool column_is_number;  // the value as a number, not its word
} PlanField;

enum { PLAN_ANY = -1 };  // for callers that ask for values: left to the search or the target

extern const PlanField plan_fields[PLAN_FIELD_COUNT];

static inline int plan_get(const TrainPlan *plan, PlanFieldId id) {
    const void *at = (const char *)plan + plan_fields[id].at;
    return plan_fields[id].is_bool ? *(const bool *)at : *(const int *)at;
}

static inline void plan_set(TrainPlan *plan, PlanFieldId id, int value) {
    void *at = (char *)plan + plan_fields[id].at;
    if (plan_fields[id].is_bool) {
        *(bool *)at = value != 0;
    } else {
        *(int *)at = value;
    }
}

// What reports tell: the value, PLAN_ANY of a field that is printed only where it matters, where it does not.
int plan_told(const TrainPlan *plan, PlanFieldId id);

// Its word in the plan's text.
const char *plan_field_key(PlanFieldId id);

static inline bool plan_field_matters(const TrainPlan *plan, PlanFieldId id) {
    return !plan_fields[id].matters || plan_fields[id].matters(plan);
}

// The value of a word, '-' and '_' alike; PLAN_ANY = not a value of the field.
int plan_field_value(PlanFieldId id, const char *word);

// What the field's option means where it is not given.
int plan_field_unsaid(PlanFieldId id);
void plan_fields_unsaid(int values[PLAN_FIELD_COUNT]);

// The value of a field as text: its word, or the number written into out.
enum { PLAN_VALUE_BYTES = 16 };
#define VALUE_BUFFER ((char[PLAN_VALUE_BYTES]){0})  // room for one text: lives as long as the block around it
const char *plan_value_text(PlanFieldId id, int value, char out[PLAN_VALUE_BYTES]);

// Why code that knows only these fields cannot take a plan: the first other one that is not at its usual value,
// "%s=%s: use %s=%s" after `whose` in the arena; NULL.
const char *plan_refuse_others(const TrainPlan *plan, uint64_t known, const char *whose, Arena *arena);

// Every field but those of the batch as bits, different for different plans; zero where `without` has it. Keys made
// without the same fields, and with the same additions, are comparable.
#define PLAN_BIT(id) ((uint64_t)1 << (id))
// What is recomputed.
#define PLAN_RECOMPUTE_CHOICES                                                                                         \
    (PLAN_BIT(PLAN_RECOMPUTE) | PLAN_BIT(PLAN_RECOMPUTE_UNIT) | PLAN_BIT(PLAN_RECOMPUTE_LAYERS) |                      \
     PLAN_BIT(PLAN_RECOMPUTE_EVERY) | PLAN_BIT(PLAN_RECOMPUTE_MODULES))
_Static_assert(PLAN_FIELD_COUNT <= 64, "a field is a bit of a word");
enum { PLAN_KEY_WORDS = 6, PLAN_KEY_WORD_BITS = 64 };
typedef struct PlanKey {
    uint64_t words[PLAN_KEY_WORDS];
    int used;  // bits, from the first word on
} PlanKey;
PlanKey plan_key(const TrainPlan *plan, uint64_t without);

// Ones where a key without nothing has these fields.
PlanKey plan_key_bits(uint64_t fields);

// Adds what else sets plans apart; value < 2^bits.
void plan_key_add(PlanKey *key, uint64_t value, int bits);

static inline bool plan_keys_equal(const PlanKey *a, const PlanKey *b) {
    uint64_t different = 0;
    for (int i = 0; i < PLAN_KEY_WORDS; i++) {
        different |= a->words[i] ^ b->words[i];
    }
    return different == 0;
}

// The first `count` fields as given, then all others as in the table: for what has had another order since before there
// was a table.
void plan_fields_from(const PlanFieldId *first, int count, PlanFieldId order[PLAN_FIELD_COUNT]);
