// Comparing trees: maps key by key, everything else as a whole.

#include "autotune/import/config_change.h"

#include <string.h>

typedef struct ChangeList {
    Arena *arena;
    ConfigChange *changes;
    int count;
    size_t capacity;
} ChangeList;

static const char *below(Arena *arena, const char *above, const char *key) {
    return above[0] ? arena_format(arena, "%s.%s", above, key) : key;
}

// The last of duplicate keys counts; "_comment" is the usual comment in JSON.
static bool is_compared(const ConfigNode *map, const ConfigNode *node) {
    return node->key && strcmp(node->key, "_comment") != 0 && config_child(map, node->key) == node;
}

static void compare(ChangeList *list, const ConfigNode *before, const ConfigNode *after, const char *above) {
    for (const ConfigNode *node = after->first; node; node = node->next) {
        const ConfigNode *old = is_compared(after, node) ? config_child(before, node->key) : node;
        if (old == node) {
            continue;
        }
        const char *path = below(list->arena, above, node->key);
        if (old && old->kind == NODE_MAP && node->kind == NODE_MAP) {
            compare(list, old, node, path);
        } else if (!old || !config_same(old, node)) {
            ARENA_PUSH(list->arena, list->changes, list->count, &list->capacity) = (ConfigChange){path, old, node};
        }
    }
    for (const ConfigNode *node = before->first; node; node = node->next) {
        if (is_compared(before, node) && !config_child(after, node->key)) {
            ARENA_PUSH(list->arena, list->changes, list->count, &list->capacity) =
                (ConfigChange){below(list->arena, above, node->key), node, NULL};
        }
    }
}

int config_changes(const ConfigNode *before, const ConfigNode *after, Arena *arena, ConfigChange **changes) {
    ChangeList list = {.arena = arena};
    compare(&list, before, after, "");
    *changes = list.changes;
    return list.count;
}

// The rest of the path below this map; `change` is at it or under it.
static ConfigNode *changed(const ConfigNode *map, const char *path, const ConfigChange *change, Arena *arena) {
    ConfigNode *made = config_node(arena, map->kind, map->line);
    made->key = map->key;
    made->text = map->text;
    const ConfigNode *target = change->before ? change->before : change->after;
    const bool here = strcmp(path, target->key) == 0;
    for (const ConfigNode *child = map->first; child; child = child->next) {
        const size_t length = child->key ? strlen(child->key) : 0;
        const bool above = !here && length > 0 && strncmp(path, child->key, length) == 0 && path[length] == '.';
        if (here && change->before && length > 0 && strcmp(child->key, path) == 0) {
            if (change->after && config_child(map, path) == child) {
                config_append(arena, made, config_copy(change->after, arena));
            }
        } else {
            config_append(arena, made,
                          above && child->kind == NODE_MAP ? changed(child, path + length + 1, change, arena)
                                                           : config_copy(child, arena));
        }
    }
    if (here && !change->before) {
        config_append(arena, made, config_copy(change->after, arena));
    }
    return made;
}

ConfigNode *config_with(const ConfigNode *root, const ConfigChange *change, Arena *arena) {
    return changed(root, change->path, change, arena);
}

const char *config_text(const ConfigNode *node, Arena *arena) {
    if (!node) {
        return "absent";
    }
    if (node->kind == NODE_SCALAR) {
        return node->text[0] ? node->text : "null";
    }
    const char *text = node->kind == NODE_LIST ? "[" : "{..}";
    for (const ConfigNode *child = node->first; node->kind == NODE_LIST && child; child = child->next) {
        text = arena_format(arena, "%s%s%s", text, child == node->first ? "" : ", ",
                            child->kind == NODE_SCALAR ? child->text : "{..}");
    }
    return node->kind == NODE_LIST ? arena_format(arena, "%s]", text) : text;
}
