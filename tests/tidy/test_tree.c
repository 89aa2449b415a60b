// The shape of the repository: what the root holds, that every source is built, that headers are self-contained and
// that the paths named in the documents, the documents named in sources and the sources named in folders' maps exist.

#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tidy/tree.h"

extern char **environ;

static bool is_one_of(const char *word, const char *const *words) {
    for (; *words; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    return false;
}

Test(tree, the_root_holds_only_the_agreed_entries) {
    const char *const agreed[] = {"sim",     "autotune",        "exec",           "kernels",   "cluster-profiles",
                                  "reports", "tests",           "CMakeLists.txt", "README.md", "CMakePresets.json",
                                  "LICENSE", "CONTRIBUTING.md",
                                  "build",  // what the presets write, ignored by git
                                  NULL};
    Complaints complaints = complaints_none();
    DIR *root = opendir(NDTUNE_SOURCE_DIR);
    cr_assert_not_null(root);
    for (struct dirent *entry = readdir(root); entry; entry = readdir(root)) {
        if (entry->d_name[0] != '.' && !is_one_of(entry->d_name, agreed)) {
            complain(&complaints, "%s is not an agreed entry of the root", entry->d_name);
        }
    }
    closedir(root);
    assert_no_complaints(&complaints);
}

static bool is_compiled(const char *compile_commands, const char *path) {
    char quoted[2 * TREE_PATH_BYTES];
    snprintf(quoted, sizeof quoted, "\"%s/%s\"", NDTUNE_SOURCE_DIR, path);
    return strstr(compile_commands, quoted) != NULL;
}

// The build compiles the file, or some CMakeLists.txt above names it for machines that have more than this one.
static bool is_built(const char *compile_commands, const Tree *lists, const char *path) {
    if (is_compiled(compile_commands, path)) {
        return true;
    }
    for (size_t i = 0; i < lists->count; i++) {
        const char *list_path = lists->files[i].path;
        const size_t folder_length = (size_t)(path_name(list_path) - list_path);
        if (strncmp(path, list_path, folder_length) == 0 && strstr(lists->files[i].text, path + folder_length)) {
            return true;
        }
    }
    return false;
}

Test(tree, every_source_file_is_built) {
    const char *const list_names_only[] = {"CMakeLists.txt", NULL};
    const char *const sources_only[] = {".c", ".cu", ".cpp", NULL};
    Complaints complaints = complaints_none();
    char *compile_commands = file_read(NDTUNE_BUILD_DIR "/compile_commands.json");
    Tree lists = tree_load(tree_all_folders, list_names_only);
    Tree sources = tree_load(tree_all_folders, sources_only);
    for (size_t i = 0; i < sources.count; i++) {
        if (!is_built(compile_commands, &lists, sources.files[i].path)) {
            complain(&complaints, "%s is in no CMakeLists.txt", sources.files[i].path);
        }
    }
    free(compile_commands);
    tree_free(&lists);
    tree_free(&sources);
    assert_no_complaints(&complaints);
}

// The build has compiled the header alone: it is the first thing in the source file of its name.
static bool is_compiled_first(const char *compile_commands, const Tree *tree, const SourceFile *header) {
    char source[TREE_PATH_BYTES], include[2 * TREE_PATH_BYTES];
    snprintf(source, sizeof source, "%.*sc", (int)strlen(header->path) - 1, header->path);
    snprintf(include, sizeof include, "\n#include \"%s\"\n", header->path);
    const SourceFile *file = is_compiled(compile_commands, source) ? tree_find(tree, source) : NULL;
    const char *directive = file ? strstr(file->text, "\n#") : NULL;
    return directive && strncmp(directive, include, strlen(include)) == 0;
}

// Compiles one line that includes the header; the compiler's words go to this test's stderr. What needs cuDNN's header
// is left out where that is not installed.
static bool header_compiles(const SourceFile *header) {
    char file[] = "/tmp/ndtune-header-XXXXXX.c";
    const int descriptor = mkstemps(file, 2);
    cr_assert_geq(descriptor, 0);
    const char *needs = strstr(header->text, "<cudnn.h>") ? "__has_include(<cudnn.h>)" : "1";
    dprintf(descriptor, "#if %s\n#include \"%s\"\n#endif\nextern int header_is_alone;\n", needs, header->path);
    close(descriptor);
    char *const arguments[] = {
        NDTUNE_C_COMPILER,      "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
        "-I" NDTUNE_SOURCE_DIR, "-isystem", NDTUNE_CUDNN_INCLUDE,        file,    NULL};
    pid_t compiler;
    cr_assert_eq(posix_spawn(&compiler, NDTUNE_C_COMPILER, NULL, NULL, arguments, environ), 0);
    int status = 0;
    waitpid(compiler, &status, 0);
    unlink(file);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Test(tree, every_header_compiles_alone) {
    Complaints complaints = complaints_none();
    char *compile_commands = file_read(NDTUNE_BUILD_DIR "/compile_commands.json");
    Tree tree = tree_load(tree_product_folders, tree_code_suffixes);
    size_t first = 0, alone = 0;
    for (size_t i = 0; i < tree.count; i++) {
        const SourceFile *file = &tree.files[i];
        if (!text_ends_with(file->path, ".h")) {
            continue;
        }
        if (is_compiled_first(compile_commands, &tree, file)) {
            first++;
        } else if (alone++, !header_compiles(file)) {
            complain(&complaints, "%s does not compile alone", file->path);
        }
    }
    cr_expect(first > 10 && alone > 10, "%zu headers that the build has compiled first, %zu others", first, alone);
    free(compile_commands);
    tree_free(&tree);
    assert_no_complaints(&complaints);
}

Test(tree, headers_and_sources_start_with_what_they_are_about) {
    Complaints complaints = complaints_none();
    Tree tree = tree_load(tree_product_folders, tree_code_suffixes);
    for (size_t i = 0; i < tree.count; i++) {
        if (strncmp(tree.files[i].text, "//", 2) != 0 && strncmp(tree.files[i].text, "/*", 2) != 0) {
            complain(&complaints, "%s does not start with a comment", tree.files[i].path);
        }
    }
    tree_free(&tree);
    assert_no_complaints(&complaints);
}

// Complains about words in backticks that look like a path of this repository and do not exist.
static void check_document(const char *path, const char *text, Complaints *complaints) {
    const char *const roots[] = {"sim/",     "autotune/", "exec/", "kernels/", "cluster-profiles/",
                                 "reports/", "tests/",    ".ci/"};
    for (const char *p = strchr(text, '`'); p; p = strchr(p + 1, '`')) {
        for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
            if (strncmp(p + 1, roots[i], strlen(roots[i])) != 0) {
                continue;
            }
            const int length = (int)strcspn(p + 1, "` \n*<");
            char full[2 * TREE_PATH_BYTES];
            snprintf(full, sizeof full, "%s/%.*s", NDTUNE_SOURCE_DIR, length, p + 1);
            struct stat info;
            if (p[1 + length] != '*' && p[1 + length] != '<' && stat(full, &info) != 0) {
                complain(complaints, "%s names %.*s, which does not exist", path, length, p + 1);
            }
        }
    }
}

static const char *const root_only[] = {".", NULL};
static const char *const documents_only[] = {".md", NULL};

Test(tree, paths_named_in_documents_exist) {
    Complaints complaints = complaints_none();
    Tree tree = tree_load(root_only, documents_only);
    cr_assert_gt(tree.count, 1);
    for (size_t i = 0; i < tree.count; i++) {
        check_document(tree.files[i].path, tree.files[i].text, &complaints);
    }
    tree_free(&tree);
    assert_no_complaints(&complaints);
}

static bool is_of_path(char c) {
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_-./@:", c));
}

// Some document's path is the name, or ends in it after a slash: README.md is one of many.
static bool is_document(const Tree *documents, const char *name, size_t length) {
    for (size_t i = 0; i < documents->count; i++) {
        const char *path = documents->files[i].path;
        const size_t path_length = strlen(path);
        if (path_length > length && path[path_length - length - 1] == '/' &&
            strncmp(path + path_length - length, name, length) == 0) {
            return true;
        }
    }
    return false;
}

// Of "sim/SOURCES.md C4": whether it has a fact C4. True where no number follows.
static bool has_fact(const Tree *documents, const char *after_name) {
    const size_t digits = isupper((unsigned char)after_name[1]) ? strspn(after_name + 2, "0123456789") : 0;
    if (after_name[0] != ' ' || digits == 0) {
        return true;
    }
    char mark[16];
    snprintf(mark, sizeof mark, "**%.*s ", (int)digits + 1, after_name + 1);
    const SourceFile *sources = tree_find(documents, "./sim/SOURCES.md");
    return sources && strstr(sources->text, mark);
}

// Complains about documents that the text names and the tree does not have. Those of other repositories are named with
// their commit, owner/name@commit:path.
static void check_citations(const SourceFile *file, const Tree *documents, Complaints *complaints) {
    const char *const facts = "sim/SOURCES";
    for (const char *at = strstr(file->text, ".md"); at; at = strstr(at + 1, ".md")) {
        const char *name = at, *end = at + strlen(".md");
        while (name > file->text && is_of_path(name[-1])) {
            name--;
        }
        if (name > file->text && strchr("$%", name[-1])) {  // of a variable or a format: what follows its slash
            name += strcspn(name, "/");
        }
        name += strspn(name, "./");
        const bool elsewhere = name < at && memchr(name, '@', (size_t)(at - name));
        if (name < at && !isalnum((unsigned char)*end) && !elsewhere &&
            !is_document(documents, name, (size_t)(end - name))) {
            complain(complaints, "%s names %.*s, which does not exist", file->path, (int)(end - name), name);
        }
        if (at - name == (int)strlen(facts) && strncmp(name, facts, strlen(facts)) == 0 && !has_fact(documents, end)) {
            complain(complaints, "%s names %.*s, which it does not have", file->path, (int)(end - name) + 3, name);
        }
    }
}

static void check_all_citations(const char *const *folders, const char *const *suffixes, Complaints *complaints) {
    Tree documents = tree_load(root_only, documents_only);
    Tree tree = tree_load(folders, suffixes);
    cr_assert_gt(tree.count, 1);
    for (size_t i = 0; i < tree.count; i++) {
        check_citations(&tree.files[i], &documents, complaints);
    }
    tree_free(&tree);
    tree_free(&documents);
}

Test(tree, documents_named_in_sources_exist) {
    const char *const profiles[] = {"cluster-profiles", NULL};
    const char *const json[] = {".json", NULL};
    const char *const sources[] = {".c",   ".h",   ".cu",   ".cuh",    ".cpp",  ".py",          ".js", ".sh",
                                   ".sql", ".txt", ".toml", "measure", "judge", "tune_session", NULL};
    Complaints complaints = complaints_none();
    check_all_citations(tree_all_folders, sources, &complaints);
    check_all_citations(profiles, json, &complaints);
    assert_no_complaints(&complaints);
}

Test(tree, the_check_sees_a_document_or_a_fact_that_is_gone) {
    Complaints complaints = complaints_none();
    Tree documents = tree_load(root_only, documents_only);
    char text[] = "// README"
                  ".md, %s/README"
                  ".md, owner/name@1a2b:docs/gone"
                  ".md; gone"
                  ".md 2, sim/SOURCES"
                  ".md C1, sim/SOURCES"
                  ".md Z9";
    check_citations(&(SourceFile){.path = "planted.c", .text = text}, &documents, &complaints);
    cr_expect_str_eq(complaints.text, "planted.c names gone"
                                      ".md, which does not exist\n"
                                      "planted.c names sim/SOURCES"
                                      ".md Z9, which it does not have\n");
    tree_free(&documents);
    complaints_free(&complaints);
}

// The path from the root, or the end of a path below the folder.
static bool is_source(const Tree *sources, const char *folder, const char *name, size_t length) {
    for (size_t i = 0; i < sources->count; i++) {
        const char *path = sources->files[i].path;
        const size_t bytes = strlen(path);
        const bool ends = bytes >= length && strncmp(path + bytes - length, name, length) == 0;
        if (ends && (bytes == length || (path[bytes - length - 1] == '/' && path_is_below(path, folder)))) {
            return true;
        }
    }
    return false;
}

// Complains about sources (search.c, base/hash.c) that the map of a folder names and that are not there. Patterns
// (cmd_*.c) and names in capitals, which stand for any, are passed over.
static void check_map(const SourceFile *map, const char *folder, const Tree *sources, Complaints *complaints) {
    for (const char *at = strstr(map->text, ".c"); at; at = strstr(at + 1, ".c")) {
        const char *name = at;
        while (name > map->text && (is_of_path(name[-1]) || name[-1] == '*')) {
            name--;
        }
        const size_t length = (size_t)(at - name) + strlen(".c");
        const bool is_name =
            name < at && !isalnum((unsigned char)at[2]) && !isupper((unsigned char)*name) && !memchr(name, '*', length);
        if (is_name && !is_source(sources, folder, name, length)) {
            complain(complaints, "%s names %.*s, which %s does not have: whoever moves a file moves its line",
                     map->path, (int)length, name, folder);
        }
    }
}

Test(tree, sources_named_in_the_maps_of_folders_exist) {
    const char *const maps_only[] = {"README.md", NULL};
    const char *const sources_only[] = {".c", NULL};
    Complaints complaints = complaints_none();
    Tree maps = tree_load(tree_product_folders, maps_only);
    Tree sources = tree_load(tree_all_folders, sources_only);
    cr_assert_gt(maps.count, 5);
    for (size_t i = 0; i < maps.count; i++) {
        char folder[TREE_PATH_BYTES];
        snprintf(folder, sizeof folder, "%.*s", (int)(path_name(maps.files[i].path) - maps.files[i].path) - 1,
                 maps.files[i].path);
        check_map(&maps.files[i], folder, &sources, &complaints);
    }
    tree_free(&maps);
    tree_free(&sources);
    assert_no_complaints(&complaints);
}

Test(tree, the_check_sees_a_source_that_is_gone_from_a_folder) {
    const char *const sources_only[] = {".c", NULL};
    Complaints complaints = complaints_none();
    Tree sources = tree_load(tree_product_folders, sources_only);
    char text[] = "mesh.c, cmd_*.c, NAME/NAME.c, axes.cmake, `sim/cost/cost.c`, cost.c, gone.c";
    check_map(&(SourceFile){.path = "planted", .text = text}, "sim/axes", &sources, &complaints);
    cr_expect_eq(complaints.count, 2, "%s", complaints.text);
    tree_free(&sources);
    complaints_free(&complaints);
}
