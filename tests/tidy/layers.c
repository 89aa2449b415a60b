// Reads layers.txt and checks #include lines. A folder belongs to the longest listed folder above it.

#include "tests/tidy/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void parse_row(LayerRules *rules, char *line, int number, Complaints *complaints) {
    char *bar = strchr(line, '|');
    if (!bar || rules->row_count == LAYER_ROWS) {
        complain(complaints, "layers.txt:%d: %s", number, bar ? "too many rows" : "a row needs a |");
        return;
    }
    *bar = '\0';
    LayerRow *row = &rules->rows[rules->row_count++];
    char *rest = NULL;
    row->name = strtok_r(line, " ", &rest);
    int count = 0;
    char *words_rest = NULL;
    for (char *word = strtok_r(bar + 1, " ", &words_rest); word; word = strtok_r(NULL, " ", &words_rest)) {
        if (count == LAYER_WORDS - 1) {
            complain(complaints, "layers.txt:%d: more than %d words", number, LAYER_WORDS - 1);
            return;
        }
        row->words[count++] = word;
    }
}

LayerRules layer_rules_parse(const char *text, Complaints *complaints) {
    LayerRules rules = {.text = strdup(text)};
    char *rest = rules.text;
    for (int number = 1; rest; number++) {
        char *line = rest;
        rest = strchr(line, '\n');
        if (rest) {
            *rest++ = '\0';
        }
        if (*line != '#' && *line != '\0') {
            parse_row(&rules, line, number, complaints);
        }
    }
    return rules;
}

void layer_rules_free(LayerRules *rules) {
    free(rules->text);
    *rules = (LayerRules){0};
}

// The row of the longest listed folder that holds path; NULL when none does.
static const LayerRow *layer_of(const LayerRules *rules, const char *path) {
    const LayerRow *best = NULL;
    for (int i = 0; i < rules->row_count; i++) {
        const LayerRow *row = &rules->rows[i];
        if (path_is_below(path, row->name) && (!best || strlen(row->name) > strlen(best->name))) {
            best = row;
        }
    }
    return best;
}

// "sim/*" matches whatever begins with "sim/"; other words match themselves.
static bool word_matches(const char *word, const char *name) {
    const size_t length = strlen(word);
    if (length > 0 && word[length - 1] == '*') {
        return strncmp(word, name, length - 1) == 0;
    }
    return strcmp(word, name) == 0;
}

static bool may_include(const LayerRow *from, const LayerRow *to, const char *target) {
    for (const char *const *word = from->words; *word; word++) {
        if (word_matches(*word, to->name) || strcmp(*word, target) == 0) {
            return true;
        }
    }
    return from == to;
}

static void check_quoted(const LayerRules *rules, const char *where, const char *path, const char *target,
                         Complaints *complaints) {
    const LayerRow *from = layer_of(rules, path);
    const LayerRow *to = layer_of(rules, target);
    if (!from) {
        complain(complaints, "%s: this folder is not in layers.txt", where);
    } else if (!to) {
        complain(complaints, "%s: \"%s\" is not written from the repository root", where, target);
    } else if (!may_include(from, to, target)) {
        complain(complaints, "%s: %s may not include \"%s\"", where, from->name, target);
    } else if (strstr(target, "_internal.h")) {
        const char *name = path_name(target);
        const bool same_folder =
            path_name(path) - path == name - target && strncmp(path, target, (size_t)(name - target)) == 0;
        if (!same_folder && !path_is_below(path, "tests")) {
            complain(complaints, "%s: \"%s\" belongs to its own folder", where, target);
        }
    }
}

// The row of a foreign header: "<gsl/*>" holds for <gsl/gsl_fit.h>.
static const LayerRow *foreign_row(const LayerRules *rules, const char *header) {
    for (int i = 0; i < rules->row_count; i++) {
        const char *name = rules->rows[i].name;
        const size_t length = strlen(name);
        if (name[0] != '<') {
            continue;
        }
        const bool is_folder = length > 3 && strcmp(name + length - 2, "*>") == 0;
        const size_t compared = is_folder ? length - 3 : length - 2;
        if (strncmp(name + 1, header, compared) == 0 && (is_folder || header[compared] == '\0')) {
            return &rules->rows[i];
        }
    }
    return NULL;
}

static void check_foreign(const LayerRules *rules, const char *where, const char *path, const char *header,
                          Complaints *complaints) {
    const LayerRow *row = foreign_row(rules, header);
    if (!row) {
        complain(complaints, "%s: <%s> is not in layers.txt", where, header);
        return;
    }
    for (const char *const *word = row->words; *word; word++) {
        if (strcmp(*word, "*") == 0 || path_is_below(path, *word)) {
            return;
        }
    }
    complain(complaints, "%s: <%s> is confined and may not be included here", where, header);
}

// Copies what stands between the delimiters of an #include line into target; returns the opening one, or 0.
static char parse_include(const char *line, char target[TREE_PATH_BYTES]) {
    line += strspn(line, " \t");
    if (*line++ != '#') {
        return 0;
    }
    line += strspn(line, " \t");
    if (strncmp(line, "include", 7) != 0) {
        return 0;
    }
    line += 7 + strspn(line + 7, " \t");
    const char opening = *line;
    if (opening != '"' && opening != '<') {
        return 0;
    }
    const size_t length = strcspn(line + 1, "\">\n");
    if (length >= TREE_PATH_BYTES) {
        return 0;
    }
    memcpy(target, line + 1, length);
    target[length] = '\0';
    return opening;
}

void layer_rules_check(const LayerRules *rules, const char *path, const char *text, Complaints *complaints) {
    int number = 1;
    for (const char *line = text; line; number++) {
        char target[TREE_PATH_BYTES];
        char where[TREE_PATH_BYTES + 16];
        snprintf(where, sizeof where, "%s:%d", path, number);
        const char opening = parse_include(line, target);
        if (opening == '"') {
            check_quoted(rules, where, path, target, complaints);
        } else if (opening == '<') {
            check_foreign(rules, where, path, target, complaints);
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
}
