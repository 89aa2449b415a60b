// What reading a config file found.

#pragma once

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"

// Is there a finding of that kind whose sentence has these words?
static inline bool finds(const Import *import, FindingKind kind, const char *words) {
    bool found = false;
    for (int i = 0; i < import->finding_count; i++) {
        found |= import->findings[i].kind == kind && strstr(import->findings[i].sentence, words);
    }
    return found;
}

// The file with that text, settled.
static inline Import read_file(const char *text, ConfigSyntax syntax, int world, Arena *arena) {
    Import import;
    Error error = {0};
    ConfigNode *root = NULL;
    ImportChoices given = import_nothing_said();
    given.world = world;
    cr_assert_eq(config_parse(text, "file", syntax, arena, &root, &error), STATUS_OK, "%s\n%s", error.message, text);
    cr_assert_eq(import_tree(root, "file", "auto", arena, &import, &error), STATUS_OK, "%s\n%s", error.message, text);
    import_settle(&import, &given);
    return import;
}

// Each is refused in these words.
static inline void expect_refused(const char *const (*cases)[2], size_t count) {
    for (size_t i = 0; i < count; i++) {
        Arena arena = {0};
        Error error = {0};
        ConfigNode *root = NULL;
        cr_expect_eq(config_parse(cases[i][0], "file", SYNTAX_PYTHON, &arena, &root, &error), STATUS_USAGE, "%s",
                     cases[i][0]);
        cr_expect(strstr(error.message, cases[i][1]), "case %zu: %s", i, error.message);
        arena_free(&arena);
    }
}
