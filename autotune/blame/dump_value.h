// What a dump holds, in either format: none, booleans, numbers, texts, lists (Python's tuples too) and dictionaries.
// All of it lives in the reader's arena. A list may contain itself: readers look up what they know and go no deeper.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"

typedef enum { DUMP_NONE, DUMP_BOOL, DUMP_INT, DUMP_FLOAT, DUMP_TEXT, DUMP_LIST, DUMP_DICT } DumpType;

typedef struct DumpValue {
    DumpType type;
    bool truth;
    int64_t integer;
    double number;
    const char *text;  // count bytes, then a terminating zero
    struct DumpValue **items;
    size_t count, capacity;  // of items; a dictionary alternates keys and values
} DumpValue;

// Dictionary lookup; NULL where the key is absent or the value is not a dictionary. The last of equal keys counts.
const DumpValue *dump_value_of(const DumpValue *dict, const char *key);

// With a fallback where the key is absent or the value has another type.
int64_t dump_integer_or(const DumpValue *dict, const char *key, int64_t fallback);
double dump_number_or(const DumpValue *dict, const char *key, double fallback);
bool dump_truth_or(const DumpValue *dict, const char *key, bool fallback);
// Copied to the arena, with terminal control characters made visible.
const char *dump_text_or(const DumpValue *dict, const char *key, const char *fallback, Arena *arena);
const char *dump_value_text(const DumpValue *value, Arena *arena);  // NULL where it is not a text

void dump_value_append(DumpValue *list, DumpValue *item, Arena *arena);

enum { DUMP_MAX_FILE_BYTES = 64 << 20 };  // 2000 entries with stacks are about 2 MB; as JSON_MAX_FILE_BYTES

// A pickle of protocols 0 to 5 with such values only. It is interpreted here: an opcode that would import, call or
// build anything is refused, with its offset.
Status dump_read_pickle(const uint8_t *bytes, size_t size, Arena *arena, const DumpValue **root, Error *error);

// A pickle or JSON, detected from the file.
Status dump_read_file(const char *path, Arena *arena, const DumpValue **root, Error *error);
