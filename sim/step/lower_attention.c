// Attention and the projections around it, in the two forms that targets use: one GEMM for several parameter slices, or
// one each.

#include <math.h>

#include "sim/step/lower_ops.h"

// q, k and v in this order.
static Linear attention_linear(const Lowering *lowering, const char *name, int first, int last) {
    static const char *const weights[] = {"wq", "wk", "wv"};
    static const char *const biases[] = {"bq", "bk", "bv"};
    const bool biased = lowering->model->qkv_bias;
    return (Linear){.name = name,
                    .first = weights[first],
                    .last = weights[last],
                    .unit = UNIT_LAYER,
                    .in = lowering->dims.hidden,
                    .first_bias = biased ? biases[first] : NULL,
                    .last_bias = biased ? biases[last] : NULL};
}

static Projection attention_projection(Lowering *lowering) {
    static const char *const names[] = {"q", "k", "v"}, *const gradients[] = {"dq", "dk", "dv"};
    static const char *const dgrad[] = {"q dgrad", "k dgrad", "v dgrad"};
    static const char *const wgrad[] = {"q wgrad", "k wgrad", "v wgrad"};
    const Dims *d = &lowering->dims;
    Projection projection = {.count = lowering->fused_qkv ? 1 : 3};
    if (lowering->fused_qkv) {
        const int64_t width = d->qkv_width;
        projection.linear[0] = attention_linear(lowering, "qkv", 0, 2);
        projection.linear[0].backward_name = "qkv dgrad";
        projection.linear[0].weight_name = "qkv wgrad";
        projection.linear[0].out = width;
        projection.y[0] = tokens_by(lowering, "qkv", width);
        projection.dy[0] = tokens_by(lowering, "dqkv", width);
        return projection;
    }
    for (int i = 0; i < projection.count; i++) {
        const int64_t width = i == 0 ? d->q_width : d->k_width;
        projection.linear[i] = attention_linear(lowering, names[i], i, i);
        projection.linear[i].backward_name = dgrad[i];
        projection.linear[i].weight_name = wgrad[i];
        projection.linear[i].out = width;
        projection.linear[i].shares_input = i > 0;
        projection.y[i] = tokens_by(lowering, names[i], width);
        projection.dy[i] = tokens_by(lowering, gradients[i], width);
    }
    return projection;
}

void projection_forward(Lowering *lowering, const Projection *projection, OpRef x) {
    for (int i = 0; i < projection->count; i++) {
        const Rows rows = {x, op_whole(lowering, projection->y[i]), lowering->dims.tokens, true};
        add_forward_rows(lowering, SECTION_LAYER_FORWARD, &projection->linear[i], &rows);
    }
}

static void add_bias_gradient(Lowering *lowering, const Linear *linear, OpRef dy, bool first) {
    if (!linear->first_bias) {
        return;
    }
    Op *op =
        add_column_sum(lowering, "bias gradient", dy, linear->first_bias, linear->last_bias, lowering->dims.tokens);
    if (!first) {
        op->operands[op->operand_count - 1].access = ACCESS_UPDATE;
        op->task.accumulate = true;
    }
}

// Input gradients of all parts, summed into dx, along with the weight gradients.
void projection_backward(Lowering *lowering, const Projection *projection, const ProjectionInput *input,
                         const char *part_name) {
    const Section section = SECTION_LAYER_BACKWARD;
    const int64_t tokens = lowering->dims.tokens;
    for (int i = 0; i < projection->count; i++) {
        const OpRef dy = op_whole(lowering, projection->dy[i]);
        const OpRef part =
            i == 0 ? input->dx : op_whole(lowering, tokens_by(lowering, part_name, lowering->dims.hidden));
        const Rows read = {input->x, dy, tokens, input->first}, made = {part, dy, tokens, true};
        const bool weight_first = !lowering->target->tp_reduce_overlaps;
        if (weight_first) {
            add_weight_gradient_rows(lowering, section, &projection->linear[i], &read);
        }
        add_input_gradient_rows(lowering, section, &projection->linear[i], &made);
        mark_tp(lowering, section, MARK_TP_PART_BACKWARD, part, part, projection->linear[i].name);
        if (!weight_first) {
            add_weight_gradient_rows(lowering, section, &projection->linear[i], &read);
        }
        add_bias_gradient(lowering, &projection->linear[i], dy, input->first);
        if (i > 0) {
            add_sum(lowering, section, input->dx, part, input->dx, tokens * lowering->dims.hidden);
        }
    }
}

