// Placement on nodes, with examples small enough to draw (sim/SOURCES.md C2: n, N, p, q).

#include <criterion/criterion.h>

#include "sim/axes/mesh.h"
#include "tests/support/sizes.h"

static void check(const Mesh *mesh, AxisMask mask, int ranks_per_node, GroupPlacement expected) {
    const GroupPlacement found = mesh_group_placement(mesh, mask, ranks_per_node);
    cr_assert_eq(found.size, expected.size, "n %d, not %d", found.size, expected.size);
    cr_assert_eq(found.nodes, expected.nodes, "N %d, not %d", found.nodes, expected.nodes);
    cr_assert_eq(found.per_node, expected.per_node, "p %d, not %d", found.per_node, expected.per_node);
    cr_assert_eq(found.siblings, expected.siblings, "q %d, not %d", found.siblings, expected.siblings);
}

Test(placement, tp_inside_a_node_stays_inside) {
    const Mesh mesh = {.size = SIZES(1, 8, 1, 4)};
    check(&mesh, AXIS_BIT(AXIS_TP), 8, (GroupPlacement){.size = 4, .nodes = 1, .per_node = 4, .siblings = 2});
}

Test(placement, a_shard_group_beside_tp_has_a_member_per_tp_slot) {
    const Mesh mesh = {.size = SIZES(1, 8, 1, 4)};  // 32 ranks, node = 2 shards x 4 tp
    check(&mesh, AXES_SHARD_GROUP, 8, (GroupPlacement){.size = 8, .nodes = 4, .per_node = 2, .siblings = 4});
}

Test(placement, tp_wider_than_a_node_takes_whole_nodes) {
    const Mesh mesh = {.size = SIZES(1, 2, 1, 16)};
    check(&mesh, AXIS_BIT(AXIS_TP), 8, (GroupPlacement){.size = 16, .nodes = 2, .per_node = 8, .siblings = 1});
    check(&mesh, AXIS_BIT(AXIS_DP_SHARD), 8, (GroupPlacement){.size = 2, .nodes = 2, .per_node = 1, .siblings = 8});
}

Test(placement, replicas_of_a_node_sized_block_are_one_per_node) {
    const Mesh mesh = {.size = SIZES(4, 8, 1, 1)};
    check(&mesh, AXIS_BIT(AXIS_DP_REPLICATE), 8, (GroupPlacement){.size = 4, .nodes = 4, .per_node = 1, .siblings = 8});
}

Test(placement, axes_that_are_not_neighbours_group_around_what_lies_between) {
    const Mesh mesh = {.size = SIZES(2, 2, 2, 4)};  // tp and dp_shard, not cp: two tp rows of 4, stride 8 apart
    check(&mesh, AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_TP), 16,
          (GroupPlacement){.size = 8, .nodes = 1, .per_node = 8, .siblings = 2});
    check(&mesh, AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_TP), 8,
          (GroupPlacement){.size = 8, .nodes = 2, .per_node = 4, .siblings = 2});
}

Test(placement, a_world_smaller_than_a_node_is_one_node) {
    const Mesh mesh = {.size = SIZES(1, 2, 1, 2)};
    check(&mesh, AXIS_ALL, 8, (GroupPlacement){.size = 4, .nodes = 1, .per_node = 4, .siblings = 1});
    check(&mesh, AXIS_BIT(AXIS_TP), 8, (GroupPlacement){.size = 2, .nodes = 1, .per_node = 2, .siblings = 2});
}

Test(placement, a_single_rank_group_has_every_rank_as_sibling) {
    const Mesh mesh = {.size = SIZES(1, 16, 1, 1)};
    check(&mesh, AXIS_BIT(AXIS_TP), 8, (GroupPlacement){.size = 1, .nodes = 1, .per_node = 1, .siblings = 8});
}

// 3 ranks per group on nodes of 8: 0-2, 3-5, 6|7-8, ... so a group can touch two nodes and a node holds parts of up to
// four.
Test(placement, groups_that_straddle_a_node_count_at_their_worst) {
    const Mesh mesh = {.size = SIZES(1, 8, 1, 3)};
    check(&mesh, AXIS_BIT(AXIS_TP), 8, (GroupPlacement){.size = 3, .nodes = 2, .per_node = 3, .siblings = 4});
}

// World 12 on nodes of 8: the second node is half full; shards 0..3 of tp slot t sit at t, 3+t, 6+t, 9+t.
Test(placement, a_last_node_that_is_not_full_is_no_trap) {
    const Mesh mesh = {.size = SIZES(1, 4, 1, 3)};
    check(&mesh, AXIS_BIT(AXIS_DP_SHARD), 8, (GroupPlacement){.size = 4, .nodes = 2, .per_node = 3, .siblings = 3});
}
