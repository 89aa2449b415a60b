// The rules of layers.txt and their check against the #include lines of one file.

#pragma once

#include "tests/tidy/tree.h"

enum { LAYER_ROWS = 128, LAYER_WORDS = 24 };

typedef struct LayerRow {
    const char *name;                // a folder, or a foreign header in angle brackets
    const char *words[LAYER_WORDS];  // NULL-terminated
} LayerRow;

typedef struct LayerRules {
    char *text;  // what the rows point into
    LayerRow rows[LAYER_ROWS];
    int row_count;
} LayerRules;

// Parses the text of layers.txt; malformed lines are complaints.
LayerRules layer_rules_parse(const char *text, Complaints *complaints);
void layer_rules_free(LayerRules *rules);

// Complains about every #include of the file that the rules do not allow: "path:line: layer may not include target".
void layer_rules_check(const LayerRules *rules, const char *path, const char *text, Complaints *complaints);