static AttentionRefs attention_refs(const Lowering *lowering, const int32_t part[MAX_PARTS], int count) {
    const Dims *d = &lowering->dims;
    if (count == 1) {
        const int64_t width = lowering_shares_keys(lowering) ? d->qkv_width * lowering->tp : d->qkv_width;
        return (AttentionRefs){column(lowering, part[0], 0), column(lowering, part[0], d->q_width),
                               column(lowering, part[0], d->q_width + d->k_width), width, width};
    }
    return (AttentionRefs){op_whole(lowering, part[0]), op_whole(lowering, part[1]), op_whole(lowering, part[2]),
                           d->q_width, d->k_width};
}

static void set_attention_shape(const Lowering *lowering, Task *task, const AttentionRefs *refs) {
    const Dims *d = &lowering->dims;
    task->rows = d->tokens;
    task->cols = d->local_seq;
    task->sequences = (int32_t)d->sequences;
    task->heads = d->heads;
    task->kv_heads = d->kv_heads;
    task->head_dim = d->head_dim;
    task->stride = refs->stride;
    task->kv_stride = refs->kv_stride;
    task->alibi = lowering->model->position == POSITION_ALIBI;
}

// Fraction of the stage's layers.
static double window_share(const Lowering *lowering) {
    int count = 0;
    for (int i = 0; i < lowering->model->layers; i++) {
        count += model_layer_slides(lowering->model, stage_model_layer(lowering->held, i));
    }
    return (double)count / lowering->model->layers;
}

// Layers with and without a sliding window are one list: their attention is the mean of both. Only a flash kernel over
// one rank's whole sequence skips the keys outside. Our own executor's also skips them under cp, unevenly over ranks:
// not modelled.
static void set_window(const Lowering *lowering, Task *task) {
    const ModelSpec *model = lowering->model;
    const bool skips = lowering->cp == 1 && lowering->plan->attention != ATTENTION_EAGER &&
                       lowering->plan->attention != ATTENTION_TRITON;
    const double share = skips && model->window > 0 && model->window < task->cols ? window_share(lowering) : 0;
    if (share > 0) {
        const double seen = (double)model->window / (double)task->cols;
        task->window = model->window;
        task->window_share = share;
        const double of_half = 1 - share + share * seen * (2 - seen);
        task->flops = floor(task->flops / task->sequences * of_half) * task->sequences;
    }
}

// Turned in place, queries are still a view of the product's packed result and keep all of it; what attention reads of
// keys and values is a copy.
static void touch_copies(Lowering *lowering, Op *op, Access access) {
    const Dims *d = &lowering->dims;
    const bool packed = lowering->fused_qkv && lowering->model->latent.kv_rank == 0;
    if (lowering->target->packed_kept && packed && d->kv_heads == d->heads) {
        op_operand(op, op_whole(lowering, tokens_by(lowering, "kv", d->k_width + d->v_width)), access);
    }
}

void add_rope(Lowering *lowering, Section section, const AttentionRefs *refs, bool backward) {
    const ModelSpec *model = lowering->model;
    if (model->position != POSITION_ROTARY) {
        return;
    }
    Op *op = op_add(lowering, section, TASK_ROPE, backward ? PHASE_BACKWARD : PHASE_FORWARD,
                    backward ? "rope backward" : "rope");
    set_attention_shape(lowering, &op->task, refs);
    op->task.backward = backward;
    op->task.inner = model->rotary_dims > 0 ? model->rotary_dims : model->head_dim;
    op->task.kv_heads = model->latent.kv_rank > 0 ? 1 : op->task.kv_heads;
    turn_apart(lowering, op, backward);
    join_apart(lowering, op, backward);
    copy_along(lowering, op);
    OP_OPERANDS(op, ACCESS_UPDATE, refs->q, refs->k);
    touch_copies(lowering, op, backward ? ACCESS_READ : ACCESS_WRITE);
}

