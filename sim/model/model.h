// ModelSpec: the transformer that is trained, a decoder described by sizes and a few choices as data. All choices zero
// is a Llama: RMSNorm before each half of a layer, rotary positions, grouped-query attention, SwiGLU, no biases
// (Touvron et al. 2023, section 2). What each choice adds to the parameter count is noted next to it; tests hold the
// counts against the published ones.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/hash.h"

typedef enum { NORM_RMS, NORM_LAYER, NORM_COUNT } NormKind;

typedef enum { MLP_GATED, MLP_PLAIN, MLP_COUNT } MlpKind;  // down(act(gate) * up) or down(act(up))

// GELU: with erf; GELU_TANH: its tanh form; GELU_NEW: that form written out operation by operation, as transformers'
// gelu_new is, one kernel where fused.
typedef enum {
    ACTIVATION_SILU,
    ACTIVATION_GELU,
    ACTIVATION_GELU_NEW,
    ACTIVATION_GELU_TANH,
    ACTIVATION_COUNT
} Activation;

typedef enum { POSITION_ROTARY, POSITION_LEARNED, POSITION_ALIBI, POSITION_COUNT } PositionKind;

// Norm of queries and keys: of each head (qwen3) or of all heads of a token together (olmo2).
typedef enum { QK_NORM_NONE, QK_NORM_HEAD, QK_NORM_WHOLE, QK_NORM_COUNT } QkNorm;

// A layer's halves, attention A and feed-forward F: x += A(norm x), x += F(norm x); x += A(norm x) + F(norm' x)
// (gpt_neox); x += norm A(x), x += norm F(x) (olmo2); x += norm' A(norm x), x += norm' F(norm x) (gemma2, 3).
typedef enum {
    RESIDUAL_PRE_NORM,
    RESIDUAL_PARALLEL,
    RESIDUAL_POST_NORM,
    RESIDUAL_BOTH_NORMS,
    RESIDUAL_COUNT
} ResidualKind;

// Longer sequences than a model was pre-trained on: pairs that rotate less than `low` times over `original` positions
// rotate `factor` times slower, those above `high` times as they are, those between in between (Llama 3.1).
// original 0: all of them slower (linear). factor 0: none.
typedef struct RopeScaling {
    double factor, low, high, original;
} RopeScaling;

// Of type yarn, which is not run: for files of frameworks that do. original 0: the model's own; factor 0: none.
typedef struct YarnScaling {
    double factor, mscale, mscale_all, original, fast, slow;
    bool unrounded;  // between which pairs it goes from one speed to the other (truncate false)
} YarnScaling;

// A row of layer_kinds.h. Dense: one feed-forward half; experts: a router and many, of which a token visits a
// few.
typedef enum { LAYER_DENSE, LAYER_EXPERTS, LAYER_KIND_COUNT } LayerKind;

// A router whose scores are sigmoids (DeepSeek-V3, section 2.1.2): a token is routed to the largest scores, with a bias
// for each expert that no gradient moves, among the experts of its best groups; weights are the scores over their sum
// (unscaled: the scores), times the factor. How the bias balances experts from step to step is not modelled: it stays
// zero.
typedef struct SigmoidRouter {
    int groups;  // of the experts; 0 = weights by a softmax, no sigmoids
    int active_groups;
    double factor;  // of the weights
} SigmoidRouter;

// The feed-forward half of a layer of experts. Each is gated where the model's is: 3 * hidden * ffn parameters.
typedef struct Experts {
    int count;         // in a layer, without the shared ones; 0 = the model has none
    int active;        // active per token (top-k)
    int ffn;           // width of each
    int shared_ffn;    // of the shared ones together, which every token visits; 0 = none
    bool shared_gate;  // hidden more: a gate on what the shared one adds (qwen2_moe)
    bool router_bias;  // count more
    bool bias;         // of the experts' products (gpt_oss)
    bool unscaled;     // a token's weights are those of a softmax over all experts, not over the ones that it visits
    bool in_turn;      // a benchmark's gate: a token visits the experts after those of the token before it
    bool alike;        // tokens of two kinds, as a benchmark's: of measured rows alone (experts_alike_imbalance)
    SigmoidRouter sigmoid;
    double balance;  // weight of each layer's load-balancing loss; 0 = none
} Experts;

// Queries, keys and values from low-rank products (DeepSeek-V2, section 2.1); head_dim is that of queries and keys.
// Training expands them to keys and values of every head.
typedef struct LatentAttention {
    int q_rank;   // 0: queries come from hidden directly
    int kv_rank;  // 0: no latent attention
    int rope;     // elements of a head that are rotated: one such key serves all heads
    int value;    // elements of a head's value
} LatentAttention;

// Layers of one kind, one after another.
typedef struct LayerRun {
    LayerKind kind;
    int first, count;
} LayerRun;

