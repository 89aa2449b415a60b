// How an added axis and a borrowed one affect a mesh once they are larger than 1: everything follows from their rows.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/frameworks/target.h"

static Mesh mesh_from(const char *text) {
    Mesh mesh = mesh_of_one();
    Error error = {0};
    cr_assert_eq(mesh_parse(text, &mesh, &error), STATUS_OK, "%s", error.message);
    return mesh;
}

Test(more_axes, an_added_axis_multiplies_the_world_and_is_the_slowest) {
    const Mesh mesh = mesh_from("idle=2,dp_shard=4,tp=2");
    cr_assert_eq(mesh_world(&mesh), 16);
    const MeshCoordinates at = mesh_coordinates(&mesh, 8);
    cr_assert_eq(at.at[AXIS_IDLE], 1);
    cr_assert_eq(at.at[AXIS_DP_SHARD], 0);
    cr_assert_eq(mesh_rank(&mesh, &at), 8);
}

Test(more_axes, stages_are_in_no_batch_and_no_group_of_data) {
    const TrainPlan plan = {
        .mesh = mesh_from("idle=2,dp_replicate=3,dp_shard=4,cp=2"), .seq = 4096, .micro_batch = 5, .grad_accum = 7};
    cr_assert_eq(plan_global_batch(&plan), 5 * 3 * 4 * 7);
    cr_assert_eq(plan_local_tokens(&plan), 5 * 4096 / 2);
    cr_assert_eq(plan_shard_count(&plan), 4 * 2);
    cr_assert_eq(mesh_group_size(&plan.mesh, AXES_DATA_GROUP), 3 * 4 * 2);
    cr_assert_eq(mesh_group_size(&plan.mesh, AXES_NORM_GROUP), 4 * 2);
}

Test(more_axes, copies_multiply_the_batch) {
    const TrainPlan plan = {.mesh = mesh_from("twin=3,dp_shard=4"), .seq = 4096, .micro_batch = 5, .grad_accum = 7};
    cr_assert_eq(plan_global_batch(&plan), 5 * 3 * 4 * 7);
    cr_assert_eq(mesh_group_size(&plan.mesh, AXES_DATA_GROUP), 3 * 4);
}

Test(more_axes, a_framework_refuses_an_axis_that_it_does_not_name_whatever_its_role) {
    static const char *const axes[] = {"idle", "lent", "twin"};
    int count = 0;
    const Target *targets = target_table(&count);
    Arena arena = {0};
    ModelSpec model;
    Error error = {0};
    cr_assert_eq(model_find("llama-3-8b", NULL, &model, &error), STATUS_OK, "%s", error.message);
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof axes / sizeof axes[0]; k++) {
            const char *const mesh = arena_format(&arena, "dp_shard=2,%s=2", axes[k]), *reason = NULL;
            const TrainPlan plan = {.mesh = mesh_from(mesh), .seq = 4096, .micro_batch = 1, .grad_accum = 1};
            target_check(&targets[i], &model, &plan, &arena, &reason);
            cr_assert_not_null(reason, "%s runs %s", targets[i].name, mesh);
            cr_assert_str_eq(reason, arena_format(&arena, "%s has no %s: use %s=1", targets[i].name, axes[k], axes[k]));
        }
    }
    arena_free(&arena);
}

Test(more_axes, a_borrowed_axis_adds_no_rank_and_changes_no_batch) {
    const TrainPlan plan = {
        .mesh = mesh_from("dp_shard=4,cp=2,lent=4,tp=2"), .seq = 4096, .micro_batch = 1, .grad_accum = 1};
    cr_assert_eq(mesh_world(&plan.mesh), 16);
    cr_assert_eq(plan_global_batch(&plan), 4);
    cr_assert_eq(plan_local_tokens(&plan), 2048);
    cr_assert_eq(plan_shard_count(&plan), 8);
}

