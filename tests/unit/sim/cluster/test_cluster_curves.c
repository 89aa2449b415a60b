// Measured curves of a profile: reading, refusing, writing, and the effect of --set on them.

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/support/hash_of.h"
#include "tests/unit/sim/cluster/cluster_text.h"

static Arena arena;
static Error error;

static void end(void) {
    arena_free(&arena);
}

TestSuite(cluster_curves, .fini = end);

static Status read_curves(const char *curves, ClusterProfile *profile) {
    const char *text = arena_format(&arena,
                                    "{\"schema\": \"ndtune.cluster/1\", \"name\": \"mine\", \"description\": \"x\", "
                                    "\"extends\": \"dgx-h100\", \"curves\": %s}",
                                    curves);
    return cluster_from_text(text, &arena, profile, &error);
}

#define ORIGIN ", \"source\": \"sweep of ours\", \"grade\": \"measured\"}"
#define TWO                                                                                                            \
    "{\"all_reduce-2x8\": {\"points\": [[1024, 4e-5], [1048576, 0.0002]]" ORIGIN                                       \
    ", \"all_gather-1x8\": {\"points\": [[1024, 1e-5], [2048, 1e-5], [4096, 2e-5]]" ORIGIN "}"

static ClusterProfile two_curves(void) {
    ClusterProfile profile;
    cr_assert_eq(read_curves(TWO, &profile), STATUS_OK, "%s", error.message);
    return profile;
}

Test(cluster_curves, shape_points_and_source_are_read) {
    const ClusterProfile profile = two_curves();
    cr_assert_eq(profile.curve_count, 2);
    const MeasuredCurve *curve = &profile.curves[0];
    cr_assert(curve->kind == CURVE_ALL_REDUCE && curve->nodes == 2 && curve->per_node == 8 && curve->count == 2);
    cr_assert_eq(curve->bytes[1], 1048576.0);
    cr_assert_eq(curve->seconds[1], 0.0002);
    const Provenance *row = &profile.provenance[profile.provenance_count - 2];
    cr_assert_str_eq(row->path, "curves.all_reduce-2x8");
    cr_assert_str_eq(row->source, "sweep of ours");
    cr_assert_eq(row->value, 2.0);
}

static void check_refused(const char *curves, const char *sentence) {
    ClusterProfile profile;
    cr_assert_eq(read_curves(curves, &profile), STATUS_USAGE, "taken, although: %s", sentence);
    cr_assert_str_eq(error.message, sentence);
}

#define NAMES                                                                                                          \
    "curves are named collective-NODESxRANKS_PER_NODE, such as all_reduce-2x8; collectives are all_gather, "           \
    "reduce_scatter, all_reduce, send_recv and all_to_all"

Test(cluster_curves, names_that_say_no_shape_are_refused) {
    check_refused("{\"all_reduce\": {}}", "mine.json: curves.all_reduce: " NAMES);
    check_refused("{\"reduce-2x8\": {}}", "mine.json: curves.reduce-2x8: " NAMES);
    check_refused("{\"all_reduce-1x1\": {}}", "mine.json: curves.all_reduce-1x1: " NAMES);
    check_refused("{\"all_reduce-2x\": {}}", "mine.json: curves.all_reduce-2x: " NAMES);
    check_refused("{\"all_reduce--2x8\": {}}", "mine.json: curves.all_reduce--2x8: " NAMES);
}

Test(cluster_curves, a_name_is_written_one_way_only) {
    check_refused("{\"all_reduce-02x8\": {\"points\": [[1, 1], [2, 2]]" ORIGIN "}",
                  "mine.json: curves.all_reduce-2x8: a curve must be named exactly so");
}

Test(cluster_curves, points_are_pairs_that_ascend) {
    check_refused("{\"all_reduce-2x8\": {\"points\": [[1, 1]]" ORIGIN "}",
                  "mine.json: curves.all_reduce-2x8.points: must be a list of 2 to 4096 pairs [bytes, seconds]");
    check_refused("{\"all_reduce-2x8\": {\"points\": [[1, 1], [2]]" ORIGIN "}",
                  "mine.json: curves.all_reduce-2x8.points: pair 2 must be [bytes, seconds], both above 0 and at most "
                  "1e+15 and 1e+06");
    check_refused("{\"all_reduce-2x8\": {\"points\": [[1, 1], [2, -1]]" ORIGIN "}",
                  "mine.json: curves.all_reduce-2x8.points: pair 2 must be [bytes, seconds], both above 0 and at most "
                  "1e+15 and 1e+06");
    check_refused(
        "{\"all_reduce-2x8\": {\"points\": [[2, 1], [1, 2]]" ORIGIN "}",
        "mine.json: curves.all_reduce-2x8.points: pair 2: bytes must ascend and seconds must not descend, got "
        "[1, 2] after [2, 1]");
    check_refused(
        "{\"all_reduce-2x8\": {\"points\": [[1, 2], [2, 1]]" ORIGIN "}",
        "mine.json: curves.all_reduce-2x8.points: pair 2: bytes must ascend and seconds must not descend, got "
        "[2, 1] after [1, 2]");
}

Test(cluster_curves, a_curve_has_a_source_and_nothing_else) {
    check_refused("{\"all_reduce-2x8\": {\"points\": [[1, 1], [2, 2]]}}",
                  "mine.json: curves.all_reduce-2x8.source: missing, must be text");
    check_refused("{\"all_reduce-2x8\": {\"points\": [[1, 1], [2, 2]], \"unit\": \"s\"" ORIGIN "}",
                  "mine.json: curves.all_reduce-2x8.unit: unknown field");
    check_refused("[]", "mine.json: curves: must be an object");
    check_refused("{\"all_reduce-2x8\": 3}",
                  "mine.json: curves.all_reduce-2x8: must be an object with points, source and grade");
}

Test(cluster_curves, what_is_written_reads_back) {
    const ClusterProfile profile = two_curves(), again = cluster_read_back(&profile, &arena);
    cr_assert_eq(hash_of_cluster(&profile), hash_of_cluster(&again));
    cr_assert_eq(again.curve_count, 2);
}

Test(cluster_curves, the_hash_sees_a_point) {
    const ClusterProfile profile = two_curves();
    const uint64_t before = hash_of_cluster(&profile);
    ((double *)profile.curves[0].seconds)[0] *= 1.01;
    cr_assert_neq(hash_of_cluster(&profile), before);
}

static int curves_after(const char *assignment) {
    ClusterProfile profile = two_curves();
    cr_assert_eq(cluster_set(&profile, assignment, &arena, &error), STATUS_OK, "%s", error.message);
    char *text = NULL;
    cr_assert_eq(cluster_write(&profile, &text, &error), STATUS_OK);  // provenance and curves still agree
    free(text);
    return profile.curve_count;
}

Test(cluster_curves, a_setting_drops_the_curves_that_it_contradicts) {
    cr_assert_eq(curves_after("fabric.node_gbps=800"), 1);
    cr_assert_eq(curves_after("node.ring.bandwidth_bytes_per_s=1e11"), 0);
    cr_assert_eq(curves_after("price=2"), 2);
}
