// Machine topologies other than eight GPUs on one switch, by hand on machines with round numbers: oversubscribed
// levels, boxes without a switch, racks, measured curves, sums on CPUs. The derivation is next to each number.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/cost/cost.h"
#include "tests/unit/sim/cost/machines.h"

static void check(const ClusterProfile *profile, CollectiveKind kind, GroupPlacement group, double bytes,
                  double expected_s) {
    const char *algorithm;
    const double seconds = cost_collective_s(profile, kind, &group, bytes, &algorithm);
    cr_assert_float_eq(seconds, expected_s, 1e-9 * expected_s, "%.9g us by %s, the fastest row, not %.9g us",
                       seconds * 1e6, algorithm, expected_s * 1e6);
}

// Groups of one rank per node on `nodes` nodes; 4 NICs of 10 GB/s at 0.5: one rank drives 5 GB/s.
static const double first_hops_s = 5e-6;  // link latency of machine_round

Test(golden_topology, a_ring_over_whole_pods_notices_only_oversubscription_above_the_pods_nodes) {
    // 8 nodes of 4, one group over all 32: W = 31/32 x 3.2 GB = 3.1 GB per node; NICs 4 x 10 x 0.5 = 20 GB/s: 155 ms.
    // Links (31 + 0.5)/32 x 3.2 GB / 100 GB/s = 31.5 ms. Pods of 4 nodes at 4:1: uplink 4 x 20 / 4 = 20 GB/s: 155 ms.
    // network = 155 x 2^(1/4) = 184.327103 ms, slower than the links
    // start 5 + 24 steps inside 1 us + 7 across 10 us = 99 us, and the level's 2 us once for its second pod
    ClusterProfile round = machine_round();
    round.fabric.tier[0] = (FabricTier){.nodes = 4, .oversubscription = 4, .latency_s = 2e-6};
    const double transfer_s = 0.155 * pow(2, 0.25);
    check(&round, COLLECTIVE_ALL_GATHER, (GroupPlacement){32, 8, 4, 1, 32, 0}, 3.2e9, 99e-6 + 2e-6 + transfer_s);
    cr_assert_float_eq(transfer_s, 184.327103e-3, 1e-9);
}

Test(golden_topology, replicas_that_lie_interleaved_divide_the_uplink) {
    // 2 members 4 nodes apart, the four ranks of a node in four groups; 4 nodes per pod: 16 groups leave the pod.
    // W = 1/2 x 80 MB = 40 MB; NIC share min(10, 40/4) x 0.5 = 5 GB/s: 8 ms; uplink 4 nodes x 20 GB/s / 2 = 40 GB/s,
    // 16 x 40 MB / 40 GB/s = 16 ms; (8^4 + 16^4)^(1/4) = 16.244345 ms; start 5 + 10 us
    ClusterProfile round = machine_round();
    round.fabric.tier[0] = (FabricTier){.nodes = 4, .oversubscription = 2, .latency_s = 0};
    const double transfer_s = pow(pow(8e-3, 4) + pow(16e-3, 4), 0.25);
    check(&round, COLLECTIVE_ALL_GATHER, (GroupPlacement){2, 2, 1, 4, 17, 0}, 80e6, first_hops_s + 10e-6 + transfer_s);
    cr_assert_float_eq(transfer_s, 16.244345e-3, 1e-9);
}

Test(golden_topology, a_group_inside_a_pod_does_not_notice_the_level) {
    ClusterProfile round = machine_round();
    const GroupPlacement group = {8, 2, 4, 1, 8, 0};
    const double before_s = cost_collective_s(&round, COLLECTIVE_ALL_GATHER, &group, 1e9, NULL);
    round.fabric.tier[0] = (FabricTier){.nodes = 4, .oversubscription = 100, .latency_s = 1};
    cr_assert_eq(cost_collective_s(&round, COLLECTIVE_ALL_GATHER, &group, 1e9, NULL), before_s);
}

Test(golden_topology, bandwidth_decays_per_doubling_beyond_two_nodes) {
    // 8 nodes, one rank each: 2 doublings beyond two at 10 %: 5 x 0.81 = 4.05 GB/s; 7/8 x 81 MB / 4.05 GB/s = 17.5 ms
    ClusterProfile round = machine_round();
    round.fabric.decay = 0.1;
    check(&round, COLLECTIVE_ALL_GATHER, (GroupPlacement){8, 8, 1, 1, 29, 0}, 81e6, first_hops_s + 70e-6 + 17.5e-3);
}

