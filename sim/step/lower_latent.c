// Latent attention (DeepSeek-V2, section 2.1) as used in training: queries, and keys with values, come from low-rank
// products with a norm in between; then it is attention with as many key heads as query heads. Keys are concatenated
// from the latent's part and the one rotated part that all heads share. Key heads are longer than value heads: the
// attention task has the mean of both, which gives its work and its traffic. Under tp every rank computes the latents
// of all tokens.

#include "sim/step/lower_ops.h"

typedef struct Latents {
    Linear q, kv;        // from the layer's input
    Linear q_up, kv_up;  // to heads; q_up unused where queries come directly from the input
    int32_t q_latent, q_normed, kv_latent, kv_normed, queries, up, keys, values;
    int32_t dq_latent, dq_normed, dkv_latent, dkv_normed, dqueries, dup, dkeys, dvalues;
    bool low_rank_q, apart;  // apart: values in a separate tensor, the form in which cp and sp move them, all heads'
    int64_t value_column;    // column of up where values begin
} Latents;

static Linear linear_of(const char *name, const char *dgrad, const char *wgrad, const char *weight, int64_t in,
                        int64_t out) {
    return (Linear){.name = name,
                    .first = weight,
                    .last = weight,
                    .backward_name = dgrad,
                    .weight_name = wgrad,
                    .unit = UNIT_LAYER,
                    .in = in,
                    .out = out};
}

static Latents latents_of(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const ModelSpec *model = lowering->model;
    const LatentAttention *latent = &model->latent;
    const int64_t still = (int64_t)d->heads * (model->head_dim - latent->rope), kv = latent->kv_rank + latent->rope;
    const int64_t up = still + (int64_t)d->heads * latent->value;
    const bool low = latent->q_rank > 0;
    // Interleaved by head, as in the model's own code; programs that are only priced have all of the keys first.
    const bool by_head = lowering->target->own_kernels;
    Latents l = {.low_rank_q = low,
                 .apart = lowering->cp * lowering->sp > 1,
                 .value_column = by_head ? model->head_dim - latent->rope : still};
    l.q = low ? linear_of("q latent", "q latent dgrad", "q latent wgrad", "wq_latent", d->hidden, latent->q_rank)
              : linear_of("q", "q dgrad", "q wgrad", "wq", d->hidden, d->q_width);
    l.q_up = linear_of("q", "q dgrad", "q wgrad", "wq", latent->q_rank, d->q_width);
    l.kv = linear_of("kv latent", "kv latent dgrad", "kv latent wgrad", "wkv_latent", d->hidden, kv);
    l.kv_up = linear_of("kv", "kv dgrad", "kv wgrad", "wkv", latent->kv_rank, up);
    l.queries = tokens_by(lowering, "q", d->q_width);
    l.dqueries = tokens_by(lowering, "dq", d->q_width);
    if (low) {
        l.q_latent = tokens_by(lowering, "q_latent", latent->q_rank);
        l.q_normed = tokens_by(lowering, "q_latent_normed", latent->q_rank);
        l.dq_latent = tokens_by(lowering, "dq_latent", latent->q_rank);
        l.dq_normed = tokens_by(lowering, "dq_latent_normed", latent->q_rank);
    }
    l.kv_latent = tokens_by(lowering, "kv_latent", kv);
    l.kv_normed = tokens_by(lowering, "kv_latent_normed", latent->kv_rank);
    l.dkv_latent = tokens_by(lowering, "dkv_latent", kv);
    l.dkv_normed = tokens_by(lowering, "dkv_latent_normed", latent->kv_rank);
    l.up = tokens_by(lowering, "kv_up", up);
    l.dup = tokens_by(lowering, "dkv_up", up);
    l.keys = tokens_by(lowering, "k", (int64_t)d->heads * model->head_dim);
    l.values = l.apart ? tokens_by(lowering, "v", (int64_t)d->heads * latent->value) : -1;
    l.dvalues = tokens_by(lowering, "dv", (int64_t)d->heads * latent->value);
    l.dkeys = tokens_by(lowering, "dk", (int64_t)d->heads * model->head_dim);
    return l;
}

