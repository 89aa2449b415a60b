// Rank arithmetic on worked examples: order of the axes, groups, enumeration, text.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "sim/axes/mesh.h"
#include "tests/support/orders.h"
#include "tests/support/sizes.h"

static const Mesh example = {.size = SIZES(2, 3, 2, 4)};  // 48 ranks

Test(mesh, tp_is_fastest_and_dp_replicate_slowest) {
    cr_assert_eq(mesh_rank(&example, &(MeshCoordinates){PLACES(0, 0, 0, 1)}), 1);
    cr_assert_eq(mesh_rank(&example, &(MeshCoordinates){PLACES(0, 0, 1, 0)}), 4);   // T
    cr_assert_eq(mesh_rank(&example, &(MeshCoordinates){PLACES(0, 1, 0, 0)}), 8);   // C*T
    cr_assert_eq(mesh_rank(&example, &(MeshCoordinates){PLACES(1, 0, 0, 0)}), 24);  // S*C*T
}

Test(mesh, the_world_is_the_product) {
    cr_assert_eq(mesh_world(&example), 48);
}

Test(mesh, the_shard_group_has_stride_tp_and_size_shard_times_cp) {
    const MeshCoordinates at = {PLACES(1, 2, 0, 3)};
    cr_assert_eq(mesh_group_size(&example, AXES_SHARD_GROUP), 6);
    for (int index = 0; index < 6; index++) {
        cr_assert_eq(mesh_group_member(&example, AXES_SHARD_GROUP, &at, index), 24 + 3 + 4 * index);
    }
    cr_assert_eq(mesh_group_index(&example, AXES_SHARD_GROUP, &at), 4);  // s*C + c = 2*2 + 0
}

Test(mesh, the_group_of_no_axis_is_the_rank_alone) {
    const MeshCoordinates at = {PLACES(1, 2, 1, 3)};
    cr_assert_eq(mesh_group_size(&example, 0), 1);
    cr_assert_eq(mesh_group_index(&example, 0, &at), 0);
    cr_assert_eq(mesh_group_member(&example, 0, &at, 0), mesh_rank(&example, &at));
}

Test(mesh, the_group_of_all_axes_is_the_world_in_rank_order) {
    const MeshCoordinates at = {PLACES(1, 0, 1, 2)};
    cr_assert_eq(mesh_group_index(&example, AXIS_ALL, &at), mesh_rank(&example, &at));
    cr_assert_eq(mesh_group_member(&example, AXIS_ALL, &at, 17), 17);
}

// Ordered factorizations into 4 factors: product over the primes p^e of C(e+3, 3).
Test(mesh, every_ordered_factorization_is_counted) {
    cr_assert_eq(mesh_enumerate(1, AXES_FIRST, NULL, 0), 1);
    cr_assert_eq(mesh_enumerate(6, AXES_FIRST, NULL, 0), 16);      // 2*3: 4*4
    cr_assert_eq(mesh_enumerate(7, AXES_FIRST, NULL, 0), 4);       // 7: 4
    cr_assert_eq(mesh_enumerate(24, AXES_FIRST, NULL, 0), 80);     // 2^3*3: 20*4
    cr_assert_eq(mesh_enumerate(32, AXES_FIRST, NULL, 0), 56);     // 2^5: 56
    cr_assert_eq(mesh_enumerate(96, AXES_FIRST, NULL, 0), 224);    // 2^5*3: 56*4
    cr_assert_eq(mesh_enumerate(1000, AXES_FIRST, NULL, 0), 400);  // 2^3*5^3: 20*20
}

Test(mesh, a_full_list_is_left_alone_but_counted) {
    Mesh meshes[3] = {{.size = SIZES(9, 9, 9, 9)}, {.size = SIZES(9, 9, 9, 9)}, {.size = SIZES(9, 9, 9, 9)}};
    cr_assert_eq(mesh_enumerate(7, AXES_FIRST, meshes, 2), 4);
    cr_assert_eq(meshes[0].size[AXIS_TP], 7);
    cr_assert_eq(meshes[1].size[AXIS_CP], 7);
    cr_assert_eq(meshes[2].size[AXIS_DP_REPLICATE], 9);
}

Test(mesh, text_names_all_axes) {
    char text[MESH_TEXT_BYTES];
    cr_assert_str_eq(mesh_text(&example, text), "dp_replicate=2,dp_shard=3,cp=2,tp=4");
}

Test(mesh, the_longest_text_fits) {
    const Mesh mesh = {.size = SIZES(MESH_MAX_WORLD, MESH_MAX_WORLD, MESH_MAX_WORLD, MESH_MAX_WORLD)};
    char text[MESH_TEXT_BYTES];
    cr_assert_eq(strlen(mesh_text(&mesh, text)), strlen("dp_replicate=,dp_shard=,cp=,tp=") + 4 * strlen("1048576"));
}

