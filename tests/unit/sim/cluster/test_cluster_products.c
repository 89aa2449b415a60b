// Timed products of a profile: reading, refusing, finding, adding, writing, and the effect of --set on them.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/hash_of.h"
#include "tests/unit/sim/cluster/cluster_text.h"

static Arena arena;
static Error error;

static void end(void) {
    arena_free(&arena);
}

TestSuite(cluster_products, .fini = end);

static Status read_products(const char *parent, const char *products, ClusterProfile *profile) {
    const char *text = arena_format(&arena,
                                    "{\"schema\": \"ndtune.cluster/1\", \"name\": \"mine\", \"description\": \"x\", "
                                    "\"extends\": \"%s\", \"products\": %s}",
                                    parent, products);
    return cluster_from_text(text, &arena, profile, &error);
}

#define ORIGIN ", \"source\": \"ours\", \"grade\": \"measured\"}"
#define THREE                                                                                                          \
    "{\"points\": [[\"4096x4096x512 tn bf16>fp32 add\", 4e-5], [\"128x4096x512 nt bf16>bf16 set\", 3e-6], "            \
    "[\"4096x4096x512 nt bf16>bf16 set\", 3e-5]]" ORIGIN

static ClusterProfile three_products(void) {
    ClusterProfile profile;
    cr_assert_eq(read_products("dgx-h100", THREE, &profile), STATUS_OK, "%s", error.message);
    return profile;
}

static double seconds_of(const ClusterProfile *profile, const char *words) {
    TimedGemm wanted;
    const char *rest;
    cr_assert(cluster_product_parse(words, &wanted, &rest) && *rest == '\0', "%s", words);
    const TimedGemm *found = cluster_product_find(&profile->accelerator, &wanted);
    return found ? found->seconds : 0;
}

Test(cluster_products, each_is_found_by_its_shape_layout_and_formats) {
    const ClusterProfile profile = three_products();
    cr_expect_eq(seconds_of(&profile, "128x4096x512 nt bf16>bf16 set"), 3e-6);
    cr_expect_eq(seconds_of(&profile, "4096x4096x512 nt bf16>bf16 set"), 3e-5);
    cr_expect_eq(seconds_of(&profile, "4096x4096x512 tn bf16>fp32 add"), 4e-5);
    cr_expect_eq(seconds_of(&profile, "4096x4096x512 tn bf16>fp32 set"), 0);
    cr_expect_eq(seconds_of(&profile, "4096x4096x512 nn bf16>bf16 set"), 0);
    cr_expect_eq(seconds_of(&profile, "512x4096x4096 nt bf16>bf16 set"), 0);
}

Test(cluster_products, they_are_one_row_of_provenance) {
    const ClusterProfile profile = three_products();
    const Provenance *row = &profile.provenance[profile.provenance_count - 1];
    cr_assert_str_eq(row->path, "products");
    cr_assert_str_eq(row->source, "ours");
    cr_assert_eq(row->value, 3);
}

static void check_refused(const char *parent, const char *products, const char *sentence) {
    ClusterProfile profile;
    cr_assert_eq(read_products(parent, products, &profile), STATUS_USAGE, "taken, although: %s", sentence);
    cr_assert_str_eq(error.message, sentence);
}

#define PAIR(n)                                                                                                        \
    "mine.json: products.points: pair " #n " must be [product, seconds], such as [\"4096x6144x4096 nt bf16>bf16 set\"" \
    ", 3e-4]"

