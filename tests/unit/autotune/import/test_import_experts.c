// Ranks of experts in files of frameworks.

#include <criterion/criterion.h>
#include <string.h>

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

// integrations/expert_parallel: the product of all sizes is the world; ours are lent by the shards.
Test(import_experts, ranks_that_multiply_the_mesh_are_read_as_lent_by_its_shards) {
    static const struct {
        const char *words;
        int dp_shard;
    } cases[] = {{"dp_shard_size: 2\n", 8}, {"", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        Error error = {0};
        ConfigNode *root = NULL;
        const char *text = arena_format(&arena,
                                        "base_model: Qwen/Qwen3-30B-A3B\n%sexpert_parallel_size: 4\nplugins:\n"
                                        "  - axolotl.integrations.expert_parallel.ExpertParallelPlugin\n"
                                        "fsdp_version: 2\nfsdp_config:\n  offload_params: false\n",
                                        cases[i].words);
        cr_assert_eq(config_parse(text, "file", SYNTAX_YAML, &arena, &root, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(import_tree(root, "file", "axolotl", &arena, &import, &error), STATUS_OK, "%s", error.message);
        cr_expect_null(import.refusal, "%s", import.refusal);
        cr_expect_eq(import.said.size[AXIS_EP], 4);
        cr_expect_eq(import.said.size[AXIS_DP_SHARD], cases[i].dp_shard, "%d", import.said.size[AXIS_DP_SHARD]);
        arena_free(&arena);
    }
}

Test(import_experts, what_the_plugin_refuses_or_no_plan_holds_is_said) {
    static const struct {
        const char *words, *says;
    } cases[] = {{"", "whole on every rank"},
                 {"fsdp_config: {offload_params: false}\nfsdp_version: 2\ntensor_parallel_size: 2\n",
                  "EP x TP composition not yet supported"},
                 {"fsdp_config: {offload_params: false}\nfsdp_version: 2\ndp_replicate_size: 2\n",
                  "world_size must equal expert_parallel_size"},
                 {"fsdp_config: {offload_params: false}\nfsdp_version: 2\nexpert_parallel_token_capacity: 64\n",
                  "takes more than 64 tokens"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        Error error = {0};
        ConfigNode *root = NULL;
        const char *text = arena_format(&arena,
                                        "base_model: x\nexpert_parallel_size: 2\nplugins:\n"
                                        "  - axolotl.integrations.expert_parallel.ExpertParallelPlugin\n%s",
                                        cases[i].words);
        bool said = false;
        cr_assert_eq(config_parse(text, "file", SYNTAX_YAML, &arena, &root, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(import_tree(root, "file", "axolotl", &arena, &import, &error), STATUS_OK, "%s", error.message);
        for (int k = 0; k < import.finding_count; k++) {
            said |= strstr(import.findings[k].sentence, cases[i].says) != NULL;
        }
        cr_expect(said, "%s is not said of\n%s", cases[i].says, text);
        arena_free(&arena);
    }
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
