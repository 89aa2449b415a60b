// What differs between two files, by key and line, and a file with such changes made.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_change.h"
#include "autotune/import/config_load.h"

static ConfigNode *parse(const char *text, Arena *arena) {
    ConfigNode *root = NULL;
    Error error = {0};
    cr_assert_eq(config_parse(text, "file", SYNTAX_YAML, arena, &root, &error), STATUS_OK, "%s", error.message);
    return root;
}

static const char old_text[] = "a: 1\nmap:\n  same: x\n  other: 2\n  gone: 3\nlist: [p, q]\n_comment: x\n";
static const char new_text[] = "map:\n  other: 4\n  same: x\n  new: {deep: 1}\nlist: [p]\na: 1\nlast: ~\n_comment: y\n";

Test(config_change, keys_that_differ_are_named_with_the_lines_of_both_files) {
    static const struct {
        const char *path;
        int before, after;  // lines
    } expected[] = {{"map.other", 4, 2}, {"map.new", 0, 4}, {"map.gone", 5, 0}, {"list", 6, 5}, {"last", 0, 7}};
    Arena arena = {0};
    ConfigChange *changes = NULL;
    const int count = config_changes(parse(old_text, &arena), parse(new_text, &arena), &arena, &changes);
    cr_assert_eq(count, 5);
    for (int i = 0; i < count; i++) {
        cr_expect_str_eq(changes[i].path, expected[i].path);
        cr_expect_eq(changes[i].before ? changes[i].before->line : 0, expected[i].before, "%s", changes[i].path);
        cr_expect_eq(changes[i].after ? changes[i].after->line : 0, expected[i].after, "%s", changes[i].path);
    }
    arena_free(&arena);
}

Test(config_change, a_file_with_all_changes_made_is_the_other_file) {
    Arena arena = {0};
    ConfigChange *changes = NULL, *left = NULL;
    ConfigNode *before = parse(old_text, &arena), *after = parse(new_text, &arena);
    const int count = config_changes(before, after, &arena, &changes);
    const ConfigNode *root = before;
    for (int i = 0; i < count; i++) {
        root = config_with(root, &changes[i], &arena);
        cr_expect_eq(config_changes(root, after, &arena, &left), count - 1 - i, "after %s", changes[i].path);
    }
    cr_expect_eq(config_changes(before, after, &arena, &left), count, "the first file is left as it was");
    arena_free(&arena);
}

Test(config_change, values_are_shown_as_people_write_them) {
    Arena arena = {0};
    const ConfigNode *root = parse("word: a b\nnone: ~\nlist: [p, {x: 1}]\nmap: {x: 1}\n", &arena);
    cr_expect_str_eq(config_text(config_child(root, "word"), &arena), "a b");
    cr_expect_str_eq(config_text(config_child(root, "none"), &arena), "null");
    cr_expect_str_eq(config_text(config_child(root, "list"), &arena), "[p, {..}]");
    cr_expect_str_eq(config_text(config_child(root, "map"), &arena), "{..}");
    cr_expect_str_eq(config_text(NULL, &arena), "absent");
    arena_free(&arena);
}