Test(golden_topology, a_group_drives_no_more_cards_than_the_library_has_channels) {
    // 2 nodes of 4: 7/8 x 80 MB over NICs of 20 GB/s are 3.5 ms, over the library's 8 GB/s 8.75 ms; links take 7.5/8 x
    // 80 MB / 100 GB/s = 0.75 ms; start 5 + 6 x 1 + 10 us
    ClusterProfile round = machine_round();
    round.fabric.group_bytes_per_s = 8e9;
    const double transfer_s = pow(pow(3.5e-3, 4) + pow(8.75e-3, 4), 0.25);
    check(&round, COLLECTIVE_ALL_GATHER, (GroupPlacement){8, 2, 4, 1, 8, 0}, 80e6, 21e-6 + transfer_s);
}

Test(golden_topology, a_groups_limit_shrinks_with_the_nodes) {
    // 8 nodes of one rank: 8 GB/s, half of it gone at each doubling beyond two: 2 GB/s; NICs 5 GB/s
    ClusterProfile round = machine_round();
    round.fabric.group_bytes_per_s = 8e9;
    round.fabric.group_decay = 0.5;
    const double wire_bytes = 7.0 / 8 * 80e6;
    const double transfer_s = pow(pow(wire_bytes / 2e9, 4) + pow(wire_bytes / 5e9, 4), 0.25);
    check(&round, COLLECTIVE_ALL_GATHER, (GroupPlacement){8, 8, 1, 1, 29, 0}, 80e6, first_hops_s + 70e-6 + transfer_s);
}

Test(golden_topology, starting_up_between_nodes_grows_with_every_doubling) {
    // 8 nodes: three doublings at 100 us with one rank of each; 2 nodes of 4: one at 700 us
    ClusterProfile round = machine_round();
    const GroupPlacement rail = {8, 8, 1, 1, 29, 0}, wide = {8, 2, 4, 1, 8, 0};
    const double rail_s = cost_collective_s(&round, COLLECTIVE_ALL_GATHER, &rail, 80e6, NULL);
    const double wide_s = cost_collective_s(&round, COLLECTIVE_ALL_REDUCE, &wide, 80e6, NULL);
    round.fabric.rail_latency_s = 100e-6;
    round.fabric.group_latency_s = 700e-6;
    check(&round, COLLECTIVE_ALL_GATHER, rail, 80e6, rail_s + 300e-6);
    check(&round, COLLECTIVE_ALL_REDUCE, wide, 80e6, wide_s + 700e-6);
}

// Eight ranks on a box without a switch: pairs 20 GB/s, fours 10, all of them 2.
static ClusterProfile machine_box(void) {
    ClusterProfile box = machine_round();
    box.node.accelerators = 8;
    box.node.ring_copy = 0;
    box.node.step_latency_s = 1e-6;
    box.node.group_count = 3;
    box.node.groups[0] = (GroupRate){2, 5e-6, {20e9, 0, 0}, 6e-6, {16e9, 0, 0}};
    box.node.groups[1] = (GroupRate){4, 8e-6, {10e9, 0, 0}, 9e-6, {8e9, 0, 0}};
    box.node.groups[2] = (GroupRate){8, 12e-6, {2e9, 0, 0}, 9e-6, {1e9, 0, 0}};
    return box;
}

Test(golden_topology, a_box_has_a_curve_per_group_size) {
    const ClusterProfile box = machine_box();
    // all-gather of four: 8 us + 3/4 x 40 MB / 10 GB/s = 3 ms; all-reduce twice that and 3 us for its second pass
    check(&box, COLLECTIVE_ALL_GATHER, (GroupPlacement){4, 1, 4, 2, 4, 0}, 40e6, 8e-6 + 3e-3);
    check(&box, COLLECTIVE_ALL_REDUCE, (GroupPlacement){4, 1, 4, 2, 4, 0}, 40e6, 11e-6 + 6e-3);
    // three neighbours use the row of four
    check(&box, COLLECTIVE_ALL_GATHER, (GroupPlacement){3, 1, 3, 2, 3, 0}, 30e6, 8e-6 + 2e-3);
    // a send of a pair: 6 us + 16 MB / 16 GB/s
    check(&box, COLLECTIVE_SEND_RECV, (GroupPlacement){2, 1, 2, 4, 2, 0}, 16e6, 6e-6 + 1e-3);
}

Test(golden_topology, groups_that_lie_between_each_other_cross_the_same_links) {
    // two ranks four apart (span 5): the row of eight, divided by four groups side by side
    const ClusterProfile box = machine_box();
    check(&box, COLLECTIVE_ALL_GATHER, (GroupPlacement){2, 1, 2, 4, 5, 0}, 4e6, 12e-6 + 0.5 * 4e6 / (2e9 / 4));
}

