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
