// The settings come after what is kept of the caller's environment.

#define _GNU_SOURCE  // environ in unistd.h

#include "exec/launch/environment.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static size_t count_of(const char *const *settings) {
    size_t count = 0;
    while (settings && settings[count]) {
        count++;
    }
    return count;
}

static bool names_same(const char *setting, const char *other) {
    return strncmp(setting, other, strcspn(setting, "=") + 1) == 0;
}

char **environment_with(const char *const *settings, Arena *arena) {
    const size_t own = count_of((const char *const *)environ), added = count_of(settings);
    char **all = ARENA_ARRAY(arena, char *, own + added + 1);
    size_t kept = 0;
    for (size_t i = 0; i < own; i++) {
        bool replaced = false;
        for (size_t j = 0; j < added; j++) {
            replaced = replaced || names_same(settings[j], environ[i]);
        }
        if (!replaced) {
            all[kept++] = environ[i];
        }
    }
    for (size_t j = 0; j < added; j++) {
        all[kept++] = arena_text(arena, settings[j]);
    }
    return all;
}
