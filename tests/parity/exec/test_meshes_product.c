// Every choice of every mesh shape of worlds 1 to 12 against one rank: sharding stages 0 to 3, reshard always and
// never, recompute none and full, one and two micro-steps. test_meshes.c runs a subset that covers every pair.

#include <criterion/criterion.h>

#include "tests/parity/exec/mesh_case.h"

Test(meshes_product, every_choice_of_world_1_trains_as_one_rank) {
    mesh_plans_train(&mesh_twos, 1);
}

Test(meshes_product, every_choice_of_world_2_trains_as_one_rank) {
    mesh_plans_train(&mesh_twos, 2);
}

Test(meshes_product, every_choice_of_world_4_trains_as_one_rank) {
    mesh_plans_train(&mesh_twos, 4);
}

Test(meshes_product, every_choice_of_world_6_trains_as_one_rank) {
    mesh_plans_train(&mesh_threes, 6);
}

Test(meshes_product, every_choice_of_world_8_trains_as_one_rank) {
    mesh_plans_train(&mesh_twos, 8);
}

Test(meshes_product, every_choice_of_world_12_trains_as_one_rank) {
    mesh_plans_train(&mesh_threes, 12);
}

Test(meshes_product, every_pair_with_heads_cut_of_worlds_2_4_and_8_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_short, (const int[]){2, 4, 8, 0}, AXES_FIRST | AXIS_BIT(AXIS_SP), AXIS_SP);
}

Test(meshes_product, every_pair_with_adapters_of_worlds_2_4_and_8_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_adapters, (const int[]){2, 4, 8, 0}, AXES_FIRST | AXIS_BIT(AXIS_SP), AXIS_COUNT);
}

Test(meshes_product, every_pair_with_heads_cut_of_world_6_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_threes_short, (const int[]){6, 0}, AXES_FIRST | AXIS_BIT(AXIS_SP), AXIS_SP);
}

Test(meshes_product, every_choice_with_experts_spread_of_worlds_2_and_4_trains_as_one_rank) {
    mesh_plans_train_with(&mesh_twos_experts, 2, AXES_FIRST | AXIS_BIT(AXIS_EP), AXIS_EP);
    mesh_plans_train_with(&mesh_twos_experts, 4, AXES_FIRST | AXIS_BIT(AXIS_EP), AXIS_EP);
}

Test(meshes_product, every_pair_with_experts_spread_of_world_8_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_experts, (const int[]){8, 0}, AXES_FIRST | AXIS_BIT(AXIS_EP), AXIS_EP);
}

Test(meshes_product, every_pair_with_experts_spread_of_world_16_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_experts, (const int[]){16, 0}, AXES_FIRST | AXIS_BIT(AXIS_SP) | AXIS_BIT(AXIS_EP),
                          AXIS_EP);
}

Test(meshes_product, every_pair_with_experts_of_worlds_2_4_and_8_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_experts, (const int[]){2, 4, 8, 0}, AXES_FIRST | AXIS_BIT(AXIS_SP), AXIS_COUNT);
}
