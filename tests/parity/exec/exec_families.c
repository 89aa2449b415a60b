#include "tests/parity/exec/exec_families.h"

#include <string.h>

const char *const exec_families[EXEC_FAMILIES] = {"llama", "gpt2",  "gpt_neox", "mpt",     "gemma",
                                                  "qwen2", "qwen3", "phi3",     "mistral", "olmo2"};

ModelSpec exec_family(ModelSpec base, const char *type) {
    ModelSpec model = base;
    const bool known = model_set_family(&model, type);
    ASSERT(known);
    const bool gpt = strcmp(type, "gpt2") == 0, mpt = strcmp(type, "mpt") == 0, gemma = strcmp(type, "gemma") == 0;
    if (gpt || mpt || strcmp(type, "gpt_neox") == 0) {
        model.kv_heads = model.heads;
    }
    if (strcmp(type, "gpt_neox") == 0) {
        model.activation = ACTIVATION_GELU;
    }
    if (gemma) {
        model.head_dim *= 2;  // wider than hidden / heads
    }
    model.tied_embeddings = gpt || mpt || gemma;
    return model;
}
