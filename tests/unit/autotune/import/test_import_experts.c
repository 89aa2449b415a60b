// Ranks of experts in files of frameworks.

#include <criterion/criterion.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"

Test(import_experts, ranks_of_experts_are_read_and_add_none_to_the_world) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    const char *text = "[model]\nname = \"qwen3\"\nflavor = \"30B-A3B\"\n[parallelism]\n"
                       "data_parallel_shard_degree = 64\nexpert_parallel_degree = 8\n";
    ConfigNode *root = NULL;
    cr_assert_eq(config_parse(text, "file", SYNTAX_TOML, &arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(import_tree(root, "file", "torchtitan", &arena, &import, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(import.said.size[AXIS_EP], 8);
    cr_assert_eq(import.said.size[AXIS_DP_SHARD], 64);
    cr_assert_str_eq(import.preset, "qwen3-30b-a3b");
    arena_free(&arena);
}

Test(import_experts, another_way_of_tokens_to_experts_is_read) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    const char *text = "[model]\nname = \"qwen3\"\nflavor = \"30B-A3B\"\n[parallelism]\n"
                       "data_parallel_shard_degree = 64\nexpert_parallel_degree = 8\n"
                       "expert_parallel_comm_backend = \"deepep\"\n";
    ConfigNode *root = NULL;
    cr_assert_eq(config_parse(text, "file", SYNTAX_TOML, &arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(import_tree(root, "file", "torchtitan", &arena, &import, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(import.said.choice[PLAN_DISPATCH], DISPATCH_DEEPEP);
    arena_free(&arena);
}
