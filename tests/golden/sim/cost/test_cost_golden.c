// Costs computed by hand, the derivation next to each number. Formulas: sim/SOURCES.md H1, H4, H5, C1 to C7.
// The "round" machine (machines.h): 100 SMs, 100 TFLOP/s sustained, 1 TB/s, 100 GB/s links, 4 ranks and 4 NICs of 10
// GB/s per node at an efficiency of 0.5, no pipelining loss.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/cost/cost.h"
#include "tests/support/kernel_seconds.h"
#include "tests/unit/sim/cost/machines.h"

static void check(double seconds, double expected_s) {
    cr_assert(fabs(seconds / expected_s - 1) < 1e-6, "%.9g s, by hand %.9g s", seconds, expected_s);
}

static void check_collective(const ClusterProfile *profile, CollectiveKind kind, GroupPlacement group, double bytes,
                             double expected_s, const char *expected_algorithm) {
    const char *algorithm = NULL;
    const double seconds = cost_collective_s(profile, kind, &group, bytes, &algorithm);
    cr_assert_str_eq(algorithm, expected_algorithm, "the fastest row is %s, by hand it is %s", algorithm,
                     expected_algorithm);
    check(seconds, expected_s);
}

Test(golden_cost, ring_all_gather_in_a_node) {
    // n 4, s 3: a = 5 + 3 x 1 = 8 us; W/B = (3 + 0.5)/4 x 400 MB / 100 GB/s = 3.5 ms
    const ClusterProfile round = machine_round();
    check_collective(&round, COLLECTIVE_ALL_GATHER, (GroupPlacement){4, 1, 4, 1, 0, 0}, 4e8, 3.508e-3, "ring");
}

Test(golden_cost, ring_all_gather_over_two_nodes) {
    // n 8, N 2: s 7, sx 1: a = 5 + 6 x 1 + 1 x 10 = 21 us
    // links: 7.5/8 x 800 MB / 100 GB/s = 7.5 ms; NICs: 7/8 x 800 MB / (0.5 x 40 GB/s) = 35 ms, the slower
    const ClusterProfile round = machine_round();
    check_collective(&round, COLLECTIVE_REDUCE_SCATTER, (GroupPlacement){8, 2, 4, 1, 0, 0}, 8e8, 21e-6 + 35e-3, "ring");
}

Test(golden_cost, sibling_groups_divide_the_nics) {
    // n 2 on 2 nodes, p 1, q 4: Bnode = 0.5 x min(10, 40/4) = 5 GB/s: 1/2 x 100 MB / 5 GB/s = 10 ms; a = 5 + 10 = 15 us
    ClusterProfile round = machine_round();
    const GroupPlacement group = {2, 2, 1, 4, 0, 0};
    check_collective(&round, COLLECTIVE_ALL_GATHER, group, 1e8, 10.015e-3, "ring");
    // two NICs for the four groups: 0.5 x min(10, 20/4) = 2.5 GB/s
    round.fabric.nics = 2;
    check_collective(&round, COLLECTIVE_ALL_GATHER, group, 1e8, 20.015e-3, "ring");
}

Test(golden_cost, short_all_reduce_on_four_nodes_takes_the_tree) {
    // p 1, q 4: ring a = 5 + 6 x 10 = 65 us. Tree a = 5 + 2 x 2 x 7 = 33 us; w 2: 1 kB / 2.5 GB/s = 0.4 us
    // (smooth minimum with the 1 TB/s cap: below 1e-10 of it)
    const ClusterProfile round = machine_round();
    check_collective(&round, COLLECTIVE_ALL_REDUCE, (GroupPlacement){4, 4, 1, 4, 0, 0}, 1000, 33.4e-6, "tree");
}

Test(golden_cost, long_all_reduce_on_four_nodes_takes_the_ring) {
    // ring: 6/4 x 100 MB / 5 GB/s = 30 ms + 65 us; tree: 100 MB / 2.5 GB/s = 40 ms
    const ClusterProfile round = machine_round();
    check_collective(&round, COLLECTIVE_ALL_REDUCE, (GroupPlacement){4, 4, 1, 4, 0, 0}, 1e8, 30.065e-3, "ring");
}

Test(golden_cost, small_all_reduce_in_an_h100_node_takes_the_ring) {
    // S 1 kB, n 8: a = 4.5 + 14 x 0.85 = 16.4 us (NVLS starts at 20); W/B = 14.64/8 x 1000 / 400e9 = 4.575 ns
    // x = 2 x 0.5 x sqrt(16.4e-6 x 4.575e-9) = 2.73916e-7; y = 8 x 16.4e-6 = 1.312e-4; xy/sqrt(x2+y2) = 2.73915e-7
    const ClusterProfile h100 = machine_h100();
    check_collective(&h100, COLLECTIVE_ALL_REDUCE, (GroupPlacement){8, 1, 8, 1, 0, 0}, 1000,
                     16.4e-6 + 4.575e-9 + 2.73915e-7, "ring");
}

Test(golden_cost, large_all_reduce_in_an_h100_node_takes_nvls) {
    // S 256 MiB, n 8: W/B = 9/8 x 268435456 / 305e9 = 990.131 us; a 20 us
    // x = 1.4 sqrt(20e-6 x 990.131e-6) = 197.0105 us; y = 60 us; xy/sqrt(x2+y2) = 57.3971 us
    // (the ring: 1228.09 + 16.4 + 96.34 = 1340.8 us)
    const ClusterProfile h100 = machine_h100();
    check_collective(&h100, COLLECTIVE_ALL_REDUCE, (GroupPlacement){8, 1, 8, 1, 0, 0}, 268435456, 1067.5284e-6, "nvls");
}

