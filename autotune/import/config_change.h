// The differences between two config files, and the first of them with one such change applied.

#pragma once

#include "sim/frameworks/config_tree.h"

typedef struct ConfigChange {
    const char *path;                  // "fsdp_config.fsdp_version"
    const ConfigNode *before, *after;  // NULL = the key is absent
} ConfigChange;

// The keys that differ, in the order of `after`, followed by those only in `before`; returns how many. A subtree
// present in only one of them is a single change.
int config_changes(const ConfigNode *before, const ConfigNode *after, Arena *arena, ConfigChange **changes);

// A new tree, copying maps as they were read; nothing in it is marked as used.
ConfigNode *config_with(const ConfigNode *root, const ConfigChange *change, Arena *arena);

// A scalar as written, or "[a, b]", "{..}"; "absent" for NULL.
const char *config_text(const ConfigNode *node, Arena *arena);