static bool repeats_keys(const Lowering *lowering) {
    return lowering->dims.core_kv_heads > lowering->dims.kv_heads;
}

// For keys or values: one copy of each head per query head that reads it, or backward, the sum of their gradients. In
// compiled layers the rotation of keys itself writes, or reads, all copies: only the further ones cost extra.
static void add_repeat(Lowering *lowering, Section section, const char *name, OpRef from, OpRef to, bool turns) {
    const Dims *d = &lowering->dims;
    const bool joined = turns && lowering->plan->fused == FUSED_COMPILED;
    const int64_t width = (joined ? d->core_k_width - d->k_width : d->core_k_width + d->k_width) / 2;
    op_copy(lowering, section, layer_phase(section), name, d->tokens, width, from, to);
}

// Inputs of attention: queries as they are, keys and values repeated per query head where the target repeats them.
static AttentionRefs core_refs(Lowering *lowering, const AttentionRefs *refs, const char *const names[2]) {
    AttentionRefs core = *refs;
    if (repeats_keys(lowering)) {
        core.k = op_whole(lowering, tokens_by(lowering, names[0], lowering->dims.core_k_width));
        core.v = op_whole(lowering, tokens_by(lowering, names[1], lowering->dims.core_v_width));
        core.kv_stride = lowering->dims.core_k_width;
    }
    return core;
}

static AttentionRefs read_refs(Lowering *lowering, const AttentionRefs *refs) {
    return core_refs(lowering, refs, (const char *const[]){"k_repeated", "v_repeated"});
}

// A rotation of q in place would find it already rotated when recompute runs over a kept q: so q itself stays
// unrotated, and a copy is rotated.
void turn_a_copy(Lowering *lowering, Section section, AttentionRefs *refs) {
    const ModelSpec *model = lowering->model;
    const Dims *d = &lowering->dims;
    const bool turned = model->position == POSITION_ROTARY || model->qk_norm != QK_NORM_NONE;
    if (!turned || lowering->fused_qkv || !recompute_keeps(lowering, "q")) {
        return;
    }
    const OpRef turning = op_whole(lowering, tokens_by(lowering, "q_turned", d->q_width));
    if (section == SECTION_LAYER_FORWARD) {
        op_copy(lowering, section, PHASE_FORWARD, "copy q", d->tokens, d->q_width, refs->q, turning);
    }
    refs->q = turning;
}

typedef struct QkNormRefs {
    OpRef before, rstd;  // q and k before the norm: [q heads | k heads] per token
    OpRef wq, wk;
} QkNormRefs;

static QkNormRefs qk_norm_refs(Lowering *lowering, const int32_t tensors[UNIT_COUNT]) {
    const Dims *d = &lowering->dims;
    const int64_t norms = lowering->model->qk_norm == QK_NORM_HEAD ? d->heads + d->kv_heads : 2;
    const bool keeps = lowering->target->norms_keep && lowering->plan->fused == FUSED_EAGER;
    const int64_t per_token = norms + (keeps ? d->q_width + d->k_width : 0);  // as norm_statistics has it
    return (QkNormRefs){op_whole(lowering, tokens_by(lowering, "qk_before_norm", d->q_width + d->k_width)),
                        op_whole(lowering, row_statistics(lowering, "qk_rstd", d->tokens * per_token)),
                        unit_slice(lowering, tensors[UNIT_LAYER], "q_norm", "q_norm"),
                        unit_slice(lowering, tensors[UNIT_LAYER], "k_norm", "k_norm")};
}

static void set_qk_norm_shape(const Lowering *lowering, Task *task, const AttentionRefs *refs) {
    const Dims *d = &lowering->dims;
    set_attention_shape(lowering, task, refs);
    task->inner = lowering->model->qk_norm == QK_NORM_HEAD ? d->head_dim : d->q_width;
}