Test(cluster_products, what_is_no_product_is_refused) {
    check_refused("dgx-h100", "{\"points\": [[\"8x8x8 nt bf16>bf16 set\", 1], [\"8x8 nt bf16>bf16 set\", 1]]" ORIGIN,
                  PAIR(2));
    check_refused("dgx-h100", "{\"points\": [[\"8x8x8 nt bf16>bf16\", 1]]" ORIGIN, PAIR(1));
    check_refused("dgx-h100", "{\"points\": [[\"08x8x8 nt bf16>bf16 set\", 1]]" ORIGIN, PAIR(1));
    check_refused("dgx-h100", "{\"points\": [[\"8x8x8 nx bf16>bf16 set\", 1]]" ORIGIN, PAIR(1));
    check_refused("dgx-h100", "{\"points\": [[\"8x8x8 nt bf17>bf16 set\", 1]]" ORIGIN, PAIR(1));
    check_refused("dgx-h100", "{\"points\": [[\"8x8x8 nt bf16>bf16 set plain\", 1]]" ORIGIN, PAIR(1));
    check_refused("dgx-h100", "{\"points\": [[\"8x8x8 nt bf16>bf16 set\", 0]]" ORIGIN,
                  "mine.json: products.points: pair 1: seconds must be above 0 and at most 1000, got 0");
    check_refused(
        "dgx-h100", "{\"points\": []" ORIGIN,
        "mine.json: products: must be an object with points (1 to 65536 pairs [product, seconds]), source and "
        "grade");
    check_refused("dgx-h100", "{\"points\": [[\"8x8x8 nt bf16>bf16 set\", 1]]}",
                  "mine.json: products.source: missing, must be text");
    check_refused("local-cpu", "{\"points\": [[\"8x8x8 nt fp32>fp32 set\", 1]]" ORIGIN,
                  "mine.json: products: times of products are read for accelerator.class \"gpu\" only");
}

Test(cluster_products, of_two_times_for_one_product_the_later_one_counts) {
    ClusterProfile profile = three_products();
    TimedGemm more[3];
    const char *rest;
    cluster_product_parse("64x64x64 nn bf16>bf16 set plain", &more[0], &rest);
    cr_assert_str_eq(rest, " plain");
    cluster_product_parse("4096x4096x512 nt bf16>bf16 set", &more[1], &rest);
    more[2] = more[1];
    more[0].seconds = 1e-6;
    more[1].seconds = 2e-5;
    more[2].seconds = 1e-5;
    cluster_products_add(&profile, more, 3, "theirs", &arena);
    cr_expect_eq(profile.accelerator.product_count, 4);
    cr_expect_eq(seconds_of(&profile, "64x64x64 nn bf16>bf16 set"), 1e-6);
    cr_expect_eq(seconds_of(&profile, "4096x4096x512 nt bf16>bf16 set"), 1e-5);
    cr_expect_eq(seconds_of(&profile, "4096x4096x512 tn bf16>fp32 add"), 4e-5);
    cr_expect_str_eq(profile.provenance[profile.provenance_count - 1].source, "theirs; the others: ours");
}

Test(cluster_products, what_is_written_reads_back) {
    const ClusterProfile profile = three_products(), again = cluster_read_back(&profile, &arena);
    cr_assert_eq(hash_of_cluster(&profile), hash_of_cluster(&again));
    cr_assert_eq(again.accelerator.product_count, 3);
}

Test(cluster_products, the_hash_sees_a_time) {
    ClusterProfile profile = three_products();
    const uint64_t before = hash_of_cluster(&profile);
    TimedGemm slower = profile.accelerator.products[0];
    slower.seconds *= 1.01;
    cluster_products_add(&profile, &slower, 1, "again", &arena);
    cr_assert_neq(hash_of_cluster(&profile), before);
}

static int products_after(const char *assignment) {
    ClusterProfile profile = three_products();
    cr_assert_eq(cluster_set(&profile, assignment, &arena, &error), STATUS_OK, "%s", error.message);
    char *text = NULL;
    cr_assert_eq(cluster_write(&profile, &text, &error), STATUS_OK);  // provenance and products still agree
    free(text);
    return profile.accelerator.product_count;
}

Test(cluster_products, a_setting_drops_the_times_that_it_contradicts) {
    cr_assert_eq(products_after("accelerator.gemm.bf16.sustained_flop_per_s=5e14"), 0);
    cr_assert_eq(products_after("accelerator.memory_bytes_per_s=2e12"), 0);
    cr_assert_eq(products_after("accelerator.memory_bytes=8e10"), 3);
    cr_assert_eq(products_after("node.ring.bandwidth_bytes_per_s=1e11"), 3);
}
