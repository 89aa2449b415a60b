// The built-in models: a row each. Figures are the published config.json of each model; the tests check the parameter counts
// against the published ones.

#include "sim/model/model.h"

static const ModelPreset presets[] = {
    {.spec = {.name = "tiny", .layers = 4, .hidden = 256, .heads = 16, .kv_heads = 8, .head_dim = 16, .ffn = 768, .vocab = 1024,
              .max_seq = 2048, .rope_theta = 10000.0, .norm_eps = 1e-5, .tied_embeddings = false,
              .source = "ndtune: small enough for CPUs, 16 and 8 heads so that every mesh of 8 ranks is legal"}},
    {.spec = {.name = "llama-2-7b", .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 32, .head_dim = 128, .ffn = 11008,
              .vocab = 32000, .max_seq = 4096, .rope_theta = 10000.0, .norm_eps = 1e-5, .tied_embeddings = false,
              .source = "meta-llama/Llama-2-7b-hf config.json"},
     .alias = "7b"},
    {.spec = {.name = "llama-3-8b", .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .ffn = 14336,
              .vocab = 128256, .max_seq = 8192, .rope_theta = 500000.0, .norm_eps = 1e-5, .tied_embeddings = false,
              .source = "meta-llama/Meta-Llama-3-8B config.json"}},
    {.spec = {.name = "llama-3-70b", .layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .head_dim = 128, .ffn = 28672,
              .vocab = 128256, .max_seq = 8192, .rope_theta = 500000.0, .norm_eps = 1e-5, .tied_embeddings = false,
              .source = "meta-llama/Meta-Llama-3-70B config.json"}},
};

const ModelPreset *model_presets(int *count) {
    *count = (int)(sizeof presets / sizeof presets[0]);
    return presets;
}