static void add_qk_norm(Lowering *lowering, const AttentionRefs *refs) {
    if (lowering->model->qk_norm == QK_NORM_NONE) {
        return;
    }
    const QkNormRefs norm = qk_norm_refs(lowering, lowering->weights);
    Op *op = op_add(lowering, SECTION_LAYER_FORWARD, TASK_QK_NORM, PHASE_FORWARD, "qk norm");
    set_qk_norm_shape(lowering, &op->task, refs);
    OP_OPERANDS(op, ACCESS_UPDATE, refs->q, refs->k);
    OP_OPERANDS(op, ACCESS_READ, norm.wq, norm.wk);
    OP_OPERANDS(op, ACCESS_WRITE, norm.before, norm.rstd);
}

static void add_qk_norm_backward(Lowering *lowering, const AttentionRefs *gradients) {
    if (lowering->model->qk_norm == QK_NORM_NONE) {
        return;
    }
    const QkNormRefs norm = qk_norm_refs(lowering, lowering->weights);
    const QkNormRefs change = qk_norm_refs(lowering, lowering->gradients);
    Op *op = op_add(lowering, SECTION_LAYER_BACKWARD, TASK_QK_NORM_BACKWARD, PHASE_BACKWARD, "qk norm backward");
    set_qk_norm_shape(lowering, &op->task, gradients);
    OP_OPERANDS(op, ACCESS_UPDATE, gradients->q, gradients->k);
    OP_OPERANDS(op, ACCESS_READ, norm.before, norm.wq, norm.wk, norm.rstd);
    OP_OPERANDS(op, ACCESS_WRITE, change.wq, change.wk);
}

// Causal: half of the square of queries and keys is visible; two GEMMs forward, five backward (FlashAttention-2,
// section 3.1). With packed documents: the squares of their lengths.
static double attention_flops(const Lowering *lowering) {
    const Dims *d = &lowering->dims;
    if (lowering->plan->pack > 0) {
        const double pairs = (double)d->local_seq * plan_document_tokens(lowering->plan) * 0.5;
        return floor(4.0 * d->heads * d->head_dim * pairs) * (double)d->sequences;
    }
    return 4.0 * (double)d->sequences * d->heads * d->head_dim * (double)d->local_seq * (double)d->local_seq * 0.5;
}

// Eager attention keeps the matrix of probabilities: 5 bytes per entry with dropout's mask (Korthikanti et al. 2022,
// section 4.1), 2 where nothing is dropped (PyTorch's dropout returns its input then, ATen/native/Dropout.cpp); Hugging
// Face's softmax keeps an fp32 and a bf16 copy, 6.
static OpRef eager_probabilities(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    if (lowering->plan->attention != ATTENTION_EAGER) {
        return op_absent();
    }
    const int64_t scores = d->sequences * d->heads * d->local_seq * d->local_seq;
    const int64_t each = lowering->plan->fused == FUSED_EAGER                  ? 6
                         : lowering->target->attention_dropout == DROPOUT_NONE ? 2
                                                                               : 5;
    const int64_t bytes = each * scores;
    return op_whole(lowering, lowering_tensor(lowering, "attention_probabilities", ROLE_ACTIVATION, DTYPE_FP8, bytes));
}

// What Megatron's own attention gives baddbmm to add nothing of: one for all layers.
static OpRef scores_buffer(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    if (lowering->plan->attention != ATTENTION_EAGER || !lowering->target->scores_buffer) {
        return op_absent();
    }
    const int64_t scores = d->sequences * d->heads * d->local_seq * d->local_seq;
    const int32_t buffer = lowering_tensor(lowering, "attention_scores_buffer", ROLE_RUNTIME, d->dtype, scores);
    lowering->tensors[buffer].persistent = true;
    return op_whole(lowering, buffer);
}

// Operands needed only in a program that is executed.
static void told_sinks(Lowering *lowering, Op *op) {
    if (lowering->model->sinks && lowering->target->own_kernels) {
        op_operand(op, unit_slice(lowering, lowering->weights[UNIT_LAYER], "sinks", "sinks"), ACCESS_READ);
    }
}

