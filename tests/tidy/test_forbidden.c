// What the sources must not contain: calls without bounds, hidden exits, mutable globals, dead code, notes to oneself.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tidy/code.h"
#include "tests/tidy/tree.h"

typedef struct Ban {
    const char *call;
    const char *reason;
    const char *allowed_in[4];  // paths, or file names without a slash
} Ban;

// Only product folders are searched.
static const Ban bans[] = {
    {"exit", "a library returns a Status", {"main.c", "sim/base/arena.c"}},
    {"abort", "ASSERT is the only one that aborts", {"sim/base/error.h"}},
    {"strcpy", "has no bound", {NULL}},
    {"strcat", "has no bound", {NULL}},
    {"sprintf", "has no bound", {NULL}},
    {"vsprintf", "has no bound", {NULL}},
    {"gets", "has no bound", {NULL}},
    {"strtok", "keeps hidden state", {NULL}},
    {"system", "programs are started by argv, never through a shell", {NULL}},
    {"popen", "programs are started by argv, never through a shell", {NULL}},
    {"rand", "random numbers are seeded and passed", {NULL}},
    {"srand", "random numbers are seeded and passed", {NULL}},
    {"atoi", "hides errors", {NULL}},
    {"atof", "hides errors", {NULL}},
};

// Files that may keep state for the life of the program, with the reason.
static const char *const state_allowed_in[] = {
    "main.c",                  // a program's own main file
    "sim/base/log.c",          // the level of the log
    "kernels/cpu/parallel.c",  // kernel_set_threads speaks for the whole process
    NULL,
};

static bool is_allowed(const char *path, const char *const *allowed) {
    for (; *allowed; allowed++) {
        if (strcmp(path, *allowed) == 0 || (!strchr(*allowed, '/') && strcmp(path_name(path), *allowed) == 0)) {
            return true;
        }
    }
    return false;
}

static void check_calls(const char *path, const char *blanked, Complaints *complaints) {
    for (size_t i = 0; i < sizeof bans / sizeof *bans; i++) {
        if (is_allowed(path, bans[i].allowed_in)) {
            continue;
        }
        const char *call = code_find_call(blanked, bans[i].call);
        for (; call; call = code_find_call(call + 1, bans[i].call)) {
            complain(complaints, "%s:%d: %s(: %s", path, code_line(blanked, call), bans[i].call, bans[i].reason);
        }
    }
}

typedef struct StateCheck {
    const char *path;
    Complaints *complaints;
} StateCheck;

static void check_variable(void *context, int line, const char *declaration, bool is_constant) {
    const StateCheck *check = context;
    // A header can declare functions through a type ("CpuTask cpu_add;"); a variable defined there would not link.
    const bool may_be_function = text_ends_with(check->path, ".h") && strncmp(declaration, "static", 6) != 0;
    if (!is_constant && !may_be_function) {
        complain(check->complaints, "%s:%d: mutable state \"%s\"", check->path, line, declaration);
    }
}

static void check_state(const char *path, const char *blanked, Complaints *complaints) {
    if (!is_allowed(path, state_allowed_in)) {
        code_static_variables(blanked, check_variable, &(StateCheck){path, complaints});
    }
}

// Words built from parts, so that this file does not contain them. The last one is a document that no clone has.
static void check_words(const char *path, const char *text, Complaints *complaints) {
    static const char *const words[][2] = {{"TO", "DO"}, {"FIX", "ME"}, {"XX", "X:"}, {"#if ", "0"}, {"DES", "IGN"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char word[16];
        snprintf(word, sizeof word, "%s%s", words[i][0], words[i][1]);
        for (const char *place = strstr(text, word); place; place = strstr(place + 1, word)) {
            complain(complaints, "%s:%d: %s", path, code_line(text, place), word);
        }
    }
}

static bool is_number(const char *begin, const char *end) {
    return begin < end && strspn(begin, "0123456789") >= (size_t)(end - begin);
}

// The text of the parenthesis that opens at `open`, as its last argument: *begin to the result.
static const char *last_argument(const char *open, const char **begin) {
    int depth = 0;
    *begin = open + 1;
    for (const char *at = open; *at; at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (depth == 0) {
            return at;
        }
        *begin = depth == 1 && *at == ',' ? at + 1 + strspn(at + 1, " \n") : *begin;
    }
    return *begin;
}

// Operands have names (sim/step/task_kind.h).
static void check_operands(const char *path, const char *blanked, Complaints *complaints) {
    static const char *const calls[] = {"task_operand", "call_floats", "call_ints", "call_optional",
                                        "call_dtype",   "store_of",    "operand"};
    static const char *const arrays[] = {"operands[", "operand[", "sums["};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const char *call = code_find_call(blanked, calls[i]), *begin = NULL;
        for (; call; call = code_find_call(call + 1, calls[i])) {
            const char *end = last_argument(call + strlen(calls[i]), &begin);
            if (is_number(begin, end)) {
                complain(complaints, "%s:%d: %s(: a bare operand", path, code_line(blanked, call), calls[i]);
            }
        }
    }
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        for (const char *at = strstr(blanked, arrays[i]); at; at = strstr(at + 1, arrays[i])) {
            const char *begin = at + strlen(arrays[i]), *end = begin + strcspn(begin, "]");
            if (is_number(begin, end)) {
                complain(complaints, "%s:%d: %s: a bare operand", path, code_line(blanked, at), arrays[i]);
            }
        }
    }
}

