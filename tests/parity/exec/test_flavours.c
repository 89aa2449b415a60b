// Every framework's program trains as one rank does: the targets differ in tensor parallelism (sequence-parallel,
// all-reduce, Hugging Face's), context parallelism (ring or gather, zigzag or contiguous), recompute (block, child,
// chosen operations, attention's core), gradient reduction (each micro-step or once, replicas too or later), units
// (root), copies around collectives and the loss (in place, fp32 copies). Here a pairwise covering of what they run on
// worlds 2 and 4; test_flavours_product.c runs all.

#include <criterion/criterion.h>

#include "tests/parity/exec/flavour_case.h"

Test(flavours, every_pair_of_target_axis_size_and_choice_trains_as_one_rank) {
    flavour_pairs_train();
}
