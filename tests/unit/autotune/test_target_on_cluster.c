// What a target takes from the machine it runs on.

#include <criterion/criterion.h>

#include "autotune/predict/target_on_cluster.h"
#include "sim/frameworks/target.h"
#include "tests/support/sizes.h"

// Times seen on a processor of their own stay what they were.
Test(target_on_cluster, host_time_of_todays_targets_is_the_processors) {
    static const struct {
        const char *target, *cluster;
        double pace;
    } rows[] = {
        {"megatron", "dgx-a100-80g", 1.44}, {"torchtitan", "dgx-a100-80g", 1.44}, {"megatron", "gb300-nvl72", 1.36},
        {"megatron", "dgx-h100", 0},        {"megatron@2022", "dgx-a100-80g", 0}, {"nanotron", "dgx-a100-80g", 0},
        {"ndtune", "dgx-a100-80g", 0},      {"megatron", "perlmutter", 1},        {"megatron", "aws-p5", 1.46}};
    Arena arena = {0};
    Error error = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Target *target;
        ClusterProfile cluster;
        cr_assert_eq(target_find(rows[i].target, &target, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(cluster_find(rows[i].cluster, &arena, &cluster, &error), STATUS_OK, "%s", error.message);
        cr_expect_eq(target_on_cluster(target, &cluster, &arena)->runtime.host_pace, rows[i].pace, "row %zu", i);
    }
    arena_free(&arena);
}

// ndtune's own worker has no communicators to pay for.
Test(target_on_cluster, a_communicator_takes_more_where_each_pair_has_a_link) {
    static const struct {
        const char *target, *cluster;
        double bytes;
    } rows[] = {{"megatron", "oci-bm-gpu-mi355x", 512 << 20},
                {"torchtitan", "mi300x-8x", 512 << 20},
                {"megatron", "dgx-h100", 0.25e9},
                {"ndtune", "mi300x-8x", 0}};
    Arena arena = {0};
    Error error = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Target *target;
        ClusterProfile cluster;
        cr_assert_eq(target_find(rows[i].target, &target, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(cluster_find(rows[i].cluster, &arena, &cluster, &error), STATUS_OK, "%s", error.message);
        const double bytes = target_on_cluster(target, &cluster, &arena)->runtime.communicator_bytes;
        cr_expect_eq(bytes, rows[i].bytes, "row %zu: %.0f", i, bytes);
    }
    arena_free(&arena);
}
