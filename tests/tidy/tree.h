// The files of the repository as text, and a list of complaints: input and output of the tidy tests.

#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { TREE_PATH_BYTES = 512 };

typedef struct SourceFile {
    char path[TREE_PATH_BYTES];  // from the repository root, "sim/axes/mesh.c"
    char *text;
} SourceFile;

typedef struct Tree {
    SourceFile *files;  // ordered by path
    size_t count;
    size_t capacity;
} Tree;

// Every file below the folders whose name ends in one of the suffixes (NULL-terminated lists); build folders and
// dot-folders below them are left out. An absent folder adds nothing.
Tree tree_load(const char *const *folders, const char *const *suffixes);
void tree_free(Tree *tree);
const SourceFile *tree_find(const Tree *tree, const char *path);
char *file_read(const char *path);  // fails the running test when it cannot; the caller frees the text

extern const char *const tree_product_folders[];  // sim autotune exec kernels reports
extern const char *const tree_all_folders[];      // and tests
extern const char *const tree_code_suffixes[];    // .c .h .cu

bool text_ends_with(const char *text, const char *suffix);
bool path_is_below(const char *path, const char *folder);  // or the same
const char *path_name(const char *path);                   // after the last slash

typedef struct Complaints {
    char *text;  // one line each; "" when there are none
    size_t length;
    int count;
} Complaints;

Complaints complaints_none(void);
void complain(Complaints *complaints, const char *format, ...) __attribute__((format(printf, 2, 3)));
void complaints_free(Complaints *complaints);

// Fails the running test with all lines when there are any; frees them in any case.
void assert_no_complaints(Complaints *complaints);