Test(mesh, axes_that_are_not_named_are_one) {
    Mesh mesh = {.size = {0}};
    Error error = {0};
    cr_assert_eq(mesh_parse("tp=2,dp_shard=8", &mesh, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(mesh.size[AXIS_DP_REPLICATE], 1);
    cr_assert_eq(mesh.size[AXIS_DP_SHARD], 8);
    cr_assert_eq(mesh.size[AXIS_CP], 1);
    cr_assert_eq(mesh.size[AXIS_TP], 2);
}

static void check_refused(const char *text, const char *message, const char *hint) {
    Mesh mesh = {.size = SIZES(7, 7, 7, 7)};
    Error error = {0};
    cr_assert_eq(mesh_parse(text, &mesh, &error), STATUS_USAGE, "%s was taken", text);
    cr_assert_str_eq(error.message, message);
    cr_assert_str_eq(error.hint, hint);
    cr_assert_eq(mesh.size[AXIS_TP], 7, "a refused text must not touch the mesh");
}

Test(mesh, refusals_echo_the_word_and_say_what_is_allowed) {
    char names[AXES_TEXT_BYTES], message[ERROR_MESSAGE_BYTES];
    axes_text(AXIS_ALL, ", ", names);
    snprintf(message, sizeof message, "mesh \"dp_shrad=8\": unknown axis \"dp_shrad\"; axes are %s", names);
    check_refused("dp_shrad=8", message, "did you mean dp_shard?");
    snprintf(message, sizeof message, "mesh \"column=8\": unknown axis \"column\"; axes are %s", names);
    check_refused("column=8", message, "");
    check_refused("tp", "mesh \"tp\": \"tp\" must be axis=size, such as tp=8", "");
    check_refused("tp=0", "mesh \"tp=0\": tp must be a whole number from 1 to 1048576, got \"0\"", "");
    check_refused("tp=2x", "mesh \"tp=2x\": tp must be a whole number from 1 to 1048576, got \"2x\"", "");
    check_refused("tp=2,cp=2,tp=4", "mesh \"tp=2,cp=2,tp=4\": tp is given twice", "");
    check_refused("tp=2,", "mesh \"tp=2,\": \"\" must be axis=size, such as tp=8", "");
    check_refused("", "mesh \"\": must be a list such as dp_shard=8,tp=2", "");
}

Test(mesh, the_largest_world_is_inclusive) {
    Mesh mesh;
    Error error = {0};
    cr_assert_eq(mesh_parse("dp_shard=131072,tp=8", &mesh, &error), STATUS_OK, "%s", error.message);
    check_refused("dp_shard=131073,tp=8", "mesh \"dp_shard=131073,tp=8\": more than 1048576 ranks", "");
}

Test(mesh, a_product_that_would_overflow_is_refused) {
    Mesh mesh;
    Error error = {0};
    cr_assert_eq(mesh_parse("dp_replicate=1048576,dp_shard=1048576,cp=1048576,tp=1048576", &mesh, &error),
                 STATUS_USAGE);
}

// (cp, tp, dp_shard) from slow to fast on 2 x 3 x 4: dp_shard stride 1, tp stride 3, cp stride 12.
static Mesh reordered(void) {
    return (Mesh){.size = SIZES(1, 3, 2, 4), .order = order_of("dp_replicate,cp,tp,dp_shard")};
}

Test(mesh, another_order_gives_the_axes_other_strides) {
    const Mesh mesh = reordered();
    cr_assert_eq(mesh_rank(&mesh, &(MeshCoordinates){PLACES(0, 1, 0, 0)}), 1);
    cr_assert_eq(mesh_rank(&mesh, &(MeshCoordinates){PLACES(0, 0, 0, 1)}), 3);
    cr_assert_eq(mesh_rank(&mesh, &(MeshCoordinates){PLACES(0, 0, 1, 0)}), 12);
}

Test(mesh, a_shard_group_whose_axes_are_apart_has_two_strides) {
    const Mesh mesh = reordered();
    const MeshCoordinates at = {PLACES(0, 0, 0, 2)};  // tp 2: the ranks 6, 7, 8 and 18, 19, 20
    static const int members[] = {6, 7, 8, 18, 19, 20};
    cr_assert_eq(mesh_group_size(&mesh, AXES_SHARD_GROUP), 6);
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(mesh_group_member(&mesh, AXES_SHARD_GROUP, &at, i), members[i]);
    }
}

static void check_order(const char *text, const char *canonical) {
    Mesh mesh = {.size = SIZES(1, 4, 2, 4)};
    Error error = {0};
    char written[MESH_TEXT_BYTES];
    cr_assert_eq(axis_order_parse(text, &mesh.order, &error), STATUS_OK, "%s", error.message);
    cr_assert_str_eq(mesh_order_text(&mesh, written), canonical);
}

Test(mesh, axes_that_an_order_does_not_name_come_before_it) {
    check_order("tp,cp", "dp_shard,tp,cp");
    check_order("dp_shard", "cp,tp,dp_shard");
    check_order("dp-shard,cp,tp,dp_replicate", "default");
    check_order("default", "default");
}

Test(mesh, orders_that_are_none_are_refused) {
    AxisOrder order;
    Error error = {0};
    cr_assert_eq(axis_order_parse("tp,shard", &order, &error), STATUS_USAGE);
    char names[AXES_TEXT_BYTES], message[ERROR_MESSAGE_BYTES];
    snprintf(message, sizeof message,
             "rank order \"tp,shard\": unknown axis \"shard\"; it is \"default\" or a list of %s from slow to fast",
             axes_text(AXIS_ALL, ", ", names));
    cr_assert_str_eq(error.message, message);
    cr_assert_eq(axis_order_parse("tp,tp", &order, &error), STATUS_USAGE);
    cr_assert_str_eq(error.message, "rank order \"tp,tp\": tp is named twice");
    cr_assert_eq(axis_order_parse("", &order, &error), STATUS_USAGE);
}

// The 24 of all four axes, one for each pair of orders of two axes, one of one axis.
Test(mesh, orders_are_those_of_the_axes_larger_than_1) {
    static const struct {
        const char *mesh;
        int orders;
    } cases[] = {{"dp_replicate=2,dp_shard=3,cp=2,tp=4", 24},
                 {"dp_shard=3,cp=2,tp=4", 6},
                 {"dp_replicate=2,tp=4", 2},
                 {"dp_shard=8", 1},
                 {"dp_shard=1", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Mesh mesh;
        Error error = {0};
        int count = 1;
        cr_assert_eq(mesh_parse(cases[i].mesh, &mesh, &error), STATUS_OK, "%s", error.message);
        while (mesh_next_order(&mesh)) {
            count++;
        }
        cr_assert_eq(count, cases[i].orders, "%s", cases[i].mesh);
        cr_assert(mesh_has_default_order(&mesh), "%s", cases[i].mesh);
    }
}

static bool stages_cross_by_ranks(const Mesh *mesh, int stage, int other, int ranks_per_node) {
    bool cross = false;
    for (int rank = 0; rank < mesh_world(mesh); rank++) {
        const MeshCoordinates at = mesh_coordinates(mesh, rank);
        if (mesh_stage_of(mesh, rank) == stage) {
            cross |= mesh_group_member(mesh, AXES_STAGE, &at, other) / ranks_per_node != rank / ranks_per_node;
        }
    }
    return cross;
}

Test(mesh, stages_cross_nodes_where_a_rank_and_its_counterpart_are_on_two_nodes) {
    enum { WORLD = 24, MOST = 400 };
    static Mesh meshes[MOST];
    const int count = mesh_enumerate(WORLD, AXES_FIRST | AXES_STAGE, meshes, MOST);
    cr_assert_leq(count, MOST);
    for (int i = 0; i < count; i++) {
        Mesh *mesh = &meshes[i];
        do {
            for (int per_node = 1; per_node <= WORLD; per_node++) {
                for (int stage = 0; stage + 1 < mesh_stages(mesh); stage++) {
                    cr_assert_eq(mesh_stages_cross(mesh, stage, stage + 1, per_node),
                                 stages_cross_by_ranks(mesh, stage, stage + 1, per_node));
                    cr_assert_eq(mesh_stages_cross(mesh, stage + 1, 0, per_node),
                                 stages_cross_by_ranks(mesh, stage + 1, 0, per_node));
                }
            }
        } while (mesh_next_order(mesh));
    }
}

// As DeepSpeed's hpZ makes them: consecutive ranks (deepspeed/utils/groups.py, _create_zero_param_parallel_group).
Test(mesh, the_nearest_ranks_of_a_group_are_consecutive_ones) {
    Mesh mesh = mesh_of_one();
    mesh.size[AXIS_DP_SHARD] = 8;
    mesh.size[AXIS_SP] = 2;
    const AxisMask nearest = axes_nearest(AXES_SHARD_GROUP, 4);
    cr_assert_eq(mesh_group_size(&mesh, nearest), 4);
    cr_assert_eq(mesh_group_placement(&mesh, nearest, 4).nodes, 1);
    for (int rank = 0; rank < mesh_world(&mesh); rank++) {
        const MeshCoordinates at = mesh_coordinates(&mesh, rank);
        cr_expect_eq(mesh_group_index(&mesh, nearest, &at), rank % 4);
        for (int i = 0; i < 4; i++) {
            cr_expect_eq(mesh_group_member(&mesh, nearest, &at, i), rank / 4 * 4 + i);
        }
    }
}
