// Invariants for any size, group and machine: random cases from a printed seed.

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "sim/cost/cost.h"
#include "tests/support/kernel_seconds.h"
#include "tests/unit/sim/cost/machines.h"

enum { SEED = 20261120, CASES = 4000 };

static uint64_t state;

static void property_begin(void) {
    state = SEED;
    fprintf(stderr, "seed %d\n", SEED);
}

TestSuite(property_cost, .init = property_begin);

static uint64_t draw(void) {  // xorshift64*
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ull;
}

static int draw_int(int low, int high) {
    return low + (int)(draw() % (uint64_t)(high - low + 1));
}

static double draw_log(double low, double high) {
    return low * pow(high / low, (double)(draw() >> 11) / 9007199254740992.0);
}

static GroupPlacement draw_group(void) {
    GroupPlacement group = {.per_node = 1 << draw_int(0, 3), .nodes = draw_int(1, 40)};
    group.size = group.per_node * group.nodes;
    group.siblings = draw_int(1, 8 / group.per_node);
    return group;
}

static CollectiveKind draw_kind(void) {
    return (CollectiveKind)draw_int(COLLECTIVE_ALL_GATHER, COLLECTIVE_SEND_RECV);
}

static const char *describe(CollectiveKind kind, const GroupPlacement *group, double bytes, char out[128]) {
    snprintf(out, 128, "kind %d, %d ranks, %d nodes, %d per node, %d siblings, %.0f bytes", (int)kind, group->size,
             group->nodes, group->per_node, group->siblings, bytes);
    return out;
}

Test(property_cost, collective_time_is_positive_and_grows_with_bytes) {
    const ClusterProfile h100 = machine_h100();
    char text[128];
    for (int i = 0; i < CASES; i++) {
        const GroupPlacement group = draw_group();
        const CollectiveKind kind = draw_kind();
        const double bytes = draw_log(8, 16e9), more = bytes * draw_log(1.001, 100);
        const double seconds = cost_collective_s(&h100, kind, &group, bytes, NULL);
        cr_assert(group.size == 1 ? seconds == 0 : seconds > 0, "%s", describe(kind, &group, bytes, text));
        cr_assert_leq(seconds, cost_collective_s(&h100, kind, &group, more, NULL), "%s",
                      describe(kind, &group, bytes, text));
    }
}

Test(property_cost, more_bandwidth_is_never_slower) {
    const ClusterProfile h100 = machine_h100();
    char text[128];
    for (int i = 0; i < CASES; i++) {
        const GroupPlacement group = draw_group();
        const CollectiveKind kind = draw_kind();
        const double bytes = draw_log(8, 16e9);
        ClusterProfile faster = h100;
        double *const knobs[] = {&faster.node.ring.bandwidth_bytes_per_s,   &faster.node.nvls.bandwidth_bytes_per_s,
                                 &faster.node.p2p.bandwidth_bytes_per_s,    &faster.fabric.nic_bytes_per_s,
                                 &faster.fabric.tree.bandwidth_bytes_per_s, &faster.fabric.efficiency};
        *knobs[draw_int(0, 5)] *= draw_log(1.01, 8);
        cr_assert_leq(cost_collective_s(&faster, kind, &group, bytes, NULL),
                      cost_collective_s(&h100, kind, &group, bytes, NULL), "%s", describe(kind, &group, bytes, text));
    }
}

