// Layers that predict further tokens (DeepSeek-V3, section 2.2; Megatron-core's multi_token_prediction.py), on the last
// stage: each concatenates the norm of a further token's embedding with that of the stream, projects both to one hidden
// width, runs a layer like the last one, and head and loss once more on its norm. The layer is one of the stage's
// (split_layers); the rest is here, around the head, as it is kept until backward. All read the stage's last stream:
// what one passes to the next has the same size. Not modelled: their projection in fp8.

#include "sim/step/further.h"

static const Section section = SECTION_TAIL;

static const char *name_of(Lowering *lowering, const char *name, int layer) {
    return arena_format(lowering->arena, "mtp%d_%s", layer + 1, name);
}

static Norm norm_of_layer(Lowering *lowering, const char *norm, int layer) {
    return (Norm){lowering->head_unit, name_of(lowering, norm, layer),
                  lowering->model->norm_bias ? name_of(lowering, arena_format(lowering->arena, "%s_bias", norm), layer)
                                             : NULL,
                  name_of(lowering, arena_format(lowering->arena, "%s_rstd", norm), layer)};
}

static Linear projection_of(Lowering *lowering, int layer) {
    const char *slice = name_of(lowering, "projection", layer);
    return (Linear){.name = "mtp projection",
                    .first = slice,
                    .last = slice,
                    .backward_name = "mtp projection dgrad",
                    .weight_name = "mtp projection wgrad",
                    .unit = lowering->head_unit,
                    .in = 2 * lowering->dims.hidden,
                    .out = lowering->dims.hidden / lowering->tp};
}

void add_further_vectors(Lowering *lowering, Unit *unit) {
    static const char *const norms[] = {"token_norm", "stream_norm", "final_norm"};
    for (int layer = 0; layer < lowering->held->further; layer++) {
        for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++) {
            const Norm norm = norm_of_layer(lowering, norms[i], layer);
            add_norm_slices(lowering, unit, norm.weight, norm.bias);
        }
    }
}

void add_further_matrices(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    for (int layer = 0; layer < lowering->held->further; layer++) {
        add_slice(lowering, unit,
                  &(SliceSpec){name_of(lowering, "projection", layer), SPLIT_ROWS, model->hidden,
                               2 * (int64_t)model->hidden, FILL_NORMAL, false});
    }
    if (lowering->held->further_table) {
        add_slice(lowering, unit,
                  &(SliceSpec){"further_embed", lowering->dims.embed_split ? SPLIT_ROWS : SPLIT_NONE, model->vocab,
                               model->hidden, FILL_NORMAL, false});
    }
}

// The embedding table: its own unit's, the head's if they are tied, or a copy.
static OpRef table_of(const Lowering *lowering, const int32_t tensors[UNIT_COUNT]) {
    const StageLayers *held = lowering->held;
    const int unit = held->embedding ? UNIT_EMBEDDING : lowering->head_unit;
    const char *slice = held->embedding ? "embed" : held->further_table ? "further_embed" : "lm_head";
    return unit_slice(lowering, tensors[unit], slice, slice);
}

// One of the two widths that the projection reads, or its gradient.
static void add_half(Lowering *lowering, Phase phase, int32_t half, int32_t both, int which) {
    const Dims *d = &lowering->dims;
    OpRef of_both = column(lowering, both, which * d->hidden);
    const OpRef alone = op_whole(lowering, half);
    Op *op = op_copy(lowering, section, phase, "mtp halves", d->tokens, d->hidden,
                     phase == PHASE_FORWARD ? alone : of_both, phase == PHASE_FORWARD ? of_both : alone);
    op->task.stride = 2 * d->hidden;
}

static int32_t embedded(Lowering *lowering, int layer) {
    const Dims *d = &lowering->dims;
    const int32_t partial = tokens_by(lowering, name_of(lowering, "embedded", layer), d->hidden);
    const int32_t token = between_by_hidden(lowering, name_of(lowering, "token", layer));
    Op *embed = add_embedding(lowering, section, TASK_EMBED, PHASE_FORWARD, "mtp embed");
    op_operand(embed, table_of(lowering, lowering->weights), ACCESS_READ);
    op_operand(embed, op_whole(lowering, d->embed_split ? partial : token), ACCESS_WRITE);
    if (d->embed_split) {
        mark_tp(lowering, section, MARK_TP_LEAVE, op_whole(lowering, partial), op_whole(lowering, token),
                "mtp embedding sum");
    }
    return token;
}

