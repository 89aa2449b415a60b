// What a layer of each kind is made of: a row each. Parameters next to the choices that add them: model.h. FLOPs: PaLM
// appendix B.

#include "sim/model/layer_kinds.h"

static int64_t query_width(const ModelSpec *model) {
    return (int64_t)model->heads * model->head_dim;
}

static int64_t key_width(const ModelSpec *model) {
    return (int64_t)model->kv_heads * model->head_dim;
}

static int64_t mlp_inputs(const ModelSpec *model) {
    return model->mlp == MLP_GATED ? 2 : 1;
}

static int64_t latent_matrices(const ModelSpec *model) {
    const LatentAttention *latent = &model->latent;
    const int64_t hidden = model->hidden, heads = model->heads;
    const int64_t kept = model->head_dim - latent->rope;  // of a key, from the latent
    const int64_t queries =
        latent->q_rank > 0 ? latent->q_rank * (hidden + query_width(model)) : hidden * query_width(model);
    return queries + hidden * (latent->kv_rank + latent->rope) + latent->kv_rank * heads * (kept + latent->value) +
           heads * latent->value * hidden;
}

static int64_t attention_matrices(const ModelSpec *model) {
    return model->latent.kv_rank > 0
               ? latent_matrices(model)
               : model->hidden * (query_width(model) + 2 * key_width(model)) + query_width(model) * model->hidden;
}

static int64_t mlp_matrices(const ModelSpec *model, int64_t ffn) {
    return (mlp_inputs(model) + 1) * model->hidden * ffn;
}

// Weights of the attention and feed-forward projections.
static int64_t dense_matrices(const ModelSpec *model) {
    return attention_matrices(model) + mlp_matrices(model, model->ffn);
}

static int64_t attention_vectors(const ModelSpec *model) {
    int64_t count = (model->residual == RESIDUAL_BOTH_NORMS ? 4 : 2) * model_norm_parameters(model);
    count += model->qkv_bias ? query_width(model) + 2 * key_width(model) : 0;
    count += model->out_bias ? model->hidden : 0;
    count += model->qk_norm == QK_NORM_HEAD ? 2 * (int64_t)model->head_dim : 0;
    count += model->qk_norm == QK_NORM_WHOLE ? query_width(model) + key_width(model) : 0;
    count += model->sinks ? model->heads : 0;
    count += model->latent.kv_rank > 0 ? model->latent.q_rank + model->latent.kv_rank : 0;  // norms of the latents
    return count;
}

static int64_t dense_vectors(const ModelSpec *model) {
    return attention_vectors(model) + (model->mlp_bias ? mlp_inputs(model) * model->ffn + model->hidden : 0);
}

static int64_t nothing_idle(const ModelSpec *model) {
    (void)model;
    return 0;
}

static int64_t expert_matrices(const ModelSpec *model) {
    return mlp_matrices(model, model->experts.ffn);
}

static int64_t expert_vectors(const ModelSpec *model) {
    return model->experts.bias ? mlp_inputs(model) * model->experts.ffn + model->hidden : 0;
}

static int64_t experts_matrices(const ModelSpec *model) {
    const Experts *experts = &model->experts;
    return attention_matrices(model) + experts->count * (model->hidden + expert_matrices(model)) +
           mlp_matrices(model, experts->shared_ffn) + (experts->shared_gate ? model->hidden : 0);
}

static int64_t experts_vectors(const ModelSpec *model) {
    const Experts *experts = &model->experts;
    return attention_vectors(model) + experts->count * (expert_vectors(model) + (experts->router_bias ? 1 : 0));
}

static int64_t idle_matrices(const ModelSpec *model) {
    return (model->experts.count - model->experts.active) * expert_matrices(model);
}

static int64_t idle_vectors(const ModelSpec *model) {
    return (model->experts.count - model->experts.active) * expert_vectors(model);
}

static double full_attention_flops(const ModelSpec *model, int seq) {
    if (model->latent.kv_rank > 0) {
        return 6.0 * (double)model->heads * (model->head_dim + model->latent.value) * seq;
    }
    return 12.0 * (double)model->heads * model->head_dim * seq;
}

const LayerKindRow layer_kinds[LAYER_KIND_COUNT] = {
    [LAYER_DENSE] = {"dense", dense_matrices, dense_vectors, nothing_idle, nothing_idle, full_attention_flops},
    [LAYER_EXPERTS] = {"experts", experts_matrices, experts_vectors, idle_matrices, idle_vectors, full_attention_flops},
};