Test(golden_topology, a_tree_is_no_faster_than_the_links_inside_a_box) {
    // 2 nodes of 8: every rank sends 2 x 7/8 x 80 MB = 140 MB up and down its chain at 2 GB/s = 70 ms, the cards would
    // need 80 MB / 40 GB/s = 2 ms; start 5 + 14 x 1 + 2 x 7 us
    const ClusterProfile box = machine_box();
    const GroupPlacement all = {16, 2, 8, 1, 16, 0};
    const char *algorithm = NULL;
    const double seconds = cost_collective_s(&box, COLLECTIVE_ALL_REDUCE, &all, 80e6, &algorithm);
    cr_assert_str_eq(algorithm, "tree");
    cr_assert_float_eq(seconds, 33e-6 + 70e-3, 1e-12);
}

Test(golden_topology, sums_that_do_not_overlap_the_transfer_cost_their_time) {
    // 2 ranks, 10 GB/s, sums at 5 GB/s, 8 MB: reduce-scatter (1 + 1)/2 x 8 MB / 10 GB/s + 1/2 x 8 MB / 5 GB/s = 0.8 +
    // 0.8 ms; all-reduce (2 + 1)/2 x 0.8 + 0.8 ms; an all-gather sums nothing
    ClusterProfile cpu = machine_cpu();
    cpu.node.reduction_bytes_per_s = 5e9;
    const GroupPlacement pair = {2, 1, 2, 1, 2, 0};
    check(&cpu, COLLECTIVE_ALL_GATHER, pair, 8e6, 1e-6 + 0.8e-3);
    check(&cpu, COLLECTIVE_REDUCE_SCATTER, pair, 8e6, 1e-6 + 1.6e-3);
    check(&cpu, COLLECTIVE_ALL_REDUCE, pair, 8e6, 1.5e-6 + 2.0e-3);
}

static const double curve_bytes[] = {1e3, 1e5, 1e6}, curve_seconds[] = {1e-4, 1e-2, 1e-2};

static ClusterProfile machine_measured(MeasuredCurve *curve) {
    *curve = (MeasuredCurve){CURVE_ALL_GATHER, 2, 4, 3, curve_bytes, curve_seconds};
    ClusterProfile round = machine_round();
    round.curves = curve;
    round.curve_count = 1;
    return round;
}

Test(golden_topology, a_measured_curve_wins_inside_its_range) {
    MeasuredCurve curve;
    const ClusterProfile round = machine_measured(&curve);
    const GroupPlacement group = {8, 2, 4, 1, 8, 0};
    check(&round, COLLECTIVE_ALL_GATHER, group, 1e3, 1e-4);
    check(&round, COLLECTIVE_ALL_GATHER, group, 1e4, 1e-3);  // a straight line in log-log of slope 1
    check(&round, COLLECTIVE_ALL_GATHER, group, 3e5, 1e-2);
    const char *algorithm = NULL;
    cost_collective_s(&round, COLLECTIVE_ALL_GATHER, &group, 1e4, &algorithm);
    cr_assert_str_eq(algorithm, "measured");
}

Test(golden_topology, outside_its_range_the_formula_is_scaled_to_meet_it) {
    MeasuredCurve curve;
    const ClusterProfile with = machine_measured(&curve), without = machine_round();
    const GroupPlacement group = {8, 2, 4, 1, 8, 0};
    const double at_end_s = cost_collective_s(&without, COLLECTIVE_ALL_GATHER, &group, 1e6, NULL);
    const double beyond_s = cost_collective_s(&without, COLLECTIVE_ALL_GATHER, &group, 7e6, NULL);
    check(&with, COLLECTIVE_ALL_GATHER, group, 7e6, 1e-2 * beyond_s / at_end_s);
}

Test(golden_topology, other_groups_and_collectives_keep_their_formula) {
    MeasuredCurve curve;
    const ClusterProfile with = machine_measured(&curve), without = machine_round();
    const GroupPlacement others[] = {{4, 2, 2, 1, 6, 0}, {8, 2, 4, 2, 8, 0}, {8, 4, 2, 1, 14, 0}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        check(&with, COLLECTIVE_ALL_GATHER, others[i], 1e5,
              cost_collective_s(&without, COLLECTIVE_ALL_GATHER, &others[i], 1e5, NULL));
    }
    const GroupPlacement same = {8, 2, 4, 1, 8, 0};
    check(&with, COLLECTIVE_REDUCE_SCATTER, same, 1e5,
          cost_collective_s(&without, COLLECTIVE_REDUCE_SCATTER, &same, 1e5, NULL));
}