// The norm of x, whole on every tp rank: one half of the projection's input.
static void norm_half(Lowering *lowering, const char *norm, OpRef x, int which, int layer) {
    const Norm with = norm_of_layer(lowering, norm, layer);
    const int32_t y =
        between_by_hidden(lowering, name_of(lowering, arena_format(lowering->arena, "%s_out", norm), layer));
    const int32_t full = tokens_by(lowering, name_of(lowering, arena_format(lowering->arena, "%s_full", norm), layer),
                                   lowering->dims.hidden);
    add_norm(lowering, section, &with, x, y);
    mark_tp(lowering, section, MARK_TP_ENTER, op_whole(lowering, y), op_whole(lowering, full), "mtp in");
    add_half(lowering, PHASE_FORWARD, full,
             tokens_by(lowering, name_of(lowering, "in", layer), 2 * lowering->dims.hidden), which);
}

static int32_t projected(Lowering *lowering, int layer) {
    return between_by_hidden(lowering, name_of(lowering, "x", layer));
}

// Gathers the projection's columns from the tp ranks; each continues with its own tokens.
static void gather_columns(Lowering *lowering, int32_t part, int layer) {
    const Dims *d = &lowering->dims;
    const int32_t parts = tokens_by(lowering, name_of(lowering, "parts", layer), d->hidden);
    Op gather = op_collective(lowering, TASK_ALL_GATHER, LANE_TP, lowering->tp_group, "gather mtp", PHASE_LOSS);
    gather.task.payload_bytes = d->tokens * d->hidden * d->element;
    op_list_move(lowering, &lowering->lists[section], gather, op_whole(lowering, part), op_whole(lowering, parts),
                 ACCESS_WRITE);
    OpRef own = op_whole(lowering, parts);  // all columns of them
    own.bytes = d->tokens_between * d->hidden * d->element;
    op_copy(lowering, section, PHASE_FORWARD, "mtp own tokens", d->tokens_between, d->hidden, own,
            op_whole(lowering, projected(lowering, layer)));
}

static int32_t logits_of_layer(Lowering *lowering, int layer) {
    const Dims *d = &lowering->dims;
    return lowering_tensor(lowering, name_of(lowering, "logits", layer), ROLE_LOGITS, d->dtype, d->tokens * d->vocab);
}

static void forward_of(Lowering *lowering, const Linear *head, OpRef x_last, int layer) {
    const Dims *d = &lowering->dims;
    const Linear projection = projection_of(lowering, layer);
    const Norm final = norm_of_layer(lowering, "final_norm", layer);
    norm_half(lowering, "token_norm", op_whole(lowering, embedded(lowering, layer)), 0, layer);
    norm_half(lowering, "stream_norm", x_last, 1, layer);
    const int32_t in = tokens_by(lowering, name_of(lowering, "in", layer), 2 * d->hidden);
    const int32_t x = projected(lowering, layer);
    const int32_t part = lowering->tp > 1 ? tokens_by(lowering, name_of(lowering, "part", layer), projection.out) : x;
    add_forward(lowering, section, &projection, in, part);
    if (part != x) {
        gather_columns(lowering, part, layer);
    }
    const int32_t h = between_by_hidden(lowering, name_of(lowering, "head_in", layer));
    const int32_t h_full = tokens_by(lowering, name_of(lowering, "head_in_full", layer), d->hidden);
    add_norm(lowering, section, &final, op_whole(lowering, x), h);
    mark_tp(lowering, section, MARK_TP_ENTER, op_whole(lowering, h), op_whole(lowering, h_full), "mtp head in");
    add_forward(lowering, section, head, h_full, logits_of_layer(lowering, layer));
    Op *loss = op_mark(lowering, section, MARK_LOSS, "mtp loss");
    loss->task.rows = d->tokens;
    loss->task.accumulate = layer > 0;
    op_operand(loss, op_whole(lowering, logits_of_layer(lowering, layer)), ACCESS_UPDATE);
    op_operand(loss, op_whole(lowering, lowering_tensor(lowering, "targets", ROLE_RUNTIME, DTYPE_INT32, d->tokens)),
               ACCESS_READ);
}

void lower_further(Lowering *lowering, const Linear *head, OpRef x_last) {
    for (int layer = 0; layer < lowering->held->further; layer++) {
        forward_of(lowering, head, x_last, layer);
    }
}

// Backward of the head, on top of what the model's own tokens added to its weight gradient; dx of the projected stream.
static int32_t head_backward(Lowering *lowering, const Linear *head, int layer) {
    const Dims *d = &lowering->dims;
    const Norm final = norm_of_layer(lowering, "final_norm", layer);
    const int32_t h_full = tokens_by(lowering, name_of(lowering, "head_in_full", layer), d->hidden);
    const int32_t dh_full = tokens_by(lowering, name_of(lowering, "dhead_in_full", layer), d->hidden);
    const int32_t dh = between_by_hidden(lowering, name_of(lowering, "dhead_in", layer));
    const int32_t dx = between_by_hidden(lowering, name_of(lowering, "dx", layer));
    const OpRef logits = op_whole(lowering, logits_of_layer(lowering, layer));
    add_input_gradient(lowering, section, head, logits, dh_full);
    add_weight_gradient_rows(lowering, section, head,
                             &(Rows){.x = op_whole(lowering, h_full), .y = logits, .count = d->tokens});
    mark_tp(lowering, section, MARK_TP_ENTER_BACKWARD, op_whole(lowering, dh_full), op_whole(lowering, dh),
            "mtp head input gradient");
    add_norm_backward(lowering, section, &final,
                      &(NormBackward){.dy = op_whole(lowering, dh),
                                      .x = op_whole(lowering, projected(lowering, layer)),
                                      .residual = op_absent(),
                                      .dx = op_whole(lowering, dx)});
    return dx;
}