Test(golden_cost, ring_hop_in_a_node) {
    // 4 us + 100 MB / 50 GB/s
    const ClusterProfile round = machine_round();
    check_collective(&round, COLLECTIVE_SEND_RECV, (GroupPlacement){4, 1, 4, 1, 0, 0}, 1e8, 2.004e-3, "p2p");
}

Test(golden_cost, ring_hop_across_nodes_is_one_flow) {
    // flow = min(0.5 x 10 GB/s, 0.4 x 10 GB/s) = 4 GB/s: 25 ms; a 20 us
    // x = 1.6 sqrt(20e-6 x 25e-3) = 1.1313708 ms; y 60 us
    // xy/sqrt(x2+y2) = 6.7882251e-8 / 1.1329607e-3 = 59.915807 us
    const ClusterProfile round = machine_round();
    check_collective(&round, COLLECTIVE_SEND_RECV, (GroupPlacement){4, 4, 1, 4, 0, 0}, 1e8,
                     25e-3 + 20e-6 + 59.915807e-6, "p2p");
}

Test(golden_cost, gemm_of_exactly_one_wave) {
    // 2560 x 1280 in tiles of 256 x 128: 100 blocks on 100 SMs, one wave of 2 x 256 x 128 x 8192 flop at 1 TFLOP/s
    // each: 536.870912 us. Operands: (2560 x 8192 + 8192 x 1280) x 2 + 2560 x 1280 x 2 B = 69.468160 MB at 1 TB/s
    // = 69.46816 us t = (536.870912^3 + 69.46816^3)^(1/3) = 536.870912 x (1 + 0.00216648)^(1/3) = 537.258343 us
    const ClusterProfile round = machine_round();
    check(gemm_s(&round.accelerator, DTYPE_BF16, 2560, 1280, 8192, 2), 537.258343e-6);
}

Test(golden_cost, gemm_of_one_row_more_pays_a_second_wave) {
    // 2561 rows: 11 x 10 = 110 blocks, two waves: 1073.741824 us (128 x 256: 21 x 5 = 105 blocks, the same; smaller
    // tiles run at half rate or less). Operands: (2561 x 8192 + 8192 x 1280) x 2 + 2561 x 1280 x 2 = 69.487104 MB
    // (69.487104/1073.741824)^3 = 2.71031e-4
    // t = 1073.741824 x (1 + 2.71031e-4)^(1/3) = 1073.838824 us
    const ClusterProfile round = machine_round();
    check(gemm_s(&round.accelerator, DTYPE_BF16, 2561, 1280, 8192, 2), 1073.838824e-6);
}

Test(golden_cost, gemm_of_half_a_wave_splits_k) {
    // 1280 x 1280 x 1000: 50 blocks of 65.536 us; split in two 100 blocks of 32.768 us and 2 x 8 x 1280 x 1280 B / 1
    // TB/s = 26.2144 us for the sum (in four: K/4 = 250 < 256). Operands 8.3968 us. t = (58.9824^3 + 8.3968^3)^(1/3)
    // = 58.9824 x (1 + 0.00288523)^(1/3) = 59.039072 us
    const ClusterProfile round = machine_round();
    check(gemm_s(&round.accelerator, DTYPE_BF16, 1280, 1280, 1000, 2), 59.039072e-6);
}

Test(golden_cost, causal_attention) {
    // F = 4 x 100 heads x 1024 x 1024 x 128 x 0.5 = 26.8435456 GFLOP; 800 query tiles on 100 SMs: whole waves,
    // occupancy 1 ramp = 512/(512 + 1024) = 1/3; diagonal = 0.75 x 1024/1152 = 2/3 rate = 125e12 x 0.5 x 2/9
    // = 13.8888889 TFLOP/s; floor 2 us
    const ClusterProfile round = machine_round();
    check(attention_s(&round.accelerator, DTYPE_BF16, 1, 100, 128, 1024, 1024, 0.5, false), 2e-6 + 1932.735283e-6);
}

Test(golden_cost, streaming_kernel) {
    // 2 us + 800 MB / (0.8 x 1 TB/s)
    const ClusterProfile round = machine_round();
    check(memory_bound_s(&round.accelerator, 8e8), 1.002e-3);
}

Test(golden_cost, eight_ranks_on_four_cores_take_turns) {
    // 512^3 on one core: 64 x 64 tiles cut evenly: 2 x 512^3 / 270 GFLOP/s = 994.2 us; two ranks per core: half the
    // rate
    const ClusterProfile cpu = machine_cpu(), shared = cost_shared_profile(&cpu, 8);
    const double compute_s = 2.0 * 512 * 512 * 512 / 270e9, memory_s = 3.0 * 512 * 512 * 4 / 40e9;
    const double alone_s = cbrt(pow(compute_s, 3) + pow(memory_s, 3));
    check(gemm_s(&cpu.accelerator, DTYPE_FP32, 512, 512, 512, 4), alone_s);
    check(gemm_s(&shared.accelerator, DTYPE_FP32, 512, 512, 512, 4), 2 * alone_s);
    // all-gather of 8 ranks, 8 MB: alone 0.5 + 7 x 0.5 = 4 us + (7 + 1)/8 x 8 MB / 10 GB/s = 800 us; one after the
    // other, twice that
    check_collective(&cpu, COLLECTIVE_ALL_GATHER, (GroupPlacement){8, 1, 8, 1, 0, 0}, 8e6, 804e-6, "ring");
    check_collective(&shared, COLLECTIVE_ALL_GATHER, (GroupPlacement){8, 1, 8, 1, 0, 0}, 8e6, 1608e-6, "ring");
}
