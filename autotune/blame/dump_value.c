// Lookups in a dump's values.

#include "autotune/blame/dump_value.h"

#include <string.h>

#include "sim/base/escape.h"

static bool is_text(const DumpValue *value, const char *text) {
    return value->type == DUMP_TEXT && strcmp(value->text, text) == 0;
}

const DumpValue *dump_value_of(const DumpValue *dict, const char *key) {
    if (!dict || dict->type != DUMP_DICT) {
        return NULL;
    }
    for (size_t at = dict->count; at >= 2; at -= 2) {
        if (is_text(dict->items[at - 2], key)) {
            return dict->items[at - 1];
        }
    }
    return NULL;
}

int64_t dump_integer_or(const DumpValue *dict, const char *key, int64_t fallback) {
    const DumpValue *value = dump_value_of(dict, key);
    return value && value->type == DUMP_INT ? value->integer : fallback;
}

double dump_number_or(const DumpValue *dict, const char *key, double fallback) {
    const DumpValue *value = dump_value_of(dict, key);
    return !value                      ? fallback
           : value->type == DUMP_FLOAT ? value->number
           : value->type == DUMP_INT   ? (double)value->integer
                                       : fallback;
}

bool dump_truth_or(const DumpValue *dict, const char *key, bool fallback) {
    const DumpValue *value = dump_value_of(dict, key);
    return value && value->type == DUMP_BOOL ? value->truth : fallback;
}

const char *dump_value_text(const DumpValue *value, Arena *arena) {
    return value && value->type == DUMP_TEXT ? escape_line_text(value->text, arena) : NULL;
}

const char *dump_text_or(const DumpValue *dict, const char *key, const char *fallback, Arena *arena) {
    const char *text = dump_value_text(dump_value_of(dict, key), arena);
    return text ? text : fallback;
}

void dump_value_append(DumpValue *list, DumpValue *item, Arena *arena) {
    ARENA_PUSH(arena, list->items, list->count, &list->capacity) = item;
}