// It contains one. Across nodes the bound is of one algorithm: a tree all-reduce starts in log N hops
// while NCCL has only rings for reduce-scatter there, so short ones really are slower than the all-reduce.
Test(property_cost, all_reduce_costs_at_least_its_reduce_scatter) {
    const ClusterProfile h100 = machine_h100();
    char text[128];
    for (int i = 0; i < CASES; i++) {
        const GroupPlacement group = draw_group();
        const double bytes = draw_log(8, 16e9);
        const CollectiveAlgorithm *ring = collective_table[0];
        cr_assert_str_eq(ring->name, "ring");
        const double ring_reduce_s = ring->cost(&h100, COLLECTIVE_ALL_REDUCE, &group, bytes).seconds;
        const double best_reduce_s = cost_collective_s(&h100, COLLECTIVE_ALL_REDUCE, &group, bytes, NULL);
        const double scatter_s = ring->cost(&h100, COLLECTIVE_REDUCE_SCATTER, &group, bytes).seconds;
        cr_assert_geq(ring_reduce_s, 0.95 * scatter_s, "%s", describe(COLLECTIVE_ALL_REDUCE, &group, bytes, text));
        if (group.nodes == 1 && group.size > 1) {
            cr_assert_geq(best_reduce_s, 0.95 * scatter_s, "%s", describe(COLLECTIVE_ALL_REDUCE, &group, bytes, text));
        }
    }
}

Test(property_cost, bus_bandwidth_stays_below_the_links) {
    const ClusterProfile h100 = machine_h100();
    char text[128];
    for (int i = 0; i < CASES; i++) {
        const GroupPlacement group = draw_group();
        const CollectiveKind kind = draw_kind();
        const double bytes = draw_log(8, 16e9);
        const CollectiveCost cost = cost_collective(&h100, kind, &group, bytes, NULL);
        cr_assert_leq(cost.link_s, cost.seconds * 1.0000001, "%s", describe(kind, &group, bytes, text));
        cr_assert_leq(cost.nic_s, cost.seconds * 1.0000001, "%s", describe(kind, &group, bytes, text));
        cr_assert(group.nodes > 1 || cost.nic_s == 0, "%s", describe(kind, &group, bytes, text));
    }
}

Test(property_cost, gemm_is_never_faster_than_the_roofline) {
    const Accelerator h100 = machine_h100().accelerator;
    const GemmRate *rate = &h100.gemm[DTYPE_BF16];
    for (int i = 0; i < CASES; i++) {
        const int64_t m = draw_int(1, 20000), n = draw_int(1, 20000), k = draw_int(1, 20000);
        const double seconds = gemm_s(&h100, DTYPE_BF16, m, n, k, 2);
        const double flops = 2.0 * (double)m * (double)n * (double)k;
        const double bytes = 2.0 * ((double)m * (double)k + (double)k * (double)n + (double)m * (double)n);
        const double bound_s =
            fmax(flops / rate->sustained_flop_per_s, bytes / (h100.memory_bytes_per_s * rate->bandwidth_factor));
        cr_assert_geq(seconds, bound_s, "%ld x %ld x %ld", (long)m, (long)n, (long)k);
    }
}

Test(property_cost, gemm_time_grows_with_each_size) {
    const Accelerator h100 = machine_h100().accelerator;
    for (int i = 0; i < CASES; i++) {
        const int64_t m = 8 * draw_int(1, 2000), n = 8 * draw_int(1, 2000), k = 8 * draw_int(1, 2000),
                      more = 8 * draw_int(1, 500);
        const double seconds = gemm_s(&h100, DTYPE_BF16, m, n, k, 2);
        cr_assert_leq(seconds, gemm_s(&h100, DTYPE_BF16, m + more, n, k, 2), "%ld x %ld x %ld", (long)m, (long)n,
                      (long)k);
        cr_assert_leq(seconds, gemm_s(&h100, DTYPE_BF16, m, n + more, k, 2), "%ld x %ld x %ld", (long)m, (long)n,
                      (long)k);
    }
}

