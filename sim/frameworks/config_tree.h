// A config file as a tree, whatever its syntax: maps, lists and scalars, each with the line on which it stands. Reading
// code marks each node, so that unread nodes can be reported.

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
    bool alone;                       // an option of a command line without a value, whose text is "true"
    bool of_run;                      // what only a running script knows: text is how it is written, or it is a call
    const char *option;               // args.name: text is the default of that option of a script; NULL
    ConfigNode *first, *last, *next;  // children in the order of the file
    ConfigNode **of_key;              // of a map: the last child of each name, where its hash says
    size_t child_count, slot_count;   // slots: a power of two, at most half of them full
};

// The key of a launch script for what it starts: "train.py", "-m module" or "program verb".
#define SHELL_PROGRAM "runs"

// The last child of that name, as readers of such files take it; NULL. Does not mark.
ConfigNode *config_child(const ConfigNode *map, const char *key);

ConfigNode *config_node(Arena *arena, NodeKind kind, int line);
ConfigNode *config_scalar(Arena *arena, const char *key, const char *text, int line);
ConfigNode *config_copy(const ConfigNode *node, Arena *arena);  // nothing in it is marked

// Maps with the same keys in the same order; texts as they stand.
bool config_same(const ConfigNode *a, const ConfigNode *b);

// The keys of a map, each as `rename` would have it (NULL = as it is): what a framework does to them when it reads.
void config_rename_keys(Arena *arena, ConfigNode *map, const char *(*rename)(const char *key, Arena *arena));

// Appends after the existing children; into a map with its key.
void config_append(Arena *arena, ConfigNode *parent, ConfigNode *child);