// Whether what the output projection reads is in fp8, beside what backward reads.
static bool casts_out(const Lowering *lowering) {
    return activation_dtype(lowering, "attention_out_fp8") == DTYPE_FP8;
}

// What backward reads of an attention that multiplies in fp8: its casts of queries, keys, values and results, in place
// of those in bf16 (Transformer Engine v2.8, dot_product_attention/backends.py, FusedAttnFunc: fp8_tensors). Not
// modelled: the same beside context parallelism, and scales of blocks.
static OpRef kept_in_fp8(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const bool casts = lowering->fp8 == FP8_TRANSFORMER_ENGINE && lowering->target->fp8_attention &&
                       lowering->plan->fp8_recipe != FP8_MX && lowering->cp * lowering->sp == 1;
    const int64_t width = d->q_width + d->core_k_width + d->core_v_width + d->o_width;
    return !casts ? op_absent()
                  : op_whole(lowering,
                             lowering_tensor(lowering, "attention_fp8", ROLE_ACTIVATION, DTYPE_FP8, d->tokens * width));
}

void add_attention(Lowering *lowering, const AttentionRefs *refs, int32_t o, int32_t lse) {
    const OpRef probabilities = eager_probabilities(lowering);
    Op *op = op_add(lowering, SECTION_LAYER_FORWARD, TASK_ATTENTION, PHASE_FORWARD, "attention");
    set_attention_shape(lowering, &op->task, refs);
    op->task.kv_heads = lowering->dims.core_kv_heads;
    op->task.flops = attention_flops(lowering);
    set_window(lowering, &op->task);
    OP_OPERANDS(op, ACCESS_READ, refs->q, refs->k, refs->v);
    OP_OPERANDS(op, ACCESS_WRITE, op_whole(lowering, o), op_whole(lowering, lse), probabilities);
    if (casts_out(lowering)) {
        op_operand(op, op_whole(lowering, attention_projected(lowering)), ACCESS_WRITE);
    }
    const OpRef kept = kept_in_fp8(lowering);
    if (kept.tensor >= 0) {
        op_operand(op, kept, ACCESS_WRITE);
    }
    const OpRef buffer = scores_buffer(lowering);
    if (buffer.tensor >= 0) {
        op_operand(op, buffer, ACCESS_WRITE);
    }
    told_sinks(lowering, op);
}

void add_attention_backward(Lowering *lowering, const AttentionRefs *refs, const AttentionRefs *gradients, int32_t o,
                            int32_t lse, int32_t d_o) {
    const Dims *d = &lowering->dims;
    const int32_t delta = lowering_tensor(lowering, "attention_delta", ROLE_RUNTIME, DTYPE_FP32, d->tokens * d->heads);
    const OpRef probabilities = eager_probabilities(lowering);
    Op *op = op_add(lowering, SECTION_LAYER_BACKWARD, TASK_ATTENTION_BACKWARD, PHASE_BACKWARD, "attention backward");
    set_attention_shape(lowering, &op->task, refs);
    op->task.kv_heads = d->core_kv_heads;
    op->task.flops = 2.5 * attention_flops(lowering);
    set_window(lowering, &op->task);
    const OpRef kept = kept_in_fp8(lowering);
    if (kept.tensor >= 0) {
        OP_OPERANDS(op, ACCESS_READ, kept, kept, kept, kept);
    } else {
        OP_OPERANDS(op, ACCESS_READ, refs->q, refs->k, refs->v, op_whole(lowering, o));
    }
    OP_OPERANDS(op, ACCESS_READ, op_whole(lowering, lse), op_whole(lowering, d_o));
    OP_OPERANDS(op, ACCESS_WRITE, gradients->q, gradients->k, gradients->v, op_whole(lowering, delta));
    op_operand(op, probabilities, ACCESS_READ);
    if (lowering->model->sinks) {
        op_operand(op, unit_slice(lowering, lowering->gradients[UNIT_LAYER], "sinks", "sinks"), ACCESS_WRITE);
    }
    told_sinks(lowering, op);
}

int32_t attention_inner(Lowering *lowering) {
    return tokens_by(lowering, "attention_out", lowering->dims.o_width);
}

