// The program with an axis that does nothing, a borrowed one and an extra copy axis gives the same answers as without:
// to the digit except for keys and columns of the added axes, with hashes that find the rows of the other's store.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/guard/guard.h"
#include "tests/support/run_program.h"

static char *folder;

static void begin(void) {
    folder = temp_dir_make();
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(axes_unused, .init = begin, .fini = end);

enum { MAX_WORDS = 24 };

static json_t *answer(const char *program, const char *store, const char *const *words) {
    const char *line[MAX_WORDS] = {program};
    char data[512];
    int count = 1;
    for (; words[count - 1]; count++) {
        line[count] = words[count - 1];
    }
    snprintf(data, sizeof data, "XDG_DATA_HOME=%s/%s", folder, store);
    ProgramRun run = program_run(line, (const char *const[]){data, "LC_ALL=C", NULL}, 120);
    cr_assert_eq(run.exit_code, 0, "%s %s: %s", program, words[0], run.err);
    json_t *root = guard_structured(run.out);
    program_run_free(&run);
    return root;
}

static void differs(void *context, const char *path, const json_t *recorded, const json_t *now) {
    char *was = json_dumps(recorded, JSON_ENCODE_ANY | JSON_COMPACT);
    char *is = now ? json_dumps(now, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    cr_expect(false, "%s: %s was %.200s, is %.200s", (const char *)context, path, was, is ? is : "not there");
    free(was);
    free(is);
}

static void check_same(const char *const *words) {
    json_t *without = answer("ndtune", "without", words), *with = answer("ndtune-more-axes", "with", words);
    guard_compare(without, with, differs, (void *)words[0]);
    json_decref(without);
    json_decref(with);
}
#define CHECK_SAME(...) check_same((const char *const[]){__VA_ARGS__, NULL})

Test(axes_unused, a_search_finds_the_same_plans) {
    CHECK_SAME("--world", "4", "--model", "7b", "--format", "json");
    CHECK_SAME("--world", "6", "--model", "125m", "--target", "ndtune", "--format", "csv");
}

Test(axes_unused, a_prediction_has_the_same_digits_in_every_format) {
    CHECK_SAME("predict", "--mesh", "dp_replicate=2,dp_shard=4,cp=2,tp=2", "--model", "7b", "--target", "torchtitan",
               "--global-batch", "64", "--format", "json");
    CHECK_SAME("predict", "--mesh", "dp_shard=4,tp=4", "--model", "8b", "--target", "megatron", "--rank-order",
               "tp,dp_shard", "--format", "csv");
    CHECK_SAME("predict", "--mesh", "dp_replicate=2,dp_shard=4,cp=2", "--model", "8b");
}

// Plans and requests have the same hashes and texts: what one simulated, the other finds.
Test(axes_unused, a_search_is_answered_from_the_store_of_the_other) {
    const char *const words[] = {"--world", "8", "--model", "7b", "--format", "json", NULL};
    json_t *first = answer("ndtune", "both", words), *second = answer("ndtune-more-axes", "both", words);
    const json_t *before = json_object_get(first, "search"), *after = json_object_get(second, "search");
    cr_assert_gt(json_integer_value(json_object_get(before, "simulated")), 0);
    cr_assert_eq(json_integer_value(json_object_get(after, "simulated")), 0);
    cr_assert_eq(json_integer_value(json_object_get(after, "cached")),
                 json_integer_value(json_object_get(before, "simulated")));
    json_decref(first);
    json_decref(second);
}

Test(axes_unused, an_explanation_is_the_same) {
    CHECK_SAME("explain", "--world", "2", "--model", "tiny", "--cluster", "local-cpu", "--target", "ndtune", "--format",
               "json");
}
