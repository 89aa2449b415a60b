// YAML, JSON and TOML as trees: the same tree from each, the line of every key, and syntax errors reported with their
// line.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_load.h"

static ConfigNode *parse(const char *text, ConfigSyntax syntax, Arena *arena) {
    ConfigNode *root = NULL;
    Error error = {0};
    cr_assert_eq(config_parse(text, "file", syntax, arena, &root, &error), STATUS_OK, "%s", error.message);
    return root;
}

static const char yaml[] = "# a comment\ntop: 1\nmap:\n  word: \"a \\u00e9\"\n  on: true\n  none: null\nlist: [x, 2]\n";
static const char json[] =
    "{\n \"top\": 1, \"map\": {\n  \"word\": \"a \\u00e9\",\n\n  \"on\": true, \"none\": null},\n"
    " \"list\": [\"x\", 2]\n}\n";
static const char toml[] = "top = 1 # a comment\nlist = [ # x\n 'x', 2,\n]\n\n[map]\nword = \"a \\u00e9\"\non = true\n";

Test(config_tree, the_three_syntaxes_give_one_tree) {
    const char *const texts[] = {yaml, json, toml};
    static const ConfigSyntax syntaxes[] = {SYNTAX_YAML, SYNTAX_JSON, SYNTAX_TOML};
    for (int i = 0; i < 3; i++) {
        Arena arena = {0};
        const ConfigNode *root = parse(texts[i], syntaxes[i], &arena);
        const ConfigNode *map = config_child(root, "map"), *list = config_child(root, "list");
        cr_expect_str_eq(config_child(root, "top")->text, "1");
        cr_expect_str_eq(config_child(map, "word")->text, "a \xc3\xa9", "%d", i);
        cr_expect_str_eq(config_child(map, "on")->text, "true");
        cr_expect(!config_child(map, "none") || config_child(map, "none")->text[0] == '\0');
        cr_expect_eq(list->kind, NODE_LIST);
        cr_expect_str_eq(list->first->text, "x");
        cr_expect_str_eq(list->first->next->text, "2");
        cr_expect_null(list->first->next->next);
        cr_expect_null(config_child(root, "word"));
        arena_free(&arena);
    }
}

Test(config_tree, a_key_knows_its_line) {
    const struct {
        const char *text;
        ConfigSyntax syntax;
        int top, map, word, on, list;
    } cases[] = {
        {yaml, SYNTAX_YAML, 2, 3, 4, 5, 7}, {json, SYNTAX_JSON, 2, 2, 3, 5, 6}, {toml, SYNTAX_TOML, 1, 6, 7, 8, 2}};
    for (int i = 0; i < 3; i++) {
        Arena arena = {0};
        const ConfigNode *root = parse(cases[i].text, cases[i].syntax, &arena);
        const ConfigNode *map = config_child(root, "map");
        cr_expect_eq(config_child(root, "top")->line, cases[i].top, "%d", i);
        cr_expect_eq(map->line, cases[i].map, "%d", i);
        cr_expect_eq(config_child(map, "word")->line, cases[i].word, "%d", i);
        cr_expect_eq(config_child(map, "on")->line, cases[i].on, "%d", i);
        cr_expect_eq(config_child(root, "list")->line, cases[i].list, "%d", i);
        arena_free(&arena);
    }
}

// A colon after a string makes a key only outside of strings.
Test(config_tree, lines_of_json_keys_are_not_those_of_words_like_them) {
    Arena arena = {0};
    const ConfigNode *root =
        parse("{\"a\": \"\\\"k\\\": \",\n\"b\": [\"k\", \"l\"],\n\"k\"\n:\n1}", SYNTAX_JSON, &arena);
    cr_expect_eq(config_child(root, "a")->line, 1);
    cr_expect_eq(config_child(root, "b")->line, 2);
    cr_expect_eq(config_child(root, "k")->line, 3);
    arena_free(&arena);
}

Test(config_tree, toml_tables_grow_by_dots_and_by_headers) {
    Arena arena = {0};
    const ConfigNode *root = parse("[a.b]\nc.d = 1\n\"e f\" = {g = 2, h = [3]}\n[a]\nz = -1\n", SYNTAX_TOML, &arena);
    const ConfigNode *b = config_child(config_child(root, "a"), "b");
    cr_expect_str_eq(config_child(config_child(b, "c"), "d")->text, "1");
    cr_expect_str_eq(config_child(config_child(b, "e f"), "g")->text, "2");
    cr_expect_str_eq(config_child(config_child(b, "e f"), "h")->first->text, "3");
    cr_expect_str_eq(config_child(config_child(root, "a"), "z")->text, "-1");
    arena_free(&arena);
}

Test(config_tree, the_last_of_two_equal_keys_counts) {
    Arena arena = {0};
    const ConfigNode *root = parse("a: 1\nb: 2\na: 3\n", SYNTAX_YAML, &arena);
    cr_expect_str_eq(config_child(root, "a")->text, "3");
    arena_free(&arena);
}

