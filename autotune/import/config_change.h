// What differs between two config files, and the first of them with one such change made.

#pragma once

#include "sim/frameworks/config_tree.h"

typedef struct ConfigChange {
    const char *path;                  // "fsdp_config.fsdp_version"
    const ConfigNode *before, *after;  // NULL = the key is absent
} ConfigChange;

// The keys that differ, in the order of `after` and behind it what only `before` has; returns how many. What is in
// only one of them is one change, with everything below it.
int config_changes(const ConfigNode *before, const ConfigNode *after, Arena *arena, ConfigChange **changes);

// A new tree, of maps as they were read; nothing in it is marked.
ConfigNode *config_with(const ConfigNode *root, const ConfigChange *change, Arena *arena);

// A scalar as it stands, or "[a, b]", "{..}"; "absent" of NULL.
const char *config_text(const ConfigNode *node, Arena *arena);
