// Where in a file a change goes: the words of ImportKeys name keys, "a_{b,c}_size, d.e" or within a sentence; each is
// matched against the end of the file's key paths.

#include <ctype.h>
#include <string.h>

#include "autotune/import/import.h"

static bool ends_path(const char *path, const char *name) {
    const size_t length = strlen(path), tail = strlen(name);
    return length >= tail && strcmp(path + length - tail, name) == 0 &&
           (length == tail || path[length - tail - 1] == '.');
}

static void take(ImportPlace *place, const char *path, int line) {
    if (!place->key) {
        *place = (ImportPlace){path, line, line};
    }
    place->first = line < place->first ? line : place->first;
    place->last = line > place->last ? line : place->last;
}

static void find_key(Arena *arena, const ConfigNode *map, const char *above, const char *name, ImportPlace *place) {
    for (const ConfigNode *node = map->first; node; node = node->next) {
        if (node->key) {
            const char *path = arena_format(arena, "%s%s%s", above, above[0] ? "." : "", node->key);
            if (ends_path(path, name)) {
                take(place, path, node->line);
            } else if (node->kind == NODE_MAP) {
                find_key(arena, node, path, name, place);
            }
        }
    }
}

// A word of the sentence; "a_{b,c}_size" is two names.
static void find_names(const Import *import, const char *word, ImportPlace *place) {
    const char *open = strchr(word, '{'), *close = open ? strchr(open, '}') : NULL;
    if (!close) {
        find_key(import->arena, import->root, "", word, place);
        return;
    }
    for (const char *part = open + 1; part < close; part += strcspn(part, ",}") + 1) {
        find_key(import->arena, import->root, "",
                 arena_format(import->arena, "%.*s%.*s%s", (int)(open - word), word, (int)strcspn(part, ",}"), part,
                              close + 1),
                 place);
    }
}

ImportPlace import_place_of(const Import *import, AdviceKind kind) {
    const char *at = import_key_of(import, kind);
    ImportPlace place = {0};
    while (at && *at) {
        size_t length = 0;
        for (bool inside = false;
             at[length] && (inside || isalnum((unsigned char)at[length]) || strchr("_-.{", at[length])); length++) {
            inside = at[length] == '{' || (inside && at[length] != '}');
        }
        if (length > 0) {
            find_names(import, arena_format(import->arena, "%.*s", (int)length, at), &place);
        }
        at += length > 0 ? length : 1;
    }
    return place;
}