// All tokens, but only the columns that the tp rank's part of the projection produced.
static int32_t own_columns(Lowering *lowering, int32_t dx, int layer) {
    const Dims *d = &lowering->dims;
    const int32_t full = tokens_by(lowering, name_of(lowering, "dx_full", layer), d->hidden);
    const int32_t part = tokens_by(lowering, name_of(lowering, "dpart", layer), d->hidden / lowering->tp);
    mark_tp(lowering, section, MARK_TP_LEAVE_BACKWARD, op_whole(lowering, dx), op_whole(lowering, full),
            "mtp gradient");
    Op *own = op_copy(lowering, section, PHASE_BACKWARD, "mtp own columns", d->tokens, d->hidden / lowering->tp,
                      op_whole(lowering, full), op_whole(lowering, part));
    own->task.stride = d->hidden;
    return part;
}

// Backward of one half through its norm; to `dx`, added to `residual`.
static void half_back(Lowering *lowering, const char *norm, int which, int layer, OpRef x, OpRef residual, OpRef dx) {
    const Norm with = norm_of_layer(lowering, norm, layer);
    const char *name = arena_format(lowering->arena, "d%s", norm);
    const int32_t full = tokens_by(lowering, name_of(lowering, arena_format(lowering->arena, "%s_full", name), layer),
                                   lowering->dims.hidden);
    const int32_t dy = between_by_hidden(lowering, name_of(lowering, name, layer));
    add_half(lowering, PHASE_BACKWARD, full,
             tokens_by(lowering, name_of(lowering, "din", layer), 2 * lowering->dims.hidden), which);
    mark_tp(lowering, section, MARK_TP_ENTER_BACKWARD, op_whole(lowering, full), op_whole(lowering, dy),
            "mtp input gradient");
    add_norm_backward(lowering, section, &with,
                      &(NormBackward){.dy = op_whole(lowering, dy), .x = x, .residual = residual, .dx = dx});
}

// The table's gradient, after the head's if they are tied, and after a later layer's.
static void table_backward(Lowering *lowering, int32_t dtoken, int layer) {
    const StageLayers *held = lowering->held;
    const bool of_head = held->embedding ? lowering->model->tied_embeddings : !held->further_table;
    const int32_t full = tokens_by(lowering, name_of(lowering, "dtoken_full", layer), lowering->dims.hidden);
    mark_tp(lowering, section, MARK_TP_LEAVE_BACKWARD, op_whole(lowering, dtoken), op_whole(lowering, full),
            "mtp embedding gradient");
    Op *embed = add_embedding(lowering, section, TASK_EMBED_BACKWARD, PHASE_BACKWARD, "mtp embed backward");
    embed->task.accumulate = of_head || layer < held->further - 1;
    op_operand(embed, op_whole(lowering, full), ACCESS_READ);
    op_operand(embed, table_of(lowering, lowering->gradients), embed->task.accumulate ? ACCESS_UPDATE : ACCESS_WRITE);
}

OpRef lower_further_backward(Lowering *lowering, const Linear *head, OpRef x_last) {
    OpRef stream = op_absent();
    for (int layer = lowering->held->further - 1; layer >= 0; layer--) {
        const Linear projection = projection_of(lowering, layer);
        const int32_t in = tokens_by(lowering, name_of(lowering, "in", layer), projection.in);
        const int32_t din = tokens_by(lowering, name_of(lowering, "din", layer), projection.in);
        const int32_t token = between_by_hidden(lowering, name_of(lowering, "token", layer));
        const int32_t dtoken = between_by_hidden(lowering, name_of(lowering, "dtoken", layer));
        const int32_t dx = head_backward(lowering, head, layer);
        const OpRef dy = op_whole(lowering, lowering->tp > 1 ? own_columns(lowering, dx, layer) : dx);
        add_input_gradient(lowering, section, &projection, dy, din);
        add_weight_gradient(lowering, section, &projection, dy, in);
        half_back(lowering, "token_norm", 0, layer, op_whole(lowering, token), op_absent(), op_whole(lowering, dtoken));
        const OpRef sum = op_whole(lowering, between_by_hidden(lowering, "mtp_dstream"));
        half_back(lowering, "stream_norm", 1, layer, x_last, stream, sum);
        stream = sum;
        table_backward(lowering, dtoken, layer);
    }
    return stream;
}
