// The few operations on trees.

#include "sim/frameworks/config_tree.h"

#include <string.h>

#include "sim/base/hash.h"

ConfigNode *config_node(Arena *arena, NodeKind kind, int line) {
    ConfigNode *node = ARENA_NEW(arena, ConfigNode);
    node->kind = kind;
    node->line = line;
    node->text = "";
    return node;
}

ConfigNode *config_scalar(Arena *arena, const char *key, const char *text, int line) {
    ConfigNode *node = config_node(arena, NODE_SCALAR, line);
    node->key = key;
    node->text = text;
    return node;
}

ConfigNode *config_copy(const ConfigNode *node, Arena *arena) {
    ConfigNode *made = config_node(arena, node->kind, node->line);
    made->key = node->key;
    made->text = node->text;
    made->of_run = node->of_run;
    made->option = node->option;
    for (const ConfigNode *child = node->first; child; child = child->next) {
        config_append(arena, made, config_copy(child, arena));
    }
    return made;
}

bool config_same(const ConfigNode *a, const ConfigNode *b) {
    if (a->kind != b->kind || (a->kind == NODE_SCALAR && strcmp(a->text, b->text) != 0)) {
        return false;
    }
    const ConfigNode *x = a->first, *y = b->first;
    for (; x && y; x = x->next, y = y->next) {
        const bool other_key = a->kind == NODE_MAP && x->key && y->key && strcmp(x->key, y->key) != 0;
        if (other_key || !config_same(x, y)) {
            return false;
        }
    }
    return !x && !y;
}

// Where the child of that name is, or would be.
static ConfigNode **slot_of(const ConfigNode *map, const char *key) {
    Hash hash = hash_begin();
    hash_text(&hash, key);
    size_t at = (size_t)hash_end(&hash);
    while (map->of_key[at &= map->slot_count - 1] && strcmp(map->of_key[at]->key, key) != 0) {
        at++;
    }
    return &map->of_key[at];
}

static void index_child(Arena *arena, ConfigNode *map, ConfigNode *child) {
    if (2 * map->child_count > map->slot_count) {
        map->slot_count = map->slot_count ? 2 * map->slot_count : 8;
        map->of_key = ARENA_ARRAY(arena, ConfigNode *, map->slot_count);
        for (ConfigNode *old = map->first; old; old = old->next) {
            *slot_of(map, old->key) = old;
        }
    }
    *slot_of(map, child->key) = child;
}

void config_append(Arena *arena, ConfigNode *parent, ConfigNode *child) {
    *(parent->last ? &parent->last->next : &parent->first) = child;
    parent->last = child;
    parent->child_count++;
    if (parent->kind == NODE_MAP) {
        index_child(arena, parent, child);
    }
}

ConfigNode *config_child(const ConfigNode *map, const char *key) {
    return map && map->slot_count > 0 ? *slot_of(map, key) : NULL;
}

void config_rename_keys(Arena *arena, ConfigNode *map, const char *(*rename)(const char *key, Arena *arena)) {
    if (!map || map->kind != NODE_MAP) {
        return;
    }
    ConfigNode *child = map->first;
    map->first = map->last = NULL;
    map->of_key = NULL;
    map->child_count = map->slot_count = 0;
    while (child) {
        ConfigNode *next = child->next;
        const char *name = rename(child->key, arena);
        child->key = name ? name : child->key;
        child->next = NULL;
        config_append(arena, map, child);
        child = next;
    }
}
