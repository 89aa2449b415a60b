// Inside the feed-forward half: gate and up (one GEMM or two), or up alone, and the activation.

#include "sim/step/lower_ops.h"

// Eager gelu_new keeps tanh, 1 + tanh and x / 2 besides its input.
enum { WRITTEN_OUT_VALUES = 3 };

static bool is_gated(const Lowering *lowering) {
    return lowering->model->mlp == MLP_GATED;
}

static Linear mlp_linear(const Lowering *lowering, const char *name, const char *dgrad, const char *wgrad) {
    return (Linear){.name = name,
                    .backward_name = dgrad,
                    .weight_name = wgrad,
                    .unit = UNIT_LAYER,
                    .in = lowering->dims.hidden,
                    .out = lowering->dims.ffn};
}

static void set_slices(const Lowering *lowering, Linear *linear, bool gate, bool up) {
    linear->first = gate ? "wgate" : "wup";
    linear->last = up ? "wup" : "wgate";
    if (lowering->model->mlp_bias) {
        linear->first_bias = gate ? "bgate" : "bup";
        linear->last_bias = up ? "bup" : "bgate";
    }
}

static Projection mlp_projection(Lowering *lowering) {
    const int64_t ffn = lowering->dims.ffn;
    Projection projection = {.count = 1};
    if (is_gated(lowering) && lowering->fused_gate_up) {
        projection.linear[0] = mlp_linear(lowering, "gate up", "gate up dgrad", "gate up wgrad");
        projection.linear[0].out = 2 * ffn;
        set_slices(lowering, &projection.linear[0], true, true);
        projection.y[0] = tokens_by(lowering, "gate_up", 2 * ffn);
        projection.dy[0] = tokens_by(lowering, "dgate_up", 2 * ffn);
        return projection;
    }
    if (is_gated(lowering)) {
        projection.linear[0] = mlp_linear(lowering, "gate", "gate dgrad", "gate wgrad");
        set_slices(lowering, &projection.linear[0], true, false);
        projection.y[0] = tokens_by(lowering, "gate", ffn);
        projection.dy[0] = tokens_by(lowering, "dgate", ffn);
        projection.count = 2;
    }
    const int up = projection.count - 1;
    projection.linear[up] = mlp_linear(lowering, "up", "up dgrad", "up wgrad");
    set_slices(lowering, &projection.linear[up], false, true);
    projection.linear[up].shares_input = up > 0;
    projection.y[up] = tokens_by(lowering, "up", ffn);
    projection.dy[up] = tokens_by(lowering, "dup", ffn);
    return projection;
}

// What an eager framework keeps for the activation in addition to its input and its result: act(gate), and the values
// of an activation that is not fused.
static OpRef eager_values(Lowering *lowering) {
    const bool written_out = lowering->model->activation == ACTIVATION_GELU_NEW && lowering->plan->fused == FUSED_EAGER;
    const bool gate = is_gated(lowering) && (!lowering->target->fused_projections || lowering->target->gate_kept);
    const int64_t planes = (gate ? 1 : 0) + (written_out ? WRITTEN_OUT_VALUES : 0);
    if (planes == 0) {
        return op_absent();
    }
    return op_whole(lowering, tokens_by(lowering, "activation_values", planes * lowering->dims.ffn));
}

static Op *add_activation(Lowering *lowering, Section section, TaskKind kind, const char *name,
                          const Projection *projection) {
    const Dims *d = &lowering->dims;
    Op *op = op_add(lowering, section, kind, layer_phase(section), name);
    op_size(op, d->tokens, d->ffn);
    op->task.stride = is_gated(lowering) && projection->count == 1 ? 2 * d->ffn : d->ffn;
    op->task.activation = lowering->model->activation;
    return op;
}

static const char *activation_name(const Lowering *lowering, bool backward) {
    const bool silu = lowering->model->activation == ACTIVATION_SILU;
    if (is_gated(lowering)) {
        return silu ? (backward ? "swiglu backward" : "swiglu") : (backward ? "geglu backward" : "geglu");
    }
    return silu ? (backward ? "silu backward" : "silu") : (backward ? "gelu backward" : "gelu");
}

// Where gate and up are: columns of one tensor, or separate tensors.
static OpRef up_of(const Lowering *lowering, const int32_t part[MAX_PARTS], int count) {
    return count == 1 ? column(lowering, part[0], lowering->dims.ffn) : op_whole(lowering, part[1]);
}

static const StoredInput stored = {"gate_up_fp8", "gate_up_again", "gate up to fp8", "gate up from fp8"};

// Where it is kept in fp8, gate and up are columns of one tensor (fp8_rules.c).
static int64_t stored_elements(const Lowering *lowering) {
    return lowering->dims.tokens * 2 * lowering->dims.ffn;
}

// Written in one byte where the next product reads it so, else in two: of scales known beforehand one layout.
static int64_t spared_bytes(const Lowering *lowering, int64_t width) {
    const bool halved = fp8_fuses_casts(lowering) && lowering->plan->fp8_recipe == FP8_DELAYED;
    return halved ? lowering->dims.tokens * width : 0;
}

int32_t lower_mlp(Lowering *lowering, OpRef x) {
    const Projection projection = mlp_projection(lowering);
    projection_forward(lowering, &projection, x);
    lower_stored(lowering, &stored, projection.y[0], stored_elements(lowering));
    const int32_t s = tokens_by(lowering, "activation_out", lowering->dims.ffn);
    const OpRef values = eager_values(lowering);
    Op *op = add_activation(lowering, SECTION_LAYER_FORWARD, is_gated(lowering) ? TASK_SWIGLU : TASK_ACTIVATION,
                            activation_name(lowering, false), &projection);
    op->task.cast_bytes -= spared_bytes(lowering, lowering->dims.ffn);
    op_operand(op, op_whole(lowering, projection.y[0]), ACCESS_READ);
    if (is_gated(lowering)) {
        op_operand(op, up_of(lowering, projection.y, projection.count), ACCESS_READ);
    }
    OP_OPERANDS(op, ACCESS_WRITE, op_whole(lowering, s), values);
    return s;
}

int32_t mlp_inner(Lowering *lowering) {
    return tokens_by(lowering, "activation_out", lowering->dims.ffn);
}

int32_t mlp_inner_gradient(Lowering *lowering) {
    return tokens_by(lowering, "dactivation", lowering->dims.ffn);
}

Projection lower_mlp_backward(Lowering *lowering) {
    const Projection projection = mlp_projection(lowering);
    const OpRef values = eager_values(lowering), ds = op_whole(lowering, mlp_inner_gradient(lowering));
    const int32_t y[MAX_PARTS] = {lower_stored_backward(lowering, &stored, projection.y[0], stored_elements(lowering)),
                                  projection.y[1]};
    Op *op = add_activation(lowering, SECTION_LAYER_BACKWARD,
                            is_gated(lowering) ? TASK_SWIGLU_BACKWARD : TASK_ACTIVATION_BACKWARD,
                            activation_name(lowering, true), &projection);
    op->task.cast_bytes -= spared_bytes(lowering, 2 * lowering->dims.ffn);
    OP_OPERANDS(op, ACCESS_READ, ds, op_whole(lowering, y[0]));
    if (is_gated(lowering)) {
        op_operand(op, up_of(lowering, y, projection.count), ACCESS_READ);
    }
    op_operand(op, values, ACCESS_READ);
    op_operand(op, op_whole(lowering, projection.dy[0]), ACCESS_WRITE);
    if (is_gated(lowering)) {
        op_operand(op, up_of(lowering, projection.dy, projection.count), ACCESS_WRITE);
    }
    return projection;
}