// dp_shard 4 x cp 2 in groups of 4: two neighbouring shards with their cp ranks, tp apart.
Test(more_axes, groups_of_a_borrowed_axis_are_parts_of_its_lenders_group) {
    const Mesh mesh = mesh_from("dp_shard=4,cp=2,lent=4,tp=2");
    static const int members[] = {8, 10, 12, 14};
    for (int i = 0; i < 4; i++) {
        const MeshCoordinates at = mesh_coordinates(&mesh, members[i]);
        cr_assert_eq(at.at[AXIS_LENT], i);
        cr_assert_eq(mesh_group_index(&mesh, AXIS_BIT(AXIS_LENT), &at), i);
        for (int j = 0; j < 4; j++) {
            cr_assert_eq(mesh_group_member(&mesh, AXIS_BIT(AXIS_LENT), &at, j), members[j]);
        }
    }
    const GroupPlacement placement = mesh_group_placement(&mesh, AXIS_BIT(AXIS_LENT), 4);
    cr_assert_eq(placement.size, 4);
    cr_assert_eq(placement.nodes, 2);
    cr_assert_eq(placement.per_node, 2);
    cr_assert_eq(placement.siblings, 2);
    cr_assert_eq(placement.span, 7);
}

Test(more_axes, a_group_with_its_lenders_is_theirs) {
    const Mesh mesh = mesh_from("dp_shard=4,cp=2,lent=4");
    cr_assert_eq(mesh_group_size(&mesh, AXIS_BIT(AXIS_LENT) | AXES_SHARD_GROUP), 8);
}

Test(more_axes, what_cannot_be_borrowed_evenly_is_refused) {
    Mesh mesh;
    Error error = {0};
    cr_assert_eq(mesh_parse("dp_shard=4,cp=3,lent=2", &mesh, &error), STATUS_USAGE);
    cr_assert_str_eq(
        error.message,
        "mesh \"dp_shard=4,cp=3,lent=2\": lent=2 must divide the ranks that it is taken from: use lent 1, 3, 6, 12");
    cr_assert_eq(mesh_parse("dp_shard=4,lent=8", &mesh, &error), STATUS_USAGE);
}

Test(more_axes, shapes_are_factorizations_over_the_axes_that_are_asked_for) {
    cr_assert_eq(mesh_enumerate(8, AXES_FIRST, NULL, 0), 20);                                    // C(3+3, 3)
    cr_assert_eq(mesh_enumerate(8, AXES_FIRST | AXIS_BIT(AXIS_IDLE), NULL, 0), 35);              // C(3+4, 4)
    cr_assert_eq(mesh_enumerate(4, AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_LENT), NULL, 0), 3);  // lent 1, 2, 4
}

Test(more_axes, texts_and_hashes_name_an_added_axis_where_it_is_larger_than_1) {
    const Mesh without = mesh_from("dp_shard=8"), with = mesh_from("idle=2,dp_shard=8");
    char text[MESH_TEXT_BYTES];
    cr_assert_str_eq(mesh_text(&without, text), "dp_replicate=1,dp_shard=8,cp=1,tp=1");
    cr_assert_str_eq(mesh_text(&with, text), "idle=2,dp_replicate=1,dp_shard=8,cp=1,tp=1");
    cr_assert_str_eq(mesh_short_text(&with, text), "idle=2,dp_shard=8");
    Hash plain = hash_begin(), more = hash_begin(), by_hand = hash_begin();
    mesh_hash_sizes(&without, &plain);
    mesh_hash_sizes(&with, &more);
    static const int stored[] = {1, 8, 1, 1};  // as before there were more
    for (int i = 0; i < 4; i++) {
        hash_int(&by_hand, stored[i]);
    }
    const uint64_t number = hash_end(&plain);
    cr_assert_eq(number, hash_end(&by_hand));
    cr_assert_neq(number, hash_end(&more));
}

Test(more_axes, an_order_is_hashed_as_before_while_added_axes_are_in_their_places) {
    Mesh mesh = mesh_from("dp_shard=4,tp=2");
    Error error = {0};
    cr_assert_eq(axis_order_parse("tp,dp_shard", &mesh.order, &error), STATUS_OK, "%s", error.message);
    mesh_canonical_order(&mesh);
    Hash found = hash_begin(), by_hand = hash_begin();
    axis_order_hash(&mesh.order, &found);
    static const int stored[] = {0, 3, 2, 1};  // dp_replicate, tp, cp, dp_shard
    for (int i = 0; i < 4; i++) {
        hash_int(&by_hand, stored[i]);
    }
    cr_assert_eq(hash_end(&found), hash_end(&by_hand));
}

Test(more_axes, every_order_of_the_axes_larger_than_1_comes_once) {
    Mesh mesh = mesh_from("idle=2,dp_replicate=2,dp_shard=2,cp=2,lent=2,tp=2");
    int count = 1;
    while (mesh_next_order(&mesh)) {
        count++;
    }
    cr_assert_eq(count, 120);  // five own axes
    cr_assert(mesh_has_default_order(&mesh));
}
