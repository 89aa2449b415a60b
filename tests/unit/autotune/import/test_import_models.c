// Which model a file trains that gives sizes and no name.

#include <criterion/criterion.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"

static const char *preset_of(const char *text, ConfigSyntax syntax, Arena *arena) {
    Import import;
    Error error = {0};
    ConfigNode *root = NULL;
    cr_assert_eq(config_parse(text, "file", syntax, arena, &root, &error), STATUS_OK, "%s\n%s", error.message, text);
    cr_assert_eq(import_tree(root, "file", "auto", arena, &import, &error), STATUS_OK, "%s\n%s", error.message, text);
    return import.preset ? import.preset : "none";
}

// Llama 2 70B and Llama 3 70B differ in the words that no size holds, and in this.
Test(import_models, models_of_the_same_sizes_are_told_apart_by_their_rotary_base) {
    static const struct {
        const char *sizes, *base;
        ConfigSyntax syntax;
    } files[] = {{"pretrain_gpt.py --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 "
                  "--num-attention-heads 64 --seq-length 4096 --micro-batch-size 1",
                  " --rotary-base 500000", SYNTAX_SHELL},
                 {"def config():\n    cfg.train.micro_batch_size = 1\n    cfg.model.num_layers = 80\n"
                  "    cfg.model.hidden_size = 8192\n    cfg.model.ffn_hidden_size = 28672\n"
                  "    cfg.model.num_attention_heads = 64\n    cfg.model.tensor_model_parallel_size = 8\n",
                  "    cfg.model.rotary_base = 500_000\n", SYNTAX_PYTHON},
                 {"parallelism: {dp: 8, tp: 8}\ntokens: {sequence_length: 4096}\nmodel:\n  model_config:\n"
                  "    num_hidden_layers: 80\n    hidden_size: 8192\n    intermediate_size: 28672\n"
                  "    num_attention_heads: 64\n",
                  "    rope_theta: 500000.0\n", SYNTAX_YAML}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        Arena arena = {0};
        const char *with_base = arena_format(&arena, "%s%s", files[i].sizes, files[i].base);
        cr_expect_str_eq(preset_of(files[i].sizes, files[i].syntax, &arena), "llama-2-70b", "case %zu", i);
        cr_expect_str_eq(preset_of(with_base, files[i].syntax, &arena), "llama-3-70b", "case %zu", i);
        arena_free(&arena);
    }
}
