// What a layer of each kind is made of: a row each. Parameters beside the choices that add them: model.h. FLOPs: PaLM
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

// Weights of the attention and feed-forward projections.
static int64_t dense_matrices(const ModelSpec *model) {
    const int64_t hidden = model->hidden;
    return hidden * (query_width(model) + 2 * key_width(model)) + query_width(model) * hidden +
           (mlp_inputs(model) + 1) * hidden * model->ffn;
}

static int64_t dense_vectors(const ModelSpec *model) {
    int64_t count = 2 * model_norm_parameters(model);
    count += model->qkv_bias ? query_width(model) + 2 * key_width(model) : 0;
    count += model->out_bias ? model->hidden : 0;
    count += model->mlp_bias ? mlp_inputs(model) * model->ffn + model->hidden : 0;
    count += model->qk_norm == QK_NORM_HEAD ? 2 * (int64_t)model->head_dim : 0;
    count += model->qk_norm == QK_NORM_WHOLE ? query_width(model) + key_width(model) : 0;
    return count;
}

static double full_attention_flops(const ModelSpec *model, int seq) {
    return 12.0 * (double)model->heads * model->head_dim * seq;
}

const LayerKindRow layer_kinds[LAYER_KIND_COUNT] = {
    [LAYER_DENSE] = {"dense", dense_matrices, dense_vectors, full_attention_flops},
};
