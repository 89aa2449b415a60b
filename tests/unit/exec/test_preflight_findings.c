// Which rank is to blame, on hand-made results: 8 ranks on 2 machines, dp_shard=4 x tp=2.

#include <criterion/criterion.h>
#include <string.h>

#include "exec/launch/preflight.h"
#include "tests/support/sizes.h"

enum { WORLD = 8 };

static Arena arena;
static PreflightResult result;
static PreflightFindings findings;

static void add(AxisMask axes, const char *collective, double seconds) {
    PreflightGroups *groups = &result.groups[result.group_count++];
    *groups = (PreflightGroups){.axes = axes,
                                .collective = collective,
                                .payload_bytes = 4 << 20,
                                .seconds = ARENA_ARRAY(&arena, double, WORLD),
                                .wrong = ARENA_ARRAY(&arena, double, WORLD),
                                .predicted_s = seconds};
    for (int rank = 0; rank < WORLD; rank++) {
        groups->seconds[rank] = seconds;
    }
}

static void begin(void) {
    arena = (Arena){0};
    result = (PreflightResult){.mesh = {SIZES(1, 4, 1, 2)},
                               .world = WORLD,
                               .ranks = ARENA_ARRAY(&arena, PreflightRank, WORLD),
                               .groups = ARENA_ARRAY(&arena, PreflightGroups, 8),
                               .arena_bytes = 1e9};
    for (int rank = 0; rank < WORLD; rank++) {
        result.ranks[rank] = (PreflightRank){.host = rank < 4 ? "one" : "two",
                                             .node = rank / 4,
                                             .cores = 4,
                                             .memory_bytes = 32e9,
                                             .shared_bytes = 1e9,
                                             .locked_limit_bytes = -1,
                                             .address_limit_bytes = -1,
                                             .flop_per_s = 1e11};
    }
    add(AXIS_BIT(AXIS_TP), "all_gather", 1e-3);
    add(AXIS_BIT(AXIS_TP), "all_reduce", 2e-3);
    add(AXIS_BIT(AXIS_DP_SHARD), "all_gather", 1e-2);
    add(AXIS_BIT(AXIS_DP_SHARD), "all_reduce", 2e-2);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(preflight_findings, .init = begin, .fini = end);

// One sentence containing all the words, and whether it stops the run.
static void says(bool bad, const char *first, const char *second) {
    preflight_findings(&result, &arena, &findings);
    for (int i = 0; i < findings.count; i++) {
        const PreflightFinding *finding = &findings.rows[i];
        if (strstr(finding->sentence, first) && strstr(finding->sentence, second)) {
            cr_assert_eq(finding->bad, bad, "%s", finding->sentence);
            return;
        }
    }
    cr_assert_fail("no finding with %s and %s among %d", first, second, findings.count);
}

Test(preflight_findings, a_healthy_cluster_has_none) {
    preflight_findings(&result, &arena, &findings);
    cr_assert_eq(findings.count, 0, "%s", findings.count > 0 ? findings.rows[0].sentence : "");
}

Test(preflight_findings, a_wrong_sum_names_collective_rank_and_host) {
    result.groups[1].wrong[5] = 3;
    says(true, "all_reduce over tp: 3 elements", "rank 5 on two");
}

Test(preflight_findings, a_slow_rank_is_named) {
    result.ranks[6].flop_per_s = 3e10;
    says(true, "rank 6 on two computes slowly", "30.0 GFLOP/s");
    cr_assert_eq(findings.bad, 1);
}

static void slow_down(int axes_row, int rank) {
    result.groups[axes_row].seconds[rank] *= 5;
    result.groups[axes_row + 1].seconds[rank] *= 5;
}

Test(preflight_findings, a_slow_link_names_the_group_by_ranks_and_hosts) {
    slow_down(0, 2);  // tp groups: 0 1, 2 3, 4 5, 6 7
    says(true, "collectives over tp are slow", "ranks 2 3 on one");
    cr_assert_eq(findings.bad, 1);
}

Test(preflight_findings, a_host_whose_name_begins_anothers_is_named_too) {
    for (int rank = 0; rank < WORLD; rank++) {
        result.ranks[rank].host = rank < 4 ? "node10" : "node1";
    }
    slow_down(2, 2);  // dp_shard groups: 0 2 4 6 and 1 3 5 7
    says(true, "collectives over dp_shard are slow", "ranks 0 2 4 6 on node10, node1:");
}

Test(preflight_findings, a_rank_in_slow_groups_of_every_axis_is_named_alone) {
    slow_down(0, 2);
    slow_down(2, 2);  // dp_shard groups: 0 2 4 6 and 1 3 5 7
    says(true, "rank 2 on one is in a slow group of every axis", "look there");
}

Test(preflight_findings, one_disturbed_collective_accuses_nobody) {
    result.groups[0].seconds[2] *= 5;
    preflight_findings(&result, &arena, &findings);
    cr_assert_eq(findings.bad, 0);
}

Test(preflight_findings, a_network_far_below_the_profile_stops_the_run) {
    for (int rank = 0; rank < WORLD; rank++) {
        slow_down(2, rank);
    }
    says(true, "collectives over dp_shard take 5.0 times", "the network between the machines is slow");
}

Test(preflight_findings, inside_a_machine_the_profile_is_only_noted) {
    for (int rank = 0; rank < WORLD; rank++) {
        slow_down(0, rank);
    }
    says(false, "collectives over tp take 5.0 times", "profile");
    cr_assert_eq(findings.bad, 0);
}

Test(preflight_findings, memory_that_cannot_hold_its_ranks_stops_the_run) {
    for (int rank = 4; rank < WORLD; rank++) {
        result.ranks[rank].memory_bytes = 3e9;
    }
    says(true, "two has 2.79 GiB free", "4 ranks");
}

Test(preflight_findings, an_address_space_limit_below_a_rank_stops_the_run) {
    result.ranks[0].address_limit_bytes = 5e8;
    says(true, "ulimit -v", "on one");
}

Test(preflight_findings, clocks_shared_memory_and_locked_memory_are_notes) {
    result.ranks[4].clock_offset_s = -2.5;
    result.ranks[4].shared_bytes = 1e6;
    result.ranks[4].locked_limit_bytes = 65536;
    says(false, "the clock of two is 2.5 s behind", "one");
    says(false, "/dev/shm on two", "data loaders");
    says(false, "ulimit -l on two", "RDMA");
    cr_assert_eq(findings.bad, 0);
}

// Eight stages of one rank: ranks 1 to 7 receive from the previous one, and 0 to 6 from the next one.
static PreflightGroups *add_links(const char *collective, int step) {
    add(AXES_STAGE, collective, 1e-3);
    PreflightGroups *links = &result.groups[result.group_count - 1];
    links->from = ARENA_ARRAY(&arena, int, WORLD);
    for (int rank = 0; rank < WORLD; rank++) {
        const int from = rank - step;
        links->from[rank] = from < WORLD ? from : -1;
    }
    return links;
}

Test(preflight_findings, a_slow_link_between_stages_names_who_sends_and_who_receives) {
    add_links("send_forward", 1)->seconds[4] *= 5;
    add_links("send_backward", -1)->seconds[3] *= 4;
    says(true, "messages between stages (send_forward) are slow", "from rank 3 on one to rank 4 on two: 4.0 times");
    cr_assert_eq(findings.bad, 2, "and the way back");
}

Test(preflight_findings, a_message_that_was_slow_one_way_accuses_nobody) {
    add_links("send_forward", 1)->seconds[4] *= 5;
    add_links("send_backward", -1)->seconds[7] = 1;  // the last stage receives nothing
    preflight_findings(&result, &arena, &findings);
    cr_assert_eq(findings.count, 0, "%s", findings.count > 0 ? findings.rows[0].sentence : "");
}
