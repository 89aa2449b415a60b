// ModelSpec: the transformer that is trained. Llama type: RMSNorm, rotary positions, grouped-query attention, SwiGLU,
// no biases. Parameter counts: per layer 2*hidden (norms) + hidden*(heads + 2*kv_heads)*head_dim +
// heads*head_dim*hidden + 3*hidden*ffn; outside: vocab*hidden (embedding), hidden (final norm), vocab*hidden (head,
// unless tied). Source: Touvron et al. 2023, section 2.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/hash.h"

typedef struct ModelSpec {
    char name[64];
    int layers;
    int hidden;
    int heads;     // query heads
    int kv_heads;  // divides heads
    int head_dim;  // not always hidden / heads
    int ffn;       // width of each of gate and up
    int vocab;
    int max_seq;  // longest sequence the model was made for
    double rope_theta;
    double norm_eps;
    bool tied_embeddings;
    const char *source;  // where the figures come from; static or arena text
} ModelSpec;

typedef struct ModelPreset {
    ModelSpec spec;
    const char *alias;  // "7b" for llama-2-7b; NULL
} ModelPreset;

// The table of presets; *count rows.
const ModelPreset *model_presets(int *count);

// A preset name, an alias or the path of a Hugging Face config.json (model_type llama). USAGE with a suggestion
// otherwise.
Status model_find(const char *name_or_path, Arena *arena, ModelSpec *model, Error *error);

// Checks ranges and divisibility; USAGE names the field and the value.
Status model_check(const ModelSpec *model, Error *error);

int64_t model_layer_parameters(const ModelSpec *model);
int64_t model_parameters(const ModelSpec *model);       // all of them, tied counted once
int64_t model_flop_parameters(const ModelSpec *model);  // non-embedding; the head counts (even when tied)

// Training FLOPs per token: 6 * flop_parameters + 12 * layers * heads * head_dim * seq (full square; PaLM appendix B).
double model_flops_per_token(const ModelSpec *model, int seq);

void model_hash(const ModelSpec *model, Hash *hash);