typedef void (*FileCheck)(const char *path, const char *text, Complaints *complaints);

static void check_tree(const char *const *folders, bool blank, FileCheck check) {
    Complaints complaints = complaints_none();
    Tree tree = tree_load(folders, tree_code_suffixes);
    for (size_t i = 0; i < tree.count; i++) {
        char *text = blank ? code_blank(tree.files[i].text) : strdup(tree.files[i].text);
        check(tree.files[i].path, text, &complaints);
        free(text);
    }
    tree_free(&tree);
    assert_no_complaints(&complaints);
}

Test(forbidden, no_unbounded_call_and_no_hidden_exit) {
    check_tree(tree_product_folders, true, check_calls);
}

Test(forbidden, no_mutable_globals) {
    check_tree(tree_product_folders, true, check_state);
}

Test(forbidden, operands_of_tasks_have_names) {
    check_tree(tree_product_folders, true, check_operands);
}

Test(forbidden, no_notes_to_oneself_and_no_dead_code) {
    check_tree(tree_all_folders, false, check_words);
}

static int complaints_about(FileCheck check, const char *path, const char *text) {
    Complaints complaints = complaints_none();
    char *blanked = code_blank(text);
    check(path, blanked, &complaints);
    const int count = complaints.count;
    free(blanked);
    complaints_free(&complaints);
    return count;
}

Test(forbidden, a_planted_call_is_seen_and_a_comment_is_not) {
    cr_assert_eq(complaints_about(check_calls, "sim/cost/x.c", "void f(void) {\n    exit(1);\n}\n"), 1);
    cr_assert_eq(
        complaints_about(check_calls, "sim/cost/x.c", "// exit(1)\nvoid f(void) {\n    on_exit(\"exit(\");\n}\n"), 0);
    cr_assert_eq(complaints_about(check_calls, "exec/worker/main.c", "int main(void) {\n    exit(1);\n}\n"), 0);
}

Test(forbidden, a_planted_operand_number_is_seen_and_a_name_is_not) {
    cr_assert_eq(complaints_about(check_operands, "sim/cost/x.c", "int a = task_operand(&p, f(t, 1), 2)->ref.buffer;"),
                 1);
    cr_assert_eq(complaints_about(check_operands, "sim/cost/x.c", "int a = op->operands[0].tensor;"), 1);
    cr_assert_eq(complaints_about(check_operands, "sim/cost/x.c",
                                  "int a = task_operand(p, t, AT_GEMM_C)->ref.buffer + op->operands[i].tensor;"),
                 0);
}

Test(forbidden, planted_mutable_state_is_seen) {
    const char *const planted[] = {
        "static int count;\n",
        "int count = 3;\n",
        "static const char *name = NULL;\n",
        "static struct { int a; } cache;\n",
        "static int f(void) {\n    static int calls = 0;\n    return ++calls;\n}\n",
        "_Thread_local double sum;\n",
        "static int (*chosen)(int) = NULL;\n",
    };
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        cr_expect_eq(complaints_about(check_state, "sim/cost/x.c", planted[i]), 1, "%s", planted[i]);
    }
}

Test(forbidden, constants_types_and_prototypes_are_no_state) {
    const char *const innocent[] = {
        "static const char *const names[] = {\"a\", \"b\"};\n",
        "static const struct { int a; } rows[] = {{1}, {2}};\n",
        "typedef struct Arena {\n    int used;\n} Arena;\n",
        "static const char *(*const rules[])(const Check *) = {a, b};\n",
        "struct Arena;\nextern const int table[];\n",
        "enum { A = 1, B = 2 };\n",
        "static int f(int a);\nint g(int a) {\n    int b = a;\n    return b;\n}\n",
        "static double seconds(\n    int a, int b) {\n    static const int bytes[3] = {4, 2, 1};\n    return bytes[a] "
        "* b;\n}\n",
    };
    for (size_t i = 0; i < sizeof innocent / sizeof *innocent; i++) {
        cr_expect_eq(complaints_about(check_state, "sim/cost/x.c", innocent[i]), 0, "%s", innocent[i]);
    }
}
