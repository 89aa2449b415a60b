// Walks the repository below NDTUNE_SOURCE_DIR and reads its text files.

#include "tests/tidy/tree.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *const tree_product_folders[] = {"sim", "autotune", "exec", "kernels", "reports", NULL};
const char *const tree_all_folders[] = {"sim", "autotune", "exec", "kernels", "reports", "tests", NULL};
const char *const tree_code_suffixes[] = {".c", ".h", ".cu", ".cuh", ".cpp", NULL};

char *file_read(const char *path) {
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "cannot open %s", path);
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    cr_assert_eq(fread(text, 1, (size_t)size, file), (size_t)size, "cannot read %s", path);
    text[size] = '\0';
    fclose(file);
    return text;
}

static bool ends_with_any(const char *name, const char *const *suffixes) {
    for (; *suffixes; suffixes++) {
        if (text_ends_with(name, *suffixes)) {
            return true;
        }
    }
    return false;
}

static void tree_add(Tree *tree, const char *path, const char *full_path) {
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity ? 2 * tree->capacity : 64;
        tree->files = realloc(tree->files, tree->capacity * sizeof *tree->files);
    }
    SourceFile *file = &tree->files[tree->count++];
    snprintf(file->path, sizeof file->path, "%s", path);
    file->text = file_read(full_path);
}

static void tree_walk(Tree *tree, const char *folder, const char *const *suffixes) {
    char full[2 * TREE_PATH_BYTES];
    snprintf(full, sizeof full, "%s/%s", NDTUNE_SOURCE_DIR, folder);
    DIR *dir = opendir(full);
    if (!dir) {
        return;
    }
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "build") == 0) {
            continue;
        }
        char path[TREE_PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        snprintf(full, sizeof full, "%s/%s", NDTUNE_SOURCE_DIR, path);
        struct stat info;
        if (stat(full, &info) != 0) {
            continue;
        }
        if (S_ISDIR(info.st_mode)) {
            tree_walk(tree, path, suffixes);
        } else if (ends_with_any(entry->d_name, suffixes)) {
            tree_add(tree, path, full);
        }
    }
    closedir(dir);
}

static int compare_paths(const void *left, const void *right) {
    return strcmp(((const SourceFile *)left)->path, ((const SourceFile *)right)->path);
}

Tree tree_load(const char *const *folders, const char *const *suffixes) {
    Tree tree = {0};
    for (; *folders; folders++) {
        tree_walk(&tree, *folders, suffixes);
    }
    qsort(tree.files, tree.count, sizeof *tree.files, compare_paths);
    return tree;
}

void tree_free(Tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->files[i].text);
    }
    free(tree->files);
    *tree = (Tree){0};
}

const SourceFile *tree_find(const Tree *tree, const char *path) {
    for (size_t i = 0; i < tree->count; i++) {
        if (strcmp(tree->files[i].path, path) == 0) {
            return &tree->files[i];
        }
    }
    return NULL;
}

bool text_ends_with(const char *text, const char *suffix) {
    const size_t length = strlen(text);
    const size_t tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

bool path_is_below(const char *path, const char *folder) {
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

const char *path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

Complaints complaints_none(void) {
    return (Complaints){.text = calloc(1, 1)};
}

void complain(Complaints *complaints, const char *format, ...) {
    char line[2 * TREE_PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    const size_t length = strlen(line);
    complaints->text = realloc(complaints->text, complaints->length + length + 2);
    memcpy(complaints->text + complaints->length, line, length);
    complaints->length += length + 1;
    complaints->text[complaints->length - 1] = '\n';
    complaints->text[complaints->length] = '\0';
    complaints->count++;
}

void complaints_free(Complaints *complaints) {
    free(complaints->text);
    *complaints = (Complaints){0};
}

void assert_no_complaints(Complaints *complaints) {
    cr_expect_eq(complaints->count, 0, "%d complaints:\n%s", complaints->count, complaints->text);
    complaints_free(complaints);
}
