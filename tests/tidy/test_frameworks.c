// A framework's name occurs only in its folder of sim/frameworks, and in the lists of the folders.

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tests/tidy/code.h"
#include "tests/tidy/tree.h"

enum { NAME_BYTES = 64, MOST = 64 };

static const char room[] = "sim/frameworks/";

// Lists of the folders.
static const char *const lists[] = {"sim/frameworks/frameworks.c", NULL};

// Who trains by another framework names it.
static const struct {
    const char *folder, *names;
} trains_by[] = {
    {"automodel", "accelerate"}, {"axolotl", "accelerate"},                               // its modules
    {"trainer", "deepspeed"},    {"axolotl", "deepspeed"},  {"accelerate", "deepspeed"},  // configs hand over to it
    {"accelerate", "megatron"},  {"accelerate", "fsdp1"},   {"deepspeed", "fsdp1"},       // figures taken from its runs
    {"deepspeed", "accelerate"}, {"trainer", "accelerate"}, {"trl", "accelerate"},
    {"trl", "trainer"},          {"accelerate", "trainer"},  // its hf-trainer file
    {"axolotl", "trl"},                                      // a key of its config
    {"torchtitan", "trainer"},                               // a file and a class of its own
};

// The folder of a path below sim/frameworks; "" of others.
static void folder_of(const char *path, char out[NAME_BYTES]) {
    out[0] = '\0';
    const char *rest = strncmp(path, room, strlen(room)) == 0 ? path + strlen(room) : "";
    const char *slash = strchr(rest, '/');
    if (slash) {
        snprintf(out, NAME_BYTES, "%.*s", (int)(slash - rest), rest);
    }
}

static bool may_name(const char *path, const char *name) {
    char folder[NAME_BYTES];
    folder_of(path, folder);
    bool may = strcmp(folder, name) == 0;
    for (size_t i = 0; lists[i]; i++) {
        may |= strcmp(path, lists[i]) == 0;
    }
    for (size_t i = 0; i < sizeof trains_by / sizeof *trains_by; i++) {
        may |= strcmp(trains_by[i].folder, folder) == 0 && strcmp(trains_by[i].names, name) == 0;
    }
    return may;
}

// Names of the folders but ours, which is no framework, and the one that writes the rows.
static int list_folders(const Tree *tree, char names[MOST][NAME_BYTES]) {
    int count = 0;
    for (size_t i = 0; i < tree->count; i++) {
        char folder[NAME_BYTES];
        folder_of(tree->files[i].path, folder);
        bool known = folder[0] == '\0' || strcmp(folder, "ndtune") == 0 || strcmp(folder, "rows") == 0;
        for (int k = 0; k < count; k++) {
            known |= strcmp(names[k], folder) == 0;
        }
        if (!known && count < MOST) {
            snprintf(names[count++], NAME_BYTES, "%s", folder);
        }
    }
    return count;
}

static bool continues_word(const char *at) {
    return isalnum((unsigned char)*at) || *at == '_' || (*at == '.' && isalnum((unsigned char)at[1]));
}

// As a word of its own: not the file trainer.py, and not strlen.
static const char *find_name(const char *text, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        const bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.');
        if (begins && !continues_word(at + length)) {
            return at;
        }
    }
    return NULL;
}

Test(frameworks, a_name_stands_only_in_its_folder_and_in_lists_of_folders) {
    static char names[MOST][NAME_BYTES];
    Complaints complaints = complaints_none();
    Tree tree = tree_load(tree_product_folders, tree_code_suffixes);
    const int count = list_folders(&tree, names);
    cr_expect_geq(count, 8);
    for (size_t i = 0; i < tree.count; i++) {
        for (int k = 0; k < count; k++) {
            const char *at = find_name(tree.files[i].text, names[k]);
            if (at && !may_name(tree.files[i].path, names[k])) {
                complain(&complaints, "%s:%d names %s", tree.files[i].path, code_line(tree.files[i].text, at),
                         names[k]);
            }
        }
    }
    tree_free(&tree);
    assert_no_complaints(&complaints);
}
