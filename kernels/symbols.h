// Libraries that are opened at run time: what a program calls of one is a table of pointers, a row for each.

#pragma once

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct Symbol {
    const char *name;
    size_t at;  // of the pointer in its table
    bool may_lack;
} Symbol;

#define SYMBOL(table, name, member)                                                                                    \
    { #name, offsetof(table, member), false }

// Fills the table: NULL, or the name of what the library has not got and must have.
static inline const char *symbols_find(void *handle, const Symbol *rows, size_t count, void *table) {
    for (size_t i = 0; i < count; i++) {
        void *const found = dlsym(handle, rows[i].name);
        if (!found && !rows[i].may_lack) {
            return rows[i].name;
        }
        memcpy((char *)table + rows[i].at, &found, sizeof found);  // ISO C has no cast to a function pointer
    }
    return NULL;
}
