// Profiles that extend another one: what is inherited, what is replaced, what is refused.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/sim/cluster/cluster_text.h"

static Arena arena;
static Error error;

static void end(void) {
    arena_free(&arena);
}

TestSuite(cluster_extend, .fini = end);

#define HEAD "\"schema\": \"ndtune.cluster/1\", \"name\": \"mine\", \"description\": \"my cluster\""
#define LEAF(value) "{\"value\": " value ", \"source\": \"our own log\", \"grade\": \"measured\"}"

static ClusterProfile read_good(const char *text) {
    ClusterProfile profile;
    cr_assert_eq(cluster_from_text(text, &arena, &profile, &error), STATUS_OK, "%s", error.message);
    return profile;
}

static void check_refused(const char *text, const char *sentence, const char *hint) {
    ClusterProfile profile = {.name = "untouched"};
    error.hint[0] = '\0';
    cr_assert_eq(cluster_from_text(text, &arena, &profile, &error), STATUS_USAGE, "taken, although: %s", sentence);
    cr_assert_str_eq(error.message, sentence);
    cr_assert_str_eq(error.hint, hint);
    cr_assert_str_eq(profile.name, "untouched");
}

static ClusterProfile h100(void) {
    ClusterProfile profile;
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK, "%s", error.message);
    return profile;
}

Test(cluster_extend, what_is_not_said_is_the_parents_with_its_source) {
    const ClusterProfile parent = h100();
    const ClusterProfile mine = read_good("{" HEAD ", \"extends\": \"dgx-h100\"}");
    cr_assert_str_eq(mine.name, "mine");
    cr_assert_str_eq(mine.extends, "dgx-h100");
    cr_assert_str_eq(mine.stack, parent.stack);
    cr_assert_eq(mine.provenance_count, parent.provenance_count);
    for (int i = 0; i < mine.provenance_count; i++) {
        cr_assert_eq(mine.provenance[i].value, parent.provenance[i].value);
        cr_assert_str_eq(mine.provenance[i].source, parent.provenance[i].source);
    }
    cr_assert_null(parent.extends);
}

Test(cluster_extend, one_number_is_replaced_with_its_source_and_grade) {
    const ClusterProfile parent = h100();
    const ClusterProfile mine =
        read_good("{" HEAD ", \"extends\": \"dgx-h100\", \"fabric\": {\"nics\": " LEAF("4") "}}");
    cr_assert_eq(mine.fabric.nics, 4);
    cr_assert_eq(mine.fabric.nic_bytes_per_s, parent.fabric.nic_bytes_per_s);
    int replaced = 0;
    for (int i = 0; i < mine.provenance_count; i++) {
        if (strcmp(mine.provenance[i].path, "fabric.nics") == 0) {
            cr_assert_str_eq(mine.provenance[i].source, "our own log");
            cr_assert_eq(mine.provenance[i].grade, GRADE_MEASURED);
            replaced++;
        }
    }
    cr_assert_eq(replaced, 1);
}

Test(cluster_extend, null_removes_a_dtype) {
    const ClusterProfile mine =
        read_good("{" HEAD ", \"extends\": \"dgx-h100\", \"accelerator\": {\"gemm\": {\"fp8\": null}}}");
    cr_assert_eq(mine.accelerator.gemm[DTYPE_FP8].peak_flop_per_s, 0.0);
    cr_assert_gt(mine.accelerator.gemm[DTYPE_BF16].peak_flop_per_s, 0.0);
}

Test(cluster_extend, a_number_that_is_needed_cannot_be_removed) {
    check_refused("{" HEAD ", \"extends\": \"dgx-h100\", \"node\": {\"ring_copy\": null}}",
                  "mine.json: node.ring_copy: missing, must be an object with value, source and grade", "");
}

Test(cluster_extend, null_for_nothing_is_refused) {
    check_refused("{" HEAD ", \"extends\": \"dgx-h100\", \"node\": {\"ring_coppy\": null}}",
                  "mine.json: node.ring_coppy: null removes what the extended profile has, and it has no such key", "");
}

Test(cluster_extend, a_value_without_its_source_does_not_borrow_the_parents) {
    check_refused("{" HEAD ", \"extends\": \"dgx-h100\", \"fabric\": {\"nics\": {\"value\": 4}}}",
                  "mine.json: fabric.nics.source: missing, must be text", "");
}

Test(cluster_extend, a_typo_is_no_new_field) {
    check_refused("{" HEAD ", \"extends\": \"dgx-h100\", \"fabric\": {\"nicks\": " LEAF("4") "}}",
                  "mine.json: fabric.nicks: unknown field", "did you mean fabric.nics?");
}

Test(cluster_extend, a_short_name_of_set_is_told_by_the_name_that_a_file_has) {
    check_refused("{" HEAD ", \"extends\": \"dgx-h100\", \"node\": {\"gpus\": " LEAF("4") "}}",
                  "mine.json: node.gpus: unknown field",
                  "node.gpus is a short name for --set: a file says node.accelerators");
}

Test(cluster_extend, a_key_with_a_dot_is_no_path) {
    check_refused("{" HEAD ", \"extends\": \"dgx-h100\", \"fabric.nics\": " LEAF("4") "}",
                  "mine.json: fabric.nics: unknown field", "did you mean fabric.nics?");
}

Test(cluster_extend, a_section_cannot_become_a_number) {
    check_refused("{" HEAD ", \"extends\": \"dgx-h100\", \"fabric\": 3}", "mine.json: fabric: must be an object", "");
}

Test(cluster_extend, name_and_description_are_its_own) {
    check_refused("{\"schema\": \"ndtune.cluster/1\", \"name\": \"mine\", \"extends\": \"dgx-h100\"}",
                  "mine.json: description: missing", "");
    check_refused("{\"name\": \"mine\", \"description\": \"x\", \"extends\": \"dgx-h100\"}",
                  "mine.json: schema: missing", "");
}

Test(cluster_extend, the_parent_must_be_built_in) {
    check_refused("{" HEAD ", \"extends\": \"dgx-h10\"}",
                  "mine.json: extends: must name a built-in profile, got \"dgx-h10\"", "did you mean dgx-h100?");
    check_refused("{" HEAD ", \"extends\": [\"dgx-h100\"]}",
                  "mine.json: extends: must be the name of a built-in profile", "");
}

Test(cluster_extend, a_profile_in_the_third_generation_reads) {
    const ClusterProfile mine = read_good("{" HEAD ", \"extends\": \"aws-p4d\"}");  // -> aws-p4de -> dgx-a100-80g
    cr_assert_eq(mine.fabric.nics, 4);
    cr_assert_eq(mine.accelerator.sm_count, 108);
}
