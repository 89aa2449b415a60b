// Expert parallelism in framework config files.

#include <criterion/criterion.h>
#include <stdio.h>
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

Test(import_experts, whole_replicas_of_megatron_lend_their_ranks_to_experts) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    ConfigNode *root = NULL;
    const char *text = "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
                       "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --num-experts 8 "
                       "--expert-model-parallel-size 8 --global-batch-size 16\n";
    cr_assert_eq(config_parse(text, "file", SYNTAX_SHELL, &arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(import_tree(root, "file", "megatron", &arena, &import, &error), STATUS_OK, "%s", error.message);
    ImportChoices given = import_nothing_said();
    given.world = 16;
    import_settle(&import, &given);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect(import.said.choice[PLAN_ZERO] == 0 && import.said.size[AXIS_DP_SHARD] == 16);
    arena_free(&arena);
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

#define RECIPE(distributed)                                                                                            \
    "model:\n  pretrained_model_name_or_path: Qwen/Qwen3-30B-A3B\n  backend: {dispatcher: %s}\n"                       \
    "step_scheduler: {local_batch_size: 1, global_batch_size: 64}\ndistributed:\n  strategy: fsdp2\n" distributed

static void read_recipe(const char *format, const char *dispatcher, Arena *arena, Import *import) {
    Error error = {0};
    ConfigNode *root = NULL;
    char text[1024];
    snprintf(text, sizeof text, format, dispatcher);
    cr_assert_eq(config_parse(text, "file", SYNTAX_YAML, arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(import_tree(root, "file", "auto", arena, import, &error), STATUS_OK, "%s", error.message);
    cr_expect_str_eq(import->format->name, "automodel");
}

// MoEParallelizerConfig: experts stay as they were gathered unless the file says otherwise.
Test(import_experts, a_recipe_of_experts_is_its_mesh_dispatcher_and_resharding) {
    Arena arena = {0};
    Import import;
    read_recipe(RECIPE("  dp_size: 16\n  ep_size: 8\n"), "hybridep", &arena, &import);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_eq(import.said.size[AXIS_DP_SHARD], 16);
    cr_expect_eq(import.said.size[AXIS_EP], 8);
    cr_expect_eq(import.said.choice[PLAN_DISPATCH], DISPATCH_HYBRIDEP);
    cr_expect_eq(import.said.choice[PLAN_RESHARD], RESHARD_NEVER);
    arena_free(&arena);
}

Test(import_experts, none_of_a_recipe_is_null) {
    Arena arena = {0};
    Import import;
    ImportChoices given = import_nothing_said();
    given.world = 16;
    read_recipe(RECIPE("  dp_size: none\n  dp_replicate_size: None\n  tp_size: 2\n"), "deepep", &arena, &import);
    import_settle(&import, &given);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect(import.said.size[AXIS_DP_SHARD] == 8 && import.said.size[AXIS_TP] == 2);
    arena_free(&arena);
}

Test(import_experts, what_a_recipe_cannot_start_with_or_no_plan_holds_is_said) {
    static const struct {
        const char *format, *dispatcher, *says;
    } cases[] = {
        {RECIPE("  dp_size: 6\n  ep_size: 4\n"), "deepep", "non_pp_size=6 must be a multiple of ep_size=4"},
        {RECIPE("  dp_size: 8\n  dp_replicate_size: 3\n"), "deepep", "must be a multiple of dp_replicate_size"},
        {RECIPE("  dp_size: 4\n  dp_replicate_size: 4\n"), "deepep", "DDP usecase is not supported by FSDP2"},
        {RECIPE("  dp_size: 8\n  ep_size: 4\n"), "torch", "sums results by an all-reduce"},
        {RECIPE("  dp_size: 8\n  pp_size: 2\n"), "deepep", "pipelines of Automodel"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        bool said = false;
        read_recipe(cases[i].format, cases[i].dispatcher, &arena, &import);
        for (int k = 0; k < import.finding_count; k++) {
            said |= strstr(import.findings[k].sentence, cases[i].says) != NULL;
        }
        cr_expect(said, "%s is not said", cases[i].says);
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

// In bf16 too, where a plan drops it, as of dense layers it changes nothing.
Test(import_experts, fused_operations_of_experts_are_refused) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    ConfigNode *root = NULL;
    TuneRequest request = {0};
    const char *text = "model:\n  use_transformer_engine_op_fuser: true\n"
                       "train: {global_batch_size: 8, micro_batch_size: 1}\n";
    cr_assert_eq(config_parse(text, "file", SYNTAX_YAML, &arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(import_tree(root, "file", "megatron-bridge", &arena, &import, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(model_find("mixtral-8x7b", &arena, &request.model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find(import.target, &request.target, &error), STATUS_OK, "%s", error.message);
    import_refuse_choices(&import, &request);
    cr_assert_not_null(import.refusal);
    cr_expect_not_null(strstr(import.refusal, "op_fuser=on of layers of experts"), "%s", import.refusal);
    arena_free(&arena);
}
