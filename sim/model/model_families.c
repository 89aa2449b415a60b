// Families by name, for callers that have sizes from elsewhere (a config.json, a row of measured runs).

#include "sim/model/model_families.h"

#include <string.h>

#include "sim/model/model.h"

static const ModelSpec families[] = {
    {FAMILY_LLAMA},       {FAMILY_MISTRAL}, {FAMILY_QWEN2},
    {FAMILY_QWEN3},       {FAMILY_GEMMA},   {FAMILY_PHI3},
    {FAMILY_OLMO2},       {FAMILY_GPT2},    {FAMILY_GPT_NEOX, .activation = ACTIVATION_GELU},
    {FAMILY_MPT},         {FAMILY_MIXTRAL}, {FAMILY_QWEN2_MOE},
    {FAMILY_QWEN3_MOE},   {FAMILY_OLMOE},   {FAMILY_PHIMOE},
    {FAMILY_GPT_OSS},     {FAMILY_LLAMA4},  {FAMILY_DEEPSEEK_V2},
    {FAMILY_DEEPSEEK_V3}, {FAMILY_KIMI_K2}, {FAMILY_GEMMA2},
    {FAMILY_GEMMA3}};

static const int neox_rotary_divisor = 4;  // rotary_pct 0.25, transformers' GPTNeoXConfig

bool model_set_family(ModelSpec *model, const char *type) {
    const ModelSpec *family = NULL;
    for (size_t i = 0; i < sizeof families / sizeof families[0] && !family; i++) {
        family = strcmp(families[i].type, type) == 0 ? &families[i] : NULL;
    }
    if (!family) {
        return false;
    }
    model->type = family->type;
    model->norm = family->norm;
    model->norm_bias = family->norm_bias;
    model->mlp = family->mlp;
    model->activation = family->activation;
    model->position = family->position;
    model->qk_norm = family->qk_norm;
    model->residual = family->residual;
    model->qkv_bias = family->qkv_bias;
    model->out_bias = family->out_bias;
    model->mlp_bias = family->mlp_bias;
    model->fused_qkv = family->fused_qkv;
    model->fused_gate_up = family->fused_gate_up;
    model->rotary_dims = family->residual == RESIDUAL_PARALLEL ? model->head_dim / neox_rotary_divisor / 2 * 2 : 0;
    model->head_bias = family->head_bias;
    model->sinks = family->sinks;
    model->scaled_embeddings = family->scaled_embeddings;
    return true;
}