typedef struct ModelSpec {
    char name[64];
    int layers;
    const LayerRun *runs;  // of all layers, in order; static or arena memory
    int run_count;         // 0 = one run, of dense layers or of experts
    int hidden;
    int heads;     // query heads
    int kv_heads;  // divides heads
    int head_dim;  // not always hidden / heads
    int ffn;       // width of the feed-forward half, of each of gate and up
    int vocab;
    int window;        // tokens that attention looks back, where the model's own code limits it; 0 = all
    int window_first;  // layers below this one look back all the way (qwen2's max_window_layers)
    int window_every;  // and so does every n-th layer (2: the second, fourth ..); 0 = no further one
    int max_seq;       // longest sequence the model supports; rows of the table of learned positions
    double rope_theta;
    double rope_local;  // theta of sliding-window layers, which is not scaled; 0 = as the others
    RopeScaling rope_scaling;
    YarnScaling yarn;
    const char *positions;            // of a type that is not read, as longrope and dynamic are; NULL
    int score_scalar;                 // scores are divided by its square root (gemma-3-27b); 0 = by that of head_dim
    double attention_cap, logit_cap;  // scores, and the head's, are cap tanh(x / cap) (gemma2); 0 = as they are
    double norm_eps;
    bool tied_embeddings;
    NormKind norm;
    bool norm_bias;  // layer norms only; hidden more per norm
    MlpKind mlp;
    Activation activation;
    PositionKind position;  // learned: max_seq * hidden parameters
    int rotary_dims;        // leading elements of a head that are rotated; 0 = all of head_dim
    QkNorm qk_norm;         // per head: 2 * head_dim parameters in a layer; whole: (heads + kv_heads) * head_dim
    ResidualKind residual;
    bool qkv_bias;           // (heads + 2*kv_heads) * head_dim
    bool out_bias;           // hidden
    bool mlp_bias;           // ffn (twice when gated) + hidden
    bool fused_qkv;          // the model's own code keeps wq, wk, wv in one matrix
    bool fused_gate_up;      //   and gate and up
    bool scaled_embeddings;  // embeddings are multiplied by sqrt(hidden) (gemma)
    bool head_bias;          // vocab
    bool sinks;              // heads more in a layer: attention sinks, scores without a key (gpt_oss)
    Experts experts;
    LatentAttention latent;
    const char *type;    // Hugging Face's model_type; NULL = llama
    const char *note;    // one sentence on what differs from the model's own code; NULL = nothing
    const char *path;    // of the config.json that it was read from; NULL = a preset
    const char *source;  // where the figures come from; static or arena text
} ModelSpec;

typedef struct ModelPreset {
    ModelSpec spec;
    const char *alias;  // "7b" for llama-2-7b; NULL
} ModelPreset;

// The table of presets; *count rows.
const ModelPreset *model_presets(int *count);

// Whether a layer's attention is limited to the window.
static inline bool model_layer_slides(const ModelSpec *model, int layer) {
    const bool full = model->window_every > 0 && (layer + 1) % model->window_every == 0;
    return model->window > 0 && layer >= model->window_first && !full;
}

// Would model_find know the name, or is it a path?
bool model_is_known(const char *name_or_path);

// A preset by its name, alias or name on the Hugging Face hub (model_names.h), or a file in the form of its config.json
// (the types of model_config.c), or the folder of one. USAGE with a suggestion otherwise.
Status model_find(const char *name_or_path, Arena *arena, ModelSpec *model, Error *error);

// Checks ranges, divisibility and choices that exclude each other; USAGE names the field and the value.
Status model_check(const ModelSpec *model, Error *error);

// Sets the choices (not the sizes) of a family by Hugging Face's model_type; false when there is no such family.
bool model_set_family(ModelSpec *model, const char *type);

int model_run_count(const ModelSpec *model);            // at least 1
LayerRun model_run(const ModelSpec *model, int index);  // of equal layers, in order

bool model_norms_behind(const ModelSpec *model);  // a half's output is normalised before it is added
int64_t model_layer_parameters(const ModelSpec *model, LayerKind kind);  // of one layer
int64_t model_layers_parameters(const ModelSpec *model);                 // of all layers
int64_t model_expert_parameters(const ModelSpec *model);  // of the experts that a token chooses from: matrices
int64_t model_parameters(const ModelSpec *model);         // all of them, tied counted once
int64_t
model_flop_parameters(const ModelSpec *model);  // non-embedding, active per token; the head counts (even when tied)

// Training FLOPs per token: 6 * flop_parameters + 12 * heads * head_dim * seq of a dense layer (full square; PaLM
// appendix B; of a sliding window too, whose rate then stays comparable with the printed ones).
double model_flops_per_token(const ModelSpec *model, int seq);

// Of each layer that predicts a further token (DeepSeek-V3, section 2.2): a layer like the last, three norms, and a
// projection of two hidden widths to one; the tables are the model's. Per token as above, the head once more.
int64_t model_further_parameters(const ModelSpec *model);
double model_further_flops_per_token(const ModelSpec *model, int seq);

// Of equal parts of a layer's experts, how many a token visits in the mean. It chooses alike among all, or among those
// of its best groups, of which it visits each (3.97 of DeepSeek-V3's 4 by random scores).
double experts_parts_visited(const Experts *experts, int parts);

// Where a router that learns decides: tokens of the busiest of equal parts of a layer's experts over the mean, in per
// cent. Early in training, with a loss or a bias for balance; without either it grows.
int experts_learned_imbalance(const Experts *experts, int parts);

// The same where training has not moved routers yet, or nothing balances them: as weights are drawn.
int experts_starting_imbalance(const ModelSpec *model, int parts);

// The same of tokens of two kinds alone, half of each: all of a kind choose the same experts, a kind any, not known
// which. A benchmark that repeats one word and fills sequences up behind it.
int experts_alike_imbalance(const Experts *experts, int parts);

void model_hash(const ModelSpec *model, Hash *hash);  // of the structure: a name is none
