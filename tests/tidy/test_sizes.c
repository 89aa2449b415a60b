// The budgets: functions fit on a screen, files are one idea, lines can be read side by side.

#include <criterion/criterion.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tidy/code.h"
#include "tests/tidy/tree.h"

enum {
    FUNCTION_LINES = 70,
    SOURCE_LINES = 600,
    HEADER_LINES = 320,
    LINE_COLUMNS = 120,
    README_LINES = 30,
    FRONT_LINES = 150
};

typedef struct SizeCheck {
    const char *path;
    Complaints *complaints;
} SizeCheck;

static void check_function(void *context, int open_line, int close_line) {
    const SizeCheck *check = context;
    const int lines = close_line - open_line + 1;
    if (lines > FUNCTION_LINES) {
        complain(check->complaints, "%s:%d: function of %d lines (at most %d)", check->path, open_line, lines,
                 FUNCTION_LINES);
    }
}

static void check_functions(const char *path, const char *text, Complaints *complaints) {
    char *blanked = code_blank(text);
    code_functions(blanked, check_function, &(SizeCheck){path, complaints});
    free(blanked);
}

// Columns are characters: continuation bytes of UTF-8 do not count.
static int columns(const char *line, size_t bytes) {
    int count = 0;
    for (size_t i = 0; i < bytes; i++) {
        count += ((unsigned char)line[i] & 0xC0) != 0x80;
    }
    return count;
}

static void check_lines(const char *path, const char *text, int most_lines, int most_columns, Complaints *complaints) {
    int number = 0;
    while (*text) {
        number++;
        const size_t bytes = strcspn(text, "\n");
        if (columns(text, bytes) > most_columns) {
            complain(complaints, "%s:%d: line of %d columns (at most %d)", path, number, columns(text, bytes),
                     most_columns);
        }
        text += bytes + (text[bytes] == '\n');
    }
    if (number > most_lines) {
        complain(complaints, "%s: %d lines (at most %d)", path, number, most_lines);
    }
}

Test(sizes, functions_fit_on_a_screen) {
    Complaints complaints = complaints_none();
    Tree tree = tree_load(tree_all_folders, tree_code_suffixes);
    for (size_t i = 0; i < tree.count; i++) {
        check_functions(tree.files[i].path, tree.files[i].text, &complaints);
    }
    tree_free(&tree);
    assert_no_complaints(&complaints);
}

Test(sizes, files_and_lines_stay_in_their_budgets) {
    Complaints complaints = complaints_none();
    Tree tree = tree_load(tree_all_folders, tree_code_suffixes);
    for (size_t i = 0; i < tree.count; i++) {
        const char *path = tree.files[i].path;
        const int most_lines = text_ends_with(path, ".h") ? HEADER_LINES : SOURCE_LINES;
        check_lines(path, tree.files[i].text, most_lines, LINE_COLUMNS, &complaints);
    }
    tree_free(&tree);
    assert_no_complaints(&complaints);
}

Test(sizes, a_folder_readme_is_one_page) {
    const char *const folders[] = {"sim", "autotune", "exec", "kernels", "reports", "cluster-profiles", NULL};
    const char *const suffixes[] = {"README.md", NULL};
    Complaints complaints = complaints_none();
    Tree tree = tree_load(folders, suffixes);
    for (size_t i = 0; i < tree.count; i++) {
        check_lines(tree.files[i].path, tree.files[i].text, README_LINES, INT_MAX, &complaints);
    }
    tree_free(&tree);
    assert_no_complaints(&complaints);
}

Test(sizes, the_readme_is_read_in_five_minutes) {
    Complaints complaints = complaints_none();
    char *text = file_read(NDTUNE_SOURCE_DIR "/README.md");
    check_lines("README.md", text, FRONT_LINES, INT_MAX, &complaints);
    free(text);
    assert_no_complaints(&complaints);
}

// A function whose body has this many lines between its braces, after a struct and a macro that do not count.
static char *function_of(int body_lines) {
    char *text = malloc(256 + 8 * (size_t)body_lines);
    strcpy(text, "struct S {\n    int a;\n};\n#define M \\\n    { \\\n\nstatic int f(int a,\n             int b) {\n");
    for (int i = 0; i < body_lines; i++) {
        strcat(text, "    a++;\n");
    }
    strcat(text, "}\n");
    return text;
}

Test(sizes, the_check_sees_one_line_too_many) {
    for (int lines = FUNCTION_LINES; lines <= FUNCTION_LINES + 1; lines++) {
        Complaints complaints = complaints_none();
        char *text = function_of(lines - 2);
        check_functions("planted.c", text, &complaints);
        cr_expect_eq(complaints.count, lines - FUNCTION_LINES, "%d lines: %s", lines, complaints.text);
        free(text);
        complaints_free(&complaints);
    }
}