// "a = [<items>]" or a map of as many keys, in the largest file that is read.
static char *large(const char *before, const char *item, const char *between, const char *after, Arena *arena) {
    char *text = arena_alloc(arena, CONFIG_MAX_BYTES + 64), *end = stpcpy(text, before);
    const char *behind = text + CONFIG_MAX_BYTES - 64;
    for (int i = 0; end < behind; i++) {
        end += sprintf(end, item, i);
        end = stpcpy(end, between);
    }
    strcpy(end - strlen(between), after);
    return text;
}

// The time limit holds it: with lists that are walked from their heads each takes many minutes.
Test(config_tree, the_largest_files_are_read_in_linear_time_and_memory) {
    static const struct {
        const char *before, *item, *between, *after;
        ConfigSyntax syntax;
    } cases[] = {{"a: [", "%d", ",", "]", SYNTAX_YAML},       {"", "k%d: 1", "\n", "\n", SYNTAX_YAML},
                 {"{\"a\": [", "%d", ",", "]}", SYNTAX_JSON}, {"{", "\"k%d\": 1", ",", "}", SYNTAX_JSON},
                 {"a = [", "\"%d\"", ",", "]", SYNTAX_TOML},  {"", "k%d = 1", "\n", "\n", SYNTAX_TOML}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena of_text = {0}, arena = {0};
        parse(large(cases[i].before, cases[i].item, cases[i].between, cases[i].after, &of_text), cases[i].syntax,
              &arena);
        cr_expect_lt(arena.used_bytes, 100.0 * CONFIG_MAX_BYTES, "%zu: %zu bytes", i, arena.used_bytes);
        arena_free(&arena);
        arena_free(&of_text);
    }
}

Test(config_tree, what_is_malformed_is_said_with_its_line) {
    static const struct {
        const char *text, *words;
        ConfigSyntax syntax;
    } cases[] = {
        {"a: 1\nb: [1, 2\nc: 3\n", "file:", SYNTAX_YAML},
        {"a: 1\n\tb: 2\n", "file:2: no YAML", SYNTAX_YAML},
        {"a: &x 1\nb: *x\n", "file:1: anchors", SYNTAX_YAML},
        {"a: 1\n---\nb: 2\n", "file:2: a second document", SYNTAX_YAML},
        {"- 1\n- 2\n", "file:1: a config file is a map", SYNTAX_YAML},
        {"", "file:1: empty", SYNTAX_YAML},
        {"? [a]\n: 1\n", "a key has to be a word", SYNTAX_YAML},
        {"{\"a\": 1,\n \"b\": }", "file:2:", SYNTAX_JSON},
        {"{\"a\": 1,\n \"a\": 2}", "file:2:", SYNTAX_JSON},
        {"[1]", "a config file is a map", SYNTAX_JSON},
        {"a = 1\na = 2\n", "file:2: a has a value already, from line 1", SYNTAX_TOML},
        {"[[a]]\n", "file:1: no TOML: an array of tables", SYNTAX_TOML},
        {"a = \"b\n", "file:1: no TOML: a string that does not end", SYNTAX_TOML},
        {"a = \"\"\"b\"\"\"\n", "a string over several lines", SYNTAX_TOML},
        {"a = \"\\u00\"\n", "an escape that is none", SYNTAX_TOML},
        {"a = [1, 2\n", "file:2: no TOML: a comma or the end", SYNTAX_TOML},
        {"\n\na 1\n", "file:3: no TOML: a key without \"=\"", SYNTAX_TOML},
        {"a = 1 2\n", "something behind a value", SYNTAX_TOML},
        {"a = 1\n[a]\nb = 2\n", "file:2: a is a value already", SYNTAX_TOML},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        ConfigNode *root = NULL;
        Error error = {0};
        const Status status = config_parse(cases[i].text, "file", cases[i].syntax, &arena, &root, &error);
        cr_expect_eq(status, STATUS_USAGE, "case %zu", i);
        cr_expect(strstr(error.message, cases[i].words), "case %zu: %s", i, error.message);
        arena_free(&arena);
    }
}

Test(config_tree, depth_has_a_bound_in_every_syntax) {
    char deep[256];
    Arena arena = {0};
    ConfigNode *root = NULL;
    Error error = {0};
    memset(deep, '[', 200);
    deep[200] = '\0';
    char toml_deep[512];
    snprintf(toml_deep, sizeof toml_deep, "a = %s", deep);
    cr_expect_eq(config_parse(deep, "file", SYNTAX_YAML, &arena, &root, &error), STATUS_USAGE);
    cr_expect_eq(config_parse(deep, "file", SYNTAX_JSON, &arena, &root, &error), STATUS_USAGE);
    cr_expect_eq(config_parse(toml_deep, "file", SYNTAX_TOML, &arena, &root, &error), STATUS_USAGE);
    arena_free(&arena);
}
