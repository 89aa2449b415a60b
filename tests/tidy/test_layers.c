// The arrows between the folders: the tree against layers.txt, and the checker against planted violations.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/tidy/layers.h"

static LayerRules load_rules(Complaints *complaints) {
    const char *const folders[] = {"tests/tidy", NULL};
    const char *const suffixes[] = {"layers.txt", NULL};
    Tree tree = tree_load(folders, suffixes);
    cr_assert_eq(tree.count, 1);
    const LayerRules rules = layer_rules_parse(tree.files[0].text, complaints);
    tree_free(&tree);
    return rules;
}

// How often the checker complains about a file with this text; the first complaint must contain expected.
static int complaints_about(const char *path, const char *text, const char *expected) {
    Complaints complaints = complaints_none();
    LayerRules rules = load_rules(&complaints);
    layer_rules_check(&rules, path, text, &complaints);
    const int count = complaints.count;
    cr_expect(strstr(complaints.text, expected), "\"%s\" is not in:\n%s", expected, complaints.text);
    complaints_free(&complaints);
    layer_rules_free(&rules);
    return count;
}

Test(layers, every_include_of_the_tree_is_allowed) {
    Complaints complaints = complaints_none();
    LayerRules rules = load_rules(&complaints);
    Tree tree = tree_load(tree_all_folders, tree_code_suffixes);
    cr_assert_gt(tree.count, 20, "only %zu files were found below %s", tree.count, NDTUNE_SOURCE_DIR);
    for (size_t i = 0; i < tree.count; i++) {
        layer_rules_check(&rules, tree.files[i].path, tree.files[i].text, &complaints);
    }
    tree_free(&tree);
    layer_rules_free(&rules);
    assert_no_complaints(&complaints);
}

Test(layers, an_upward_include_is_named_with_file_and_line) {
    cr_assert_eq(complaints_about("exec/worker/x.c", "// idea\n#include \"autotune/result.h\"\n",
                                  "exec/worker/x.c:2: exec/worker may not include \"autotune/result.h\""),
                 1);
}

Test(layers, sim_is_one_straight_line) {
    cr_assert_eq(complaints_about("sim/step/x.c", "#include \"sim/cost/cost.h\"\n", "may not include"), 1);
    cr_assert_eq(complaints_about("sim/cost/x.c", "#include \"sim/engine/engine.h\"\n", "may not include"), 1);
    cr_assert_eq(complaints_about("sim/engine/x.c", "#include \"sim/cost/cost.h\"\n", ""), 0);
}

Test(layers, the_executor_knows_no_prices) {
    cr_assert_eq(complaints_about("exec/launch/x.c", "#include \"sim/cost/cost.h\"\n", "may not include"), 1);
    cr_assert_eq(complaints_about("exec/device/x.c", "#include \"sim/engine/engine.h\"\n", "may not include"), 1);
}

Test(layers, kernels_include_nothing_of_the_project) {
    cr_assert_eq(complaints_about("kernels/cpu/x.c", "#include \"sim/base/error.h\"\n", "may not include"), 1);
    cr_assert_eq(complaints_about("kernels/cpu/x.c", "#include \"kernels/kernels.h\"\n", ""), 0);
}

Test(layers, nobody_includes_the_cli) {
    cr_assert_eq(complaints_about("autotune/x.c", "#include \"autotune/cli/command.h\"\n", "may not include"), 1);
    cr_assert_eq(complaints_about("reports/x.c", "#include \"autotune/cli/command.h\"\n", "may not include"), 1);
}

Test(layers, reports_see_the_result_types_and_no_more_of_autotune) {
    cr_assert_eq(complaints_about("reports/x.c", "#include \"autotune/result.h\"\n", ""), 0);
    cr_assert_eq(complaints_about("reports/x.c", "#include \"autotune/search/search.h\"\n", "may not include"), 1);
}

Test(layers, a_foreign_header_is_confined) {
    cr_assert_eq(complaints_about("autotune/x.c", "#include <sqlite3.h>\n", "autotune/x.c:1: <sqlite3.h> is confined"),
                 1);
    cr_assert_eq(complaints_about("autotune/store/x.c", "#include <sqlite3.h>\n", ""), 0);
    cr_assert_eq(complaints_about("exec/transport/shm.c", "#  include <mpi.h>\n", "<mpi.h> is confined"), 1);
    cr_assert_eq(complaints_about("sim/cost/x.c", "#include <gsl/gsl_fit.h>\n", "is confined"), 1);
}

Test(layers, an_unknown_foreign_header_is_refused) {
    cr_assert_eq(complaints_about("sim/base/x.c", "#include <glib.h>\n", "<glib.h> is not in layers.txt"), 1);
}

Test(layers, an_include_is_written_from_the_root) {
    cr_assert_eq(complaints_about("sim/base/x.c", "#include \"error.h\"\n", "not written from the repository root"), 1);
}
