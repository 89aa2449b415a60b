// All plans of every target's program against one rank: test_flavours.c runs a subset that covers every pair.

#include <criterion/criterion.h>

#include "tests/parity/exec/flavour_case.h"

Test(flavours_product, every_plan_of_world_2_trains_as_one_rank) {
    flavour_plans_train(2, 1);
}

Test(flavours_product, every_plan_of_world_4_trains_as_one_rank) {
    flavour_plans_train(4, 1);
}

// Of some 6000.
Test(flavours_product, every_seventh_plan_of_world_8_trains_as_one_rank) {
    flavour_plans_train(8, 7);
}
