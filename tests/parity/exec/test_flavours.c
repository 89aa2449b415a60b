// Every framework's program trains as one rank does: the targets differ in tensor parallelism (sequence-parallel,
// all-reduce, Hugging Face's), context parallelism (ring or gather, zigzag or contiguous), recompute (block, child,
// chosen operations, attention's core), gradient reduction (each micro-step or once, replicas too or later), units
// (root), copies around collectives and the loss (in place, fp32 copies). test_flavours_product.c runs many more plans.

#include <criterion/criterion.h>

#include "tests/parity/exec/flavour_case.h"

Test(flavours, every_target_trains_as_one_rank_on_world_2) {
    flavour_all_train(2, 3);
}

Test(flavours, every_target_trains_as_one_rank_on_world_4) {
    flavour_all_train(4, 1);
}