typedef struct LatentNorm {
    const char *weight, *statistics;
    int64_t cols, stride;  // stride: of the rows that they lead; needed only in a program that is executed
} LatentNorm;

static LatentNorm q_norm(const Lowering *lowering) {
    const int64_t rank = lowering->model->latent.q_rank;
    return (LatentNorm){"q_latent_norm", "q_latent_rstd", rank, lowering->target->own_kernels ? rank : 0};
}

static LatentNorm kv_norm(const Lowering *lowering) {
    const LatentAttention *latent = &lowering->model->latent;
    return (LatentNorm){"kv_latent_norm", "kv_latent_rstd", latent->kv_rank,
                        lowering->target->own_kernels ? latent->kv_rank + latent->rope : 0};
}

static void norm_latent(Lowering *lowering, const LatentNorm *norm, int32_t x, int32_t y) {
    const OpRef rstd = op_whole(lowering, row_statistics(lowering, norm->statistics, lowering->dims.tokens));
    Op *op = op_add(lowering, SECTION_LAYER_FORWARD, TASK_RMSNORM, PHASE_FORWARD, "latent norm");
    op_size(op, lowering->dims.tokens, norm->cols);
    op->task.stride = norm->stride;
    OP_OPERANDS(op, ACCESS_READ, op_whole(lowering, x),
                unit_slice(lowering, lowering->weights[UNIT_LAYER], norm->weight, norm->weight));
    OP_OPERANDS(op, ACCESS_WRITE, op_whole(lowering, y), rstd);
}

static void norm_latent_backward(Lowering *lowering, const LatentNorm *norm, int32_t dy, int32_t x, int32_t dx,
                                 Access dx_access) {
    const OpRef rstd = op_whole(lowering, row_statistics(lowering, norm->statistics, lowering->dims.tokens));
    Op *op = op_add(lowering, SECTION_LAYER_BACKWARD, TASK_RMSNORM_BACKWARD, PHASE_BACKWARD, "latent norm backward");
    op_size(op, lowering->dims.tokens, norm->cols);
    op->task.within = true;
    op->task.stride = norm->stride;
    OP_OPERANDS(op, ACCESS_READ, op_whole(lowering, dy), op_whole(lowering, x),
                unit_slice(lowering, lowering->weights[UNIT_LAYER], norm->weight, norm->weight), rstd, op_absent());
    op_operand(op, op_whole(lowering, dx), dx_access);
    op_operand(op, unit_slice(lowering, lowering->gradients[UNIT_LAYER], norm->weight, norm->weight), ACCESS_WRITE);
}

// Concatenates the keys of all heads from the latent's part and the shared one.
static void put_together(Lowering *lowering, const Latents *l) {
    const int64_t width = (int64_t)lowering->dims.heads * lowering->model->head_dim;
    Op *op = op_copy(lowering, SECTION_LAYER_FORWARD, PHASE_FORWARD, "keys", lowering->dims.tokens, width,
                     op_whole(lowering, l->up), op_whole(lowering, l->keys));
    op_operand(op, op_whole(lowering, l->kv_latent), ACCESS_READ);
}

static OpRef values_beside_keys(const Lowering *lowering, const Latents *l) {
    return column(lowering, l->up, l->value_column);
}

// Head by head from the output of the product that makes both.
static void set_values_apart(Lowering *lowering, const Latents *l) {
    const int64_t heads = lowering->dims.heads;
    Op *op = op_copy(lowering, SECTION_LAYER_FORWARD, PHASE_FORWARD, "values", lowering->dims.tokens * heads,
                     lowering->model->latent.value, values_beside_keys(lowering, l), op_whole(lowering, l->values));
    op->task.stride = l->kv_up.out / heads;
}

