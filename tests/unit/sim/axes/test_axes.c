// The table of axes: what follows from the roles, and the words that find a row.

#include <criterion/criterion.h>

#include "sim/axes/mesh.h"

Test(axes, masks_follow_from_the_roles) {
    cr_assert_eq(AXES_BATCH, AXIS_BIT(AXIS_DP_REPLICATE) | AXIS_BIT(AXIS_DP_SHARD));
    cr_assert_eq(AXES_SEQUENCE, AXIS_BIT(AXIS_CP) | AXIS_BIT(AXIS_SP));
    cr_assert_eq(AXES_SHARD_GROUP, AXIS_BIT(AXIS_DP_SHARD) | AXES_SEQUENCE);
    cr_assert_eq(AXES_DATA_GROUP, AXES_BATCH | AXES_SEQUENCE);
    cr_assert_eq(AXES_NORM_GROUP, AXES_SHARD_GROUP | AXIS_BIT(AXIS_TP));
}

Test(axes, every_axis_has_a_row_with_a_definition) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        cr_assert_not_null(axis_rows[axis], "%s", axis_names[axis]);
        cr_assert_not_null(axis_rows[axis]->definition, "%s", axis_names[axis]);
        cr_assert_eq(axis_find(axis_names[axis]), (Axis)axis);
    }
}

// Stores have hashes with them: the first four are 0 to 3 for ever.
Test(axes, numbers_are_those_of_the_first_stores_and_no_two_axes_share_one) {
    cr_assert_eq(axis_rows[AXIS_DP_REPLICATE]->number, 0);
    cr_assert_eq(axis_rows[AXIS_DP_SHARD]->number, 1);
    cr_assert_eq(axis_rows[AXIS_CP]->number, 2);
    cr_assert_eq(axis_rows[AXIS_TP]->number, 3);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        for (int other = 0; other < axis; other++) {
            cr_assert_neq(axis_rows[axis]->number, axis_rows[other]->number);
        }
    }
}

Test(axes, a_borrowed_axis_borrows_from_axes_with_ranks_of_their_own) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        cr_assert_eq(axis_lenders[axis] & ~AXES_OWN, 0, "%s", axis_names[axis]);
    }
}

Test(axes, words_of_other_tools_say_what_the_axis_is_here) {
    cr_assert_str_eq(axis_called("FSDP"), "the axis that FSDP shards over is dp_shard");
    cr_assert_str_eq(axis_called("context"), "did you mean cp?");
    cr_assert_str_eq(axis_called("pipeline"), "did you mean pp?");
    cr_assert_null(axis_called("head"));
}

Test(axes, an_axis_as_an_option_is_answered_by_its_row) {
    cr_assert_str_eq(axis_as_option("tp"),
                     "ndtune predict --mesh dp_shard=4,tp=2 is one shape; --max-tp N bounds a search");
    cr_assert_str_eq(axis_as_option("fsdp"), "ndtune predict --mesh dp_shard=8 is one shape; a search tries all; "
                                             "--zero is the sharding stage");
    cr_assert_null(axis_as_option("ddp"));
    cr_assert_null(axis_as_option("seq"));
}

Test(axes, a_group_is_charged_to_its_slowest_axis) {
    cr_assert_eq(axes_slowest(AXES_SHARD_GROUP), AXIS_DP_SHARD);
    cr_assert_eq(axes_slowest(AXIS_BIT(AXIS_TP)), AXIS_TP);
    cr_assert_eq(axes_slowest(0), AXIS_COUNT);
}
