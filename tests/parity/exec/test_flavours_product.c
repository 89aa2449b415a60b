// Many plans of every target's program against one rank, as test_flavours.c with few.

#include <criterion/criterion.h>

#include "tests/parity/exec/flavour_case.h"

Test(flavours_product, of_world_2_trains_as_one_rank) {
    flavour_all_train(2, 24);
}

Test(flavours_product, of_world_4_trains_as_one_rank) {
    flavour_all_train(4, 12);
}

Test(flavours_product, of_world_8_trains_as_one_rank) {
    flavour_all_train(8, 3);
}