Test(property_cost, attention_backward_costs_more_than_forward_and_slices_cost_more_than_the_whole) {
    const Accelerator h100 = machine_h100().accelerator;
    for (int i = 0; i < CASES; i++) {
        const int heads = draw_int(1, 64), sequences = draw_int(1, 4);
        const double length = 256.0 * draw_int(1, 64);
        const double forward_s = attention_s(&h100, DTYPE_BF16, sequences, heads, 128, length, length, 0.5, false);
        const double backward_s = attention_s(&h100, DTYPE_BF16, sequences, heads, 128, length, length, 0.5, true);
        const double half_s = attention_s(&h100, DTYPE_BF16, sequences, heads, 128, length / 2, length / 2, 1, false);
        cr_assert_gt(backward_s, forward_s, "%d heads, %g", heads, length);
        cr_assert_gt(4 * half_s, forward_s, "%d heads, %g", heads,
                     length);  // four blocks of half length, one of them unneeded
    }
}

static ClusterProfile draw_shipped(Arena *arena) {
    ClusterProfile profile;
    Error error;
    int count = 0;
    const char *const *names = cluster_names(&count);
    const Status status = cluster_find(names[draw_int(0, count - 1)], arena, &profile, &error);
    cr_assert_eq(status, STATUS_OK, "%s", error.message);
    return profile;
}

// A group of n ranks every `stride` ranks on the nodes of the profile.
static GroupPlacement draw_spread_group(const ClusterProfile *profile) {
    const int node = profile->node.accelerators;
    const int stride = draw_int(1, 2 * node);
    const int inside = stride < node ? (node - 1) / stride + 1 : 1;
    const bool across = profile->fabric.nics > 0 && draw_int(0, 1) == 1;
    GroupPlacement group = {.per_node = across ? inside : draw_int(1, inside), .nodes = across ? draw_int(2, 600) : 1};
    group.size = group.per_node * group.nodes;
    group.siblings = stride < node ? stride : node;
    group.span = (group.size - 1) * stride + 1;
    return group;
}

Test(property_cost, every_shipped_machine_prices_every_group_and_grows_with_bytes) {
    char text[128];
    Arena arena = {0};
    for (int i = 0; i < CASES / 10; i++) {
        const ClusterProfile profile = draw_shipped(&arena);
        for (int j = 0; j < 10; j++) {
            const GroupPlacement group = draw_spread_group(&profile);
            const CollectiveKind kind = draw_kind();
            const double bytes = draw_log(8, 16e9), more = bytes * draw_log(1.001, 100);
            const double seconds = cost_collective_s(&profile, kind, &group, bytes, NULL);
            cr_assert(group.size == 1 ? seconds == 0 : seconds > 0 && isfinite(seconds), "%s %s", profile.name,
                      describe(kind, &group, bytes, text));
            cr_assert_leq(seconds, cost_collective_s(&profile, kind, &group, more, NULL) * (1 + 1e-12), "%s %s",
                          profile.name, describe(kind, &group, bytes, text));
        }
        arena_reset(&arena);
    }
    arena_free(&arena);
}

Test(property_cost, an_oversubscribed_level_never_makes_a_collective_faster) {
    char text[128];
    Arena arena = {0};
    for (int i = 0; i < CASES / 10; i++) {
        const ClusterProfile profile = draw_shipped(&arena);
        ClusterProfile narrow = profile;
        narrow.fabric.tier[0] = (FabricTier){draw_int(1, 64), draw_log(1, 20), draw_log(1e-7, 1e-5)};
        narrow.fabric.tier[1] = (FabricTier){draw_int(65, 512), draw_log(1, 20), draw_log(1e-7, 1e-5)};
        ClusterProfile flat = profile;
        flat.fabric.tier[0].nodes = flat.fabric.tier[1].nodes = 0;
        const GroupPlacement group = draw_spread_group(&profile);
        const CollectiveKind kind = draw_kind();
        const double bytes = draw_log(8, 16e9);
        cr_assert_leq(cost_collective_s(&flat, kind, &group, bytes, NULL),
                      cost_collective_s(&narrow, kind, &group, bytes, NULL) * (1 + 1e-12), "%s %s", profile.name,
                      describe(kind, &group, bytes, text));
        arena_reset(&arena);
    }
    arena_free(&arena);
}