// Gradients of keys and values -> gradient of the product that made them, and of the shared part.
static void take_apart(Lowering *lowering, const Latents *l) {
    Op *op = op_copy(lowering, SECTION_LAYER_BACKWARD, PHASE_BACKWARD, "keys backward", lowering->dims.tokens,
                     l->kv_up.out, op_whole(lowering, l->dkeys), op_whole(lowering, l->dup));
    op_operand(op, op_whole(lowering, l->dvalues), ACCESS_READ);
    op_operand(op, op_whole(lowering, l->dkv_latent), ACCESS_WRITE);
}

static AttentionRefs refs_of(const Lowering *lowering, const Latents *l, bool gradients) {
    return (AttentionRefs){.q = op_whole(lowering, gradients ? l->dqueries : l->queries),
                           .k = op_whole(lowering, gradients ? l->dkeys : l->keys),
                           .v = gradients  ? op_whole(lowering, l->dvalues)
                                : l->apart ? op_whole(lowering, l->values)
                                           : values_beside_keys(lowering, l),
                           .stride = lowering->dims.q_width,
                           .kv_stride = (int64_t)lowering->dims.heads * lowering->model->head_dim};
}

int32_t lower_latent_attention(Lowering *lowering, int32_t x) {
    const Section section = SECTION_LAYER_FORWARD;
    const Latents l = latents_of(lowering);
    const LatentNorm of_q = q_norm(lowering), of_kv = kv_norm(lowering);
    add_forward(lowering, section, &l.q, x, l.low_rank_q ? l.q_latent : l.queries);
    if (l.low_rank_q) {
        norm_latent(lowering, &of_q, l.q_latent, l.q_normed);
        add_forward(lowering, section, &l.q_up, l.q_normed, l.queries);
    }
    add_forward(lowering, section, &l.kv, x, l.kv_latent);
    norm_latent(lowering, &of_kv, l.kv_latent, l.kv_normed);
    add_forward(lowering, section, &l.kv_up, l.kv_normed, l.up);
    AttentionRefs refs = refs_of(lowering, &l, false);
    put_together(lowering, &l);
    if (l.apart) {
        set_values_apart(lowering, &l);
    }
    turn_a_copy(lowering, section, &refs);
    add_rope(lowering, section, &refs, false);
    add_attention(lowering, &refs, attention_inner(lowering), attention_statistics(lowering));
    return attention_projected(lowering);
}

Projection lower_latent_attention_backward(Lowering *lowering) {
    const Section section = SECTION_LAYER_BACKWARD;
    const Latents l = latents_of(lowering);
    const LatentNorm of_q = q_norm(lowering), of_kv = kv_norm(lowering);
    AttentionRefs refs = refs_of(lowering, &l, false);
    const AttentionRefs gradients = refs_of(lowering, &l, true);
    turn_a_copy(lowering, section, &refs);
    add_attention_backward(lowering, &refs, &gradients, attention_inner(lowering), attention_statistics(lowering),
                           attention_inner_gradient(lowering));
    add_rope(lowering, section, &gradients, true);
    take_apart(lowering, &l);
    add_input_gradient(lowering, section, &l.kv_up, op_whole(lowering, l.dup), l.dkv_normed);
    add_weight_gradient(lowering, section, &l.kv_up, op_whole(lowering, l.dup), l.kv_normed);
    norm_latent_backward(lowering, &of_kv, l.dkv_normed, l.kv_latent, l.dkv_latent, ACCESS_UPDATE);
    if (l.low_rank_q) {
        add_input_gradient(lowering, section, &l.q_up, op_whole(lowering, l.dqueries), l.dq_normed);
        add_weight_gradient(lowering, section, &l.q_up, op_whole(lowering, l.dqueries), l.q_normed);
        norm_latent_backward(lowering, &of_q, l.dq_normed, l.q_latent, l.dq_latent, ACCESS_WRITE);
    }
    Projection projection = {.count = 2, .linear = {l.q, l.kv}};
    projection.linear[1].shares_input = true;
    projection.dy[0] = l.low_rank_q ? l.dq_latent : l.dqueries;
    projection.dy[1] = l.dkv_latent;
    return projection;
}
