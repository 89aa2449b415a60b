// Which orders of a shape's axes are priced.

#include "autotune/search/rank_orders.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/orders.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;

static void begin(void) {
    arena = (Arena){0};
    request = request_for(&arena, 32, "7b", "dgx-h100", "ndtune");
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(rank_orders, .init = begin, .fini = end);

static int orders_of(const Mesh *shape, char texts[FIRST_ORDERS][MESH_TEXT_BYTES]) {
    int count;
    const AxisOrder *orders = rank_orders_find(&request, shape, &arena, &count);
    for (int i = 0; i < count; i++) {
        Mesh mesh = *shape;
        mesh.order = orders[i];
        mesh_order_text(&mesh, texts[i]);
    }
    return count;
}

// 4 nodes of 8. tp inside a node, or the shards inside a node and tp across: neither group is better off in both.
Test(rank_orders, the_default_comes_first_and_what_moves_another_group_into_the_node_next_to_it) {
    char texts[FIRST_ORDERS][MESH_TEXT_BYTES];
    const Mesh shape = {.size = SIZES(1, 8, 1, 4)};
    cr_assert_eq(orders_of(&shape, texts), 2);
    cr_assert_str_eq(texts[0], "default");
    cr_assert_str_eq(texts[1], "tp,dp_shard");
}

Test(rank_orders, inside_one_node_all_orders_land_alike) {
    char texts[FIRST_ORDERS][MESH_TEXT_BYTES];
    request.world = 8;
    cr_assert_eq(orders_of(&(Mesh){.size = SIZES(2, 2, 1, 2)}, texts), 1);
    cr_assert_str_eq(texts[0], "default");
}

// On boards without a switch the span of a group inside a node counts too.
Test(rank_orders, inside_a_node_without_a_switch_they_do_not) {
    Error error = {0};
    char texts[FIRST_ORDERS][MESH_TEXT_BYTES];
    cr_assert_eq(cluster_find("pcie-4090-8x", &arena, &request.cluster, &error), STATUS_OK, "%s", error.message);
    cr_assert_gt(request.cluster.node.group_count, 0);
    request.world = 8;
    cr_assert_gt(orders_of(&(Mesh){.size = SIZES(1, 4, 1, 2)}, texts), 1);
}

Test(rank_orders, an_axis_alone_has_one_order) {
    char texts[FIRST_ORDERS][MESH_TEXT_BYTES];
    cr_assert_eq(orders_of(&(Mesh){.size = SIZES(1, 32, 1, 1)}, texts), 1);
}

Test(rank_orders, a_target_with_one_order_has_that) {
    Error error = {0};
    char texts[FIRST_ORDERS][MESH_TEXT_BYTES];
    cr_assert_eq(target_find("accelerate", &request.target, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(orders_of(&(Mesh){.size = SIZES(1, 8, 1, 4)}, texts), 1);
    cr_assert_str_eq(texts[0], "default");
}

Test(rank_orders, an_asked_order_is_the_only_one) {
    char texts[FIRST_ORDERS][MESH_TEXT_BYTES];
    Error error = {0};
    request.any_order = false;
    cr_assert_eq(axis_order_parse("tp,cp,dp_shard", &request.order, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(orders_of(&(Mesh){.size = SIZES(1, 8, 1, 4)}, texts), 1);
    cr_assert_str_eq(texts[0], "tp,dp_shard");
}

// For every mask that a step has, some kept order places it as well as any legal order does.
Test(rank_orders, what_is_left_out_places_no_group_better) {
    static const AxisMask masks[] = {AXIS_BIT(AXIS_TP), AXIS_BIT(AXIS_CP), AXES_SHARD_GROUP,
                                     AXIS_BIT(AXIS_DP_REPLICATE)};
    Mesh meshes[512];
    const int count = mesh_enumerate(96, AXES_FIRST, meshes, 512);
    AxisOrder every[FIRST_ORDERS];
    first_orders(every);
    for (int i = 0; i < count; i++) {
        int kept_count;
        const AxisOrder *kept = rank_orders_find(&request, &meshes[i], &arena, &kept_count);
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
            int best = 1 << 20, best_kept = 1 << 20;
            for (int k = 0; k < FIRST_ORDERS; k++) {
                Mesh mesh = meshes[i];
                mesh.order = every[k];
                const int nodes = mesh_group_placement(&mesh, masks[m], 8).nodes;
                best = nodes < best ? nodes : best;
                mesh.order = kept[k < kept_count ? k : 0];
                const int nodes_kept = mesh_group_placement(&mesh, masks[m], 8).nodes;
                best_kept = nodes_kept < best_kept ? nodes_kept : best_kept;
            }
            char text[MESH_TEXT_BYTES];
            cr_assert_eq(best, best_kept, "%s mask %u", mesh_text(&meshes[i], text), masks[m]);
        }
    }
}
