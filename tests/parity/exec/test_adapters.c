// Adapters beside frozen layers train as on one rank: beside every axis, with every choice, every type of model. Their B
// begins as zeros, so A's gradients are seen from the second step on.

#include <criterion/criterion.h>

#include "tests/parity/exec/exec_families.h"
#include "tests/parity/exec/mesh_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(adapters, .fini = clean);

Test(adapters, every_pair_of_axis_size_and_choice_of_worlds_2_and_4_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_adapters, (const int[]){2, 4, 0}, AXES_FIRST | AXIS_BIT(AXIS_SP), AXIS_COUNT);
}