int32_t attention_projected(Lowering *lowering) {
    return casts_out(lowering) ? tokens_by(lowering, "attention_out_fp8", lowering->dims.o_width)
                               : attention_inner(lowering);
}

int32_t attention_inner_gradient(Lowering *lowering) {
    return tokens_by(lowering, "dattention_out", lowering->dims.o_width);
}

int32_t attention_statistics(Lowering *lowering) {
    return row_statistics(lowering, "lse", lowering->dims.tokens * lowering->dims.heads);
}

static AttentionRefs value_halves(Lowering *lowering, const AttentionRefs *refs) {
    return attention_halves(lowering, refs, (const char *const[]){"q_half", "k_half", "v_half"});
}

int32_t lower_attention(Lowering *lowering, int32_t x) {
    if (lowering->model->latent.kv_rank > 0) {
        return lower_latent_attention(lowering, x);
    }
    Projection projection = attention_projection(lowering);
    projection_forward(lowering, &projection, op_whole(lowering, x));
    if (lowering_shares_keys(lowering)) {
        projection.y[0] = lower_shared_keys(lowering, projection.y[0]);
    }
    AttentionRefs refs = attention_refs(lowering, projection.y, projection.count);
    const int32_t o = attention_inner(lowering);
    turn_a_copy(lowering, SECTION_LAYER_FORWARD, &refs);
    add_qk_norm(lowering, &refs);
    add_rope(lowering, SECTION_LAYER_FORWARD, &refs, false);
    const AttentionRefs turned = refs;
    refs = value_halves(lowering, &turned);
    add_attention_casts(lowering, SECTION_LAYER_FORWARD, &turned, &refs);
    const AttentionRefs core = read_refs(lowering, &refs);
    if (repeats_keys(lowering)) {
        add_repeat(lowering, SECTION_LAYER_FORWARD, "repeat keys", refs.k, core.k, true);
        add_repeat(lowering, SECTION_LAYER_FORWARD, "repeat values", refs.v, core.v, false);
    }
    add_attention(lowering, &core, o, attention_statistics(lowering));
    return attention_projected(lowering);
}

Projection lower_attention_backward(Lowering *lowering) {
    if (lowering->model->latent.kv_rank > 0) {
        return lower_latent_attention_backward(lowering);
    }
    const Projection projection = attention_projection(lowering);
    const bool shares = lowering_shares_keys(lowering);
    const int32_t whole[MAX_PARTS] = {shares ? shared_keys_whole(lowering) : -1},
                  dwhole[MAX_PARTS] = {shares ? shared_keys_gradient(lowering) : -1};
    AttentionRefs refs = attention_refs(lowering, shares ? whole : projection.y, projection.count);
    turn_a_copy(lowering, SECTION_LAYER_BACKWARD, &refs);
    refs = value_halves(lowering, &refs);
    const AttentionRefs wide = attention_refs(lowering, shares ? dwhole : projection.dy, projection.count);
    const AttentionRefs gradients =
        attention_halves(lowering, &wide, (const char *const[]){"dq_half", "dk_half", "dv_half"});
    const AttentionRefs core = read_refs(lowering, &refs);
    const AttentionRefs core_gradients =
        core_refs(lowering, &gradients, (const char *const[]){"dk_repeated", "dv_repeated"});
    add_attention_backward(lowering, &core, &core_gradients, attention_inner(lowering), attention_statistics(lowering),
                           attention_inner_gradient(lowering));
    if (repeats_keys(lowering)) {
        add_repeat(lowering, SECTION_LAYER_BACKWARD, "sum values", core_gradients.v, gradients.v, false);
        add_repeat(lowering, SECTION_LAYER_BACKWARD, "sum keys", core_gradients.k, gradients.k, true);
    }
    add_attention_casts(lowering, SECTION_LAYER_BACKWARD, &gradients, &wide);
    add_rope(lowering, SECTION_LAYER_BACKWARD, &wide, true);
    add_qk_norm_backward(lowering, &wide);
    if (shares) {
        lower_shared_keys_backward(lowering, projection.dy[0]);
    }
    return projection;
}
