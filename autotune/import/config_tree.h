// A config file as a tree, whatever its syntax: maps, lists and scalars, each with the line on which it stands. Who
// reads a node marks it, so that what nobody read can be named.

#pragma once

#include <stdbool.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"

typedef enum { NODE_SCALAR, NODE_MAP, NODE_LIST } NodeKind;

typedef struct ConfigNode ConfigNode;
struct ConfigNode {
    NodeKind kind;
    const char *key;   // in its map; NULL in a list and at the root
    const char *text;  // of a scalar; "" for null
    int line;          // from 1; of the key where there is one
    bool used;
    ConfigNode *first, *last, *next;  // children in the order of the file
    ConfigNode **of_key;              // of a map: the last child of each name, where its hash says
    size_t child_count, slot_count;   // slots: a power of two, at most half of them full
};

typedef enum { SYNTAX_YAML, SYNTAX_JSON, SYNTAX_TOML } ConfigSyntax;

enum { CONFIG_MAX_BYTES = 4 << 20, CONFIG_MAX_DEPTH = 32 };

// ENVIRONMENT where the file cannot be read, USAGE with "path:line: " where it is malformed or no map. The syntax
// follows from the name, and where that says nothing from the first character.
Status config_load(const char *path, Arena *arena, ConfigNode **root, Error *error);
Status config_parse(const char *text, const char *path, ConfigSyntax syntax, Arena *arena, ConfigNode **root,
                    Error *error);

// The last child of that name, as readers of such files take it; NULL. Does not mark.
ConfigNode *config_child(const ConfigNode *map, const char *key);

// ---- for the parsers, a file per syntax

typedef struct ConfigSource {
    const char *text, *path;
    Arena *arena;
    Error *error;
} ConfigSource;

Status config_yaml(const ConfigSource *source, ConfigNode **root);
Status config_json(const ConfigSource *source, ConfigNode **root);
Status config_toml(const ConfigSource *source, ConfigNode **root);

ConfigNode *config_node(Arena *arena, NodeKind kind, int line);

// Behind the children that are there; into a map with its key.
void config_append(Arena *arena, ConfigNode *parent, ConfigNode *child);

Status config_malformed(const ConfigSource *source, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
