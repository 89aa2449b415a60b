// What a dump holds, whichever form it has: none, booleans, numbers, texts, lists (Python's tuples too) and
// dictionaries. All of it lives in the arena of whoever read it. A list may hold itself: readers ask for what they know
// and no deeper.

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
    const char *text;  // as many bytes as count, and a zero behind them
    struct DumpValue **items;
    size_t count, capacity;  // of items; of a dictionary keys and values in turn
} DumpValue;

// Of a dictionary; NULL where it has no such key, or the value is no dictionary. The last of equal keys counts.
const DumpValue *dump_value_of(const DumpValue *dict, const char *key);

// With a fallback where the key is absent or the value of another type.
int64_t dump_integer_or(const DumpValue *dict, const char *key, int64_t fallback);
double dump_number_or(const DumpValue *dict, const char *key, double fallback);
bool dump_truth_or(const DumpValue *dict, const char *key, bool fallback);
// In the arena, with what would steer a terminal made visible.
const char *dump_text_or(const DumpValue *dict, const char *key, const char *fallback, Arena *arena);
const char *dump_value_text(const DumpValue *value, Arena *arena);  // NULL where it is no text

void dump_value_append(DumpValue *list, DumpValue *item, Arena *arena);

enum { DUMP_MAX_FILE_BYTES = 64 << 20 };  // 2000 entries with stacks are some 2 MB; as JSON_MAX_FILE_BYTES

// A pickle of protocols 0 to 5 of such values only. It is interpreted here: an opcode that would import, call or build
// anything is refused, with its offset.
Status dump_read_pickle(const uint8_t *bytes, size_t size, Arena *arena, const DumpValue **root, Error *error);

// A pickle or JSON, whichever the file is.
Status dump_read_file(const char *path, Arena *arena, const DumpValue **root, Error *error);
